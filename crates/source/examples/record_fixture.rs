//! Records a new fixture for the decoder's tests and benchmark, on CPU 1 of this machine: `cargo run -p
//! jitterscope-source --example record_fixture [FOLDER]` as root. The counts in `tests/golden.rs` belong to the
//! recording and change with it.

#[path = "../tests/support/fixture.rs"]
mod fixture;
#[path = "../tests/support/load.rs"]
mod load;

use fixture::StoredPage;
use jitterscope_model::{ClockKind, EventGrain, EventKind};
use jitterscope_platform::Machine;
use jitterscope_source::{Decoder, Recorder, RecorderSettings, Role, Symbols, Tracefs};
use std::path::PathBuf;
use std::time::Duration;

/// The fixture is cut to this many bytes of pages for each role.
const LARGEST: usize = 100 << 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(fixture::folder, PathBuf::from);
    let machine = Machine::host();
    let tracefs = Tracefs::open(&machine)?;
    let online = machine
        .read_trimmed("/sys/devices/system/cpu/online")?
        .parse()?;
    let settings = RecorderSettings {
        measured: "1".parse()?,
        online,
        clock: ClockKind::Tsc,
        buffer_kb_per_cpu: 4096,
        follow_threads: false,
        charges_later: false,
        grain: EventGrain::All,
        asked: Vec::new(),
    };
    let start = std::time::Instant::now();
    let mut recorder = Recorder::start(&tracefs, &settings)?;
    eprintln!("started in {:?}", start.elapsed());
    let mut pages = Vec::new();
    load::run(1, 0, Duration::from_millis(1000));
    recorder.stop()?;
    for role in [Role::Local, Role::Senders] {
        for cpu in recorder.cpus(role).iter() {
            recorder.drain(role, cpu, &mut |bytes| {
                pages.push(StoredPage {
                    role,
                    cpu,
                    bytes: bytes.to_vec(),
                });
            })?;
        }
    }
    for report in recorder.reports() {
        eprintln!("{report:?}");
    }
    let mut context = recorder.context().clone();
    let start = std::time::Instant::now();
    drop(recorder);
    eprintln!("removed in {:?}", start.elapsed());
    let mut sizes = [0; 2];
    pages.retain(|page| {
        let size = &mut sizes[page.role as usize];
        *size += page.bytes.len();
        *size <= LARGEST
    });
    let symbols = Symbols::load(&machine)?;
    let mut addresses = Vec::new();
    let mut decoder = Decoder::new(&context)?;
    for page in &pages {
        decoder.page(page.cpu, &page.bytes, |event| match event.kind {
            EventKind::WorkStart { function, .. }
            | EventKind::TimerEntry { function, .. }
            | EventKind::HrtimerEntry { function, .. }
            | EventKind::CsdEntry { function, .. } => addresses.push(function),
            EventKind::IpiSendCpu {
                callsite, callback, ..
            }
            | EventKind::IpiSendCpumask {
                callsite, callback, ..
            } => addresses.extend([callsite, callback]),
            _ => {}
        })?;
    }
    context.keep_symbols(&symbols, addresses);
    eprintln!(
        "{:?}; {} symbols in {} KiB",
        decoder.counts(),
        symbols.len(),
        symbols.memory() >> 10
    );
    fixture::write(&folder, &context, &pages)?;
    Ok(())
}
