use super::fake::{Fake, START, stat};
use super::*;
use jitterscope_model::{AskedEvent, CpuId, EventGrain, SourceLoss, SourceProblem, SourceStatus};
use rustix::io::Errno;

fn settings(measured: &str) -> RecorderSettings {
    RecorderSettings {
        measured: measured.parse().unwrap(),
        online: "0-3".parse().unwrap(),
        clock: ClockKind::Tsc,
        buffer_kb_per_cpu: 1024,
        follow_threads: false,
        charges_later: false,
        grain: EventGrain::All,
        asked: Vec::new(),
    }
}

#[test]
fn everything_is_set_before_tracing_goes_on_and_all_is_removed() {
    let fake = Fake::new();
    let recorder = Recorder::start(&fake.open(), &settings("1")).unwrap();
    let log = fake.log();
    let at = |step: &str| {
        log.iter()
            .position(|s| s == step)
            .unwrap_or_else(|| panic!("{step} in {log:#?}"))
    };
    assert!(at("local/tracing_on=0") < at("local/trace_clock=x86-tsc"));
    assert!(at("local/trace_clock=x86-tsc") < at("local/events/sched/sched_switch/enable=1"));
    assert!(
        at("local/per_cpu/cpu1/buffer_size_kb=1024")
            < at("local/events/sched/sched_switch/enable=1")
    );
    assert!(at("local/tracing_cpumask=2") < at("local/events/sched/sched_switch/enable=1"));
    at("senders/tracing_cpumask=f");
    at("local/buffer_percent=100");
    at("local/events/irq_vectors/local_timer_entry/enable=1");
    let filter = at("senders/events/sched/sched_waking/filter=target_cpu == 1");
    assert!(filter < at("senders/events/sched/sched_waking/enable=1"));
    at("senders/events/ipi/ipi_send_cpumask/filter=cpumask & CPUS{1}");
    at("senders/events/workqueue/workqueue_queue_work/filter=cpu == 1 || cpu < 0 || cpu > 3");
    assert_eq!(
        log[log.len() - 2..],
        ["senders/tracing_on=1", "local/tracing_on=1"]
    );
    assert!(
        log.iter().all(|step| !step.starts_with('/')),
        "only our instances are written: {log:#?}"
    );
    assert_eq!(fake.instances().len(), 2);
    assert_eq!(recorder.cpus(Role::Local), "1".parse().unwrap());
    assert_eq!(recorder.cpus(Role::Senders), "0-3".parse().unwrap());
    assert!(
        recorder
            .reports()
            .iter()
            .all(|r| r.status == SourceStatus::Available)
    );
    drop(recorder);
    assert!(fake.instances().is_empty());
    let log = fake.log();
    assert!(
        log.contains(&"local/tracing_on=0".into()) && log.last() == Some(&"rmdir senders".into())
    );
}

#[test]
fn names_are_recorded_once_on_every_cpu_and_what_was_priced_is_forgotten() {
    let renames = |settings: &RecorderSettings| {
        let fake = Fake::new();
        let mut recorder = Recorder::start(&fake.open(), settings).unwrap();
        assert!(recorder.is_priced());
        let before = fake.log().len();
        recorder.end_pricing().unwrap();
        let log = fake.log();
        let recording: Vec<&str> = log[before..]
            .iter()
            .filter(|step| step.contains("tracing_on="))
            .map(String::as_str)
            .collect();
        // In this order: no wake-up remains whose switch was discarded.
        let off_and_on = [
            "senders/tracing_on=0",
            "local/tracing_on=0",
            "local/tracing_on=1",
            "senders/tracing_on=1",
        ];
        assert_eq!(recording, off_and_on);
        of_renames(&log)
    };
    for (measured, follow_threads) in [("1", false), ("0-3", false), ("1", true), ("0-3", true)] {
        let settings = RecorderSettings {
            follow_threads,
            ..settings(measured)
        };
        assert_eq!(renames(&settings), ["enable=1"], "{settings:?}");
    }
    let fake = Fake::lacking(&["task:task_rename"]);
    assert!(
        !Recorder::start(&fake.open(), &settings("1"))
            .unwrap()
            .is_priced()
    );
}

