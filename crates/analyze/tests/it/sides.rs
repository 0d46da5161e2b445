//! Sides of a comparison, and the cost of recording.

use crate::common;

use common::{manifest, result, stall};
use jitterscope_analyze::compare::{
    Against, ComparedRun, ComparedRunBuilder, ConditionDifference, ConditionKind, ConditionValue,
    DiffRules, FigureKind, PoolError, SettingDifference, Side, diff,
};
use jitterscope_analyze::{Price, SummaryBuilder};
use jitterscope_model::*;
use std::path::Path;

fn side(name: &str, runs: u64) -> Side {
    let run = |at: u64| {
        let manifest = RunManifest {
            id: format!("{name}{at}"),
            ..manifest(vec![result(1, &[2600])], false)
        };
        let mut builder = ComparedRunBuilder::new(&manifest, None, Path::new("x"));
        builder.stall(
            &stall(0, 1, 2_000_000, 2600),
            &Attribution {
                stall: StallId(0),
                parts: Vec::new(),
            },
        );
        builder.finish()
    };
    Side::pool(name, (0..runs).map(run).collect()).unwrap()
}

#[test]
fn a_side_was_measured_as_long_as_all_its_runs() {
    let reported = diff(
        &[side("a", 1), side("b", 3)],
        DiffRules::default(),
        &[],
        &|_, _| false,
    );
    let [one, three] = [0, 1].map(|at| reported.sides[at].measured_ns.0);
    assert!(one > 1_000_000, "{one}");
    assert!(three.abs_diff(3 * one) < 3, "{one} {three}");
    assert_eq!(reported.sides[1].runs.len(), 3);
}

/// The cost in a run of this probe kind, and its measured time in nanoseconds.
fn price(kind: &str) -> (Price, f64) {
    let mut manifest = manifest(vec![result(1, &[2600, 26_000])], true);
    manifest.probe.kind = kind.into();
    manifest.host.online = "0-3".parse().unwrap();
    manifest.self_noise.events = Some(EventPrice {
        on_measured: 11,
        record: Some(RecordCost {
            warm_ns: Nanos(100),
            cold_ns: Nanos(500),
        }),
        ..EventPrice::default()
    });
    (
        SummaryBuilder::new(&manifest).finish().trust.price.unwrap(),
        manifest.duration().0 as f64,
    )
}

#[test]
fn recording_cost_is_a_share_of_stolen_time_only_for_spin_probes() {
    let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-9;
    let taken = |kind| {
        let (price, duration) = price(kind);
        (price.taken.unwrap(), duration)
    };
    let (spun, duration) = taken("spin");
    assert_eq!((spun.least_ns, spun.most_ns), (Nanos(1_100), Nanos(5_500)));
    // As shares of the eleven microseconds of the two stalls, and of all time of one CPU.
    assert!(
        near(spun.least_of_stolen, 0.1) && near(spun.most_of_stolen, 0.5),
        "{spun:?}"
    );
    assert!(
        near(Some(spun.most_of_time), 5_500.0 / duration),
        "{spun:?}"
    );
    let (slept, _) = taken("wakeup");
    assert_eq!((slept.least_of_stolen, slept.most_of_stolen), (None, None));
    // Following threads records all CPUs.
    let (followed, duration) = taken("attach");
    assert!(
        near(Some(followed.most_of_time), 5_500.0 / duration / 4.0),
        "{followed:?}"
    );
}

/// A modified run of a spinning probe on CPU 1 that began at this second.
fn one(
    id: &str,
    second: u64,
    machine: Option<MachineState>,
    change: impl FnOnce(&mut RunManifest),
) -> ComparedRun {
    let mut manifest = RunManifest {
        id: id.into(),
        ..manifest(vec![result(1, &[26_000])], false)
    };
    manifest.clock_start.realtime_ns += second * 1_000_000_000;
    change(&mut manifest);
    ComparedRunBuilder::new(&manifest, machine, Path::new("x")).finish()
}

fn arm(name: &str, runs: Vec<ComparedRun>) -> Side {
    Side::of_arm(name, runs).unwrap()
}

fn against(first: ComparedRun, second: ComparedRun, more_knobs: &[&str]) -> Against {
    let more: Vec<String> = more_knobs.iter().map(|knob| (*knob).to_owned()).collect();
    let sides = [arm("a", vec![first]), arm("b", vec![second])];
    diff(&sides, DiffRules::default(), &more, &|_, _| false)
        .against
        .remove(0)
}

