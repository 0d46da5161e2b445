//! Printed JSON conforms to `docs/schema`.

use crate::common;

use crate::stored;

use crate::schema_check;

use common::{busy, late};
use jitterscope_inject::{DisturbKind, Expectation, ExpectedSender, Unavailable};
use jitterscope_model::{
    AnyVersion, CpuId, CpuSet, CpuUse, CulpritKind, EndedEarly, ExecutionContext, JournalFault,
    MeasuringThread, Misfit, MissingFigure, MovedBecause, Mover, NamedOwner, Nanos, NoKernelEvents,
    PipelineRole, QuotaLimit, RoleNode, SourceProblem, TscFlaw, Warning,
};
use jitterscope_recording::selftest::{
    Instead, SelftestReport, SelftestRow, Shortfall, SkipCause, SkippedKind, WrongVerdict,
};
use schema_check::conforms;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use stored::store;

fn run(args: &[&str], runs: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(["--runs", runs.to_str().unwrap()])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    // Fields keep their declared order: a reader sees the version first.
    assert!(
        !args.contains(&"--json") || text.starts_with("{\n  \"schema_version\": "),
        "{args:?}: {text:.80}"
    );
    text
}

fn moved(cpu: CpuId) -> EndedEarly {
    let by = Some(Mover {
        comm: "taskset".into(),
        tid: 812,
    });
    EndedEarly::Moved {
        cpu,
        to_cpu: CpuId(0),
        because: Some(MovedBecause { offline: false, by }),
    }
}

