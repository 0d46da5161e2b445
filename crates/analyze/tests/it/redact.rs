//! A run whose texts are all unique markers, through the redactor: no marker survives.

use jitterscope_analyze::{Redactor, SummaryBuilder};
use jitterscope_model::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A text that no list and no pattern contains: mixed case, longer than a model number.
fn marker(n: usize) -> String {
    format!("ZqMark{n:04}Xw")
}

/// `sample` with every text and every map key replaced by a marker, if it still parses: words of enums and lists of
/// CPUs stay. Future fields are marked, too.
fn marked<T: Serialize + DeserializeOwned>(sample: &T, next: &mut usize) -> T {
    let mut value = serde_json::to_value(sample).unwrap();
    let mut paths = Vec::new();
    texts(&value, String::new(), &mut paths);
    for path in paths {
        let mut tried = value.clone();
        *tried.pointer_mut(&path).unwrap() = Value::String(marker(*next));
        // `Newer` accepts any word, so words of the enum must be tested as such; the same holds for a reading's value.
        if serde_json::from_value::<T>(tried.clone()).is_ok() {
            value = tried;
            *next += 1;
        }
    }
    let mut maps = Vec::new();
    keys(&value, String::new(), &mut maps);
    // Inner keys first: their paths contain the outer names.
    for (path, key) in maps.into_iter().rev() {
        let mut tried = value.clone();
        let map = tried.pointer_mut(&path).unwrap().as_object_mut().unwrap();
        let old = map.remove(&key).unwrap();
        map.insert(marker(*next), old);
        if let Ok(read) = serde_json::from_value::<T>(tried.clone())
            && serde_json::to_string(&read)
                .unwrap()
                .contains(&marker(*next))
        {
            value = tried;
            *next += 1;
        }
    }
    serde_json::from_value(value).unwrap()
}

fn texts(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::String(_) => out.push(path),
        Value::Array(all) => {
            all.iter()
                .enumerate()
                .for_each(|(at, one)| texts(one, format!("{path}/{at}"), out));
        }
        Value::Object(all) => all
            .iter()
            .for_each(|(key, one)| texts(one, format!("{path}/{key}"), out)),
        _ => {}
    }
}

fn keys(value: &Value, path: String, out: &mut Vec<(String, String)>) {
    match value {
        Value::Array(all) => {
            all.iter()
                .enumerate()
                .for_each(|(at, one)| keys(one, format!("{path}/{at}"), out));
        }
        Value::Object(all) => {
            for (key, one) in all {
                out.push((path.clone(), key.clone()));
                keys(one, format!("{path}/{key}"), out);
            }
        }
        _ => {}
    }
}

fn assert_clean(what: &str, text: &str) {
    assert!(
        !text.contains("ZqMark"),
        "{what}: {}",
        &text[text.find("ZqMark").unwrap_or(0)..][..60]
    );
}

fn times() -> MessageTimes {
    MessageTimes::default()
}

