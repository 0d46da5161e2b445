//! `record -o perfetto://FILE` against the run that it stored.

use crate::live;
use crate::perfetto_reader::{Slice, Trace, read};

use live::{can_trace, jitterscope, stderr, turn};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::path::Path;

fn boottime_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn a_live_trace_shows_the_stalls_of_the_stored_run_at_their_boottime() {
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let (live, stored) = (dir.path().join("live"), dir.path().join("stored"));
    let target = |path: &Path| format!("perfetto://{}", path.display());
    let before = boottime_ns();
    let record = [
        "record",
        "-d",
        "500ms",
        "--warmup",
        "50ms",
        "-o",
        &target(&live),
    ];
    let output = jitterscope(dir.path(), &record);
    let after = boottime_ns();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("times are CLOCK_BOOTTIME to "),
        "{}",
        stderr(&output)
    );
    let output = jitterscope(dir.path(), &["export", "--to", &target(&stored)]);
    assert!(output.status.success(), "{}", stderr(&output));

    let [live, stored] = [live, stored].map(|path| read(&fs::read(path).unwrap()));
    let slices = |trace: &Trace| -> Vec<(i64, u64, u64, usize)> {
        let one = |s: &Slice| (s.number("stall_id"), s.begin, s.end, s.inside.len());
        let mut slices: Vec<_> = trace.slices.iter().map(one).collect();
        slices.sort_unstable();
        slices
    };
    let shown = slices(&live);
    assert_eq!(shown, slices(&stored));
    assert!(!shown.is_empty());
    for (_, begin, end, _) in shown {
        assert!(
            before < begin && begin < end && end < after,
            "{before} {begin} {end} {after}"
        );
    }
    if !can_trace() {
        return;
    }
    // The live trace has no kernel events of the warm-up.
    assert!(!live.events.is_empty() && live.events.len() <= stored.events.len());
    let mut kept = stored.events;
    kept.sort();
    assert!(live.events.iter().all(|event| {
        // Functions are numbered in the order of their appearance.
        let same = |of: &&crate::perfetto_reader::Event| {
            (of.ns, of.cpu, of.kind) == (event.ns, event.cpu, event.kind)
        };
        let at = kept.partition_point(|of| of.ns < event.ns);
        kept[at..]
            .iter()
            .take_while(|of| of.ns == event.ns)
            .any(|of| same(&of))
    }));
}
