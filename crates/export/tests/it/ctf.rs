//! CTF traces, read by Debian's babeltrace2.

use crate::common::{output_of, recorded};

use jitterscope_export::{Destination, export_run};
use jitterscope_model::{Delivery, EventKind, SinkError};
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, TracePiece};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn write(run: &RunReader, folder: &Path) -> Result<Delivery, SinkError> {
    let target: Destination = format!("ctf://{}", folder.display()).parse().unwrap();
    export_run(run, &[target]).map(|mut deliveries| deliveries.remove(0))
}

/// What babeltrace2 says of a trace; `None` if there is no babeltrace2.
fn babeltrace(folder: &Path) -> Option<String> {
    let mut tool = Command::new("babeltrace2");
    let (out, error) = output_of(tool.arg("--clock-seconds").arg(folder))?;
    assert!(!error.contains("ERROR"), "{error}");
    Some(out)
}

/// A switch: nanoseconds since the epoch, CPU, and both threads.
type Switch = (i128, u32, (String, i32), (String, i32));

/// The switches that the run's pages have, by our own decoder, and the number of all events.
fn decoded(run: &RunReader) -> (Vec<Switch>, usize) {
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    let mut decoder = Decoder::new(&context).unwrap();
    let manifest = run.manifest();
    let start = manifest.clock_start;
    let (mut switches, mut events) = (Vec::new(), 0);
    for piece in run.trace_pieces().unwrap() {
        let TracePiece::Page(page) = piece.unwrap() else {
            continue;
        };
        if !page.role.has_events() {
            continue;
        }
        let take = |event: jitterscope_model::KernelEvent| {
            events += 1;
            if let EventKind::SchedSwitch { prev, next, .. } = &event.kind {
                let ticks = i128::from(event.time.0) - i128::from(start.ticks.0);
                let ns = ticks * 1_000_000_000 / i128::from(manifest.rate.hz);
                let at = i128::from(start.realtime_ns) + ns;
                let of = |task: &jitterscope_model::TaskRef| (task.comm.to_string(), task.tid);
                switches.push((at, event.cpu.0, of(prev), of(next)));
            }
        };
        decoder.page(page.cpu, &page.bytes, take).unwrap();
    }
    switches.sort();
    (switches, events)
}

/// `[SECONDS.NANOSECONDS] (+DELTA) HOST sched_switch: { cpu_id = N }, { ... }, { prev_comm = "A", prev_tid = 1, ... }`
fn switch(line: &str) -> Option<Switch> {
    let (head, fields) = line.split_once(" sched_switch: ")?;
    let time = head.strip_prefix('[')?.split_once(']')?.0;
    let (seconds, nanos) = time.split_once('.')?;
    let ns = seconds.parse::<i128>().unwrap() * 1_000_000_000 + nanos.parse::<i128>().unwrap();
    let between = |from: &str, to: &str| {
        let rest = fields.split_once(from).unwrap().1;
        rest.split_once(to).unwrap().0.trim().to_owned()
    };
    let task = |which: &str| {
        let comm = between(&format!("{which}_comm = \""), &format!("\", {which}_tid"));
        let tid = between(&format!("{which}_tid = "), ",");
        (comm, tid.parse().unwrap())
    };
    let cpu = between("cpu_id = ", " ").parse().unwrap();
    Some((ns, cpu, task("prev"), task("next")))
}

#[test]
fn babeltrace_reports_every_switch_at_its_time() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["spin", "wakeup", "attach", "passive", "pipeline"] {
        let run = recorded(kind);
        let folder = dir.path().join(kind);
        let delivery = write(&run, &folder).unwrap();
        assert!(delivery.delivered > 0 && delivery.lost == 0, "{delivery:?}");
        for file in fs::read_dir(&folder).unwrap() {
            let mode = file.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "it holds kernel addresses");
        }
        let Some(report) = babeltrace(&folder) else {
            return;
        };
        let ((expected, events), mut found) = (
            decoded(&run),
            report.lines().filter_map(switch).collect::<Vec<_>>(),
        );
        found.sort();
        assert_eq!(found.len(), expected.len(), "{kind}");
        assert!(found.len() > 10, "{kind}");
        for (found, expected) in found.iter().zip(&expected) {
            // The offset is in whole ticks, and babeltrace2 computes in floating point.
            assert!(
                (found.0 - expected.0).abs() <= 3,
                "{kind}: {found:?} {expected:?}"
            );
            assert_eq!(
                (found.1, &found.2, &found.3),
                (expected.1, &expected.2, &expected.3)
            );
        }
        assert!(report.lines().count() >= events, "{kind}");
        assert!(report.contains("jitterscope:function"), "{kind}");
        assert!(
            report.contains("x86_irq_vectors_local_timer_entry"),
            "{kind}"
        );
    }
}

#[test]
fn a_second_export_replaces_the_first_and_other_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    let run = recorded("attach");
    write(&run, &folder).unwrap();
    // Of a machine with more CPUs.
    fs::write(folder.join("local_77"), "old").unwrap();
    write(&run, &folder).unwrap();
    assert!(!folder.join("local_77").exists() && folder.join("metadata").exists());
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    let refused = write(&run, &folder).err().unwrap().to_string();
    assert!(refused.contains("name a new folder"), "{refused}");
    assert_eq!(
        fs::read_to_string(folder.join("notes.txt")).unwrap(),
        "mine"
    );
}