/// The writes to that event, on the sending side; the other side has none.
fn of_renames(log: &[String]) -> Vec<String> {
    let of = log.iter().filter(|step| step.contains("task_rename"));
    let file = |step: &String| {
        step.strip_prefix("senders/events/task/task_rename/")
            .map(str::to_owned)
    };
    of.map(|step| file(step).unwrap_or_else(|| step.clone()))
        .collect()
}

/// Any thread may rename itself a million times a second.
#[test]
fn threads_that_rename_themselves_all_the_time_are_left_out() {
    let fake = Fake::new();
    let mut recorder = Recorder::start(&fake.open(), &settings("1")).unwrap();
    recorder.leave_out_renames(&[7, 9].into());
    let filter = "filter=pid != 7 && pid != 9";
    assert_eq!(of_renames(&fake.log()), ["enable=1", filter]);
    // With too many threads, renames are not recorded at all.
    recorder.leave_out_renames(&(0..65).collect());
    assert_eq!(of_renames(&fake.log()), ["enable=1", filter, "enable=0"]);
}

/// After a switch left no record, and not before: a charge costs as much as a switch.
#[test]
fn postponed_charges_are_filtered_at_once_and_recorded_on_demand() {
    let fake = Fake::new();
    let follow = RecorderSettings {
        follow_threads: true,
        ..settings("1")
    };
    let charges = |log: &[String]| -> Vec<String> {
        log.iter()
            .filter(|step| step.contains("sched_stat_runtime"))
            .cloned()
            .collect()
    };
    let filter = "local/events/sched/sched_stat_runtime/filter=runtime >= 10000";
    let enable = "local/events/sched/sched_stat_runtime/enable=1";
    let at_once = Recorder::start(&fake.open(), &follow).unwrap();
    assert_eq!(charges(&fake.log()), [filter, enable]);
    drop(at_once);
    let fake = Fake::new();
    let mut recorder = Recorder::start(
        &fake.open(),
        &RecorderSettings {
            charges_later: true,
            ..follow.clone()
        },
    )
    .unwrap();
    assert_eq!(charges(&fake.log()), [filter]);
    // Its records can be decoded.
    assert!(
        recorder
            .context()
            .formats
            .iter()
            .any(|format| &*format.event == "sched_stat_runtime")
    );
    recorder.record_charges().unwrap();
    assert_eq!(charges(&fake.log()), [filter, enable]);
    // Without the event nothing can be recorded, and the report says so from the start.
    let fake = Fake::lacking(&["sched:sched_stat_runtime"]);
    let mut recorder = Recorder::start(
        &fake.open(),
        &RecorderSettings {
            charges_later: true,
            ..follow
        },
    )
    .unwrap();
    assert_eq!(recorder.reports()[0].losses, [SourceLoss::Charges]);
    recorder.record_charges().unwrap();
    assert!(
        charges(&fake.log())
            .iter()
            .all(|step| !step.contains("enable"))
    );
}

/// Emptying a buffer takes the kernel a long time, reading it to its end does not; but only emptying it resets the loss
/// counts.
#[test]
fn what_was_recorded_for_the_price_is_forgotten_with_its_losses() {
    for (stats, emptied) in [
        ("entries: 3\noverrun: 0\nread events: 5\n", Vec::new()),
        ("overrun: 1\n", vec!["empty local/trace"]),
        ("dropped events: 1\n", vec!["empty local/trace"]),
        ("commit overrun: 1\n", vec!["empty local/trace"]),
    ] {
        let fake = Fake::new();
        let mut recorder = Recorder::start(&fake.open(), &settings("1")).unwrap();
        let folder = format!(
            "/sys/kernel/tracing/instances/jitterscope-{}-{START}-local/per_cpu/cpu1",
            std::process::id()
        );
        let mut page = vec![0u8; 4096];
        (page[8], page[16]) = (8, 1);
        std::fs::write(
            fake.machine().path(format!("{folder}/trace_pipe_raw")),
            &page,
        )
        .unwrap();
        fake.put(&format!("{folder}/stats"), stats);
        recorder.end_pricing().unwrap();
        let log = fake.log();
        assert_eq!(
            log.iter()
                .filter(|step| step.starts_with("empty"))
                .collect::<Vec<_>>(),
            emptied,
            "{stats}"
        );
        let drained = recorder
            .drain(Role::Local, CpuId(1), &mut |_| panic!("it was forgotten"))
            .unwrap();
        assert_eq!(drained, Drained::default());
    }
}