/// A machine with a knob at this value, and one that `tune` applied.
fn machine(value: &str, applied: Option<&str>) -> MachineState {
    let setting = SettingValue {
        value: Reading::Value(value.into()),
        files: 1,
        path: "/proc/x".into(),
        ..SettingValue::default()
    };
    let settings = vec![KnobSetting {
        knob: "vmstat".into(),
        values: vec![setting],
        omitted: 0,
    }];
    let change = |knob: &str| AppliedChange {
        knob: knob.into(),
        asked: "1".into(),
        ..AppliedChange::default()
    };
    let applied = AppliedTuning {
        changes: applied.map(change).into_iter().collect(),
        ..AppliedTuning::default()
    };
    let tuning = TuningState {
        settings,
        applied: Reading::Value(applied),
        ..TuningState::default()
    };
    MachineState {
        tuning: Reading::Value(tuning),
        ..MachineState::default()
    }
}

#[test]
fn knobs_that_differ_between_machines_are_those_that_were_changed() {
    let knobs = |first: MachineState, second: MachineState, more: &[&str]| {
        against(
            one("a", 0, Some(first), |_| ()),
            one("b", 9, Some(second), |_| ()),
            more,
        )
        .knobs
    };
    assert_eq!(knobs(machine("1", None), machine("1", None), &[]), [""; 0]);
    assert_eq!(
        knobs(machine("1", None), machine("60", None), &[]),
        ["vmstat"]
    );
    assert_eq!(
        knobs(machine("1", None), machine("1", Some("smt")), &[]),
        ["smt"]
    );
    // One knob, however it shows.
    assert_eq!(
        knobs(
            machine("1", None),
            machine("60", Some("vmstat")),
            &["vmstat", "smt"]
        ),
        ["vmstat", "smt"]
    );
    // Other differences are not knobs.
    let mut other = machine("1", None);
    let clock = [MachineEntry::new("hpet")];
    other.settings.put("kernel.clocksource", clock);
    let found = against(
        one("a", 0, Some(machine("1", None)), |_| ()),
        one("b", 9, Some(other), |_| ()),
        &[],
    );
    assert!(
        found.knobs.is_empty() && !found.machine.is_empty(),
        "{:?}",
        found.machine
    );
}

#[test]
fn a_machine_that_either_run_does_not_have_is_unknown() {
    let known = || Some(machine("1", None));
    for (first, second, unknown) in [
        (known(), known(), false),
        (None, known(), true),
        (known(), None, true),
        (None, None, true),
    ] {
        let found = against(one("a", 0, first, |_| ()), one("b", 9, second, |_| ()), &[]);
        assert_eq!((found.machine_unknown, found.machine.len()), (unknown, 0));
    }
}

#[test]
fn another_probe_says_all_that_differs_and_nothing_is_judged() {
    let reported = |change: fn(&mut RunManifest)| {
        let found = against(one("a", 0, None, |_| ()), one("b", 9, None, change), &[]);
        let judged = found.figures.iter().any(|row| row.comparison.is_some());
        (
            found
                .shown_conditions()
                .map(|of| of.what)
                .collect::<Vec<_>>(),
            judged,
        )
    };
    assert_eq!(reported(|_| ()), (vec![], true));
    assert_eq!(
        reported(|run| run.attributed = true),
        (vec![ConditionKind::KernelEvents], true)
    );
    let coarser = |run: &mut RunManifest| {
        run.probe.threshold_ns = Nanos(500);
        run.probe.fifo_priority = Some(1);
    };
    assert_eq!(
        reported(coarser),
        (
            vec![ConditionKind::Threshold, ConditionKind::Priority],
            false
        )
    );
    let other = |run: &mut RunManifest| {
        run.probe.kind = "wakeup".into();
        run.probe.threshold_ns = Nanos(500);
    };
    assert_eq!(reported(other), (vec![ConditionKind::Probe], false));
}