/// One of each kind.
fn warnings() -> Vec<Warning> {
    let cpus = || "0-1".parse::<CpuSet>().unwrap();
    let text = || "x".to_owned();
    let (cpu, role) = (CpuId(1), PipelineRole::Journaller);
    vec![
        Warning::NoKernelEvents(NoKernelEvents {
            wanted: true,
            problem: Some(SourceProblem::MountDenied),
        }),
        Warning::NoFreeCpu {
            cpus: cpus(),
            taken: CpuUse::Measured,
        },
        Warning::NoOwner {
            cpus: cpus(),
            look_ns: Nanos(1),
        },
        Warning::OwnerNotMet {
            named: Some(NamedOwner::Process { pid: 1 }.into()),
            watching: true,
        },
        Warning::OwnerNotMet {
            named: Some(NamedOwner::Named { name: text() }.into()),
            watching: true,
        },
        Warning::OwnerNotMet {
            named: None,
            watching: false,
        },
        Warning::CommandFailed { status: text() },
        Warning::TooManyThreads {
            refused: 1,
            most: 2,
        },
        Warning::NotFollowed { late: 1, missed: 2 },
        Warning::RenamedOften { threads: 1 },
        Warning::ImportCut { cpus: cpus() },
        Warning::ImportDisordered { pages: 2 },
        Warning::ImportMoved { records: 3 },
        Warning::ImportLocalClock,
        Warning::ImportProcess { pid: 1 },
        Warning::UnrecordedSwitches {
            count: 1,
            cpus: cpus(),
        },
        Warning::Folded { time_ns: Nanos(1) },
        Warning::CpuQuota {
            cgroup: text(),
            limit: Some(QuotaLimit {
                quota_us: 1,
                period_us: 2,
            }),
            times: 1,
            time_ns: Nanos(1),
        },
        Warning::FrequencyChanged {
            cpu,
            times: 1,
            lowest_khz: 1,
            highest_khz: 2,
        },
        Warning::CpuOffline { cpus: cpus() },
        Warning::IdleControlShared { cpu },
        Warning::SmtSibling {
            cpu,
            siblings: cpus(),
        },
        Warning::RtThrottling {
            runtime_us: 1,
            period_us: 2,
        },
        Warning::ClockFallback {
            reason: AnyVersion::left_out(),
        },
        Warning::ClockFallback {
            reason: TscFlaw::OtherClockSource { source: text() }.into(),
        },
        Warning::ClockFallback {
            reason: TscFlaw::ClockSourceUnreadable { system: text() }.into(),
        },
        Warning::ClockDoubt {
            reason: TscFlaw::NotConstant.into(),
        },
        Warning::OwnBookkeeping {
            cpu,
            count: 1,
            threshold_ns: Nanos(1),
            store_ns: Nanos(1),
        },
        Warning::DroppedRecords {
            thread: MeasuringThread::Cpu(cpu),
            dropped: 1,
        },
        Warning::DroppedRecords {
            thread: MeasuringThread::Role(role),
            dropped: 1,
        },
        Warning::TraceLost { lost: 1 },
        Warning::WriterBehind {
            waited_ns: Nanos(1),
        },
        Warning::CpuEndedEarly {
            cpu,
            why: moved(cpu).into(),
        },
        Warning::OwnPageFaults {
            thread: MeasuringThread::Cpu(cpu),
            faults: 1,
        },
        Warning::LeftoversRemoved { count: 1, kept: 1 },
        Warning::TraceDisturbed {
            times: 2,
            first_ns: Nanos(1),
            time_ns: Nanos(2),
            files: vec!["local/tracing_on".into()],
            repaired: true,
        },
        Warning::EventsMissing {
            event: "sched:sched_switch".into(),
            counted: 2,
            recorded: 1,
        },
        Warning::TraceDiscarded { at_the_end: true },
        Warning::DiskFull { unstored: 1 },
        Warning::OutputLost {
            output: text(),
            delivered: 1,
            lost: 1,
            why: text(),
        },
        Warning::Interrupted,
        Warning::Killed {
            missing: vec![
                MissingFigure::Samples,
                MissingFigure::Accounts,
                MissingFigure::Messages,
                MissingFigure::Losses,
                MissingFigure::Machine,
                MissingFigure::Cost,
            ],
        },
        Warning::SavedPart {
            missing: vec![MissingFigure::Samples],
        },
        Warning::ForcedPlacement {
            misfit: AnyVersion::left_out(),
        },
        Warning::ForcedPlacement {
            misfit: Misfit::TooFewCpus {
                threads: 3,
                cpus: cpus(),
                cpuset: Some(cpus()),
                two_would_fit: true,
            }
            .into(),
        },
        Warning::ForcedPlacement {
            misfit: Misfit::Quota {
                threads: 3,
                quota_millis: 2_500,
            }
            .into(),
        },
        Warning::ForcedPlacement {
            misfit: Misfit::SameCpu {
                roles: vec![role],
                cpu,
            }
            .into(),
        },
        Warning::ForcedPlacement {
            misfit: Misfit::SameCore {
                roles: vec![role],
                core: cpus(),
            }
            .into(),
        },
        Warning::ForcedPlacement {
            misfit: Misfit::TooFewCores {
                threads: 3,
                cpus: cpus(),
                cores: 1,
            }
            .into(),
        },
        Warning::ForcedPlacement {
            misfit: Misfit::AcrossNodes {
                nodes: vec![RoleNode { role, node: 0 }],
            }
            .into(),
        },
        Warning::NotPinned {
            one_core: true,
            many_nodes: true,
        },
        Warning::MemoryNotLocked { why: text() },
        Warning::JournalEnded {
            why: AnyVersion::left_out(),
        },
        Warning::JournalDiskFull {
            why: JournalFault::System { system: text() }.into(),
        },
        Warning::JournalEnded {
            why: JournalFault::StockOverfilled.into(),
        },
        Warning::JournalWaits { waits: 1 },
        Warning::RingFull {
            waits: 1,
            waited_ns: Nanos(1),
        },
        Warning::MessagesLost {
            role: PipelineRole::Accumulator,
            lost: 2,
        },
        Warning::Disordered {
            role,
            disordered: 1,
        },
        Warning::AttributedAgain {
            by: text(),
            recorded_by: text(),
        },
        Warning::VerdictsKept { kept: 1, stalls: 1 },
        Warning::InconsistentRows { rows: 1 },
        Warning::worded("x", "x"),
    ]
}

