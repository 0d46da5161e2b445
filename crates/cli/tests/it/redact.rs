//! `--redact`: a run whose every name is a marker, through every output that users pass on.

use jitterscope_model::*;
use jitterscope_store::RunWriter;
use std::path::Path;
use std::process::{Command, Stdio};

const MARK: &str = "ZqMk";
const EPOCH: u64 = 1_795_213_189_826_000_000;

fn mark(what: &str) -> String {
    format!("{MARK}-{what}")
}

/// A value of a newer version.
fn newer(what: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::from_iter([("id".to_owned(), mark(what).into())])
}

fn manifest(clock: ClockReading) -> RunManifest {
    let because = Some(MovedBecause {
        offline: false,
        by: Some(Mover {
            comm: mark("early"),
            tid: 1,
        }),
    });
    let ended_early = Some(
        EndedEarly::Moved {
            cpu: CpuId(1),
            to_cpu: CpuId(0),
            because,
        }
        .into(),
    );
    let wakeup = WakeupResult {
        cpu: CpuId(1),
        ended_early,
        ..WakeupResult::default()
    };
    let mut result = wakeup.as_probe_result(Nanos(300), Ticks(2_000), TickRate::NANOSECONDS);
    (result.samples, result.stalls, result.max_ticks) = (10, 1, 900);
    (result.start, result.end) = (Ticks(1_000), Ticks(1_000_000));
    (result.below, result.above) = (vec![(20, 9)], vec![(900, 1)]);
    let source = |name: &str| SourceReport {
        name: name.into(),
        status: SourceStatus::Degraded,
        problems: vec![
            SourceProblem::Unknown(newer("reason")),
            SourceProblem::GraphTaken {
                functions: mark("functions"),
            },
        ],
        losses: vec![SourceLoss::Other(mark("loses").into()), SourceLoss::Causes],
        lost: 1,
    };
    RunManifest {
        schema_version: RUN_SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        recorder_pid: None,
        id: String::new(),
        label: mark("label"),
        command_line: vec![mark("command")],
        host: HostFacts {
            hostname: mark("host"),
            kernel_release: format!("6.1.0-{}", mark("kernel")),
            kernel_version: mark("version"),
            cpu_model: mark("processor"),
            cmdline: mark("boot"),
            hypervisor: Some(mark("hypervisor")),
            boot_id: Some(mark("boot-id")),
            ..HostFacts::default()
        },
        clock: ClockKind::MonotonicRaw,
        rate: TickRate::NANOSECONDS,
        clock_start: clock,
        clock_end: clock,
        probe: ProbeSettings {
            kind: "spin".into(),
            cpus: "1".parse().unwrap(),
            cpus_chosen_because: Some(AnyVersion::Unknown(newer("because"))),
            duration_ns: Nanos(1_000_000),
            warmup_ns: Nanos(0),
            threshold_ns: Nanos(300),
            clock_costs: None,
            interval_ns: Nanos(1_000_000),
            fifo_priority: None,
            wakeup: None,
            event_grain: EventGrain::All,
        },
        results: vec![result],
        wakeups: vec![],
        threads: vec![],
        pipeline: None,
        passive: Vec::new(),
        attributed: true,
        sources: vec![source("tracefs"), source(&mark("source"))],
        counters: vec![CounterTotal {
            cpu: CpuId(1),
            name: mark("counter"),
            total: 3,
            correlation: None,
        }],
        edge_costs: vec![],
        sleeping_works: vec![],
        senders_dropped: 0,
        events_in_gaps: EventsInGaps::default(),
        self_noise: SelfNoise::default(),
        trace: StoredTrace::default(),
        interrupted: false,
        killed: false,
        moment: None,
        profile: None,
        imported: None,
        added: None,
        asked: Vec::new(),
        warnings: vec![
            Warning::worded("no-kernel-events", &mark("warning")),
            Warning::ClockFallback {
                reason: TscFlaw::OtherClockSource {
                    source: mark("source"),
                }
                .into(),
            },
            Warning::ClockDoubt {
                reason: TscFlaw::ClockSourceUnreadable {
                    system: mark("clock"),
                }
                .into(),
            },
            Warning::ForcedPlacement {
                misfit: AnyVersion::Unknown(newer("misfit")),
            },
            Warning::OwnerNotMet {
                named: Some(
                    NamedOwner::Named {
                        name: mark("owner"),
                    }
                    .into(),
                ),
                watching: true,
            },
            Warning::JournalEnded {
                why: JournalFault::System {
                    system: mark("journal"),
                }
                .into(),
            },
        ],
    }
}

fn machine() -> MachineState {
    let mut state = MachineState::default();
    let settings = &mut state.settings;
    settings.put("kernel.boot_line", [MachineEntry::new(mark("boot"))]);
    settings.put("firmware.product", [MachineEntry::new(mark("product"))]);
    settings.put("interrupts", [MachineEntry::new("0").of(mark("device"))]);
    settings.put("cpusets", [MachineEntry::new("1").of(mark("container"))]);
    let apply = TuningApply {
        user: Some(mark("user")),
        command: mark("command"),
        ..TuningApply::default()
    };
    let applied = AppliedTuning {
        applies: vec![apply],
        ..AppliedTuning::default()
    };
    state.tuning = Reading::Value(TuningState {
        applied: Reading::Value(applied),
        ..TuningState::default()
    });
    state
}

