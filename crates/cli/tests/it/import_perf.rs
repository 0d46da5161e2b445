//! `import` of files of Debian's perf, judged by `perf sched timehist`. Recording them needs root and perf; without them,
//! the tests print a note and are skipped.

use crate::import::{VICTIM, Victim, import, no_run};
use crate::live;

use live::{can_trace, jitterscope, json, stderr, turn};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Records as a user of perf does. What perf mounts is unmounted.
const RECORD: &str = r#"
mounted() { grep -c ' tracefs ' /proc/mounts; }
before=$(mounted)
perf record -q -o "$DIR/perf.data" -a "$@" >"$DIR/said" 2>&1
status=$?
[ "$(mounted)" = "$before" ] || umount -t tracefs /sys/kernel/tracing
exit $status
"#;

/// The events of docs/import.md, as far as any kernel lets perf record them.
const EVENTS: &str = "sched:sched_switch,sched:sched_waking,sched:sched_wakeup,irq:*,irq_vectors:local_timer_*,\
    irq_vectors:reschedule_*,irq_vectors:call_function_*,timer:hrtimer_expire_*,timer:timer_expire_*,workqueue:*,\
    task:task_newtask";

/// Records these events into a file; `None` where that is impossible.
fn recorded(dir: &Path, options: &[&str], events: &str, seconds: &str) -> Option<()> {
    if Command::new("perf").arg("--version").output().is_err() {
        jitterscope_testing::skip("perf is not installed");
        return None;
    }
    let output = Command::new("sh")
        .args(["-c", RECORD, "sh"])
        .args(options)
        .args(["-e", events, "sleep", seconds])
        .env("DIR", dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !output.status.success() {
        let said = fs::read_to_string(dir.join("said")).unwrap_or_default();
        jitterscope_testing::skip(&format!("perf cannot record here: {said}"));
        return None;
    }
    Some(())
}

/// What perf says of a thread.
#[derive(Debug, Default)]
struct Ran {
    /// The time of turns whose beginning has a record, nanoseconds.
    ns: u64,
    turns: u64,
    /// The time before switches away whose turn has no recorded beginning: the thread ran for a part of it.
    unrecorded_ns: u64,
}

/// Sums up `perf sched timehist --next`: on each line a thread leaves a CPU.
/// `SECONDS.MICROSECONDS [CPU]  NAME[TID] or NAME[TID/PID]  WAIT DELAY RUN  next: NAME[TID]`, in milliseconds.
fn ran(timehist: &str, name: &str) -> BTreeMap<i64, Ran> {
    let mut found: BTreeMap<i64, Ran> = BTreeMap::new();
    // Who came to a CPU, and when, microseconds.
    let mut there: BTreeMap<String, (Option<i64>, u64)> = BTreeMap::new();
    let mut last = 0;
    for line in timehist.lines() {
        let Some((left, next)) = line.split_once("next: ") else {
            continue;
        };
        let mut words = left.split_whitespace();
        let (Some(time), Some(cpu)) = (words.next(), words.next()) else {
            continue;
        };
        let micros = |text: &str, digits: usize| -> Option<u64> {
            let (whole, part) = text.split_once('.')?;
            Some(whole.parse::<u64>().ok()? * 10u64.pow(digits as u32) + part.parse::<u64>().ok()?)
        };
        let Some(at) = micros(time, 6) else { continue };
        last = at;
        // The name of the thread may have spaces.
        let rest: Vec<&str> = words.collect();
        let [task @ .., _, _, run] = &rest[..] else {
            continue;
        };
        let task = task.join(" ");
        if let Some(tid) = tid_of(&task, name) {
            let run = micros(run, 3).unwrap() * 1000;
            let ran = found.entry(tid).or_default();
            match there.get(cpu) {
                Some((Some(came), _)) if *came == tid => ran.ns += run,
                _ => {
                    ran.unrecorded_ns +=
                        at.saturating_sub(there.get(cpu).map_or(0, |of| of.1)) * 1000
                }
            }
            ran.turns += 1;
        }
        there.insert(cpu.to_owned(), (tid_of(next.trim(), name), at));
    }
    for (tid, since) in there.into_values() {
        if let Some(tid) = tid {
            found.entry(tid).or_default().ns += (last - since) * 1000;
        }
    }
    found
}

/// The thread id in `NAME[TID]` or `NAME[TID/PID]`.
fn tid_of(task: &str, name: &str) -> Option<i64> {
    let ids = task
        .strip_prefix(name)?
        .strip_prefix('[')?
        .split_once(']')?
        .0;
    ids.split('/').next()?.parse().ok()
}

#[test]
fn threads_of_a_perf_recording_ran_as_long_as_timehist_says() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    for (options, clock) in [
        (&["-k", "CLOCK_MONOTONIC"][..], "mono"),
        (&["-k", "CLOCK_MONOTONIC_RAW", "-g"], "mono_raw"),
        (&[], "perf"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let victim = Victim::start();
        if recorded(dir.path(), options, EVENTS, "0.7").is_none() {
            return;
        }
        drop(victim);
        let args = ["--comm", VICTIM, "-l", "IMPORTED", "--json"];
        let output = import(dir.path(), "perf.data", &args);
        assert!(output.status.success(), "{}", stderr(&output));
        let run = json(&output);
        let imported = &run["run"]["imported"];
        assert_eq!(
            (&imported["format"], &imported["clock"]),
            (&"perf.data".into(), &clock.into())
        );
        assert_eq!(imported["states_date"], clock != "perf");
        let timehist = Command::new("perf")
            .args(["sched", "timehist", "--next", "--no-call-graph", "-i"])
            .arg(dir.path().join("perf.data"))
            .output()
            .unwrap();
        assert!(timehist.status.success(), "{}", stderr(&timehist));
        let expected = ran(&String::from_utf8_lossy(&timehist.stdout), VICTIM);
        let threads = run["threads"].as_array().unwrap();
        assert_eq!(threads.len(), expected.len(), "{threads:?} {expected:?}");
        for thread in threads {
            let ran = &expected[&thread["tid"].as_i64().unwrap()];
            let ours = thread["running_ns"].as_u64().unwrap();
            assert!(ran.turns > 20 && ran.ns > 10_000_000, "{ran:?}");
            // It states whole microseconds, of each turn and of the beginning of the last one.
            let rounded = (ran.turns + 2) * 1000;
            let range = ran.ns.saturating_sub(rounded)..=ran.ns + ran.unrecorded_ns + rounded;
            assert!(range.contains(&ours), "{options:?}: {ours} {ran:?}");
        }
        let full = jitterscope(&dir.path().join("runs"), &["report", "IMPORTED", "--full"]);
        let text = String::from_utf8_lossy(&full.stdout).into_owned();
        assert!(text.contains("perf.data of version 2"), "{text}");
        assert!(text.contains("import-rival"), "{text}");
        let worst = jitterscope(
            &dir.path().join("runs"),
            &["report", "IMPORTED", "--worst", "1"],
        );
        assert!(
            String::from_utf8_lossy(&worst.stdout).contains(VICTIM),
            "{}",
            stderr(&worst)
        );
        let cpu = import(
            dir.path(),
            "perf.data",
            &["--cpus", "0", "--for", "import-rival", "--json"],
        );
        assert!(cpu.status.success(), "{}", stderr(&cpu));
        assert_eq!(
            json(&cpu)["passive"][0]["threads"][0]["comm"],
            "import-rival"
        );
        broken(dir.path());
    }
}

/// The same file, cut off and damaged.
fn broken(dir: &Path) {
    let whole = fs::read(dir.join("perf.data")).unwrap();
    let runs = || fs::read_dir(dir.join("runs")).unwrap().count();
    let before = runs();
    // Without its last part nothing describes the events.
    fs::write(dir.join("cut"), &whole[..whole.len() / 2]).unwrap();
    let output = import(dir, "cut", &["--comm", VICTIM]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cut off"), "{}", stderr(&output));
    assert_eq!(runs(), before);
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (data, size) = (word(40), word(48));
    let mut damaged = whole.clone();
    damaged[data + size / 2..][..4096].fill(0);
    fs::write(dir.join("damaged"), damaged).unwrap();
    let output = import(dir, "damaged", &["--comm", VICTIM, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = json(&output);
    let warnings = run["warnings"].as_array().unwrap();
    assert!(
        warnings.iter().any(|of| of["id"] == "import-cut"),
        "{warnings:?}"
    );
}

#[test]
fn a_recording_of_perf_without_switches_says_what_to_record() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (clock, event, says) in [
        ("CLOCK_MONOTONIC", "cpu-clock", "without tracepoints"),
        (
            "CLOCK_MONOTONIC",
            "sched:sched_waking",
            "no record of sched:sched_switch",
        ),
        (
            "CLOCK_REALTIME",
            "sched:sched_switch",
            "'realtime': it may go back",
        ),
    ] {
        if recorded(dir.path(), &["-k", clock], event, "0.05").is_none() {
            return;
        }
        let output = import(dir.path(), "perf.data", &["--cpus", "0"]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let text = stderr(&output);
        assert!(
            text.contains(says) && text.contains("perf record"),
            "{text}"
        );
        assert!(no_run(dir.path()), "{text}");
    }
}
