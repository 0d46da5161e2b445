//! Runs whose every name is hostile, as a thread, another user or a damaged disk could make them.

use crate::common::{Scenario, sent_by};
use jitterscope_model::*;
use jitterscope_store::RunWriter;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A name that clears the screen, sets a colour and a title, forges a line, reverses the text direction, hides, and is
/// a formula.
pub const NAME: &str = "=EVIL\u{1b}[31mRED\u{1b}[2J\u{1b}]0;t\u{7}\nFORGED ok\r\u{9b}1;1H\u{202e}\u{2066}\u{200b}\u{feff}\u{7f}\t\u{ad}\u{e0041}\u{2028}z";
/// The same within the fifteen bytes of a thread's name.
pub const COMM: &str = "EVIL\u{1b}[2J\nFORG\u{9b}";
pub const RED: &str = "E\u{1b}[31mRED\u{202e}";

/// Every subject with a name, and every kind as a newer version might write it.
fn hostile_subjects() -> Vec<Subject> {
    let name = || Name::from(NAME);
    let owner = || {
        Some(Owner {
            uid: Some(1000),
            cgroup: Some(name()),
            executable: Some(name()),
        })
    };
    let task = || Task {
        tid: Some(7),
        tgid: Some(7),
        process: None,
        comm: name(),
        was: Some(name()),
        class: Some(SchedClass::Other(name())),
        owner: owner(),
        kernel: Some(false),
        allowed: Some("0-1".into()),
    };
    let worker = |comm| {
        Some(Worker {
            tid: Some(8),
            comm,
            class: None,
        })
    };
    let mut all = vec![
        Subject::Thread(task()),
        Subject::Throttle(task()),
        Subject::Quota(Quota {
            cgroup: name(),
            limit: None,
            beside: None,
        }),
        Subject::Work(Work {
            function: Some(name()),
            workqueue: Some(name()),
            worker: worker(Some(name())),
            unbound: None,
        }),
        Subject::Work(Work {
            worker: worker(Some(name())),
            ..Work::default()
        }),
        Subject::Interrupt {
            number: Some(1),
            action: name(),
        },
        Subject::Vector(name()),
        Subject::Timer {
            function: Some(name()),
            source: Some(TimerSource::Other(name())),
        },
        Subject::Call(name()),
        Subject::Ipi(name()),
        Subject::Nmi(name()),
        Subject::Verdict(Verdict::LateTimer, About::Meanwhile(Meanwhile::Ran(task()))),
        Subject::Verdict(Verdict::UntracedInterrupt, About::Vectors([name()].into())),
        Subject::Verdict(
            Verdict::FrameLeftOpen,
            About::Frame(Evidence::Other(name())),
        ),
        Subject::Unknown {
            kind: name(),
            name: name(),
            detail: name(),
        },
    ];
    all.extend(CulpritKind::ALL.into_iter().map(|kind| Subject::Unknown {
        kind: kind.as_str().into(),
        name: name(),
        detail: name(),
    }));
    all
}

fn hostile_parts(net: u64) -> Vec<Part> {
    let hostile = |subject| {
        let part = Part::inside(subject, Nanos(net), Evidence::Other(NAME.into()));
        sent_by(
            part.in_phase(Phase::Other(NAME.into())),
            NAME,
            12,
            0,
            Some(NAME),
        )
    };
    hostile_subjects().into_iter().map(hostile).collect()
}