/// Other CPUs' buffers are made smaller only if that is worth the wait.
#[test]
fn few_buffers_of_cpus_that_are_not_recorded_stay_as_they_are() {
    for (measured, smaller) in [("1", true), ("1-2", false), ("1-3", false)] {
        let fake = Fake::new();
        let _recorder = Recorder::start(&fake.open(), &settings(measured)).unwrap();
        let log = fake.log();
        assert_eq!(
            log.contains(&"local/buffer_size_kb=8".into()),
            smaller,
            "{measured}"
        );
        assert!(
            log.contains(&"local/per_cpu/cpu1/buffer_size_kb=1024".into()),
            "{measured}"
        );
    }
}

#[test]
fn a_refused_clock_is_an_error_that_names_the_way_out() {
    for (step, error) in [
        ("local/trace_clock", Errno::INVAL),
        ("nothing", Errno::INVAL),
    ] {
        let fake = Fake::new();
        fake.refuse(step, error);
        let mut settings = settings("1");
        settings.clock = if step == "nothing" {
            ClockKind::MonotonicRaw
        } else {
            ClockKind::Tsc
        };
        let result = Recorder::start(&fake.open(), &settings);
        if step == "nothing" {
            assert_eq!(result.unwrap().clock(), ClockKind::MonotonicRaw);
            assert!(fake.log().contains(&"local/trace_clock=mono_raw".into()));
            continue;
        }
        let error = result.unwrap_err();
        assert!(
            matches!(&error, TraceError::ClockRefused { wanted: "x86-tsc", got } if got == "local")
        );
        assert!(fake.instances().is_empty());
    }
}

#[test]
fn missing_events_degrade_by_name() {
    let fake = Fake::lacking(&["csd:csd_function_entry", "ipi:ipi_send_cpu"]);
    let recorder = Recorder::start(&fake.open(), &settings("1")).unwrap();
    let [local, senders] = &recorder.reports()[..] else {
        panic!("two sources")
    };
    assert_eq!(
        (local.name.as_str(), &local.status),
        ("tracefs", &SourceStatus::Degraded)
    );
    let missing = |event: &str| {
        [SourceProblem::EventsMissing {
            events: vec![event.into()],
        }]
    };
    assert_eq!(local.problems, missing("csd:csd_function_entry"));
    assert_eq!(local.losses, [SourceLoss::CalledFunctions]);
    assert_eq!(senders.problems, missing("ipi:ipi_send_cpu"));
    assert_eq!(senders.losses, [SourceLoss::IpiSender]);
}