#[test]
fn the_followed_or_watched_owner_is_a_condition() {
    let reported = |first: &dyn Fn(&mut RunManifest), second: &dyn Fn(&mut RunManifest)| {
        let found = against(one("a", 0, None, first), one("b", 9, None, second), &[]);
        found
            .conditions
            .into_iter()
            .map(|of| (of.what, of.before, of.after))
            .collect::<Vec<_>>()
    };
    let row =
        |before: ConditionValue, after: ConditionValue| (before.kind(), Some(before), Some(after));
    let program = |comm: &str| ConditionValue::Program(comm.into());
    let words =
        |words: &str| ConditionValue::Command(words.split(' ').map(str::to_owned).collect());
    let command = |words: &'static str| {
        move |run: &mut RunManifest| {
            run.command_line = words.split_whitespace().map(str::to_owned).collect();
        }
    };
    assert_eq!(
        reported(&command("record -- one"), &command("record -- other")),
        []
    );
    let followed = |comm: &'static str, words| {
        move |run: &mut RunManifest| {
            command(words)(run);
            run.probe.kind = "attach".into();
            run.threads = vec![ThreadAccount {
                comm: comm.into(),
                ..ThreadAccount::default()
            }];
        }
    };
    assert_eq!(
        reported(
            &followed("make", "attach -- make all"),
            &followed("gcc", "attach -- make")
        ),
        [
            row(program("make"), program("gcc")),
            row(words("make all"), words("make"))
        ]
    );
    assert_eq!(
        reported(
            &followed("make", "attach --pid 3"),
            &followed("make", "attach --pid 4")
        ),
        []
    );
    let watched = |comm: &'static str| {
        move |run: &mut RunManifest| {
            let chosen = Some(ChosenThread {
                comm: comm.into(),
                ..ChosenThread::default()
            });
            run.passive = vec![PassiveCpu {
                chosen,
                ..PassiveCpu::default()
            }];
        }
    };
    let found = |comm: &str| ConditionValue::OwnersFound(vec![comm.into()]);
    assert_eq!(
        reported(&watched("qemu"), &watched("java")),
        [row(found("qemu"), found("java"))]
    );
}

#[test]
fn each_cpu_that_both_measured_has_a_row() {
    let measured = |cpus: &[u32]| {
        let results: Vec<ProbeResult> = cpus
            .iter()
            .map(|cpu| result(*cpu, &vec![2_600; 100 * *cpu as usize]))
            .collect();
        move |run: &mut RunManifest| run.results = results
    };
    let found = against(
        one("a", 0, None, measured(&[1, 2, 4])),
        one("b", 9, None, measured(&[1, 2, 3])),
        &[],
    );
    let shares: Vec<(u32, f64)> = found
        .cpus
        .iter()
        .map(|row| (row.cpu.0, row.comparison.first.unwrap()))
        .collect();
    let share = |stalls: f64| stalls * 2_600.0 / (18_200_000.0 + stalls * 2_600.0);
    assert_eq!(
        shares.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(),
        [1, 2]
    );
    assert!(
        shares
            .iter()
            .all(|(cpu, of)| (of - share(100.0 * f64::from(*cpu))).abs() < 1e-9),
        "{shares:?}"
    );
    assert_eq!(found.cpus_of_one.to_string(), "3-4");
    // A figure that both have is already the total; incomparable sides report nothing.
    let found = against(
        one("a", 0, None, measured(&[1, 2])),
        one("b", 9, None, measured(&[1, 3])),
        &[],
    );
    assert_eq!(
        (found.cpus.len(), found.cpus_of_one.to_string()),
        (0, "2-3".to_owned())
    );
    let otherwise = |run: &mut RunManifest| {
        measured(&[1, 2])(run);
        run.probe.threshold_ns = Nanos(500);
    };
    let found = against(
        one("a", 0, None, measured(&[1, 2])),
        one("b", 9, None, otherwise),
        &[],
    );
    assert!(found.cpus.is_empty() && found.culprits.is_none());
}

#[test]
fn watched_cpus_and_cpus_with_a_sleeper_are_reported_one_by_one() {
    let shares = |change: &dyn Fn(&mut RunManifest)| -> Vec<(u32, f64)> {
        let found = against(one("a", 0, None, change), one("b", 9, None, change), &[]);
        found
            .cpus
            .iter()
            .map(|row| (row.cpu.0, row.comparison.first.unwrap()))
            .collect()
    };
    let near = |found: Vec<(u32, f64)>, wanted: &[(u32, f64)]| {
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        let alike = found
            .iter()
            .zip(wanted)
            .all(|(a, b)| a.0 == b.0 && (a.1 / b.1 - 1.0).abs() < 1e-9);
        assert!(alike, "{found:?}");
    };
    let watched = |cpu, running, waiting| PassiveCpu {
        cpu: CpuId(cpu),
        running_ns: Nanos(running),
        waiting_ns: Nanos(waiting),
        ..PassiveCpu::default()
    };
    let passive = shares(&|run| {
        run.results.clear();
        // On the last CPU no owner had work.
        run.passive = vec![watched(1, 900, 100), watched(2, 600, 200), watched(3, 0, 0)];
    });
    near(passive, &[(1, 0.1), (2, 0.25)]);
    let woken = |cpu, late| WakeupResult {
        cpu: CpuId(cpu),
        wakeups: 10,
        plain: vec![(late, 10)],
        corrected: vec![(late, 10)],
        ..WakeupResult::default()
    };
    let slept = shares(&|run| {
        run.results = (0..3).map(|cpu| result(cpu, &[])).collect();
        run.wakeups = vec![woken(0, 50), woken(1, 100), woken(2, 300)];
        run.probe.wakeup = Some(WakeupConditions {
            period_ns: Nanos(1_000_000),
            hold_latency: true,
            idle_control: Some(CpuId(0)),
        });
    });
    near(slept, &[(1, 100.0), (2, 300.0)]);
}

