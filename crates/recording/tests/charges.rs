//! The scheduler's charges are recorded once a switch is seen to have left no record. Recorded for real, so root and
//! tracefs are needed; where they are not, the test says that it is skipped.

use jitterscope_model::{Nanos, Warning};
use jitterscope_platform::Machine;
use jitterscope_recording::{AttachSettings, Followed, RunSettings, WriterThread, attach};
use jitterscope_source::Tracefs;
use jitterscope_testing::turn;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The local instance of this process, once there is one that records.
fn instance(instances: &Path) -> PathBuf {
    let own = format!("jitterscope-{}-", std::process::id());
    let began = Instant::now();
    loop {
        let entries = fs::read_dir(instances)
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let found = entries
            .into_iter()
            .find(|name| name.starts_with(&own) && name.ends_with("-local"));
        let path = found.map(|name| instances.join(name));
        let records = |path: &PathBuf| {
            fs::read_to_string(path.join("tracing_on")).is_ok_and(|on| on.trim() == "1")
        };
        if let Some(path) = path.filter(records) {
            return path;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "nothing records");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn charges_are_recorded_once_switches_are_missing() {
    let _turn = turn();
    // Held, so that the mount stays if it was made for it.
    let tracefs = match Tracefs::open(&Machine::host()) {
        Ok(tracefs) => tracefs,
        Err(error) => {
            eprintln!("skipped: no kernel events here: {error}");
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
        run: RunSettings {
            clock: None,
            trace_buffer_kib: 4096,
            trace_limit_bytes: 0,
            label: "CHARGES".into(),
            runs_dir: dir.path().to_path_buf(),
            command_line: vec!["test".into()],
            tuning: None,
            writer: WriterThread::default(),
        },
        wait: false,
        followed: Followed::Command {
            line: line.map(str::to_owned).to_vec(),
            env: Vec::new(),
            to_stderr: true,
        },
        children: true,
        duration: Some(Nanos(30_000_000_000)),
        threshold: Nanos(2_000),
    };
    let stop = AtomicBool::new(false);
    let (enabled, outcome) = std::thread::scope(|scope| {
        let attached =
            scope.spawn(|| attach(&Machine::host(), &settings, Vec::new(), &stop, &mut ()));
        let instance = instance(&instances);
        // As on a kernel that records no switch away from its idle threads.
        fs::write(
            instance.join("events/sched/sched_switch/filter"),
            "prev_pid != 0",
        )
        .unwrap();
        let enable = instance.join("events/sched/sched_stat_runtime/enable");
        let is_enabled = || fs::read_to_string(&enable).is_ok_and(|text| text.trim() == "1");
        let began = Instant::now();
        while !is_enabled() && began.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let enabled = is_enabled();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        (enabled, attached.join().unwrap().unwrap())
    });
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
