//! Real children on the real machine. There is no test harness here, because this program is also the program of the
//! children. `cargo test` runs every check; `disturb child KIND SETTINGS` is a child.
//!
//! The selftest's own integration test checks the kernel traces of injections. These tests check the children's
//! lifetimes, their logs, and that they restore the machine.

use jitterscope_inject::{
    self as inject, ChildCommand, ChildError, ChildHandle, DisturbKind, DisturbSettings, Injection,
    LeftoverState,
};
use jitterscope_model::{ClockKind, CulpritKind, Nanos, TickRate};
use jitterscope_platform::{Machine, current_affinity, pin_current_thread};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const WRITEBACK_MASK: &str = "/sys/devices/virtual/workqueue/writeback/cpumask";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [subcommand, kind, settings] = arguments.as_slice()
        && subcommand == "child"
    {
        return match inject::run_command(kind, settings, &mut std::io::stdout().lock()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    if let [subcommand, kind] = arguments.as_slice()
        && subcommand == "parent"
    {
        be_a_parent_that_will_be_killed(DisturbKind::parse(kind).unwrap());
    }
    if arguments.iter().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let _turn = jitterscope_testing::turn();
    for kind in DisturbKind::ALL {
        every_kind_logs_what_it_injects(kind);
    }
    a_child_that_is_stopped_reports_what_it_did();
    a_dropped_child_is_gone();
    a_killed_child_leaves_a_note_that_puts_things_back();
    a_child_ends_with_its_parent(DisturbKind::Fair);
    a_child_ends_with_its_parent(DisturbKind::Writeback);
    a_child_without_its_parent_refuses();
    println!("disturb: all checks passed");
    ExitCode::SUCCESS
}

fn settings(count: u32, period: Duration) -> DisturbSettings {
    let allowed = current_affinity().unwrap();
    let cpu = allowed.last().unwrap();
    DisturbSettings {
        cpu,
        helper_cpu: allowed.first().filter(|helper| *helper != cpu),
        period: Nanos(u64::try_from(period.as_nanos()).unwrap()),
        length: Nanos(100_000),
        count,
        clock: ClockKind::MonotonicRaw,
        rate: TickRate::NANOSECONDS,
        threshold: Nanos(300),
        victim_tid: Some(victim()),
        parent_pid: 0,
        work_dir: Path::new(env!("CARGO_TARGET_TMPDIR")).to_path_buf(),
    }
}

/// A thread that spins on the victim's CPU for as long as this program runs.
fn victim() -> i32 {
    static VICTIM: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *VICTIM.get_or_init(|| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let cpu = current_affinity().unwrap().last().unwrap();
        std::thread::spawn(move || {
            // Without pinning, it would move to the injector's CPU if other programs want its own.
            pin_current_thread(cpu).unwrap();
            sender.send(jitterscope_platform::current_tid()).unwrap();
            loop {
                std::hint::spin_loop();
            }
        });
        receiver.recv().unwrap()
    })
}

fn command() -> ChildCommand {
    ChildCommand::current_exe("child").unwrap()
}

/// `None`, with a line on stderr, if the machine does not allow it.
fn spawn(kind: DisturbKind, settings: &DisturbSettings) -> Option<ChildHandle> {
    if let Err(reason) = inject::availability(kind, &Machine::host(), settings) {
        jitterscope_testing::skip(&format!("disturb {kind}: {reason}"));
        return None;
    }
    match ChildHandle::spawn(&command(), kind, settings, PATIENCE) {
        Ok(child) => Some(child),
        Err(ChildError::NotReady { kind, reason }) => {
            jitterscope_testing::skip(&format!("disturb {kind}: {reason}"));
            None
        }
        Err(error) => panic!("{kind}: {error}"),
    }
}

fn every_kind_logs_what_it_injects(kind: DisturbKind) {
    let settings = settings(5, Duration::from_millis(20));
    let knobs = knobs();
    let Some(mut child) = spawn(kind, &settings) else {
        return;
    };
    let before = jitterscope_platform::clock::now(settings.clock);
    child.go().unwrap();
    let disturbed = child.finish(PATIENCE).unwrap();
    let after = jitterscope_platform::clock::now(settings.clock);

    let header = &disturbed.header;
    assert_eq!((header.kind, header.settings.cpu), (kind, settings.cpu));
    assert!(header.comm.starts_with("js-") && header.comm.len() <= 15);
    assert_eq!(
        header.expected.kind == CulpritKind::Thread,
        header.expected.name == header.comm
    );
    assert_eq!(disturbed.injections.len(), 5, "{kind}");
    let mut last = before;
    for Injection {
        start_ticks,
        end_ticks,
        length_ticks,
    } in &disturbed.injections
    {
        assert!(before <= *start_ticks && start_ticks <= end_ticks, "{kind}");
        assert!(last <= *end_ticks, "{kind}: in order");
        last = *end_ticks;
        if let Some(length) = length_ticks {
            assert!(settings.rate.nanos(*length) >= settings.length);
            assert!(*length <= end_ticks.since(*start_ticks));
        }
    }
    assert!(last <= after);
    assert_eq!(knobs, self::knobs(), "{kind} left the machine as it was");
    println!("disturb: {kind} ok");
}

