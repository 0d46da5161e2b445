//! Conditions on stored runs: an undecided condition never passes.

use crate::common;

use crate::stored;

use common::{Scenario, part, source, thread, verdict};
use jitterscope_model::{
    CpuId, CulpritKind, Nanos, RunManifest, SourceProblem, SourceStatus, ThreadAccount,
};
use std::path::Path;
use std::process::Command;
use stored::store;

/// The exit code and the output.
fn printed(runs: &Path, args: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(args)
        .arg("--runs")
        .arg(runs)
        .output()
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn holds(runs: &Path, args: &[&str], table: &[(&str, i32, &str)]) {
    for (condition, exit, said) in table {
        let (found, text) = printed(runs, &[args, &["--fail-if", condition]].concat());
        assert_eq!(found, *exit, "{args:?} {condition}: {text}");
        assert!(text.contains(said), "{args:?} {condition}: {text}");
    }
}

/// A run of ten seconds with a rival on CPU 1 and, eight times as long, on CPU 2.
fn rivals(label: &str) -> Scenario {
    let mut scenario = Scenario::new(&[1, 2]);
    for n in 0..200u64 {
        for (cpu, length) in [(1, 5_000), (2, 40_000)] {
            let rival = part(thread("rival", 99), length);
            scenario.stall(cpu, n * 10_000 + u64::from(cpu), vec![rival]);
        }
    }
    let mut scenario = scenario.finish();
    scenario.manifest.label = label.into();
    scenario
}

fn stored_with(change: impl FnOnce(&mut RunManifest)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut run = rivals("RUN");
    change(&mut run.manifest);
    store(&run, dir.path());
    dir
}

#[test]
fn an_unproven_run_decides_no_condition_on_culprits() {
    let dir = stored_with(|manifest| manifest.events_in_gaps.inside = 7_844);
    let why = "cannot be decided: the culprits are unknown: only 19.9 % of 39,222 kernel events";
    holds(
        dir.path(),
        &["report", "RUN"],
        &[
            ("culprit(nobody)>50%", 4, why),
            ("culprit(*)>0%", 4, why),
            ("hypervisor>90%", 4, why),
            ("firmware>90%", 4, why),
            ("unresolved>99%", 4, why),
            ("unexplained>99.9%", 4, why),
            // The probe's own measurements hold anyway.
            ("stolen>99%, max>10s", 0, "kept"),
        ],
    );
}

/// A stall of four of ten seconds: the percentiles above it rest on less than ten such waits.
#[test]
fn a_percentile_that_rests_on_too_little_is_no_shorter_than_a_lower_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = Scenario::new(&[1]);
    for n in 0..180u64 {
        let rival = part(thread("rival", 99), 30_000_000);
        scenario.stall(1, 10_000 + n * 50_000, vec![rival]);
    }
    let mut run = scenario.finish();
    run.manifest.label = "RUN".into();
    store(&run, dir.path());
    holds(
        dir.path(),
        &["report", "RUN"],
        &[
            ("wait.p99.9>50us", 3, "exceeded"),
            ("wait.p99.9>10s", 4, "rests on"),
        ],
    );
}

/// 9 % of the time wait for 5 ms and more: if the percentile is 5 ms, such a stall comes once in some fifteen minutes.
#[test]
fn a_single_long_stall_decides_a_percentile_that_it_exceeds_by_far() {
    let dir = tempfile::tempdir().unwrap();
    let mut scenario = Scenario::new(&[1]);
    let rival = part(thread("rival", 99), 916_000_000);
    scenario.stall(1, 10_000, vec![rival]);
    let mut run = scenario.finish();
    run.manifest.label = "RUN".into();
    store(&run, dir.path());
    holds(
        dir.path(),
        &["report", "RUN"],
        &[
            ("wait.p99.9>5ms", 3, "wait.p99.9>5ms: 906 ms, exceeded"),
            ("wait.p99.9>500ms", 3, "906 ms, exceeded"),
            (
                "wait.p99.9>600ms",
                4,
                "906 ms, cannot be decided: the estimate rests on less than one",
            ),
            ("wait.p99.9>1s", 4, "906 ms, cannot be decided"),
            ("wait.p99.9<5ms", 0, "kept"),
            // Less than a tenth of the time.
            ("wait.p90>5ms", 0, "kept"),
        ],
    );
}

