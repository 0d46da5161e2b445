//! `import` as users run it, on files of Debian's trace-cmd. Recording them needs root, tracefs and trace-cmd; without
//! them, the tests print a note and are skipped.

use crate::live;

use live::{can_trace, jitterscope, json, program, stderr, turn};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Records the scheduler, and interrupts, with the kernel's own buffer, as trace-cmd does. It wants to open control
/// files of the function tracer, which this machine's kernel may refuse to root: then they are others in a mount
/// namespace of its own. What trace-cmd leaves of the kernel's own buffer is put back.
const RECORD: &str = r#"
set -e
mounted() { while read -r _ place kind _; do [ $kind != tracefs ] || { echo $place; break; }; done </proc/mounts; }
[ -n "$(mounted)" ] || mount -t tracefs tracefs /sys/kernel/tracing
root=$(mounted)
on=$(cat $root/tracing_on)
other() {
    echo 1 > "$DIR/other"
    mount --bind "$DIR/other" $1
}
enabled=/proc/sys/kernel/ftrace_enabled
[ ! -e $enabled ] || ( cat $enabled > "$DIR/was" && cat "$DIR/was" > $enabled ) 2>/dev/null || other $enabled
for file in set_ftrace_filter set_ftrace_notrace set_ftrace_pid set_ftrace_notrace_pid; do
    [ ! -e $root/$file ] || ( exec 3<>$root/$file ) 2>/dev/null || other $root/$file
done
trace-cmd record -q -o "$DIR/trace.dat" "$@" -C mono -e sched -e irq -e irq_vectors -e timer -e workqueue -e task \
    sleep 0.7 >"$DIR/said" 2>&1 || status=$?
echo $on > $root/tracing_on
exit ${status:-0}
"#;

/// Records a file; `None` where that is impossible.
pub fn recorded(dir: &Path, options: &[&str]) -> Option<()> {
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        jitterscope_testing::skip("trace-cmd is not installed");
        return None;
    }
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", RECORD, "sh"])
        .args(options)
        .env("DIR", dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = fs::read_to_string(dir.join("said")).unwrap_or_default();
    if !output.status.success() {
        let why = format!("trace-cmd cannot record here: {said}{}", stderr(&output));
        jitterscope_testing::skip(&why);
        return None;
    }
    Some(())
}

/// A thread that computes and sleeps in turns, and others that compute all the time, until it is dropped: all on CPU 0,
/// so that they meet there whatever else runs.
pub struct Victim(Arc<AtomicBool>, Vec<JoinHandle<()>>);

pub const VICTIM: &str = "import-victim";