#[test]
fn each_warning_is_printed_as_described_and_read_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut spin = busy(&[0, 1]);
    spin.manifest.label = "SPIN".into();
    spin.manifest.warnings = warnings();
    store(&spin, dir.path());
    let value: Value =
        serde_json::from_str(&run(&["report", "SPIN", "--json"], dir.path())).unwrap();
    conforms("report", &value);
    let rows = value["warnings"].as_array().unwrap();
    for (row, stored) in rows.iter().zip(&spin.manifest.warnings) {
        let text = row["text"].as_str().unwrap();
        assert!(
            !text.is_empty() && (text == "x" || text.ends_with('.')),
            "{row}"
        );
        let mut fields = row.clone();
        if !matches!(stored, Warning::Other(_)) {
            fields.as_object_mut().unwrap().remove("text");
        }
        assert_eq!(&serde_json::from_value::<Warning>(fields).unwrap(), stored);
    }
    assert_eq!(rows.len(), spin.manifest.warnings.len());
}

#[test]
fn stored_runs_are_printed_as_described() {
    let dir = tempfile::tempdir().unwrap();
    let mut spin = busy(&[0, 1]);
    spin.manifest.label = "SPIN".into();
    let mut wakeup = late(&[0, 1, 3], Some(3));
    wakeup.manifest.label = "WAKEUP".into();
    store(&spin, dir.path());
    store(&wakeup, dir.path());
    for (label, level) in [
        ("SPIN", "program"),
        ("SPIN", "thread"),
        ("SPIN", "process"),
        ("WAKEUP", "thread"),
    ] {
        let text = run(&["report", label, "--json", "--by", level], dir.path());
        conforms("report", &serde_json::from_str(&text).unwrap());
    }
    let mut again = busy(&[0, 1]);
    again.manifest.label = "AGAIN".into();
    store(&again, dir.path());
    for sides in [["SPIN", "AGAIN"], ["SPIN@0", "SPIN@1"], ["SPIN", "WAKEUP"]] {
        let text = run(&["diff", sides[0], sides[1], "--json"], dir.path());
        conforms("diff", &serde_json::from_str(&text).unwrap());
    }
    let text = run(&["list", "--json"], dir.path());
    conforms("list", &serde_json::from_str(&text).unwrap());
    let text = run(
        &["audit", "--json", "--run", "SPIN", "--cpus", "0"],
        dir.path(),
    );
    conforms("audit", &serde_json::from_str(&text).unwrap());
    // It makes a trial run.
    let turn = jitterscope_testing::turn();
    let estimate = [
        "experiment",
        "--apply",
        "true",
        "--revert",
        "true",
        "--dry-run",
        "--json",
        "-q",
    ];
    let text = run(&estimate, dir.path());
    drop(turn);
    conforms("experiment-estimate", &serde_json::from_str(&text).unwrap());
    for label in ["SPIN", "WAKEUP"] {
        let file = dir.path().join(format!("{label}.json"));
        let to = format!("json://{}", file.display());
        let shown = run(&["export", label, "-q", "--to", &to, "--json"], dir.path());
        conforms("delivered", &serde_json::from_str(&shown).unwrap());
        for line in std::fs::read_to_string(file).unwrap().lines() {
            conforms("export", &serde_json::from_str(line).unwrap());
        }
    }
    for args in [["runs", "rm", "AGAIN"], ["runs", "prune", "--keep=1"]] {
        for last in ["--dry-run", "--yes"] {
            let shown = run(&[&args[..], &["--json", last]].concat(), dir.path());
            let shown: Value = serde_json::from_str(&shown).unwrap();
            assert!(!shown["runs"].as_array().unwrap().is_empty(), "{shown}");
            conforms("removed", &shown);
        }
    }
}

#[test]
fn a_watched_cpu_is_printed_as_described() {
    let run_of = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/passive");
    let run_of = run_of.to_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text = run(&["report", run_of, "--json"], dir.path());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(!report["passive"].as_array().unwrap().is_empty());
    conforms("report", &report);
    let text = run(&["report", run_of, "--stall", "1", "--json"], dir.path());
    conforms("stall", &serde_json::from_str(&text).unwrap());
}

