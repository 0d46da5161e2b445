//! Conditions that are undecided because a quantity may be higher than a run could see.

use crate::common;

use common::{manifest, part, result, stall};
use jitterscope_analyze::compare::{ComparedRunBuilder, DiffRules, Side, diff};
use jitterscope_analyze::gate::{
    GateNote, GateReason, GateResult, GateSource, GateVerdict, InsteadOfSpinning, SourceDoubt,
    evaluate, evaluate_changes, parse,
};
use jitterscope_analyze::{RunSummary, SummaryBuilder};
use jitterscope_model::*;
use std::path::Path;

const SOURCES: [GateSource; 3] = [GateSource::Events, GateSource::Symbols, GateSource::Smi];

/// One stall of ten microseconds, caused by a timer.
fn attributed(change: impl FnOnce(&mut RunManifest)) -> RunSummary {
    let mut manifest = manifest(vec![result(1, &[26_000])], true);
    manifest.sources = SOURCES
        .map(|source| SourceReport::available(source.name()))
        .to_vec();
    change(&mut manifest);
    let mut builder = SummaryBuilder::new(&manifest);
    builder.stall(&stall(0, 1, 2_000_000, 26_000));
    let parts = vec![part(CulpritKind::Timer, "tick_nohz_handler", 10_000)];
    builder.attribution(&Attribution {
        stall: StallId(0),
        parts,
    });
    builder.finish()
}

fn one(condition: &str, run: &RunSummary) -> GateResult {
    evaluate(&parse(condition).unwrap(), run).remove(0)
}

#[test]
fn a_quantity_is_in_doubt_where_a_source_that_it_needs_was_not_all_there() {
    use GateSource::{Events, Smi, Symbols};
    for (condition, needed) in [
        ("wait.p50>1s", &[][..]),
        ("stolen>99%", &[]),
        ("stalls>1000000/s", &[]),
        ("max>1s", &[]),
        ("coverage<1%", &[]),
        ("unexplained>99%", &[Events]),
        ("unresolved>99%", &[Events]),
        ("hypervisor>99%", &[Events]),
        ("firmware>99%", &[Events, Smi]),
        // A kind is known without symbol names.
        ("culprit(timer)>99%", &[Events]),
        ("culprit(tim*)>99%", &[Events]),
        ("culprit(thread postgres)>99%", &[Events]),
        ("culprit(timer process_timeout)>99%", &[Events, Symbols]),
        ("culprit(kworker vmstat_update)>99%", &[Events, Symbols]),
        ("culprit(ipi flush_tlb_func)>99%", &[Events, Symbols]),
        ("culprit(vmstat_update)>99%", &[Events, Symbols]),
        ("culprit(SMI)>99%", &[Events, Symbols, Smi]),
        ("culprit(SM*)>99%", &[Events, Symbols, Smi]),
        ("culprit(timer SMI)>99%", &[Events, Symbols]),
        ("culprit(firmware)>99%", &[Events, Smi]),
        ("culprit(firmware SMI)>99%", &[Events, Smi]),
        // This includes firmware's time, counted or not.
        ("culprit(*)>100%", &[Events]),
    ] {
        let all = one(condition, &attributed(|_| ()));
        assert_eq!(all.verdict, GateVerdict::Kept, "{condition}: {all:?}");
        for (at, source) in SOURCES.into_iter().enumerate() {
            let run = attributed(|manifest| manifest.sources[at].status = SourceStatus::Degraded);
            let found = one(condition, &run);
            let doubt = GateReason::Source {
                source,
                why: SourceDoubt::Limited(Vec::new()),
            };
            let expected = needed.contains(&source).then_some(doubt);
            assert_eq!(found.why, expected, "{condition} without {}", source.name());
            assert_eq!(
                found.verdict == GateVerdict::Undecided,
                found.why.is_some(),
                "{condition}"
            );
        }
    }
}

#[test]
fn firmware_interrupts_are_sure_only_if_counted_on_bare_metal() {
    let why = |change: fn(&mut RunManifest)| one("firmware>99%", &attributed(change)).why;
    let smi = |why| {
        Some(GateReason::Source {
            source: GateSource::Smi,
            why,
        })
    };
    assert_eq!(why(|_| ()), None);
    assert_eq!(
        why(|manifest| manifest.sources.truncate(2)),
        smi(SourceDoubt::NotCounted)
    );
    let guest = why(|manifest| manifest.host.hypervisor = Some("KVMKVMKVM".into()));
    assert_eq!(guest, smi(SourceDoubt::VirtualMachine));
    // An attributed run had events, whatever it lists.
    assert_eq!(why(|manifest| drop(manifest.sources.drain(..2))), None);
}