/// A coarse recording leaves out the records of a tick, a work item or a call within other records, and the senders
/// that match them.
#[test]
fn a_coarse_recording_has_all_but_what_is_within_interrupts_and_turns() {
    let enabled = |settings: &RecorderSettings, fake: &Fake| {
        let recorder = Recorder::start(&fake.open(), settings).unwrap();
        let log = fake.log();
        let on = log
            .iter()
            .filter_map(|step| step.strip_suffix("/enable=1")?.split_once("/events/"));
        let on: std::collections::BTreeSet<String> =
            on.map(|(side, event)| format!("{side} {event}")).collect();
        (on, recorder.reports(), recorder.context().clone())
    };
    let coarse = RecorderSettings {
        grain: EventGrain::Coarse,
        ..settings("1")
    };
    let (all, _, _) = enabled(&settings("1"), &Fake::new());
    let (some, reports, context) = enabled(&coarse, &Fake::new());
    assert!(some.is_subset(&all), "{some:?}");
    let left_out = [
        "local csd/csd_function_entry",
        "local csd/csd_function_exit",
        "local timer/hrtimer_expire_entry",
        "local timer/hrtimer_expire_exit",
        "local timer/tick_stop",
        "local timer/timer_expire_entry",
        "local timer/timer_expire_exit",
        "local tlb/tlb_flush",
        "local workqueue/workqueue_execute_end",
        "local workqueue/workqueue_execute_start",
        "senders csd/csd_queue_cpu",
        "senders workqueue/workqueue_queue_work",
    ];
    assert_eq!(
        all.difference(&some)
            .map(String::as_str)
            .collect::<Vec<_>>(),
        left_out
    );
    for kept in [
        "sched/sched_switch",
        "irq/softirq_exit",
        "irq_vectors/local_timer_entry",
        "power/cpu_idle",
    ] {
        assert!(some.contains(&format!("local {kept}")), "{kept}");
    }
    assert!(
        some.contains("senders sched/sched_waking") && some.contains("senders ipi/ipi_send_cpu")
    );
    assert!(
        context
            .formats
            .iter()
            .all(|format| &*format.system != "csd"),
        "what is not recorded is not described"
    );
    let not_asked = SourceProblem::EventsNotAsked {
        grain: EventGrain::Coarse,
    };
    for report in &reports {
        assert_eq!(
            (&report.status, &report.problems[..]),
            (&SourceStatus::Degraded, &[not_asked.clone()][..])
        );
    }
    let inner = [
        SourceLoss::WorkItems,
        SourceLoss::TimerFunctions,
        SourceLoss::HrtimerFunctions,
        SourceLoss::TickDependency,
        SourceLoss::CalledFunctions,
        SourceLoss::TlbFlushes,
    ];
    assert_eq!(reports[0].losses, inner);
    assert_eq!(
        reports[1].losses,
        [SourceLoss::CallSender, SourceLoss::WorkQueuers]
    );

    // A missing event is reported as missing for any grain.
    let fake = Fake::lacking(&["csd:csd_function_entry", "csd:csd_function_exit"]);
    let (_, reports, _) = enabled(&coarse, &fake);
    let lacking = ["csd:csd_function_entry", "csd:csd_function_exit"]
        .map(String::from)
        .to_vec();
    assert_eq!(
        reports[0].problems,
        [SourceProblem::EventsMissing { events: lacking }, not_asked]
    );
    assert_eq!(reports[0].losses, inner);

    // An unknown grain of a newer version leaves nothing out.
    let newer = RecorderSettings {
        grain: EventGrain::Other("dust".into()),
        ..settings("1")
    };
    let (on, reports, _) = enabled(&newer, &Fake::new());
    assert_eq!((on, &reports[0].status), (all, &SourceStatus::Available));
}

#[test]
fn a_kernel_without_any_event_is_refused() {
    let fake = Fake::new();
    fake.refuse("local/events", Errno::INVAL);
    let error = Recorder::start(&fake.open(), &settings("1")).unwrap_err();
    assert!(
        matches!(&error, TraceError::NoEvents(names) if names.contains(&"sched:sched_switch".into()))
    );
    assert!(fake.instances().is_empty());
}

#[test]
fn no_permission_is_typed_and_leaves_nothing() {
    let fake = Fake::new();
    fake.refuse("mkdir local", Errno::PERM);
    let error = Recorder::start(&fake.open(), &settings("1")).unwrap_err();
    assert!(matches!(error, TraceError::NoPermission { .. }));
    assert_eq!(error.status(), SourceStatus::Denied);
    assert!(matches!(
        error.problem(),
        SourceProblem::NoPermission { .. }
    ));
    for step in [
        "local/buffer_size_kb",
        "local/tracing_cpumask",
        "local/trace_clock",
        "local/tracing_on=1",
    ] {
        let fake = Fake::new();
        fake.refuse(step, Errno::PERM);
        let error = Recorder::start(&fake.open(), &settings("1")).unwrap_err();
        assert_eq!(error.status(), SourceStatus::Denied, "{step}: {error}");
        assert!(fake.instances().is_empty(), "{step}");
    }
}

#[test]
fn without_senders_it_records_and_says_so() {
    let fake = Fake::new();
    fake.refuse("mkdir senders", Errno::NOMEM);
    let mut recorder = Recorder::start(&fake.open(), &settings("1")).unwrap();
    let senders = recorder.reports().remove(1);
    assert_eq!(
        (senders.name.as_str(), &senders.status),
        ("senders", &SourceStatus::Absent)
    );
    assert!(matches!(
        senders.problems[..],
        [SourceProblem::InstanceRefused { denied: false, .. }]
    ));
    assert_eq!(senders.losses, [SourceLoss::Senders]);
    assert!(recorder.cpus(Role::Senders).is_empty());
    assert_eq!(
        recorder
            .drain(Role::Senders, CpuId(0), &mut |_| panic!())
            .unwrap(),
        Drained::default()
    );
}