fn manifest() -> RunManifest {
    let text = || "x".to_owned();
    let newer = || Map::from_iter([("id".to_owned(), Value::from("x"))]);
    let imported = || Imported {
        file: text(),
        format: text(),
        format_version: 7,
        program: Some(text()),
        clock: text(),
        states_date: true,
        unread_records: 3,
    };
    let reading = ClockReading {
        ticks: Ticks(0),
        monotonic_raw_ns: 0,
        realtime_ns: 5,
        boottime_ns: None,
        width_ticks: 1,
    };
    let account = ThreadAccount {
        comm: text(),
        role: Some(text()),
        ran_instead: vec![RanInstead {
            subject: Subject::Thread(Task {
                comm: "x".into(),
                ..Task::default()
            }),
            threads: 1,
            count: 1,
            min_ns: Nanos(1),
            max_ns: Nanos(1),
            total_ns: Nanos(1),
        }],
        blocked_on: vec![BlockedOn {
            reason: BlockReason::from_word(&text()),
            function: Some(text()),
            unknown_because: Some(NoReason::from_word(&text())),
            count: 1,
            blocked_ns: Nanos(1),
            max_ns: Nanos(1),
        }],
        ..ThreadAccount::default()
    };
    let watched = PassiveCpu {
        threads: vec![BelongingThread {
            comm: text(),
            ..BelongingThread::default()
        }],
        chosen: Some(ChosenThread {
            comm: text(),
            ..ChosenThread::default()
        }),
        ran_instead: account.ran_instead.clone(),
        ran_beside: account.ran_instead.clone(),
        ended_early: Some(AnyVersion::Unknown(newer())),
        ..PassiveCpu::default()
    };
    let mover = Some(Mover {
        comm: text(),
        tid: 1,
    });
    let because = Some(MovedBecause {
        offline: false,
        by: mover,
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
        ended_early,
        ..WakeupResult::default()
    };
    let result = wakeup.as_probe_result(Nanos(1), Ticks(1), TickRate::NANOSECONDS);
    RunManifest {
        schema_version: RUN_SCHEMA_VERSION,
        tool_version: text(),
        recorder_pid: Some(1),
        id: text(),
        label: text(),
        command_line: vec![text()],
        host: HostFacts {
            hostname: text(),
            kernel_release: text(),
            kernel_version: text(),
            arch: text(),
            cpu_model: text(),
            cmdline: text(),
            hypervisor: Some(text()),
            boot_id: Some(text()),
            ..HostFacts::default()
        },
        clock: ClockKind::Tsc,
        rate: TickRate::NANOSECONDS,
        clock_start: reading,
        clock_end: reading,
        probe: ProbeSettings {
            kind: "spin".into(),
            cpus: "1".parse().unwrap(),
            cpus_chosen_because: Some(AnyVersion::Unknown(newer())),
            duration_ns: Nanos(1),
            warmup_ns: Nanos(1),
            threshold_ns: Nanos(1),
            clock_costs: None,
            interval_ns: Nanos(1),
            fifo_priority: None,
            wakeup: None,
            event_grain: EventGrain::Other("x".into()),
        },
        profile: Some(ProfileLimit {
            title: text(),
            limit_ns: Nanos(1),
            replaces_ns: None,
            taken_ppm: None,
        }),
        results: vec![result],
        wakeups: vec![wakeup],
        threads: vec![account],
        pipeline: Some(PipelineResult {
            setup: PipelineSetup {
                record_length: 64,
                input: text(),
                input_records: 1,
                ring: 2,
                via: PipelineVia::Ring,
                journal: JournalWriting::Mapped,
                interval_ns: Nanos(1),
                pacing: PipelinePacing::Schedule,
                messages: None,
                warm_up_messages: 0,
                pause_ns: Nanos(0),
                journaller: true,
                memory_locked: true,
                forced: false,
            },
            threads: vec![PipelineThread {
                role: PipelineRole::Producer,
                tid: 1,
                comm: text(),
                cpu: None,
                fifo_priority: None,
                page_faults: 0,
                involuntary_switches: 0,
                cpu_time_ns: Nanos(0),
            }],
            start: Ticks(0),
            end: Ticks(9),
            producer: PublisherResult {
                sent: 1,
                completed: true,
                inter: times(),
                lateness: times(),
                full_waits: 0,
                full_waited_ns: Nanos(0),
                full_longest_ns: Nanos(0),
            },
            consumers: vec![],
            journal: Some(PipelineJournal {
                path: text(),
                written: 0,
                unwritten: 0,
                waits: 0,
                ended: Some(JournalEnd {
                    disk_full: true,
                    why: JournalFault::System { system: text() }.into(),
                }),
            }),
        }),
        passive: vec![watched],
        attributed: true,
        sources: vec![SourceReport {
            name: text(),
            status: SourceStatus::Degraded,
            problems: vec![SourceProblem::Unknown(newer())],
            losses: vec![SourceLoss::Other(text().into())],
            lost: 1,
        }],
        counters: vec![CounterTotal {
            cpu: CpuId(1),
            name: text(),
            total: 1,
            correlation: None,
        }],
        edge_costs: vec![EdgeCostRow {
            edge: text(),
            smallest_ticks: Ticks(1),
            samples: 1,
        }],
        sleeping_works: vec![],
        senders_dropped: 0,
        asked: vec![AskedEventRecords {
            event: AskedEvent {
                system: text().into(),
                event: text().into(),
                filter: Some(text()),
            },
            records: 1,
        }],
        events_in_gaps: EventsInGaps::default(),
        self_noise: SelfNoise::default(),
        trace: StoredTrace::default(),
        interrupted: true,
        killed: true,
        imported: Some(imported()),
        added: Some(AddedRecords {
            file: imported(),
            run: "x".to_owned(),
            start: AlignmentStart::TimeOfDay,
            file_ns: 1,
            run_ns: -2,
            drift_ppb: 3,
            error_ns: Nanos(4),
            compared: 5,
            inside: 5,
            by_chance: 1,
            first: Some(FirstStretch {
                compared: 6,
                fits: 6,
                elsewhere: 2,
            }),
            covered: 1.0,
        }),
        moment: Some(SavedMoment {
            realtime_ns: 1,
            by: AskedBy::Application,
            text: text(),
            joined: 2,
        }),
        warnings: vec![Warning::worded(&text(), &text())],
    }
}

fn machine() -> MachineState {
    let text = || Reading::Value("x".to_owned());
    let setting = SettingValue {
        path: "x".into(),
        value: text(),
        in_force: Some("x".into()),
        ..SettingValue::default()
    };
    let finding = KnobFinding {
        knob: "x".into(),
        verdict: KnobVerdict::Newer("x".into()),
        reason: "x".into(),
        current: "x".into(),
        wanted: "x".into(),
    };
    let change = AppliedChange {
        knob: "x".into(),
        what: "x".into(),
        original: "x".into(),
        asked: "x".into(),
        now: ChangeNow::Newer("x".into()),
        since_realtime_ns: 1,
    };
    let apply = TuningApply {
        user: Some("x".into()),
        command: "x".into(),
        at_realtime_ns: 1,
        ..TuningApply::default()
    };
    // Every sort of value and name, for each setting.
    let mut settings = MachineSettings::default();
    for setting in MACHINE_SETTINGS {
        let named = MachineEntry {
            with: Some("x".into()),
            ..MachineEntry::new("x").of("x")
        };
        let entries = [
            MachineEntry::new("x").on("0-1".parse().unwrap()),
            MachineEntry::new(Scalar::Words(vec!["x".into()])),
            named,
            Reading::refused("x".into()).into(),
            Reading::Newer("x".into()).into(),
        ];
        settings.put(setting.name, entries);
    }
    MachineState {
        settings,
        tuning: Reading::Value(TuningState {
            cpus: "1".parse().unwrap(),
            settings: vec![KnobSetting {
                knob: "x".into(),
                values: vec![setting],
                omitted: 0,
            }],
            findings: vec![finding],
            competitors: vec!["x".into()],
            applied: Reading::Value(AppliedTuning {
                applies: vec![apply],
                changes: vec![change],
                omitted: 0,
            }),
        }),
    }
}

#[test]
fn no_text_of_a_manifest_comes_out() {
    let mut next = 0;
    let marked: RunManifest = marked(&manifest(), &mut next);
    let before = serde_json::to_string(&marked).unwrap();
    assert!(next >= 33, "only {next} texts were marked: {before}");
    let mut redactor = Redactor::new();
    let out = redactor.manifest(&marked);
    assert_clean("manifest", &serde_json::to_string(&out).unwrap());
    assert_clean(
        "head",
        &serde_json::to_string(&redactor.head(&RunHead::of(&marked))).unwrap(),
    );
    // All figures are still there.
    assert_eq!(
        (out.rate, out.results.len(), out.threads[0].tid),
        (marked.rate, 1, 0)
    );
    let summary = SummaryBuilder::new(&out).finish();
    assert_clean("summary", &serde_json::to_string(&summary).unwrap());
}

#[test]
fn no_text_of_a_machine_comes_out() {
    let mut next = 0;
    let marked: MachineState = marked(&machine(), &mut next);
    assert!(
        next >= 7 * MACHINE_SETTINGS.len(),
        "only {next} texts were marked"
    );
    let out = Redactor::new().machine(&marked);
    assert_clean("machine", &serde_json::to_string(&out).unwrap());
    let names = |name: &str| -> Vec<_> {
        let entries = out.settings.get(name).iter();
        entries.filter_map(|entry| entry.of.as_deref()).collect()
    };
    assert_eq!(names("interrupts"), ["device-1"]);
    assert_eq!(names("cpusets"), ["group-1"]);
    assert_eq!(names("firmware.vendor"), [""; 0]);
}

/// Subjects with every text field.
fn subjects() -> Vec<Subject> {
    let name = |n: usize| Name::from(marker(n));
    let owner = || {
        Some(Owner {
            uid: Some(1000),
            cgroup: Some(name(2)),
            executable: Some(name(2)),
        })
    };
    let task = |n| Task {
        tid: Some(12),
        tgid: Some(11),
        process: None,
        comm: name(n),
        was: Some(name(n + 100)),
        class: Some(SchedClass::Other(name(1))),
        owner: owner(),
        kernel: None,
        allowed: Some(name(25)),
    };
    let worker = Some(Worker {
        tid: Some(8),
        comm: Some(name(3)),
        class: Some(SchedClass::Other(name(4))),
    });
    let mut all = vec![
        Subject::Thread(task(5)),
        Subject::Throttle(task(6)),
        Subject::Quota(Quota {
            cgroup: name(24),
            limit: None,
            beside: Some(task(23)),
        }),
        Subject::Work(Work {
            function: Some(name(7)),
            workqueue: Some(name(8)),
            worker,
            unbound: None,
        }),
        Subject::Interrupt {
            number: Some(25),
            action: name(9),
        },
        Subject::Vector(name(10)),
        Subject::Timer {
            function: Some(name(11)),
            source: Some(TimerSource::Other(name(12))),
        },
        Subject::Call(name(13)),
        Subject::Ipi(name(14)),
        Subject::Nmi(name(15)),
        Subject::Unknown {
            kind: name(20),
            name: name(21),
            detail: name(22),
        },
    ];
    for about in [
        About::Meanwhile(Meanwhile::Ran(task(16))),
        About::Meanwhile(Meanwhile::Worked(Work {
            function: Some(name(24)),
            ..Work::default()
        })),
        About::Vectors([name(17)].into()),
        About::Frame(Evidence::Other(name(18))),
    ] {
        all.push(Subject::Verdict(Verdict::LateTimer, about));
    }
    all.extend(CulpritKind::ALL.map(|kind| Subject::Unknown {
        kind: kind.as_str().into(),
        name: name(19),
        detail: format!("pid 12, {}", marker(23)).into(),
    }));
    all
}

fn part(subject: Subject) -> Part {
    let sender = Sender {
        context: ExecutionContext::Thread,
        comm: Some(marker(31).into()),
        tid: 4,
        tgid: Some(3),
        cpu: CpuId(0),
        via: Some(marker(32).into()),
        beneath: None,
    };
    let culprit = Culprit {
        subject,
        sender: Some(sender),
    };
    let part = Part::inside(culprit, Nanos(5), Evidence::Other(marker(33).into()));
    part.in_phase(Phase::Other(marker(34).into()))
}

#[test]
fn no_text_of_a_row_comes_out() {
    let mut redactor = Redactor::new();
    let parts: Vec<Part> = subjects().into_iter().map(part).collect();
    let out = redactor.attribution(&Attribution {
        stall: StallId(1),
        parts,
    });
    assert_clean("attribution", &serde_json::to_string(&out.parts).unwrap());
    let ran = out.parts[0].culprit.subject.task().unwrap();
    assert_eq!((ran.tid, ran.tgid, &ran.owner), (Some(12), Some(11), &None));
    let known = Part {
        evidence: Evidence::TimerRecords,
        ..part(Subject::Softirq(3))
    };
    let out = redactor.attribution(&Attribution {
        stall: StallId(1),
        parts: vec![known],
    });
    assert_eq!(
        (&out.parts[0].evidence, &out.parts[0].culprit.subject),
        (&Evidence::TimerRecords, &Subject::Softirq(3))
    );
    let victim = ThreadRef {
        tid: 9,
        comm: Comm::new("ZqMark99"),
    };
    let stall = Stall {
        id: StallId(1),
        cpu: CpuId(0),
        victim,
        start: Ticks(1),
        end: Ticks(2),
    };
    assert_clean("stall", &redactor.stall(&stall).victim.comm.to_string());
    assert_clean("tag", &redactor.tag("ZqMark-cpu1"));
    assert_eq!(redactor.tag("spin-cpu1"), "spin-cpu1");
    assert_eq!(
        redactor.tag("pipeline-accumulator-from-intended"),
        "pipeline-accumulator-from-intended"
    );
}

#[test]
fn what_says_nothing_about_the_owner_stays() {
    let mut redactor = Redactor::new();
    let thread = |comm: &str| {
        Subject::Thread(Task {
            comm: comm.into(),
            ..Task::default()
        })
    };
    let work = |name: &str| {
        Subject::Work(Work {
            function: Some(name.into()),
            ..Work::default()
        })
    };
    let device = |name: &str| Subject::Interrupt {
        number: None,
        action: name.into(),
    };
    for (known, expected) in [
        (thread("ksoftirqd/3"), "ksoftirqd/3"),
        (thread("kworker/1:2H"), "kworker/1:2H"),
        (thread("rcu_preempt"), "rcu_preempt"),
        (work("vmstat_update"), "vmstat_update"),
        (
            Subject::Timer {
                function: Some("tick_nohz_handler".into()),
                source: None,
            },
            "tick_nohz_handler",
        ),
        (Subject::Softirq(3), "NET_RX"),
        (Subject::Vector("thermal_apic".into()), "thermal_apic"),
        (Subject::verdict(Verdict::LateInterrupt), "late interrupt"),
        (device("nvme0q7"), "nvme"),
        // A known beginning does not prove the rest.
        (thread("irq/44-acme-card"), "thread-1"),
        (thread("kworker/u8:acme"), "thread-2"),
        (thread("matching-engine"), "thread-3"),
        (thread("irq/44-acme-card"), "thread-1"),
        (work("acme_workfn"), "function-1"),
        (device("acme-fpga"), "device-1"),
    ] {
        let mut alone = part(known.clone());
        std::sync::Arc::make_mut(&mut alone.culprit).sender = None;
        let reported = Attribution {
            stall: StallId(0),
            parts: vec![alone],
        };
        let out = redactor.attribution(&reported);
        assert_eq!(out.parts[0].culprit.subject.name(), expected, "{known:?}");
    }
}

#[test]
fn figures_and_settings_stay() {
    let mut plain = manifest();
    plain.id = "k3x9ab".into();
    plain.tool_version = "0.1.0-acme".into();
    plain.host.kernel_release = "6.1.0-rt12-acme+".into();
    plain.host.kernel_version = "#1 SMP PREEMPT_RT builder@acme Tue".into();
    plain.host.cpu_model = "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz".into();
    plain.counters[0].name = "interrupt LOC (Local timer interrupts)".into();
    plain.warnings[0] = Warning::worded("no-kernel-events", "acme");
    let out = Redactor::new().manifest(&plain);
    assert_eq!(
        (out.id.as_str(), out.tool_version.as_str()),
        ("k3x9ab", "0.1.0")
    );
    assert_eq!(out.host.kernel_release, "6.1.0-rt12");
    assert_eq!(out.host.kernel_version, "SMP PREEMPT_RT");
    assert_eq!(out.host.cpu_model, plain.host.cpu_model);
    assert_eq!(out.counters[0].name, "interrupt LOC");
    assert_eq!(out.warnings[0].id(), "no-kernel-events");
    let mut state = MachineState::default();
    for (name, text) in [
        ("kernel.clocksource", "tsc"),
        ("firmware.bios_version", "1.8.2"),
        ("firmware.bios_date", "05/17/2024"),
    ] {
        state.settings.put(name, [MachineEntry::new(text)]);
    }
    let out = Redactor::new().machine(&state).settings;
    assert_eq!(out.value("kernel.clocksource"), Some(&"tsc".into()));
    assert_eq!(out.value("firmware.bios_version"), Some(&"1.8.2".into()));
    assert_eq!(out.value("firmware.bios_date"), Some(&"05-17-2024".into()));
}