#[test]
fn what_a_missing_source_would_have_shown_is_not_kept() {
    let plain = stored_with(|_| {});
    let firmware =
        "firmware>0.1%: 0.0000 %, cannot be decided: firmware (smi) could not be identified";
    holds(
        plain.path(),
        &["report", "RUN"],
        &[
            ("firmware>0.1%", 4, firmware),
            ("culprit(firmware)>0.1%", 4, "firmware (smi)"),
            ("culprit(SMI)>0.1%", 4, "firmware (smi)"),
            // Others are found without it.
            (
                "culprit(*)>90%, culprit(rival)>50%, hypervisor>1%, unresolved>1%",
                0,
                "kept",
            ),
            ("firmware>=0%", 3, "exceeded"),
            // Kind and name, as in reports.
            ("culprit(thread rival)>0.01%", 3, "exceeded"),
            (
                "culprit(irq rival)>0.01%",
                0,
                "no culprit of this name was seen; thread rival was",
            ),
        ],
    );
    let absent = stored_with(|manifest| {
        let mut smi = source("smi", SourceStatus::Absent, 0);
        smi.problems = vec![SourceProblem::NoMsrDevice {
            cpu: CpuId(0),
            virtual_machine: false,
        }];
        manifest.sources.push(smi);
    });
    holds(
        absent.path(),
        &["report", "RUN"],
        &[("firmware>0.1%", 4, "the kernel has no msr driver")],
    );
    let counted = |hypervisor: Option<String>| {
        stored_with(|manifest| {
            manifest
                .sources
                .push(source("smi", SourceStatus::Available, 0));
            manifest.host.hypervisor = hypervisor;
        })
    };
    holds(
        counted(None).path(),
        &["report", "RUN"],
        &[("firmware>0.1%", 0, "kept")],
    );
    let guest = counted(Some("KVMKVMKVM".into()));
    holds(
        guest.path(),
        &["report", "RUN"],
        &[("firmware>0.1%", 4, "does not see the host's")],
    );
    let nameless = stored_with(|manifest| {
        manifest
            .sources
            .push(source("symbols", SourceStatus::Degraded, 0))
    });
    holds(
        nameless.path(),
        &["report", "RUN"],
        &[
            (
                "culprit(vmstat_update)>0.1%",
                4,
                "names of kernel functions",
            ),
            ("culprit(kworker)>0.1%", 0, "kept"),
            ("culprit(rival)>0.01%", 3, "exceeded"),
        ],
    );
}

/// A followed thread that waited at most 2 ms.
fn followed(lost: u64) -> tempfile::TempDir {
    followed_by(lost, None)
}

/// The same on a virtual machine.
fn followed_by(lost: u64, hypervisor: Option<&str>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Scenario::new(&[]);
    let manifest = &mut run.manifest;
    manifest.label = "RUN".into();
    manifest.probe.kind = "attach".into();
    manifest.host.hypervisor = hypervisor.map(Into::into);
    manifest.sources = vec![source("tracefs", SourceStatus::Available, lost)];
    manifest.threads = vec![ThreadAccount {
        tid: 7,
        comm: "mine".into(),
        running_ns: Nanos(5_000_000_000),
        waiting_ns: Nanos(50_000_000),
        longest_wait_ns: Nanos(2_000_000),
        ..ThreadAccount::default()
    }];
    store(&run, dir.path());
    dir
}