#[test]
fn what_was_lost_is_a_doubt_by_what_was_lost_first_of_all() {
    let why = |change: fn(&mut RunManifest)| one("unexplained>99%", &attributed(change)).why;
    let events = |manifest: &mut RunManifest| {
        manifest.sources[0].lost = 1;
        manifest.events_in_gaps = EventsInGaps {
            events: 20_000,
            inside: 20_000,
            ..EventsInGaps::default()
        };
    };
    assert_eq!(why(events), Some(GateReason::EventsLost(1)));
    let stalls = |manifest: &mut RunManifest| {
        manifest.results[0] = ProbeResult {
            dropped_records: 1,
            ..result(1, &[2600; 1000])
        };
    };
    assert_eq!(why(stalls), Some(GateReason::StallsUnrecorded(1)));
    // Measured stalls lost nothing.
    assert_eq!(one("stolen>99%", &attributed(events)).why, None);
}

/// The remaining verdicts hold: a limit that they exceed is exceeded, whatever the time without verdicts contains.
#[test]
fn nothing_is_kept_where_the_trace_was_disturbed() {
    let disturbed = |manifest: &mut RunManifest| {
        manifest.warnings.push(Warning::TraceDisturbed {
            times: 1,
            first_ns: Nanos(1),
            time_ns: Nanos(5_000),
            files: vec!["local/tracing_on".into()],
            repaired: true,
        });
    };
    let doubt = Doubt::TraceDisturbed {
        first_ns: Nanos(1),
        time_ns: Nanos(5_000),
    };
    let run = attributed(disturbed);
    assert!(run.attribution.as_ref().unwrap().proven && run.trust.holds());
    for (condition, verdict) in [
        ("culprit(timer)>0%", GateVerdict::Exceeded),
        ("culprit(timer)>99%", GateVerdict::Undecided),
        ("culprit(nobody)>1%", GateVerdict::Undecided),
        ("hypervisor>99%", GateVerdict::Undecided),
        // Withheld verdicts count here, and say nothing about the machine.
        ("unresolved>99%", GateVerdict::Undecided),
        ("unexplained>=0%", GateVerdict::Undecided),
        // The probe measures this.
        ("stolen>99%", GateVerdict::Kept),
        ("max>1s", GateVerdict::Kept),
    ] {
        let found = one(condition, &run);
        assert_eq!(found.verdict, verdict, "{condition}: {found:?}");
        let why = (verdict == GateVerdict::Undecided).then(|| GateReason::Unproven(vec![doubt]));
        assert_eq!(found.why, why, "{condition}");
    }
}

#[test]
fn nothing_is_kept_or_exceeded_where_records_are_missing() {
    let run = attributed(|manifest| {
        manifest.warnings.push(Warning::EventsMissing {
            event: "sched:sched_switch".into(),
            counted: 50_816,
            recorded: 22_245,
        });
    });
    let doubt = Doubt::EventsMissing {
        counted: 50_816,
        recorded: 22_245,
    };
    assert!(!run.attribution.as_ref().unwrap().proven && !run.trust.holds());
    for condition in ["culprit(timer)>0%", "culprit(nobody)>1%", "unresolved>99%"] {
        let found = one(condition, &run);
        assert_eq!(found.verdict, GateVerdict::Undecided, "{condition}");
        assert_eq!(found.why, Some(GateReason::Unproven(vec![doubt])));
    }
}

#[test]
fn coarse_events_show_the_length_of_waits_but_not_the_cause() {
    let why = |condition: &str, problems: &[SourceProblem]| {
        let mut run = manifest(Vec::new(), true);
        let of = |source: GateSource| SourceReport::available(source.name());
        run.sources = SOURCES.map(of).to_vec();
        run.sources[0].status = SourceStatus::Degraded;
        run.sources[0].problems = problems.to_vec();
        run.threads = vec![ThreadAccount {
            running_ns: Nanos(1_000_000),
            longest_wait_ns: Nanos(700),
            ..ThreadAccount::default()
        }];
        one(condition, &SummaryBuilder::new(&run).finish()).why
    };
    let coarse = SourceProblem::EventsNotAsked {
        grain: EventGrain::Coarse,
    };
    let lacks = SourceProblem::EventsNotAsked {
        grain: EventGrain::Other("switches".into()),
    };
    for condition in ["max>1s", "lost>99%"] {
        assert_eq!(
            why(condition, std::slice::from_ref(&coarse)),
            None,
            "{condition}"
        );
        let doubt = GateReason::Source {
            source: GateSource::Events,
            why: SourceDoubt::Limited(vec![lacks.clone()]),
        };
        assert_eq!(
            why(condition, &[coarse.clone(), lacks.clone()]),
            Some(doubt),
            "{condition}"
        );
    }
    assert!(why("unexplained>99%", &[coarse]).is_some());
}