/// By its name (a unit, a plural or an id), or by the description of the field, of its type or of the choice that it
/// belongs to.
#[test]
fn every_number_in_a_schema_says_what_it_is() {
    const NAMES: [&str; 15] = [
        "_ns",
        "_ticks",
        "_bytes",
        "_fraction",
        "_ratio",
        "_ppb",
        "_hz",
        "_khz",
        "_milli",
        "_per_sec",
        "_per_second",
        "_version",
        "tid",
        "pid",
        "uid",
    ];
    fn walk(fields: &Value, at: &str, wrong: &mut Vec<String>) {
        for (name, field) in fields.as_object().into_iter().flatten() {
            let at = format!("{at}/{name}");
            let is_number = |kind: &Value| kind == "integer" || kind == "number";
            let number = match &field["type"] {
                Value::Array(kinds) => kinds.iter().any(is_number),
                kind => is_number(kind),
            };
            let named = name.ends_with('s') || NAMES.iter().any(|of| name.ends_with(of));
            if number && !named && !field["description"].is_string() {
                wrong.push(at.clone());
            }
            for group in ["properties", "$defs"] {
                walk(&field[group], &at, wrong);
            }
            for choice in ["oneOf", "anyOf"] {
                let choices = field[choice].as_array().into_iter().flatten();
                for one in choices.filter(|one| !one["description"].is_string()) {
                    walk(&one["properties"], &at, wrong);
                }
            }
        }
    }
    let mut wrong = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        walk(&serde_json::json!({ name: schema }), "", &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One of every reason and of every wrong verdict.
#[test]
fn a_selftests_score_is_as_described() {
    let text = || "x".to_owned();
    let wrong = [
        Instead::NoStall,
        Instead::NoAttribution,
        Instead::NoSender,
        Instead::OtherSender {
            context: ExecutionContext::Thread,
            comm: Some("x".into()),
            tid: None,
        },
        Instead::OtherSender {
            context: ExecutionContext::Softirq,
            comm: None,
            tid: Some(1),
        },
        Instead::OtherCulprit {
            kind: CulpritKind::Irq,
            name: "x".into(),
        },
    ];
    let shortfalls = [
        None,
        Some(Shortfall::NothingInjected),
        Some(Shortfall::TooBusy {
            out_of_reach: 1,
            of: 2,
        }),
        Some(Shortfall::TooFewFound),
        Some(Shortfall::TooFewNamed),
        Some(Shortfall::Broken { error: text() }),
    ];
    let sender = Some(ExpectedSender {
        comm: text(),
        tid: 1,
    });
    let expected = Expectation {
        kind: CulpritKind::Ipi,
        name: text(),
        sender,
    };
    let row = |shortfall: Option<Shortfall>| SelftestRow {
        passed: shortfall.is_none(),
        expected: shortfall.is_none().then(|| expected.clone()),
        length_error: shortfall.is_none().then_some(0.5),
        wrong: wrong
            .iter()
            .map(|instead| WrongVerdict {
                instead: instead.clone(),
                count: 1,
            })
            .collect(),
        shortfall,
        ..SelftestRow::of(DisturbKind::Membarrier)
    };
    let unavailable = [
        Unavailable::NoHelper,
        Unavailable::NoVictim,
        Unavailable::Kernel { lacks: text() },
        Unavailable::NoEvents {
            tell: text(),
            events: vec![text()],
        },
        Unavailable::Capability {
            what: text(),
            capability: text(),
        },
        Unavailable::ControlFile {
            path: text(),
            error: text(),
            what: text(),
        },
        Unavailable::Refused { error: text() },
        Unavailable::InMemory {
            folder: text(),
            file_system: text(),
        },
    ];
    let causes = unavailable
        .into_iter()
        .map(|cause| SkipCause::Unavailable { cause });
    let causes = causes
        .chain([
            SkipCause::NotReady { error: text() },
            SkipCause::TooBusy {
                out_of_reach: 1,
                of: 2,
            },
        ])
        .map(|cause| SkippedKind {
            kind: DisturbKind::Softirq,
            cause,
        });
    let report = SelftestReport::new(shortfalls.map(row).into(), causes.collect());
    let value = serde_json::to_value(jitterscope_view::selftest::json(&report)).unwrap();
    conforms("selftest", &value);
}
