//! The scheduler's charges are recorded once a switch without a record was seen. Records live, so it needs root and
//! tracefs; without them the test is skipped.

use jitterscope_model::{Nanos, Warning};
use jitterscope_platform::Machine;
use jitterscope_recording::{
    AttachSettings, Followed, Observer, RunSettings, WriterThread, attach,
};
use jitterscope_source::Tracefs;
use jitterscope_testing::turn;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Imitates a kernel that records no switch away from its idle threads, and none from half of all others, because a
/// loaded machine never idles. Applies to the local instance of this process while it is set up. A later change is
/// repaired.
fn hide_switches(instances: &Path) -> PathBuf {
    let own = format!("jitterscope-{}-", std::process::id());
    let began = Instant::now();
    loop {
        let entries = fs::read_dir(instances)
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let found = entries
            .into_iter()
            .find(|name| name.starts_with(&own) && name.ends_with("-local"));
        let switches = found.map(|name| instances.join(name).join("events/sched/sched_switch"));
        let is_on = |path: &PathBuf| {
            fs::read_to_string(path.join("enable")).is_ok_and(|on| on.trim() == "1")
        };
        if let Some(path) = switches.filter(is_on) {
            fs::write(path.join("filter"), "prev_pid & 1").unwrap();
            return path;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "nothing records");
        std::thread::yield_now();
    }
}

/// Says that the measurement has begun.
struct Begun<'b>(&'b AtomicBool);

impl Observer for Begun<'_> {
    fn measuring(&mut self, _: Nanos) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn charges_are_recorded_once_switches_are_missing() {
    let _turn = turn();
    // Held, so that a mount made for it stays.
    let tracefs = match Tracefs::open(&Machine::host()) {
        Ok(tracefs) => tracefs,
        Err(error) => {
            jitterscope_testing::skip(&format!("no kernel events here: {error}"));
            return;
        }
    };
    let instances = Machine::host().path(format!("{}/instances", tracefs.root()));
    let dir = tempfile::tempdir().unwrap();
    let line = [
        "sh",
        "-c",
        "n=0; while [ $n -lt 1000 ]; do sleep 0.003; n=$((n+1)); done",
    ];
    let settings = AttachSettings {
        stacks: true,
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 0,
            asked: Vec::new(),
            label: "CHARGES".into(),
            runs_dir: dir.path().to_path_buf(),
            command_line: vec!["test".into()],
            profile: None,
            tuning: None,
            writer: WriterThread::default(),
        },
        wait: false,
        followed: Followed::Command {
            line: line.map(str::to_owned).to_vec(),
            env: Vec::new(),
            to_stderr: true,
        },
        most_threads: None,
        children: true,
        duration: Some(Nanos(30_000_000_000)),
        threshold: Nanos(2_000),
    };
    let attempt = || {
        let (stop, measures) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let mut begun = Begun(&measures);
            let (settings, stop) = (&settings, &stop);
            let attached = scope
                .spawn(move || attach(&Machine::host(), settings, Vec::new(), stop, &mut begun));
            let switches = hide_switches(&instances);
            let enable = switches.join("../sched_stat_runtime/enable");
            let says =
                |path: &Path, text| fs::read_to_string(path).is_ok_and(|is| is.trim() == text);
            let is_hidden = || says(&switches.join("filter"), "prev_pid & 1");
            let began = Instant::now();
            while is_hidden() && !says(&enable, "1") && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let found = is_hidden().then(|| says(&enable, "1"));
            // On a virtual machine charges are recorded from the beginning. A recording that has measured nothing fails.
            while !measures.load(Ordering::Relaxed) && !attached.is_finished() {
                std::thread::sleep(Duration::from_millis(20));
            }
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            (found, attached.join().unwrap())
        })
    };
    // A change that comes too late is repaired: try again.
    let mut attempts = (0..5).map(|_| attempt());
    let in_time = attempts.find_map(|(found, outcome)| Some((found?, outcome.unwrap())));
    let (enabled, outcome) = in_time.expect("nobody could hide the switches in time");
    assert!(
        enabled,
        "10 s after switches were missing no charge is recorded"
    );
    let warned = |warning: &Warning| matches!(warning, Warning::UnrecordedSwitches { .. });
    assert!(
        outcome.manifest.warnings.iter().any(warned),
        "{:?}",
        outcome.manifest.warnings
    );
}
