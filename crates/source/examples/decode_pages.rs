//! Decodes the pages of a `trace.dat` (trace-cmd, or `jitterscope export --to tracedat://FILE`), and says which threads
//! had each CPU for how long: `cargo run -p jitterscope-source --example decode_pages FILE`. Some kernels record no switch
//! to the idle thread; its time then counts for the thread before. `jitterscope-attribute` notices that, this does not.

use jitterscope_model::{ClockKind, EventKind, Ticks};
use jitterscope_source::tracedat::{TraceDat, least_memory};
use jitterscope_source::{Decoder, TraceContext};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs::File;

/// The threads that are shown of each CPU.
const SHOWN: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which trace.dat?")?;
    let trace = TraceDat::open(File::open(path)?)?;
    let context = TraceContext {
        header_page: trace.header_page.clone(),
        formats: trace.formats.clone(),
        // Times stay in the file's own unit here, so any clock will do.
        clock: ClockKind::MonotonicRaw,
        symbols: BTreeMap::new(),
        tasks: BTreeMap::new(),
        setup: Vec::new(),
    };
    for buffer in &trace.buffers {
        let memory = usize::try_from(least_memory(buffer.page_size))?;
        for data in &buffer.cpus {
            let mut decoder = Decoder::new(&context)?;
            let mut pages = trace.pages(buffer, data, memory);
            let mut had: HashMap<i32, (String, u64)> = HashMap::new();
            let mut since: Option<Ticks> = None;
            while let Some(page) = pages.peek()? {
                let info = decoder.page(data.cpu, page, |event| {
                    if let EventKind::SchedSwitch { prev, .. } = &event.kind
                        && let Some(since) = since.replace(event.time)
                    {
                        let thread = had.entry(prev.tid).or_default();
                        thread.0 = prev.comm.to_string();
                        thread.1 += event.time.since(since).0;
                    }
                })?;
                // Who ran in between is not known.
                if info.damaged || info.loss != jitterscope_source::PageLoss::None {
                    since = None;
                }
                pages.pass();
            }
            let counts = decoder.counts();
            if counts.events == 0 {
                continue;
            }
            println!(
                "CPU {} {}: {} events, {} lost",
                data.cpu, buffer.name, counts.events, counts.lost
            );
            let mut had: Vec<_> = had.into_iter().collect();
            had.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
            for (tid, (name, time)) in had.into_iter().take(SHOWN) {
                println!("{time:>14}  {name} ({tid})");
            }
        }
    }
    Ok(())
}