fn store(runs: &Path) {
    let clock = ClockReading {
        ticks: Ticks(1_000),
        monotonic_raw_ns: 1,
        realtime_ns: EPOCH,
        boottime_ns: None,
        width_ticks: 10,
    };
    let mut run = RunWriter::create(runs, &mark("label"), EPOCH).unwrap();
    run.begin(clock, TickRate::NANOSECONDS).unwrap();
    let victim = ThreadRef {
        tid: 7,
        comm: Comm::new(&mark("victim")),
    };
    let stall = Stall {
        id: StallId(0),
        cpu: CpuId(1),
        victim,
        start: Ticks(2_000),
        end: Ticks(2_900),
    };
    run.stall(&stall).unwrap();
    let sender = Sender {
        context: ExecutionContext::Thread,
        comm: Some(mark("sender").into()),
        tid: 8,
        tgid: None,
        cpu: CpuId(0),
        via: Some(mark("via").into()),
        beneath: Some(mark("beneath").into()),
    };
    let part = |subject, net| {
        let culprit = Culprit {
            subject,
            sender: Some(sender.clone()),
        };
        let part = Part::inside(
            culprit,
            Nanos(net),
            Evidence::Other(mark("evidence").into()),
        );
        part.in_phase(Phase::Other(mark("phase").into()))
    };
    let name = |what: &str| Name::from(mark(what));
    let owner = Some(Owner {
        uid: Some(1000),
        cgroup: Some(name("cgroup")),
        executable: Some(name("executable")),
    });
    let thread = Task {
        tid: Some(12),
        comm: name("culprit"),
        owner,
        ..Task::default()
    };
    let worker = Some(Worker {
        tid: Some(8),
        comm: Some(name("worker")),
        class: None,
    });
    let (function, workqueue) = (Some(name("function")), Some(name("queue")));
    let work = Work {
        function,
        workqueue,
        worker,
        unbound: None,
    };
    let newer = Subject::Unknown {
        kind: name("kind"),
        name: name("newer"),
        detail: name("detail"),
    };
    let parts = vec![
        part(Subject::Thread(thread), 500),
        part(
            Subject::Interrupt {
                number: Some(25),
                action: name("device"),
            },
            200,
        ),
        part(Subject::Work(work), 100),
        part(newer, 100),
    ];
    run.attribution(&Attribution {
        stall: StallId(0),
        parts,
    })
    .unwrap();
    let (start, end) = (Ticks(1_000), Ticks(1_000_000));
    let row = IntervalRow {
        cpu: CpuId(1),
        start,
        end,
        count: 1,
        max: Nanos(900),
        stolen: Nanos(900),
    };
    run.interval(&row).unwrap();
    let lengths = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    run.interval_histogram("spin", CpuId(1), start, end, &lengths)
        .unwrap();
    run.tagged_histogram(&mark("tag"), start, end, &lengths)
        .unwrap();
    run.machine(&machine()).unwrap();
    run.finish(manifest(clock)).unwrap();
}

fn run(runs: &Path, args: &[&str]) -> (String, bool) {
    let program = env!("CARGO_BIN_EXE_jitterscope");
    let output = Command::new(program)
        .args(args)
        .arg("--runs")
        .arg(runs)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        text + &String::from_utf8_lossy(&output.stderr),
        output.status.success(),
    )
}

#[test]
fn no_name_is_in_any_output() {
    let dir = tempfile::tempdir().unwrap();
    // The folders' names are the user's, too.
    let runs = dir.path().join(mark("runs"));
    store(&runs);
    let out = dir.path().join(mark("out"));
    std::fs::create_dir(&out).unwrap();
    let file = |name: &str| out.join(name).display().to_string();
    let targets: Vec<String> = ["csv", "json", "hlog", "hgrm"]
        .iter()
        .map(|format| format!("{format}://{}", file(format)))
        .collect();
    let mut export = vec!["export", "--redact", "latest", "--json"];
    export.extend(targets.iter().flat_map(|target| ["--to", target.as_str()]));
    let summary = file("md");
    let commands: [&[&str]; 8] = [
        &["report", "--redact", "latest"],
        &["report", "--redact", "latest", "--markdown", &summary],
        &["report", "--redact", "--json", "latest"],
        &["report", "--redact", "--worst", "1", "latest"],
        &["report", "--redact", "--worst", "1", "--json", "latest"],
        &["list", "--redact"],
        &["list", "--redact", "--json"],
        &export,
    ];
    for args in commands {
        let (text, ok) = run(&runs, args);
        assert!(ok, "{args:?}: {text}");
        assert!(!text.contains(MARK), "{args:?}: {text}");
        if args.contains(&"--markdown") {
            let page = std::fs::read_to_string(&summary).unwrap();
            assert!(
                page.starts_with("### label-1") && !page.contains(MARK),
                "{page}"
            );
        }
        // Without the flag the names appear: the check can fail.
        let plain: Vec<&str> = args
            .iter()
            .copied()
            .filter(|arg| *arg != "--redact")
            .collect();
        if plain[0] != "export" {
            assert!(run(&runs, &plain).0.contains(MARK), "{plain:?}");
        }
    }
    for name in ["csv", "json", "hlog", "hgrm"] {
        let text = std::fs::read_to_string(out.join(name)).unwrap();
        assert!(!text.is_empty() && !text.contains(MARK), "{name}: {text}");
    }
    let json = std::fs::read_to_string(out.join("json")).unwrap();
    assert!(
        json.contains("thread-1") && json.contains("\"duration_ns\":900"),
        "{json}"
    );
}

#[test]
fn tables_are_not_copied_with_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    store(&runs);
    let to = format!("parquet://{}", dir.path().join("tables").display());
    let (text, ok) = run(&runs, &["export", "--redact", "latest", "--to", &to]);
    assert!(!ok && text.contains("--redact"), "{text}");
    assert!(!dir.path().join("tables").exists());
}