fn scenario(kind: &str) -> Scenario {
    let mut s = Scenario::new(&[0, 1]);
    for n in 0..40 {
        s.stall(
            (n % 2) as u32,
            n * 200_000 + 500,
            hostile_parts(20_000 + n * 100),
        );
    }
    for (n, stall) in s.stalls.iter_mut().enumerate() {
        stall.victim.comm = Comm::new(if n % 2 == 0 { COMM } else { RED });
    }
    let mut s = match kind {
        "wakeup" => s.finish_wakeups(&[(21_900, 11), (31_000, 40)], None),
        _ => s.finish(),
    };
    s.manifest.probe.kind = kind.into();
    if kind == "attach" {
        let ran = |subject| RanInstead {
            subject,
            threads: 1,
            count: 3,
            min_ns: Nanos(10),
            max_ns: Nanos(30_000),
            total_ns: Nanos(40_000),
        };
        s.manifest.threads = (0..3)
            .map(|n| ThreadAccount {
                tid: 70 + n,
                comm: if n == 0 { NAME } else { COMM }.into(),
                role: (n == 2).then(|| NAME.into()),
                until: Ticks(1 << 40),
                running_ns: Nanos(1_000_000),
                waiting_ns: Nanos(500_000),
                preempted_ns: Nanos(100_000),
                runs: 9,
                cpus: vec![CpuShare {
                    cpu: CpuId(0),
                    runs: 9,
                    running_ns: Nanos(1_000_000),
                }],
                ran_instead: hostile_subjects().into_iter().map(ran).collect(),
                ..ThreadAccount::default()
            })
            .collect();
    }
    s.manifest.counters = vec![CounterTotal {
        cpu: CpuId(0),
        name: NAME.into(),
        total: 9,
        correlation: Some(0.9),
    }];
    s.manifest.warnings = vec![Warning::worded(NAME, NAME)];
    s.manifest.sources[1].status = SourceStatus::Degraded;
    s
}

/// Stores a run of this probe, oldest first.
pub fn store(runs: &Path, kind: &str, at: u64) -> PathBuf {
    let s = scenario(kind);
    let started = s.manifest.clock_start.realtime_ns + at * 1_000_000_000;
    let mut writer = RunWriter::create(runs, kind, started).unwrap();
    writer
        .begin(s.manifest.clock_start, s.manifest.rate)
        .unwrap();
    for (stall, attribution) in s.stalls.iter().zip(&s.attributions) {
        writer.stall(stall).unwrap();
        writer.attribution(attribution).unwrap();
    }
    for row in &s.intervals {
        let mut lengths = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        lengths
            .record_n(row.max.0.max(1), row.count.max(1))
            .unwrap();
        writer.interval(row).unwrap();
        writer
            .interval_histogram(kind, row.cpu, row.start, row.end, &lengths)
            .unwrap();
    }
    let path = writer.finish(s.manifest).unwrap();
    spoil(&path, at);
    path
}

/// Makes every free text of a stored run's manifest hostile, as a sender of the run could.
pub fn spoil(run: &Path, at: u64) {
    for (name, clock) in [
        ("manifest.json", "/started_realtime_ns"),
        ("details.json", "/clock_start/realtime_ns"),
    ] {
        let file = run.join(name);
        let mut value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        walk(&mut value, "");
        let clock = value.pointer_mut(clock).unwrap();
        *clock = (clock.as_u64().unwrap() + at * 1_000_000_000).into();
        fs::write(&file, serde_json::to_vec(&value).unwrap()).unwrap();
    }
}

/// Keys of free text; the others are numbers, lists of CPUs, or names of a fixed set.
const FREE: [&str; 17] = [
    "label",
    "tool_version",
    "command_line",
    "hostname",
    "kernel_release",
    "kernel_version",
    "arch",
    "cpu_model",
    "cmdline",
    "hypervisor",
    "text",
    "path",
    "why",
    "comm",
    "edge",
    "input",
    "id",
];

fn walk(value: &mut Value, key: &str) {
    match value {
        Value::Object(object) => object.iter_mut().for_each(|(key, value)| walk(value, key)),
        Value::Array(values) => values.iter_mut().for_each(|value| walk(value, key)),
        Value::String(text) if FREE.contains(&key) => *text = NAME.into(),
        // A missing value is replaced where that is possible.
        Value::Null if key == "hypervisor" => *value = NAME.into(),
        // As a newer version may write it.
        Value::Null if ["cpus_chosen_because", "ended_early"].contains(&key) => {
            *value = serde_json::json!({"id": NAME, "text": NAME});
        }
        _ => {}
    }
}