#[test]
fn a_refused_filter_falls_back_and_then_to_none() {
    let fake = Fake::new();
    fake.refuse(
        "senders/events/sched/sched_waking/filter=target_cpu & CPUS",
        Errno::INVAL,
    );
    fake.refuse(
        "senders/events/ipi/ipi_send_cpumask/filter=cpumask",
        Errno::INVAL,
    );
    let recorder = Recorder::start(&fake.open(), &settings("1-2")).unwrap();
    let log = fake.log();
    let has = |step: &str| log.iter().any(|s| s == step);
    assert!(has(
        "senders/events/sched/sched_waking/filter=target_cpu == 1 || target_cpu == 2"
    ));
    assert!(has("senders/events/ipi/ipi_send_cpumask/filter=0"));
    assert!(has("senders/events/ipi/ipi_send_cpumask/enable=1"));
    assert_eq!(recorder.unfiltered(Role::Senders), ["ipi:ipi_send_cpumask"]);
}

#[test]
fn all_cpus_measured_need_no_filter() {
    let fake = Fake::new();
    let _recorder = Recorder::start(&fake.open(), &settings("0-3")).unwrap();
    let log = fake.log();
    let filters: Vec<_> = log
        .iter()
        .filter(|step| step.contains("/filter="))
        .collect();
    // But filters by value remain.
    assert_eq!(
        filters,
        [
            "local/events/tlb/tlb_flush/filter=reason >= 1",
            "senders/events/signal/signal_generate/filter=(sig >= 19 && sig <= 22) || code == -2 || \
             (sig == 14 && code == 128)"
        ]
    );
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let fake = Fake::new();
    let error = Recorder::start(&fake.open(), &settings("7")).unwrap_err();
    assert!(matches!(error, TraceError::NoCpu { cpu: CpuId(7), .. }));
    assert!(matches!(
        error.problem(),
        SourceProblem::NoTraceBuffer { cpu: CpuId(7), .. }
    ));
}

#[test]
fn a_panic_removes_the_instances() {
    let fake = Fake::new();
    let tracefs = fake.open();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _recorder = Recorder::start(&tracefs, &settings("1")).unwrap();
        panic!("on purpose");
    }));
    assert!(result.is_err() && fake.instances().is_empty());
}

#[test]
fn leftovers_are_those_that_nobody_holds() {
    let fake = Fake::new();
    let pid = std::process::id();
    // Process ids are meaningless: the first is of a process that does not exist in this /proc, the second is ours.
    let held = [
        "jitterscope-4000000-1-local".to_owned(),
        format!("jitterscope-{pid}-{START}-other"),
    ];
    let locks = held.clone().map(|name| {
        fake.left(&name);
        let path = fake
            .machine()
            .path(format!("/sys/kernel/tracing/instances/{name}"));
        jitterscope_platform::OwnerLock::take(&path).unwrap()
    });
    fake.put("/proc/77/stat", &stat(77, 500));
    for name in [
        "jitterscope-77-499-senders",
        "jitterscope-77-500-local",
        "somebody-else",
        "jitterscope-notes",
    ] {
        fake.left(name);
    }
    let tracefs = fake.open();
    let names = || {
        tracefs
            .leftovers()
            .into_iter()
            .map(|l| l.name)
            .collect::<Vec<String>>()
    };
    assert_eq!(
        names(),
        ["jitterscope-77-499-senders", "jitterscope-77-500-local"]
    );
    fake.refuse("rmdir jitterscope-77-499-senders", Errno::BUSY);
    let (removed, kept) = tracefs.clean_leftovers();
    assert_eq!((removed.len(), removed[0].pid, kept.len()), (1, 77, 1));
    assert!(
        !fake.log().iter().any(|step| step.contains("tracing_on")),
        "a busy one keeps tracing"
    );
    assert_eq!(fake.instances().len(), 5);
    drop(locks);
    assert!(
        names().len() == 3 && held.iter().all(|name| names().contains(name)),
        "{:?}",
        names()
    );
}