impl Victim {
    pub fn start() -> Victim {
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |length| {
            let begun = Instant::now();
            while begun.elapsed() < length {}
        };
        let thread = |name: &str, rests: bool| {
            let stop = Arc::clone(&stop);
            let run = move || {
                let mut cpu = rustix::thread::CpuSet::new();
                cpu.set(0);
                rustix::thread::sched_setaffinity(None, &cpu).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    spin(Duration::from_millis(2));
                    if rests {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            };
            let named = std::thread::Builder::new().name(name.into());
            named.spawn(run).unwrap()
        };
        let threads = vec![
            thread(VICTIM, true),
            thread("import-rival", false),
            thread("import-rival", false),
        ];
        Victim(stop, threads)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        for thread in self.1.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What trace-cmd says of a thread: how long it had a CPU, and how often it got one.
#[derive(Debug, Default, PartialEq)]
struct Ran {
    ns: u64,
    turns: u64,
    /// Time that ends with a turn whose beginning has no record, because the kernel records no switch away from some
    /// idle threads, or the trace began in it. The thread ran for a part of that time.
    unrecorded_ns: u64,
}

/// `COMM-TID [CPU] SECONDS.NANOSECONDS: EVENT: FIELDS`
fn time_of(line: &str) -> Option<(u64, &str, &str)> {
    let (head, rest) = line.split_once("] ")?;
    let cpu = head.rsplit_once('[')?.1;
    let (time, event) = rest.trim_start().split_once(": ")?;
    let (seconds, nanos) = time.trim().split_once('.')?;
    let ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + nanos.parse::<u64>().ok()?;
    Some((ns, cpu, event))
}

/// Sums up what `trace-cmd report -t -R` says of the threads of a name.
fn ran(report: &str, name: &str) -> BTreeMap<i64, Ran> {
    let mut found: BTreeMap<i64, Ran> = BTreeMap::new();
    let mut since: BTreeMap<i64, u64> = BTreeMap::new();
    let mut left: BTreeMap<i64, u64> = BTreeMap::new();
    let (mut first, mut last) = (None, 0);
    for line in report.lines() {
        let Some((at, _, event)) = time_of(line) else {
            continue;
        };
        let first = *first.get_or_insert(at);
        last = last.max(at);
        let Some(fields) = event.strip_prefix("sched_switch:") else {
            continue;
        };
        let tid = |which: &str| {
            let own = fields.split_once(&format!("{which}_comm="))?.1;
            let (comm, rest) = own.split_once(&format!(" {which}_pid="))?;
            let tid = rest.split_whitespace().next()?.parse::<i64>().ok()?;
            (comm == name).then_some(tid)
        };
        if let Some(tid) = tid("prev") {
            let ran = found.entry(tid).or_default();
            let before = left.insert(tid, at).unwrap_or(first);
            match since.remove(&tid) {
                Some(since) => ran.ns += at - since,
                None => ran.unrecorded_ns += at - before,
            }
        }
        if let Some(tid) = tid("next") {
            since.insert(tid, at);
            found.entry(tid).or_default().turns += 1;
        }
    }
    for (tid, since) in since {
        found.entry(tid).or_default().ns += last - since;
    }
    found
}

fn report_of(file: &Path) -> String {
    let output = Command::new("trace-cmd")
        .args(["report", "-t", "-R", "-i"])
        .arg(file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn import(dir: &Path, file: &str, args: &[&str]) -> Output {
    let file = dir.join(file);
    let given = ["import", file.to_str().unwrap()];
    jitterscope(&dir.join("runs"), &[&given, args].concat())
}

pub fn no_run(dir: &Path) -> bool {
    fs::read_dir(dir.join("runs")).map_or(true, |runs| runs.count() == 0)
}

#[test]
fn threads_of_a_trace_cmd_recording_ran_as_long_as_trace_cmd_reports() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    for options in [
        &["--file-version", "6"][..],
        &["--file-version", "7", "--compression", "none"],
        &["--file-version", "7", "--compression", "any"],
    ] {
        let dir = tempfile::tempdir().unwrap();
        let victim = Victim::start();
        if recorded(dir.path(), options).is_none() {
            return;
        }
        drop(victim);
        let output = import(
            dir.path(),
            "trace.dat",
            &["--comm", VICTIM, "-l", "IMPORTED", "--json"],
        );
        assert!(output.status.success(), "{}", stderr(&output));
        let run = json(&output);
        let imported = &run["run"]["imported"];
        assert_eq!(
            imported["format_version"].as_u64().unwrap().to_string(),
            options[1]
        );
        assert_eq!(imported["clock"], "mono");
        let expected = ran(&report_of(&dir.path().join("trace.dat")), VICTIM);
        let threads = run["threads"].as_array().unwrap();
        assert_eq!(threads.len(), expected.len(), "{threads:?}");
        for thread in threads {
            let ran = &expected[&thread["tid"].as_i64().unwrap()];
            let ours = thread["running_ns"].as_u64().unwrap();
            assert!(ran.turns > 20 && ran.ns > 10_000_000, "{ran:?}");
            assert!(
                (ran.ns..=ran.ns + ran.unrecorded_ns).contains(&ours),
                "{options:?}: {ours} {ran:?}"
            );
        }
        let shown = |args: &[&str], parts: &[&str]| {
            let output = jitterscope(&dir.path().join("runs"), args);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{}", stderr(&output));
            for part in parts {
                assert!(text.contains(part), "{part} is not in {text}");
            }
        };
        shown(&["report", "IMPORTED"], &["import-rival"]);
        shown(
            &["report", "IMPORTED", "--full"],
            &[
                "trace.dat of version",
                "the kernel's 'mono', in nanoseconds",
                "the file has no record of",
            ],
        );
        shown(&["report", "IMPORTED", "--worst", "1"], &[VICTIM]);
        let other = import(
            dir.path(),
            "trace.dat",
            &["--comm", VICTIM, "-l", "OTHER", "-q"],
        );
        assert!(other.status.success(), "{}", stderr(&other));
        shown(&["diff", "IMPORTED", "OTHER"], &["IMPORTED", "OTHER"]);
        shown(&["list"], &["IMPORTED"]);
        let page = dir.path().join("page.html");
        shown(
            &["report", "IMPORTED", "--html", page.to_str().unwrap()],
            &[],
        );
        assert!(fs::read_to_string(&page).unwrap().contains(VICTIM));
    }
}

#[test]
fn a_cpu_of_a_trace_cmd_recording_has_its_owner_and_what_took_it() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let victim = Victim::start();
    if recorded(dir.path(), &[]).is_none() {
        return;
    }
    drop(victim);
    let args = ["--cpus", "0", "--for", "import-rival", "--json"];
    let output = import(dir.path(), "trace.dat", &args);
    assert!(output.status.success(), "{}", stderr(&output));
    let run = json(&output);
    let watched = &run["passive"][0];
    assert_eq!(watched["threads"][0]["comm"], "import-rival", "{watched}");
    assert!(watched["stalls"].as_u64().unwrap() > 10, "{watched}");
    // Without an owner it is the thread with most of the CPU.
    let output = import(dir.path(), "trace.dat", &["--cpus", "0", "--json"]);
    let run = json(&output);
    let watched = &run["passive"][0];
    assert_eq!(
        watched["chosen"]["tid"], watched["threads"][0]["tid"],
        "{watched}"
    );
}

#[test]
fn what_cannot_be_imported_ends_with_1_says_what_it_is_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for (bytes, word) in [
        (
            &b"PERFILE2 and so on"[..],
            "this is a perf.data whose header is damaged",
        ),
        (b"", "it is empty"),
        (
            b"\x17\x08\x44tracing6\0\x01\x08\0\0\x10\0",
            "big-endian byte order",
        ),
        (b"\x17\x08\x44tracing9\0", "version '9'"),
        (
            b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0",
            "compressed with lzma",
        ),
    ] {
        fs::write(dir.path().join("x"), bytes).unwrap();
        let output = import(dir.path(), "x", &["--comm", "x"]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(word), "{word}: {text}");
        assert!(no_run(dir.path()), "{text}");
    }
    for args in [
        &["--cpus", "isolated"][..],
        &["--comm", ""],
        &["--for", "x"],
        &["--cpus", "1", "--comm", "x"],
    ] {
        let output = import(dir.path(), "x", args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
    let none = import(dir.path(), "none", &["--comm", "x"]);
    assert_eq!(none.status.code(), Some(1), "{}", stderr(&none));
    assert!(program().exists() && no_run(dir.path()));
}