/// The machine's knobs that the kinds could affect.
fn knobs() -> Vec<Option<String>> {
    let machine = Machine::host();
    // Only the kind of mount that an injection makes for itself: other mounts change with other tests.
    let sysfs = machine.read("/proc/self/mounts").ok().map(|mounts| {
        let of_it = mounts.lines().filter(|line| line.contains(" sysfs "));
        of_it.collect()
    });
    [WRITEBACK_MASK, "/sys/class/net/lo/queues/rx-0/rps_cpus"]
        .map(|file| machine.read(file).ok())
        .into_iter()
        .chain([sysfs])
        .collect()
}

fn a_child_that_is_stopped_reports_what_it_did() {
    let settings = settings(1_000_000, Duration::from_millis(5));
    let Some(mut child) = spawn(DisturbKind::Timer, &settings) else {
        return;
    };
    child.go().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    child.stop();
    let injections = child.finish(PATIENCE).unwrap().injections;
    assert!(!injections.is_empty() && injections.len() < 1_000);
    println!("disturb: stop ok");
}

fn exists(pid: u32) -> bool {
    Machine::host().exists(format!("/proc/{pid}"))
}

fn a_dropped_child_is_gone() {
    let settings = settings(1_000_000, Duration::from_millis(5));
    for go in [false, true] {
        let Some(mut child) = spawn(DisturbKind::Fair, &settings) else {
            return;
        };
        if go {
            child.go().unwrap();
        }
        let pid = child.pid();
        assert!(exists(pid));
        drop(child);
        assert!(!exists(pid));
    }
    println!("disturb: drop ok");
}

fn a_killed_child_leaves_a_note_that_puts_things_back() {
    let settings = settings(1_000_000, Duration::from_millis(50));
    if settings.helper_cpu.is_none() {
        jitterscope_testing::skip("disturb leftovers: one CPU has no other mask to set");
        return;
    }
    let machine = Machine::host();
    let original = machine.read_trimmed(WRITEBACK_MASK).ok();
    let Some(child) = spawn(DisturbKind::Writeback, &settings) else {
        return;
    };
    assert_ne!(
        machine.read_trimmed(WRITEBACK_MASK).ok(),
        original,
        "the child has changed the mask"
    );
    let pid = child.pid();
    let scratch = settings
        .work_dir
        .join(format!(".jitterscope-selftest-{pid}"));
    let raw = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(raw, rustix::process::Signal::KILL).unwrap();
    drop(child);
    assert_ne!(machine.read_trimmed(WRITEBACK_MASK).ok(), original);
    let leftovers = inject::restore_leftovers(&machine).unwrap();
    assert!(
        leftovers
            .iter()
            .any(|l| l.state == LeftoverState::Restored && l.file == Path::new(WRITEBACK_MASK)),
        "{leftovers:?}"
    );
    assert_eq!(machine.read_trimmed(WRITEBACK_MASK).ok(), original);
    assert!(!scratch.exists(), "the scratch file is not left behind");
    println!("disturb: leftovers ok");
}

/// Starts a child, writes its process id (or nothing, if it cannot start), and waits to be killed.
fn be_a_parent_that_will_be_killed(kind: DisturbKind) -> ! {
    let mut child = spawn(kind, &settings(1_000_000, Duration::from_millis(50)));
    if let Some(child) = child.as_mut() {
        child.go().unwrap();
    }
    println!("{}", child.as_ref().map_or(0, ChildHandle::pid));
    loop {
        std::thread::sleep(PATIENCE);
    }
}

fn a_child_ends_with_its_parent(kind: DisturbKind) {
    let knobs = knobs();
    let mut parent = std::process::Command::new(command().program)
        .args(["parent", kind.as_str()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let pid: u32 = line.trim().parse().unwrap();
    if pid == 0 {
        return;
    }
    // It may stay a zombie, if no process reaps orphans.
    let alive = || {
        let stat = Machine::host()
            .read(format!("/proc/{pid}/stat"))
            .unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let started = Instant::now();
    while alive() && started.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!alive(), "{kind} has outlived its parent");
    assert_eq!(knobs, self::knobs(), "{kind} has put back what it changed");
    println!("disturb: {kind} ended with its parent");
}

fn a_child_without_its_parent_refuses() {
    let settings = DisturbSettings {
        parent_pid: 1,
        ..settings(1, Duration::from_millis(5))
    };
    // In a container, PID 1 may be our parent, but it is not the child's: we are.
    let mut child = std::process::Command::new(command().program)
        .args(["child", "fair", &serde_json::to_string(&settings).unwrap()])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.as_mut().unwrap().write_all(b"go\n");
    let started = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success() && started.elapsed() < PATIENCE);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is gone"));
    println!("disturb: orphan ok");
}