#[test]
fn the_longest_is_in_doubt_only_where_events_tell_it() {
    let waited = |sources: &[SourceReport], messages: u64| {
        let mut run = manifest(Vec::new(), true);
        run.sources = sources.to_vec();
        run.threads = vec![ThreadAccount {
            running_ns: Nanos(1_000_000),
            longest_wait_ns: Nanos(700),
            ..ThreadAccount::default()
        }];
        if messages > 0 {
            let times = MessageTimes {
                count: messages,
                max: Nanos(900),
                plain: vec![(900, messages)],
                ..MessageTimes::default()
            };
            run.pipeline = Some(PipelineResult {
                consumers: vec![PipelineConsumer {
                    role: PipelineRole::Accumulator,
                    received: messages,
                    disordered: 0,
                    transit: MessageTimes::default(),
                    from_intended: times,
                    inter: MessageTimes::default(),
                    slow_above_ns: Nanos(0),
                    slow: 0,
                    slow_dropped: 0,
                }],
                ..PipelineResult::default()
            });
        }
        SummaryBuilder::new(&run).finish()
    };
    let whole = [SourceReport::available("tracefs")];
    let part = [SourceReport::of_status("tracefs", SourceStatus::Degraded)];
    assert_eq!(
        one("max>1us", &waited(&whole, 0)).verdict,
        GateVerdict::Kept
    );
    assert_eq!(
        one("max>1us", &waited(&part, 0)).verdict,
        GateVerdict::Undecided
    );
    assert_eq!(
        one("max>1us", &waited(&part, 3)).verdict,
        GateVerdict::Kept,
        "messages are timed"
    );
    let bound = |run: &RunSummary| run.worst_case.as_ref().unwrap().longer_below_per_hour;
    assert_eq!(bound(&waited(&part, 0)), None, "longer ones may be missing");
    assert!((bound(&waited(&whole, 0)).unwrap() - 3.0 * 3600.0 / 0.001).abs() < 1e-3);
    // What was seen was there.
    assert_eq!(
        one("max>600ns", &waited(&part, 0)).verdict,
        GateVerdict::Exceeded
    );
    assert_eq!(
        one("max>850ns", &waited(&part, 3)).verdict,
        GateVerdict::Exceeded
    );
    let stolen = one("stolen>1%", &waited(&whole, 0)).why;
    assert_eq!(
        stolen,
        Some(GateReason::NoProbeSpun(InsteadOfSpinning::Work))
    );
}

/// Runs of a setting, of which the last lost `lost` events.
fn side(name: &str, lost: u64) -> Side {
    let run = |at: u64| {
        let mut manifest = manifest(vec![result(1, &[26_000])], true);
        manifest.id = format!("{name}{at}");
        manifest.events_in_gaps = EventsInGaps {
            events: 20_000,
            inside: 20_000,
            ..EventsInGaps::default()
        };
        let lost = if at == 1 { lost } else { 0 };
        manifest.sources = vec![SourceReport {
            lost,
            ..SourceReport::available("tracefs")
        }];
        let mut builder = ComparedRunBuilder::new(&manifest, None, Path::new("x"));
        let parts = vec![part(CulpritKind::Timer, "tick_nohz_handler", 10_000)];
        builder.stall(
            &stall(0, 1, 2_000_000, 26_000),
            &Attribution {
                stall: StallId(0),
                parts,
            },
        );
        builder.finish()
    };
    Side::of_arm(name, vec![run(0), run(1)]).unwrap()
}

#[test]
fn a_culprit_is_known_not_to_be_worse_only_where_all_runs_saw_all_of_it() {
    let gate = |lost: [u64; 2], condition: &str| {
        let sides = [side("a", lost[0]), side("b", lost[1])];
        let reported = diff(&sides, DiffRules::default(), &[], &|_, _| false);
        evaluate_changes(&parse(condition).unwrap(), &reported.against[0]).remove(0)
    };
    let absent = "worse(culprit postgres)";
    let kept = gate([0, 0], absent);
    assert_eq!(kept.verdict, GateVerdict::Kept);
    assert_eq!(
        kept.note,
        Some(GateNote::Others(vec!["timer tick_nohz_handler".into()]))
    );
    for lost in [[0, 3], [3, 0], [4, 3]] {
        let found = gate(lost, absent);
        let lost = if lost[1] > 0 { lost[1] } else { lost[0] };
        assert_eq!(
            (found.verdict, found.why),
            (GateVerdict::Undecided, Some(GateReason::EventsLost(lost)))
        );
    }
}

#[test]
fn nothing_became_worse_only_where_somebody_was_named() {
    let gate = |attributed| {
        let manifest = manifest(vec![result(1, &[26_000; 2_000])], attributed);
        let run = ComparedRunBuilder::new(&manifest, None, Path::new("x")).finish();
        let sides = ["a", "b"].map(|name| Side::of_arm(name, vec![run.clone(); 4]).unwrap());
        let reported = diff(&sides, DiffRules::default(), &[], &|_, _| false);
        let found = evaluate_changes(&parse("worse(any)").unwrap(), &reported.against[0]).remove(0);
        (found.verdict, found.why)
    };
    assert_eq!(gate(true), (GateVerdict::Kept, None));
    assert_eq!(
        gate(false),
        (GateVerdict::Undecided, Some(GateReason::NotAllNamed))
    );
}
