//! Hostile names of threads, labels, files and servers: no screen has anything but text and known colours.

use crate::hostile_runs as runs;
use crate::terminal;

use crate::live;
use crate::support;

use runs::{COMM, NAME, RED, spoil, store};
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use terminal::{Place, harm, screen};

/// A screen: its arguments, and a word that proves that a hostile text was on it, if one is expected.
struct Screen {
    args: Vec<OsString>,
    shows: &'static str,
}

/// `args` is split at blanks; `NAME` in it stands for the hostile name.
fn of(args: &str, shows: &'static str) -> Screen {
    let args = args
        .split(' ')
        .map(|arg| OsString::from(arg.replace("NAME", NAME)))
        .collect();
    Screen { args, shows }
}

fn walk(folder: &Path, screens: Vec<Screen>) {
    let mut failures = Vec::new();
    for Screen { args, shows } in screens {
        for place in [Place::Pipes, Place::Terminal] {
            // A pipe gets unmodified CSV.
            if place == Place::Pipes
                && args
                    .iter()
                    .any(|arg| arg.as_bytes().starts_with(b"csv://-"))
            {
                continue;
            }
            let screen = screen(place, &args, folder);
            if let Some(what) = harm(&screen) {
                failures.push(format!("{args:?} ({place:?}): {what}"));
            }
            if !screen.contains(shows) {
                failures.push(format!(
                    "{args:?} ({place:?}) does not show {shows:?}:\n{screen}"
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn stored_runs_of_hostile_names() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let runs = folder.join("runs");
    for (at, kind) in ["other", "wakeup", "attach", "spin"]
        .into_iter()
        .enumerate()
    {
        fs::rename(store(&runs, kind, at as u64), runs.join(kind)).unwrap();
    }
    // An unreadable run in a folder with a hostile name.
    let damaged = runs.join(NAME);
    fs::create_dir(&damaged).unwrap();
    fs::write(
        damaged.join("manifest.json"),
        format!("{{\"schema_version\": 1, \"{NAME}\": \""),
    )
    .unwrap();
    // A run of a newer version with unknown values.
    let newer = runs.join("newer");
    fs::create_dir(&newer).unwrap();
    fs::write(
        newer.join("manifest.json"),
        format!("{{\"schema_version\": \"{}\"}}", COMM.escape_default()),
    )
    .unwrap();
    // The remains of a killed recorder.
    let mut partial = b".partial-999999999-1-EVIL\x1b[2J\xff".to_vec();
    partial.extend_from_slice("\u{202e}".as_bytes());
    fs::create_dir(runs.join(OsStr::from_bytes(&partial))).unwrap();
    fs::write(folder.join(NAME), "what is no journal").unwrap();
    fs::write(
        folder.join("properties"),
        format!("perf.workshop.affinity.producer={COMM}\n"),
    )
    .unwrap();

    // Recordings need a turn; some of these get that far before they fail.
    let _turn = live::turn();
    let mut screens = Vec::new();
    for kind in ["other", "wakeup", "attach", "spin"] {
        screens.extend([
            of(
                &format!("report {kind} --periods --all-cpus --list 50"),
                "EVIL\\x1b",
            ),
            of(&format!("report {kind}"), "EVIL\\x1b"),
            of(&format!("report {kind} --full"), "EVIL\\x1b"),
            of(&format!("report {kind} --json"), "EVIL\\u001b"),
            of(&format!("report {kind} --worst 1"), "EVIL\\x1b"),
            of(&format!("audit --run {kind}"), "EVIL\\x1b"),
        ]);
    }
    screens.extend([
        of("report spin", "EVIL\\x1b"),
        of("report spin --worst 1 --json", "EVIL\\u001b"),
        of("report spin --stall 99999", "--stall 99999"),
        of("export spin --to csv://-", "EVIL\\x1b"),
        of("export spin --to csv://-?formulas=escape", "'=EVIL\\x1b"),
        of("export spin --to json://-", "EVIL\\u001b"),
        of("export spin --to hlog://-", "StartTimestamp"),
        of("export spin --to hgrm://-", "Percentile"),
        of("export spin --to csv://NAME.csv", "EVIL\\x1b"),
        of("export spin --json --to csv://NAME.csv", "EVIL\\u001b"),
        of("export spin --to hgrm://x?of=NAME", "EVIL\\x1b"),
        of("journal spin", "has no journal"),
        of("audit --run spin --all", "EVIL\\x1b"),
        of("audit --run spin --json", "EVIL\\u001b"),
    ]);
    screens.extend([
        of("list", "EVIL\\x1b"),
        of("list --json", "EVIL\\u001b"),
        // The known runs are listed by their labels.
        of("report nosuch", "the newest are"),
        of("report NAME", "EVIL\\x1b"),
        of("report newer", "newer"),
        of("report ./runs/NAME", "EVIL\\x1b"),
        of("report spin --stall NAME", "EVIL\\x1b"),
        of("report spin --at NAME", "EVIL\\x1b"),
        of("record --duration 1ms --runs /dev/null/NAME", "EVIL\\x1b"),
        of("list NAME", "EVIL\\x1b"),
        of("NAME", "EVIL\\x1b"),
        of("--xNAME", "unexpected argument"),
        of("--color=NAME list", "EVIL\\x1b"),
        of("export spin --to NAME", "EVIL\\x1b"),
        of("export spin --to csv:///nonexistent/NAME/x", "EVIL\\x1b"),
        of("export spin --to parquet:///dev/null/NAME", "EVIL\\x1b"),
        of("export spin --to influx://NAME:1", "EVIL\\x1b"),
        of(
            "export spin --to influx3+http://127.0.0.1:1/NAME?db=d",
            "EVIL\\x1b",
        ),
        of(
            "export spin --to influx3+http://127.0.0.1:1/?db=d&token_file=NAME.none",
            "EVIL\\x1b",
        ),
        of("journal NAME", "EVIL\\x1b"),
        of("journal NAME --json", "EVIL\\x1b"),
        of("journal NAME --format table", "EVIL\\x1b"),
        of("journal nosuch", "the newest are"),
        of("doctor", "left over: unfinished run"),
        of("doctor --json", "EVIL\\u001b"),
        of("doctor --require NAME", "EVIL\\x1b"),
        of("audit --explain NAME", "EVIL\\x1b"),
        of("audit --cpus NAME", "EVIL\\x1b"),
        of("audit --run NAME", "EVIL\\x1b"),
        of("tune plan --only NAME --cpus 1", "EVIL\\x1b"),
        of("tune NAME", "EVIL\\x1b"),
        of("selftest --only NAME", "EVIL\\x1b"),
        of("record --label NAME --duration 1ms", "EVIL\\x1b"),
        of("record --cpus NAME", "EVIL\\x1b"),
        of("record --require NAME", "EVIL\\x1b"),
        of("record pipeline --label NAME --messages 1", "EVIL\\x1b"),
        of(
            "record pipeline --two-thread --force --properties properties",
            "EVIL\\x1b",
        ),
        of(
            "record pipeline --two-thread --force --input NAME.none --messages 1",
            "EVIL\\x1b",
        ),
        of("attach --comm NAME", "EVIL\\x1b"),
        of("attach --pid NAME", "EVIL\\x1b"),
        of("sljtest -f /nonexistent/NAME", "EVIL\\x1b"),
        of("sljtest NAME", "EVIL\\x1b"),
        of("sampler -o csv:///nonexistent/NAME", "EVIL\\x1b"),
        of("sampler -o NAME", "EVIL\\x1b"),
        of("disturb NAME {}", "EVIL\\x1b"),
        of("completions NAME", "EVIL\\x1b"),
    ]);
    // Bytes that are not text.
    let raw = |bytes: &[u8]| OsStr::from_bytes(bytes).to_os_string();
    for args in [
        vec![raw(b"report"), raw(b"EVIL\xff\x1b[2J")],
        vec![
            raw(b"list"),
            raw(b"--runs"),
            raw(b"/dev/null/EVIL\xff\x1b[2J"),
        ],
        vec![raw(b"EVIL\xff\x1b[2J")],
    ] {
        screens.push(Screen { args, shows: "" });
    }
    walk(folder, screens);
}

#[test]
fn a_pipe_gets_names_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    store(&runs, "spin", 0);
    let csv = live::jitterscope(&runs, &["export", "--to", "csv://-", "--quiet"]);
    assert!(csv.status.success(), "{}", live::stderr(&csv));
    let text = String::from_utf8(csv.stdout).unwrap();
    let quoted = format!("\"{}\"", NAME.replace('"', "\"\""));
    // The culprit and the phase.
    let fields = |field: &str| text.matches(&format!(",{field},")).count();
    assert!(fields(&quoted) >= 80, "{text:?}");
    let escaped = live::jitterscope(
        &runs,
        &["export", "--to", "csv://-?formulas=escape", "--quiet"],
    );
    let text = String::from_utf8(escaped.stdout).unwrap();
    let fields = text.matches(&format!(",\"'{NAME}\",")).count();
    assert!(fields >= 80, "{text:?}");
    // JSON contains the name itself.
    let json = live::json(&live::jitterscope(&runs, &["list", "--json"]));
    assert_eq!(json["runs"][0]["label"], NAME);
}

#[test]
fn a_pipelines_run_of_hostile_names() {
    let _turn = live::turn();
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let args = [
        "record",
        "pipeline",
        "--messages",
        "2000",
        "--period",
        "0s",
        "--warmup",
        "0s",
        "--quiet",
        "--two-thread",
        "--force",
    ];
    let mut command = std::process::Command::new(live::program());
    let made = command
        .args(args)
        .env("JITTERSCOPE_RUNS", &runs)
        .env("XDG_CACHE_HOME", dir.path().join("cache"))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", live::stderr(&made));
    let run = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    spoil(&run, 0);
    walk(
        dir.path(),
        vec![
            of("report", "EVIL\\x1b"),
            of("report --json", "EVIL\\u001b"),
            of("report --worst 1", ""),
            of("list", "EVIL\\x1b"),
            of("export --to csv://-", "start_ns"),
            of("export --to json://-", "EVIL\\u001b"),
            of("journal", "no journal"),
        ],
    );
}

#[test]
fn a_machine_of_hostile_settings() {
    let dir = support::folder();
    let folder = dir.path();
    let root = folder.join("root");
    support::build(&root, support::Cgroups::V2);
    store(&folder.join("runs"), "spin", 0);
    let put = |file: &str, text: &str| {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    support::put_thread(&root, 303, 1, RED, 0x0040_0000, "0-3");
    support::put_thread(&root, 304, 2, "EVIL\u{1b}[2J", 0x0020_8040, "0-3");
    support::put_thread(&root, 305, 2, "EVIL\u{1b}[2J", 0x0420_8040, "2");
    put(
        "proc/305/task/305/status",
        "Name:\tEVIL\u{1b}[2J\nCpus_allowed_list:\t2\n",
    );
    put(
        "proc/cmdline",
        &format!(
            "quiet nohz_full={} isolcpus=\u{1b}[2J2-3\n",
            NAME.replace('\n', "")
        ),
    );
    put("proc/sys/vm/stat_interval", "EVIL\u{1b}[2J\u{9b}H\n");
    put("proc/sys/vm/swappiness", &format!("{NAME}\n"));
    put(
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
        "EVIL\u{1b}]0;t\u{7}\n",
    );
    put(
        "sys/devices/system/cpu/cpu2/cpufreq/scaling_driver",
        "EVIL\u{1b}]0;t\u{7}\n",
    );
    put(
        "sys/kernel/mm/transparent_hugepage/enabled",
        "[EVIL\u{1b}[2J] madvise never\n",
    );
    put(
        "etc/default/grub",
        &format!(
            "GRUB_CMDLINE_LINUX_DEFAULT=\"{}\"\n",
            NAME.replace('\n', "")
        ),
    );
    put(
        &format!("etc/sysctl.d/99-{}.conf", NAME.replace('\n', "")),
        "vm.stat_interval = \u{1b}[2J\n",
    );
    put("proc/irq/24/EVIL\u{1b}[2J/x", "");

    let state = "--state-dir NAME";
    let screens = |lines: &[(&str, &'static str)]| {
        lines
            .iter()
            .map(|(line, shows)| of(&format!("{line} --root {}", root.display()), shows))
            .collect::<Vec<_>>()
    };
    walk(
        folder,
        screens(&[
            ("audit --cpus 2-3", "Wrong"),
            ("audit --cpus 2-3 --all", "EVIL\\x1b"),
            ("audit --cpus 2-3 --all --run spin", "EVIL\\x1b"),
            ("audit --cpus 2-3 --json", "EVIL\\u001b"),
            ("audit --cpus 2-3 --explain vmstat", "EVIL\\x1b"),
            ("audit --cpus isolated", ""),
            ("tune plan --cpus 2-3 --profile all", "Plan for"),
            ("tune plan --cpus 2-3 --profile all --full", "EVIL\\x1b"),
            (
                "tune plan --cpus 2-3 --profile all --persist --full",
                "EVIL\\x1b",
            ),
            ("tune plan --cpus 2-3 --profile all --json", "EVIL\\u001b"),
            ("tune plan --run spin", ""),
            ("tune status --state-dir NAME", "Nothing is applied"),
            (&format!("tune apply --cpus 2-3 --profile all {state}"), ""),
            (
                &format!("tune apply --cpus 2-3 --profile all --yes {state}"),
                "",
            ),
        ]),
    );
    assert!(folder.join(NAME).exists(), "nothing was applied");
    // Another process changes it since.
    put("proc/sys/vm/stat_interval", "EVIL\u{1b}[2J drifted\n");
    walk(
        folder,
        screens(&[
            (&format!("tune status {state}"), "EVIL\\x1b"),
            (&format!("tune status {state} --json"), "EVIL\\u001b"),
            (&format!("tune rollback {state}"), ""),
            (&format!("tune rollback --yes {state}"), "EVIL\\x1b"),
            (&format!("tune rollback --yes --force --json {state}"), ""),
        ]),
    );
}

/// Keeps a thread of this name busy on a CPU at intervals, until dropped.
struct Busy {
    stop: std::sync::Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    tid: i32,
}

impl Busy {
    fn new(name: &str, cpu: jitterscope_model::CpuId) -> Busy {
        let stop = std::sync::Arc::new(AtomicBool::new(false));
        let (sender, receiver) = std::sync::mpsc::channel();
        let (of_thread, name) = (std::sync::Arc::clone(&stop), CString::new(name).unwrap());
        let thread = std::thread::spawn(move || {
            rustix::thread::set_name(&name).unwrap();
            let mut cpus = rustix::thread::CpuSet::new();
            cpus.set(cpu.0 as usize);
            rustix::thread::sched_setaffinity(None, &cpus).unwrap();
            sender
                .send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            while !of_thread.load(Ordering::Relaxed) {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_micros(500) {
                    std::hint::spin_loop();
                }
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        Busy {
            stop,
            thread: Some(thread),
            tid: receiver.recv().unwrap(),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_thread_that_names_itself_so_beside_a_recording() {
    let _turn = live::turn();
    if !live::can_trace() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let allowed = jitterscope_platform::current_affinity().unwrap();
    let cpu = allowed.last().unwrap();
    let busy = Busy::new(COMM, cpu);
    let tid = busy.tid;
    let runs = dir.path().join("runs");
    // On a busy machine other threads may have the CPU, too: show one stall of this thread.
    let cpus = cpu.to_string();
    let rank = (0..10).find_map(|_| {
        let args = [
            "record",
            "--cpus",
            &cpus,
            "--duration",
            "1s",
            "--label",
            "found",
            "-q",
        ];
        let recorded = live::jitterscope(&runs, &args);
        assert!(recorded.status.success(), "{}", live::stderr(&recorded));
        let args = ["report", "found", "--json", "--list", "100000"];
        let report = live::json(&live::jitterscope(&runs, &args));
        let mut worst = report["worst"].as_array().unwrap().iter();
        worst.position(|stall| stall["parts"][0]["name"] == COMM)
    });
    let rank = 1 + rank.expect("a thread that is busy on the measured CPU stalls its probe");
    walk(
        dir.path(),
        vec![
            of(
                &format!("report found --worst {rank}"),
                "EVIL\\x1b[2J\\nFORG",
            ),
            of(
                &format!("report found --worst {rank} --json"),
                "EVIL\\u001b[2J\\nFORG",
            ),
            // By program it has its process's name everywhere.
            of(
                &format!("report found --list {rank} --threads"),
                "EVIL\\x1b[2J\\nFORG",
            ),
            of("export found --to csv://-", "EVIL\\x1b[2J\\nFORG"),
            of("audit --run found", ""),
            of("tune plan --run found", ""),
            of(
                &format!("record --cpus {cpu} --duration 700ms --warmup 100ms"),
                "",
            ),
            of(
                &format!("attach --tid {tid} --duration 700ms"),
                "EVIL\\x1b[2J\\nFORG",
            ),
            of("report", "EVIL\\x1b[2J\\nFORG"),
            of(
                &format!("sampler -c {cpu} -d 1 --attribute -o csv://-?rows=stalls"),
                "",
            ),
            of(&format!("sljtest -c {cpu} -r 1 --periods"), ""),
            of("attach --label NAME -- true", ""),
            of("attach -- /nonexistent/NAME", "EVIL\\x1b"),
        ],
    );
    drop(busy);
    // The waiting command shows the name; the wait ends when a thread has it.
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        Busy::new(COMM, cpu)
    });
    let mut wait = of("attach --wait --duration 500ms --comm", "").args;
    wait.push(COMM.into());
    let waits = screen(Place::Terminal, &wait, dir.path());
    drop(late.join().unwrap());
    assert_eq!(harm(&waits), None, "{waits:?}");
    assert!(waits.contains("called 'EVIL\\x1b[2J\\nFORG"), "{waits:?}");
}