#[test]
fn a_run_measured_as_long_as_its_cpus_or_what_was_wanted_of_them() {
    let seconds = |change: &dyn Fn(&mut RunManifest)| one("a", 0, None, change).seconds;
    let near =
        |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-6, "{found} {wanted}");
    let cpu = seconds(&|run| run.results = vec![result(1, &[])]);
    let two = |run: &mut RunManifest| run.results = vec![result(1, &[]), result(2, &[])];
    near(seconds(&two), 2.0 * cpu);
    let control = |run: &mut RunManifest| {
        two(run);
        run.probe.wakeup = Some(WakeupConditions {
            period_ns: Nanos(1_000_000),
            hold_latency: true,
            idle_control: Some(CpuId(2)),
        });
    };
    near(seconds(&control), cpu);
    let watched = |run: &mut RunManifest| {
        run.results.clear();
        run.passive = vec![PassiveCpu {
            running_ns: Nanos(700),
            waiting_ns: Nanos(50),
            ..PassiveCpu::default()
        }];
    };
    near(seconds(&watched), 750e-9);
}

#[test]
fn a_percentile_next_to_the_maximum_is_judged_and_marked() {
    let alone = |run: &mut RunManifest| run.results = vec![result(1, &[26_000_000])];
    let found = against(one("a", 0, None, alone), one("b", 9, None, alone), &[]);
    let judged = |kind| {
        found
            .figures
            .iter()
            .find(|row| row.kind == kind)
            .unwrap()
            .comparison
            .is_some()
    };
    assert!(judged(FigureKind::Stolen));
    let wait = found
        .figures
        .iter()
        .find(|row| row.kind == FigureKind::Wait { percentile: "99" })
        .unwrap();
    assert!(
        wait.first[0].is_some() && wait.comparison.is_some(),
        "{wait:?}"
    );
    // One stall of 10 ms, of which a hundredth of the time must hold ten.
    assert!(
        wait.supported_from_ns
            .is_some_and(|from| from > Nanos(9_000_000)),
        "{wait:?}"
    );
    assert!(!judged(FigureKind::Worst));
}

#[test]
fn totals_are_called_by_what_they_are_of_where_there_are_several() {
    let timed = |id: &str, second| one(id, second, None, |_| ()).with_wall_time(Nanos(5_000));
    let names = |of: &Against| {
        of.primary()
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&against(
            one("a", 0, None, |_| ()),
            one("b", 9, None, |_| ()),
            &[]
        )),
        ["total"]
    );
    assert_eq!(
        names(&against(timed("a", 0), timed("b", 9), &[])),
        ["total", "total (stolen)"]
    );
}