#[test]
fn an_instance_is_held_from_its_making_to_its_removal() {
    let fake = Fake::new();
    let tracefs = fake.open();
    let _recorder = Recorder::start(&tracefs, &settings("1")).unwrap();
    assert_eq!(
        (tracefs.leftovers(), tracefs.clean_leftovers().0),
        (Vec::new(), Vec::new())
    );
    assert_eq!(fake.instances().len(), 2);
}

#[test]
fn two_recordings_of_one_process_do_not_collide() {
    let fake = Fake::new();
    let tracefs = fake.open();
    let first = Recorder::start(&tracefs, &settings("1")).unwrap();
    let second = Recorder::start(&tracefs, &settings("1")).unwrap();
    assert_eq!(fake.instances().len(), 4);
    drop((first, second));
    assert!(fake.instances().is_empty());
}

#[test]
fn pages_are_handed_on_and_losses_are_counted() {
    let fake = Fake::new();
    let mut recorder = Recorder::start(&fake.open(), &settings("1")).unwrap();
    // Two sub-buffers: the first states that 9 events are missing before it, the second is empty.
    let mut bytes = vec![0u8; 3 * 4096];
    bytes[8] = 8;
    bytes[16..20].copy_from_slice(&1u32.to_le_bytes());
    bytes[4096 + 8..4096 + 16].copy_from_slice(&(8u64 | 1 << 31 | 1 << 30).to_le_bytes());
    bytes[4096 + 16..4096 + 20].copy_from_slice(&1u32.to_le_bytes());
    bytes[4096 + 24] = 9;
    let folder = format!(
        "/sys/kernel/tracing/instances/jitterscope-{}-{START}-local/per_cpu/cpu1",
        std::process::id()
    );
    std::fs::write(
        fake.machine().path(format!("{folder}/trace_pipe_raw")),
        &bytes,
    )
    .unwrap();
    fake.put(
        &format!("{folder}/stats"),
        "overrun: 9\ncommit overrun: 2\ndropped events: 1\n",
    );
    let mut lengths = Vec::new();
    let drained = recorder
        .drain(Role::Local, CpuId(1), &mut |page| lengths.push(page.len()))
        .unwrap();
    assert_eq!(
        (lengths, drained.pages, drained.bytes, drained.more),
        (vec![24, 32], 2, 56, false)
    );
    let loss = recorder.loss(Role::Local, CpuId(1));
    assert_eq!((loss.in_pages, loss.unknown, loss.total()), (9, 0, 12));
    let report = recorder.reports().remove(0);
    assert_eq!((report.lost, &report.status), (12, &SourceStatus::Degraded));
}

#[test]
fn what_we_mount_we_unmount() {
    let fake = Fake::new();
    fake.put(
        "/proc/self/mountinfo",
        "22 27 0:21 / /proc rw - proc proc rw\n",
    );
    let tracefs = fake.open();
    assert!(tracefs.is_ours());
    drop(tracefs.clone());
    let name = format!("jitterscope-{}-{START}-mount", std::process::id());
    assert_eq!(
        fake.log(),
        [format!("mount tracefs /sys/kernel/tracing as {name}")]
    );
    drop(tracefs);
    assert_eq!(fake.log()[1], "unmount /sys/kernel/tracing");
    fake.refuse("mount", Errno::PERM);
    let error = Tracefs::open_with(&fake.machine(), fake.writer.clone()).unwrap_err();
    assert!(matches!(error, TraceError::MountDenied));
    assert_eq!(error.problem(), SourceProblem::MountDenied);
}

/// The process of ours that mounted it may have been killed, or may end before another of ours: the last one unmounts
/// it. The kernel refuses while it is in use.
#[test]
fn a_mount_of_ours_is_unmounted_by_the_last_of_us() {
    for (owner, ours) in [("jitterscope-77-500-mount", true), ("nodev", false)] {
        let fake = Fake::new();
        let line = format!("32 23 0:12 / /sys/kernel/tracing rw - tracefs {owner} rw\n");
        fake.put("/proc/self/mountinfo", &line);
        assert_eq!(fake.open().is_ours(), ours, "{owner}");
        assert_eq!(fake.log().len(), usize::from(ours), "{owner}");
    }
}

#[test]
fn the_kernels_own_notes_name_threads_that_have_ended() {
    let fake = Fake::new();
    fake.put(
        "/sys/kernel/tracing/saved_cmdlines",
        "16 <...>\n8931 a b:c\nx y\n\n",
    );
    let names = fake.open().saved_comms();
    assert_eq!(names, [(8931, jitterscope_model::Comm::new("a b:c"))]);
}

