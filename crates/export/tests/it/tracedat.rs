//! `trace.dat` files, read by Debian's trace-cmd.

use crate::common::{self, output_of, recorded};

use jitterscope_export::{Destination, export_run};
use jitterscope_model::{ClockKind, Comm, Delivery, EventKind, Ticks};
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, TracePiece};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const KINDS: [&str; 5] = ["spin", "wakeup", "attach", "passive", "pipeline"];

fn write(run: &RunReader, path: &Path) -> Delivery {
    let target: Destination = format!("tracedat://{}", path.display()).parse().unwrap();
    export_run(run, &[target]).unwrap().remove(0)
}

/// What trace-cmd says of a file; `None` if there is no trace-cmd.
fn trace_cmd(arguments: &[&str], file: &Path) -> Option<String> {
    let mut tool = Command::new("trace-cmd");
    let (out, error) = output_of(tool.args(arguments).arg("-i").arg(file))?;
    assert!(
        !error.contains("rror") && !error.contains("truncated"),
        "{error}"
    );
    Some(out)
}

/// A switch: nanoseconds, CPU, and both threads.
type Switch = (i128, u32, (String, i32), (String, i32));

/// The switches that the run's pages have, by our own decoder.
fn decoded(run: &RunReader) -> Vec<Switch> {
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    let mut decoder = Decoder::new(&context).unwrap();
    let manifest = run.manifest();
    assert_eq!(manifest.clock, ClockKind::Tsc);
    let start = manifest.clock_start;
    let base = start.boottime_ns.unwrap_or(start.monotonic_raw_ns);
    let ns = |at: Ticks| {
        let ticks = i128::from(at.0) - i128::from(start.ticks.0);
        i128::from(base) + ticks * 1_000_000_000 / i128::from(manifest.rate.hz)
    };
    let name = |comm: &Comm| comm.to_string();
    let mut switches = Vec::new();
    for piece in run.trace_pieces().unwrap() {
        let TracePiece::Page(page) = piece.unwrap() else {
            continue;
        };
        let take = |event: jitterscope_model::KernelEvent| {
            if let EventKind::SchedSwitch { prev, next, .. } = &event.kind {
                let (prev, next) = ((name(&prev.comm), prev.tid), (name(&next.comm), next.tid));
                switches.push((ns(event.time), event.cpu.0, prev, next));
            }
        };
        decoder.page(page.cpu, &page.bytes, take).unwrap();
    }
    switches.sort();
    switches
}

/// The switches of `trace-cmd report -t -R`.
fn reported(report: &str) -> Vec<Switch> {
    let mut switches: Vec<Switch> = report.lines().filter_map(switch).collect();
    switches.sort();
    switches
}

/// `COMM-TID [CPU] SECONDS.NANOSECONDS: sched_switch: prev_comm=A prev_pid=1 ... next_comm=B next_pid=2 ...`
fn switch(line: &str) -> Option<Switch> {
    let (head, fields) = line.split_once(": sched_switch:")?;
    let (head, time) = head.rsplit_once(' ')?;
    let (seconds, nanos) = time.split_once('.')?;
    assert_eq!(nanos.len(), 9, "{line}");
    let ns = seconds.parse::<i128>().unwrap() * 1_000_000_000 + nanos.parse::<i128>().unwrap();
    let cpu = head.rsplit_once('[')?.1.split_once(']')?.0;
    let between = |from: &str, to: &str| {
        let rest = fields.split_once(from).unwrap().1;
        rest.split_once(to)
            .map_or(rest, |(own, _)| own)
            .trim()
            .to_owned()
    };
    let task = |which: &str| {
        let comm = between(&format!("{which}_comm="), &format!(" {which}_pid="));
        let tid = between(&format!("{which}_pid="), " ");
        (comm, tid.parse().unwrap())
    };
    Some((ns, cpu.parse().unwrap(), task("prev"), task("next")))
}

#[test]
fn trace_cmd_reports_every_switch_at_its_time() {
    let dir = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let run = recorded(kind);
        let file = dir.path().join(kind);
        let delivery = write(&run, &file);
        assert!(delivery.delivered > 0 && delivery.lost == 0, "{delivery:?}");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "it holds kernel addresses");
        let Some(report) = trace_cmd(&["report", "-t", "-R"], &file) else {
            return;
        };
        let (expected, found) = (decoded(&run), reported(&report));
        assert_eq!(found.len(), expected.len(), "{kind}");
        assert!(found.len() > 10, "{kind}");
        for (found, expected) in found.iter().zip(&expected) {
            // The scale of 32 bits rounds.
            assert!(
                (found.0 - expected.0).abs() <= 3,
                "{kind}: {found:?} {expected:?}"
            );
            assert_eq!(
                (found.1, &found.2, &found.3),
                (expected.1, &expected.2, &expected.3)
            );
        }
        assert!(!report.contains("DROPPED"), "{kind}");
    }
}

#[test]
fn trace_cmd_names_threads_functions_and_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded("spin");
    let file = dir.path().join("trace.dat");
    write(&run, &file);
    let Some(report) = trace_cmd(&["report"], &file) else {
        return;
    };
    let context: TraceContext = run.trace_context().unwrap().unwrap();
    let tick = context
        .symbols
        .values()
        .find(|name| name.starts_with("tick_"))
        .unwrap();
    assert!(report.contains(&format!("function={tick}")), "{report}");
    assert!(report.contains("workqueue_execute_start"), "{report}");
    // The thread at the beginning of a line is named from our own records.
    assert!(!report.contains("<...>-"), "{report}");
    let uname = trace_cmd(&["report", "--uname"], &file).unwrap();
    assert!(uname.contains("6.18.44"), "{uname}");
    let version = trace_cmd(&["report", "--version"], &file).unwrap();
    assert!(version.contains("jitterscope"), "{version}");
    let stat = trace_cmd(&["dump", "--options"], &file).unwrap();
    assert!(stat.contains("x86-tsc"), "{stat}");
}

/// A copy of a recorded run.
fn copied(kind: &str, to: &Path) {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let place = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &place),
                false => drop(fs::copy(entry.path(), place).unwrap()),
            }
        }
    }
    copy(recorded(kind).path(), to);
}

#[test]
fn pages_that_the_run_did_not_keep_are_marked() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    copied("spin", &folder);
    let segments = folder.join("trace/segments");
    // The writer numbers segments from one: the first is missing now.
    fs::rename(segments.join("000001.seg"), segments.join("000002.seg")).unwrap();
    let run = RunReader::open(&folder).unwrap();
    let file = dir.path().join("trace.dat");
    let delivery = write(&run, &file);
    let marked = delivery
        .remarks
        .iter()
        .find(|remark| remark.contains("did not keep"));
    assert!(marked.is_some(), "{delivery:?}");
    let Some(report) = trace_cmd(&["report"], &file) else {
        return;
    };
    assert!(report.contains("EVENTS DROPPED"), "{report}");
}

#[test]
fn a_run_without_a_trace_and_a_stream_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.dat");
    let target: Destination = format!("tracedat://{}", file.display()).parse().unwrap();
    let error = export_run(&common::run(dir.path()), &[target]).unwrap_err();
    assert!(
        error.to_string().contains("kept no kernel events"),
        "{error}"
    );
    assert!(!file.exists());
    let error = "tracedat://-"
        .parse::<Destination>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("name a file"), "{error}");
}