#[test]
fn runs_of_one_setting_are_put_together_oldest_first() {
    let pooled = |runs: Vec<ComparedRun>| Side::pool("x", runs);
    let run = |id: &str, second| one(id, second, Some(machine("1", None)), |_| ());
    let side = pooled(vec![run("b", 9), run("a", 0), run("c", 20)]).unwrap();
    assert_eq!(
        side.runs()
            .iter()
            .map(|run| run.id.as_str())
            .collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    let name = || "x".to_owned();
    assert_eq!(
        pooled(vec![]).unwrap_err(),
        PoolError::Empty { name: name() }
    );
    assert!(Side::of_arm("x", vec![]).is_err());
    let twice = pooled(vec![run("a", 0), run("b", 9), run("b", 9)]);
    assert_eq!(
        twice.unwrap_err(),
        PoolError::Repeated {
            name: name(),
            run: "b".into()
        }
    );
    let different = |other: ComparedRun| match pooled(vec![run("a", 0), other]) {
        Err(PoolError::Different {
            first,
            other,
            what,
            more,
            ..
        }) => {
            assert_eq!((first.as_str(), other.as_str()), ("a", "b"));
            Some((*what, more))
        }
        Err(why) => panic!("{why}"),
        Ok(_) => None,
    };
    let set = |value, change: fn(&mut RunManifest)| one("b", 9, Some(machine(value, None)), change);
    assert_eq!(different(set("1", |_| ())), None);
    let condition = |before: ConditionValue, after: ConditionValue| {
        SettingDifference::Condition(ConditionDifference {
            what: before.kind(),
            before: Some(before),
            after: Some(after),
            incomparable: true,
        })
    };
    assert_eq!(
        different(set("1", |run| run.probe.threshold_ns = Nanos(500))).unwrap(),
        (
            condition(
                ConditionValue::Threshold(Nanos(300)),
                ConditionValue::Threshold(Nanos(500))
            ),
            0
        )
    );
    assert_eq!(
        different(set("60", |run| run.probe.fifo_priority = Some(2))).unwrap(),
        (
            condition(
                ConditionValue::Priority(None),
                ConditionValue::Priority(Some(2))
            ),
            1
        )
    );
    let (what, more) = different(set("60", |_| ())).unwrap();
    let SettingDifference::Machine(setting) = what else {
        panic!("{what:?}")
    };
    assert_eq!((setting.what.as_str(), more), ("tuning.settings.vmstat", 0));
    let elsewhere = |run: &mut RunManifest| run.results = vec![result(2, &[26_000])];
    let cpus = [1, 2].map(|cpu| [CpuId(cpu)].into_iter().collect());
    assert_eq!(
        different(set("1", elsewhere)).unwrap().0,
        SettingDifference::Cpus(cpus)
    );
    // Nobody sets the load of the machine, nor the competing programs.
    let mut busy = machine("1", None);
    busy.tuning = busy.tuning.map(|tuning| TuningState {
        competitors: vec!["irqbalance".into()],
        ..tuning
    });
    let load = MachineEntry::new(Scalar::Share(0.9)).on([CpuId(0)].into_iter().collect());
    busy.settings.put("load.busy", [load]);
    assert_eq!(different(one("b", 9, Some(busy), |_| ())), None);
    // The same holds for the CPUs of followed threads.
    let followed = |second: u64, cpu: u32| {
        one(if second == 0 { "a" } else { "b" }, second, None, |run| {
            run.probe.kind = "attach".into();
            run.results = vec![result(cpu, &[26_000])];
        })
    };
    assert!(pooled(vec![followed(0, 1), followed(9, 2)]).is_ok());
}

#[test]
fn a_run_is_not_compared_with_itself_but_its_cpus_are() {
    let run = |id: &str, cpus: &[u32]| {
        one(id, 0, None, |run| {
            // The CPUs of a pipeline are chosen.
            run.pipeline = Some(PipelineResult::default());
            run.probe.cpus = cpus.iter().map(|cpu| CpuId(*cpu)).collect();
        })
    };
    let apart = |first: ComparedRun, others: Vec<ComparedRun>| {
        Side::apart(&[arm("first", vec![first]), arm("second", others)])
            .map_err(|shared| shared.run)
    };
    assert_eq!(apart(run("a", &[1]), vec![run("b", &[1])]), Ok(()));
    assert_eq!(
        apart(run("a", &[1]), vec![run("b", &[1]), run("a", &[1])]),
        Err("a".into())
    );
    assert_eq!(apart(run("a", &[1]), vec![run("a", &[2])]), Ok(()));
    assert_eq!(
        apart(run("a", &[1, 2]), vec![run("a", &[2])]),
        Err("a".into())
    );
    assert_eq!(apart(run("a", &[1]), vec![run("a", &[])]), Err("a".into()));
    assert!(Side::apart(&[]).is_ok());
}

#[test]
fn a_command_that_failed_says_how() {
    let failed = |warnings: Vec<Warning>| one("a", 0, None, |run| run.warnings = warnings).failed;
    assert_eq!(failed(vec![Warning::worded("other", "x")]), None);
    let status = || "exit status: 3".to_owned();
    assert_eq!(
        failed(vec![
            Warning::worded("other", "x"),
            Warning::CommandFailed { status: status() }
        ]),
        Some(status())
    );
}