#[test]
fn a_machine_without_tracefs_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
    std::fs::write(dir.path().join("proc/self/mountinfo"), "").unwrap();
    let error = Tracefs::open(&jitterscope_platform::Machine::at(dir.path())).unwrap_err();
    assert!(matches!(error, TraceError::NotSupported { .. }));
    assert_eq!(error.status(), SourceStatus::Absent);
}

/// Becoming root or changing the kernel would not help here.
#[test]
fn a_locked_kernel_is_reported_as_one() {
    let locked = [
        (
            "sys/kernel/security/lockdown",
            "none integrity [confidentiality]\n",
            true,
        ),
        (
            "sys/kernel/security/lockdown",
            "none [integrity] confidentiality\n",
            false,
        ),
        (
            "proc/cmdline",
            "quiet lockdown=confidentiality tsc=reliable\n",
            true,
        ),
        ("proc/cmdline", "quiet lockdown=integrity\n", false),
    ];
    for (path, text, is_locked) in locked {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [("proc/self/mountinfo", ""), (path, text)] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let error = Tracefs::open(&jitterscope_platform::Machine::at(dir.path())).unwrap_err();
        assert_eq!(
            matches!(error, TraceError::LockedDown),
            is_locked,
            "{text}: {error}"
        );
        if is_locked {
            assert_eq!(error.status(), SourceStatus::Denied);
            assert_eq!(error.problem(), SourceProblem::LockedDown);
        }
    }
}

fn asked(events: &[&str]) -> Vec<AskedEvent> {
    events.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn asked_events_are_filtered_enabled_and_described() {
    let fake = Fake::new();
    let settings = RecorderSettings {
        asked: asked(&["net:netif_rx:len > 9", "block:block_rq_issue"]),
        ..settings("1")
    };
    let recorder = Recorder::start(&fake.open(), &settings).unwrap();
    let log = fake.log();
    let at = |step: &str| log.iter().position(|done| done == step).expect(step);
    let enabled = at("local/events/net/netif_rx/enable=1");
    assert!(at("local/events/net/netif_rx/filter=len > 9") < enabled);
    assert!(enabled < at("local/tracing_on=1"));
    at("local/events/block/block_rq_issue/enable=1");
    let described = |event: &str| {
        let formats = &recorder.context().formats;
        formats.iter().any(|format| format.event == event)
    };
    assert!(described("netif_rx") && described("block_rq_issue"));
}

#[test]
fn an_event_that_cannot_be_recorded_is_refused_with_the_reason() {
    let fake = Fake::new();
    let tracing = "/sys/kernel/tracing";
    for event in ["net/netif_rx", "block/block_rq_issue"] {
        fake.put(&format!("{tracing}/events/{event}/format"), "name: event\n");
    }
    let all = "net:netif_rx\nblock:block_rq_issue\n";
    fake.put(&format!("{tracing}/available_events"), all);
    let tracefs = fake.open();
    let check = |events: &[&str]| tracefs.check_asked(&asked(events));
    check(&["net:netif_rx:len > 9", "block:block_rq_issue"]).unwrap();
    let Err(AskedError::Unknown { name, known }) = check(&["net:netif_tx"]) else {
        panic!("there is no netif_tx");
    };
    assert_eq!(name, "net:netif_tx");
    assert!(known.contains(&"net:netif_rx".to_owned()), "{known:?}");
    assert!(matches!(
        check(&["sched:sched_switch"]),
        Err(AskedError::Own { .. })
    ));
    let twice = ["net:netif_rx", "net:netif_rx:len > 9"];
    assert!(matches!(check(&twice), Err(AskedError::Twice { .. })));
    fake.refuse("filters/events/net/netif_rx/filter", Errno::INVAL);
    let Err(AskedError::Filter { fields, .. }) = check(&["net:netif_rx:width > 9"]) else {
        panic!("the kernel refuses the filter");
    };
    assert_eq!(fields, ["len"]);
    drop(tracefs);
    let log = fake.log();
    assert!(
        log.iter().any(|step| step.starts_with("rmdir filters")),
        "{log:?}"
    );
}