#[test]
fn lost_events_make_the_longest_wait_unknown() {
    let whole = followed(0);
    holds(
        whole.path(),
        &["report", "RUN"],
        &[("max>1s", 0, "max>1s: 2.00 ms, kept")],
    );
    let lossy = followed(50_000);
    holds(
        lossy.path(),
        &["report", "RUN"],
        &[
            (
                "max>1s",
                4,
                "2.00 ms, cannot be decided: 50000 kernel events were lost",
            ),
            ("max>1ms", 3, "exceeded"),
            ("lost>50%", 4, "50000 kernel events were lost"),
        ],
    );
    // A probe measures its longest stall itself.
    let spun = stored_with(|manifest| manifest.sources[0].lost = 50_000);
    holds(
        spun.path(),
        &["report", "RUN"],
        &[
            ("max>1s", 0, "kept"),
            ("culprit(rival)>50%", 4, "were lost"),
        ],
    );
}

#[test]
fn what_the_host_took_of_a_guest_is_bounded_by_what_nobody_explains() {
    let of = |hypervisor: Option<&str>| {
        let dir = tempfile::tempdir().unwrap();
        let mut run = Scenario::new(&[1]);
        for n in 0..200u64 {
            run.stall(
                1,
                n * 10_000,
                vec![part(
                    verdict(CulpritKind::Unresolved, "no kernel event"),
                    5_000,
                )],
            );
        }
        let mut run = run.finish();
        run.manifest.label = "RUN".into();
        run.manifest.host.hypervisor = hypervisor.map(Into::into);
        store(&run, dir.path());
        dir
    };
    // 1 ms in ten seconds: 0.01 %.
    let may_be = "the host may have taken part of it";
    holds(
        of(Some("KVMKVMKVM")).path(),
        &["report", "RUN"],
        &[
            ("hypervisor>0.001%", 4, may_be),
            ("culprit(hypervisor)>0.001%", 4, may_be),
            ("hypervisor>0.1%", 0, "kept"),
            ("hypervisor>=0%", 3, "exceeded"),
            ("culprit(*)>0.001%", 3, "exceeded"),
        ],
    );
    holds(
        of(None).path(),
        &["report", "RUN"],
        &[("hypervisor>0.001%", 0, "kept")],
    );
    let whole = followed(0);
    holds(
        whole.path(),
        &["report", "RUN"],
        &[("hypervisor>1%", 0, "kept")],
    );
    let guest = followed_by(0, Some("KVMKVMKVM"));
    holds(
        guest.path(),
        &["report", "RUN"],
        &[("hypervisor>1%", 4, "only probes measure it")],
    );
}

#[test]
fn conditions_of_diff_are_about_the_cpus_that_were_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for label in ["A", "B"] {
        store(&rivals(label), dir.path());
    }
    // CPU 1: 200 of 5 us in ten seconds, 0.01 %; CPU 2: 200 of 40 us, 0.08 %.
    for (cpu, max, exit, culprit) in [(1, "5.00 us", 0, ": 0.010"), (2, "40.0 us", 3, ": 0.08")] {
        let sides = ["diff".to_owned(), format!("A@{cpu}"), format!("B@{cpu}")];
        let args: Vec<&str> = sides.iter().map(String::as_str).collect();
        holds(
            dir.path(),
            &args,
            &[
                ("max>10us", exit, &format!("@{cpu}: max>10us: {max}")),
                ("culprit(rival)>0.05%", exit, culprit),
                ("stolen>0.05%", exit, culprit),
                ("stalls>1000/s", 0, ": 20."),
                ("late.p50>1us", 4, "no probe slept"),
            ],
        );
    }
    holds(
        dir.path(),
        &["diff", "A@1", "B"],
        &[("culprit(rival)>0.04%", 3, ": 0.045")],
    );
}

#[test]
fn nothing_became_worse_only_where_everything_is_known_not_to_have() {
    let dir = tempfile::tempdir().unwrap();
    let several = |label: &str, at: u64, attributed: bool| {
        for n in 0..8 {
            let mut run = rivals(label);
            run.manifest.attributed = attributed;
            // Alternately.
            run.manifest.clock_start.realtime_ns += (at + 10 * n) * 1_000_000_000;
            store(&run, dir.path());
        }
    };
    several("SAME", 100, true);
    several("AGAIN", 102, true);
    several("BLIND", 104, false);
    holds(
        dir.path(),
        &["diff", "SAME", "AGAIN"],
        &[
            ("worse(total)", 0, "kept"),
            ("worse(any)", 0, "not worse, kept"),
        ],
    );
    holds(
        dir.path(),
        &["diff", "SAME", "BLIND"],
        &[
            ("worse(total)", 0, "kept"),
            ("worse(any)", 4, "not every run names culprits"),
        ],
    );
    // One run of each leaves everything open.
    let one = tempfile::tempdir().unwrap();
    for label in ["A", "B"] {
        store(&rivals(label), one.path());
    }
    holds(
        one.path(),
        &["diff", "A", "B"],
        &[("worse(any)", 4, "figures may be worse")],
    );
}

