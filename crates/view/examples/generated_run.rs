//! Writes runs for the tests of pages in a browser: many stalls, or names that are markup.
//!
//! `generated_run FOLDER STALLS` for plausible names, `generated_run FOLDER STALLS hostile` for the others.
#![forbid(unsafe_code)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Scenario, part, sent_by};
use jitterscope_model::CulpritKind;
use jitterscope_store::RunWriter;
use std::path::Path;

/// What a thread may call itself: 15 bytes, none of which are ours to choose.
const HOSTILE: [&str; 5] =
    ["<script>a()//", "\"><img src=x>", "</script><b>", "'\";alert(1)//", "&lt;\u{202e}x"];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, stalls, rest @ ..] = &args[..] else {
        eprintln!("usage: generated_run FOLDER STALLS [hostile]");
        std::process::exit(2);
    };
    let stalls: u64 = stalls.parse().expect("a number of stalls");
    let run = scenario(stalls, !rest.is_empty());
    println!("{}", store(&run, Path::new(folder)).display());
}

fn scenario(stalls: u64, hostile: bool) -> Scenario {
    let mut run = Scenario::new(&[1, 2]);
    let seconds = 60u64;
    run.manifest.probe.duration_ns = jitterscope_model::Nanos(seconds * 1_000_000_000);
    run.manifest.label = if hostile { "hostile".into() } else { format!("generated-{stalls}") };
    let mut random = jitterscope_testing::SplitMix64(42);
    let others = stalls.saturating_sub(1);
    let step = 58_000_000 / others.max(1);
    for at in 0..others {
        let net = |random: &mut jitterscope_testing::SplitMix64, mean: f64| {
            200 + random.exponential(mean).min(mean * 12.0) as u64
        };
        let tick = part(
            CulpritKind::Timer,
            "tick_nohz_handler",
            "hrtimer, local_timer interrupt",
            net(&mut random, 3_000.0),
        );
        let soft = part(CulpritKind::Softirq, "TIMER", "vector 1", net(&mut random, 1_200.0));
        let lead = part(CulpritKind::Hypervisor, "late interrupt", "", net(&mut random, 900.0));
        let mut parts = vec![lead, tick, soft];
        if at % 7 == 0 {
            let name = match hostile {
                true => HOSTILE[random.below(HOSTILE.len() as u64) as usize].to_owned(),
                false => format!("worker-{}", random.below(40)),
            };
            let tid = 100 + random.below(300) as i32;
            let thread = part(CulpritKind::Thread, &name, &format!("pid {tid}"), net(&mut random, 20_000.0));
            parts.push(sent_by(thread, if hostile { HOSTILE[0] } else { "waker" }, tid, 0, None));
        }
        let jitter = random.below((step / 2).max(1));
        run.stall(1 + (at % 2) as u32, at * step + jitter, parts);
    }
    // One that every test can look for: the longest, alone.
    let known = part(CulpritKind::Kworker, "vmstat_update", "workqueue events", 30_000_000);
    run.stall(1, 58_500_000, vec![known]);
    run.finish()
}

fn store(run: &Scenario, folder: &Path) -> std::path::PathBuf {
    let manifest = &run.manifest;
    let mut writer =
        RunWriter::create(folder, &manifest.label, manifest.clock_start.realtime_ns).expect("a folder");
    writer.begin(manifest.clock_start, manifest.rate).expect("a run");
    for (stall, attribution) in run.stalls.iter().zip(&run.attributions) {
        writer.stall(stall).expect("a stall");
        writer.attribution(attribution).expect("its parts");
    }
    for row in &run.intervals {
        writer.interval(row).expect("an interval");
    }
    writer.finish(manifest.clone()).expect("the end")
}