/// An unknown name is kept with a note that no culprit matches; a typing error of a built-in word is refused.
#[test]
fn a_misspelt_name_is_not_passed_silently() {
    let dir = stored_with(|_| {});
    holds(
        dir.path(),
        &["report", "RUN"],
        &[
            (
                "culprit(rivel)>0.1%",
                0,
                "kept: no culprit of this name was seen; thread rival was",
            ),
            (
                "culprit(postgres)>0.1%",
                0,
                "kept: no culprit of this name was seen; most time was taken by thread rival",
            ),
            ("culprit(kworker)>0.1%", 0, "kept: none was seen"),
            ("culprit(rival)>50%", 0, "%, kept\n"),
            ("culprit(kwroker)>0.1%", 2, "a letter away from \"kworker\""),
            (
                "culprit(thread kwroker)>0.1%",
                0,
                "no culprit of this name was seen",
            ),
        ],
    );
    let junit = dir.path().join("gates.xml");
    let gate = [
        "report",
        "RUN",
        "--fail-if",
        "culprit(rivel)>0.1%",
        "--junit",
        junit.to_str().unwrap(),
    ];
    assert_eq!(printed(dir.path(), &gate).0, 0);
    let text = std::fs::read_to_string(&junit).unwrap();
    assert!(
        text.contains("no culprit of this name was seen; thread rival was"),
        "{text}"
    );
    let two = tempfile::tempdir().unwrap();
    for label in ["A", "B"] {
        store(&rivals(label), two.path());
    }
    let slip = "worse(culprit hypervisr)";
    holds(
        two.path(),
        &["diff", "A", "B"],
        &[
            ("worse(culprit rivel)", 0, "thread rival was"),
            (slip, 2, "a letter away"),
        ],
    );
}

#[test]
fn a_change_of_what_neither_run_could_see_is_not_kept() {
    let pair = |change: &dyn Fn(&str, &mut RunManifest)| {
        let dir = tempfile::tempdir().unwrap();
        for label in ["A", "B"] {
            let mut run = rivals(label);
            change(label, &mut run.manifest);
            store(&run, dir.path());
        }
        dir
    };
    let counted = |manifest: &mut RunManifest| {
        manifest
            .sources
            .push(source("smi", SourceStatus::Available, 0));
        manifest.host.hypervisor = None;
    };
    let firmware = "worse(culprit firmware)";
    let blind = "cannot be decided: firmware (smi) could not be identified: this run did not count";
    holds(
        pair(&|_, _| {}).path(),
        &["diff", "A", "B"],
        &[(firmware, 4, blind)],
    );
    // One of them could not see it.
    let one = pair(&|label, manifest| {
        if label == "A" {
            counted(manifest)
        }
    });
    holds(one.path(), &["diff", "A", "B"], &[(firmware, 4, blind)]);
    let both = pair(&|_, manifest| counted(manifest));
    holds(
        both.path(),
        &["diff", "A", "B"],
        &[(firmware, 0, "not worse, kept: none was seen")],
    );
    // A probe measures the stolen time itself; the culprits need events, and some were lost.
    let lossy =
        pair(&|label, manifest| manifest.sources[0].lost = if label == "B" { 40 } else { 0 });
    holds(
        lossy.path(),
        &["diff", "A", "B"],
        &[
            ("worse(culprit nobody)", 4, "40 kernel events were lost"),
            ("max>1s", 0, "kept"),
        ],
    );
}
