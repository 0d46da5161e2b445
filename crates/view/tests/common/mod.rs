//! Synthetic runs: rows, and the manifest that a probe would have written with them.
#![allow(dead_code, reason = "each test uses its part")]

use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{RunSummary, SummaryBuilder};
use jitterscope_model::*;

pub const RATE: TickRate = TickRate {
    hz: 2_600_000_000,
    error_ppb: 12_000,
    source: RateSource::HypervisorCpuid,
};
const BEGAN: u64 = 26_000_000_000;

pub struct Scenario {
    pub manifest: RunManifest,
    pub stalls: Vec<Stall>,
    pub attributions: Vec<Attribution>,
    pub intervals: Vec<IntervalRow>,
}

/// A part of a stall; explained parts lie inside.
pub fn part(subject: Subject, net: u64) -> Part {
    let (placement, confidence) = if subject.kind().is_explained() {
        (Placement::Inside, Confidence::High)
    } else {
        (Placement::Lead, Confidence::Medium)
    };
    Part {
        placement,
        confidence,
        ..Part::inside(subject, Nanos(net), Evidence::LocalTimerRecords)
    }
}

/// A verdict by its word in reports.
pub fn verdict(kind: CulpritKind, word: &str) -> Subject {
    Subject::verdict(Verdict::parse(kind, word).unwrap())
}

/// A timer that was late while a thread of this name ran.
pub fn late_while(comm: &str) -> Subject {
    let ran = Task {
        comm: comm.into(),
        ..Task::default()
    };
    Subject::Verdict(Verdict::LateTimer, About::Meanwhile(Meanwhile::Ran(ran)))
}

pub fn thread(comm: &str, tid: i32) -> Subject {
    of_class(comm, tid, SchedClass::Fair(None))
}

pub fn of_class(comm: &str, tid: i32, class: SchedClass) -> Subject {
    Subject::Thread(Task {
        tid: Some(tid),
        comm: comm.into(),
        class: Some(class),
        ..Task::default()
    })
}

pub fn timer(function: &str) -> Subject {
    Subject::Timer {
        function: Some(function.into()),
        source: Some(TimerSource::HighResolution),
    }
}

pub fn interrupt(number: u32, action: &str) -> Subject {
    Subject::Interrupt {
        number: Some(number),
        action: action.into(),
    }
}

pub fn work(function: &str, worker: Option<&str>, workqueue: Option<&str>) -> Subject {
    Subject::Work(Work {
        function: Some(function.into()),
        workqueue: workqueue.map(Name::from),
        worker: worker.map(|comm| Worker {
            comm: Some(comm.into()),
            ..Worker::default()
        }),
        unbound: None,
    })
}

/// A worker whose work item is unknown.
pub fn worker(comm: &str, tid: i32, class: SchedClass) -> Subject {
    Subject::Work(Work {
        function: None,
        workqueue: None,
        worker: Some(Worker {
            tid: Some(tid),
            comm: Some(comm.into()),
            class: Some(class),
        }),
        unbound: None,
    })
}

pub fn sent_by(mut part: Part, comm: &str, tid: i32, cpu: u32, via: Option<&str>) -> Part {
    std::sync::Arc::make_mut(&mut part.culprit).sender = Some(Sender {
        context: ExecutionContext::Thread,
        comm: Some(comm.into()),
        tid,
        tgid: None,
        cpu: CpuId(cpu),
        via: via.map(Into::into),
        beneath: None,
    });
    part
}

impl Scenario {
    /// Ten seconds on these CPUs, without a stall.
    pub fn new(cpus: &[u32]) -> Scenario {
        let set: CpuSet = cpus.iter().copied().map(CpuId).collect();
        Scenario {
            manifest: manifest(set),
            stalls: Vec::new(),
            attributions: Vec::new(),
            intervals: Vec::new(),
        }
    }

    /// Adds a stall at this many microseconds into the run, as long as its parts together.
    pub fn stall(&mut self, cpu: u32, at_us: u64, parts: Vec<Part>) {
        self.stall_at(cpu, Nanos(at_us * 1000), parts);
    }

    /// The same, to the nanosecond.
    pub fn stall_at(&mut self, cpu: u32, at: Nanos, parts: Vec<Part>) {
        let id = StallId(self.stalls.len() as u64);
        let length = RATE.ticks(parts.iter().map(|p| p.net).sum());
        let start = Ticks(BEGAN) + RATE.ticks(at);
        let victim = ThreadRef {
            tid: 4000 + cpu as i32,
            comm: Comm::new(&format!("js-spin/{cpu}")),
        };
        self.stalls.push(Stall {
            id,
            cpu: CpuId(cpu),
            victim,
            start,
            end: start + length,
        });
        self.attributions.push(Attribution { stall: id, parts });
    }

    /// Fills in the probe's results and the intervals from the stalls.
    pub fn finish(mut self) -> Scenario {
        let span = self.manifest.probe.duration_ns.0 * 26 / 10;
        for cpu in self.manifest.probe.cpus.iter() {
            let of_cpu = || self.stalls.iter().filter(|s| s.cpu == cpu);
            let mut above = std::collections::BTreeMap::new();
            for stall in of_cpu() {
                *above.entry(stall.length().0).or_insert(0u64) += 1;
            }
            let stalled: u64 = of_cpu().map(|s| s.length().0).sum();
            let fast = (span - stalled) * 9 / 10 / 24;
            let below = vec![
                (18u32, fast / 8),
                (24, fast),
                (31, fast / 500),
                (208, 40 + u64::from(cpu.0)),
            ];
            let all = || {
                below
                    .iter()
                    .map(|(t, c)| (u64::from(*t), *c))
                    .chain(above.clone())
            };
            let sum: u64 = all().map(|(t, c)| t * c).sum();
            let start = Ticks(BEGAN);
            self.manifest.results.push(ProbeResult {
                cpu,
                tid: 4000 + cpu.0 as i32,
                start,
                end: Ticks(BEGAN + sum),
                planned_end: Ticks(BEGAN + span),
                samples: all().map(|(_, c)| c).sum(),
                sum_ticks: sum,
                sum_squares: all()
                    .map(|(t, c)| u128::from(t).pow(2) * u128::from(c))
                    .sum(),
                min_ticks: 18,
                max_ticks: all().map(|(t, _)| t).max().unwrap_or(0),
                threshold_ticks: 780,
                above: above.clone().into_iter().collect(),
                stalls: of_cpu().count() as u64,
                stalled_ticks: stalled,
                dropped_records: 0,
                own_bookkeeping: 0,
                page_faults: 0,
                involuntary_switches: 3,
                ended_early: None,
                below,
            });
        }
        self.add_intervals();
        self
    }

    fn add_intervals(&mut self) {
        let step = RATE.ticks(self.manifest.probe.interval_ns).0;
        for result in &self.manifest.results {
            let cpu = result.cpu;
            let of_cpu = || self.stalls.iter().filter(|s| s.cpu == cpu);
            for n in 0..result.end.since(result.start).0.div_ceil(step) {
                let (from, to) = (Ticks(BEGAN + n * step), Ticks(BEGAN + (n + 1) * step));
                let ended = || of_cpu().filter(|s| s.end > from && s.end <= to);
                self.intervals.push(IntervalRow {
                    cpu,
                    start: from,
                    end: to,
                    count: ended().count() as u64,
                    max: ended()
                        .map(|s| RATE.nanos(s.length()))
                        .max()
                        .unwrap_or_default(),
                    stolen: ended().map(|s| RATE.nanos(s.length())).sum(),
                });
            }
        }
    }

    /// The same for a wake-up probe with a deadline every millisecond. The pairs are (lateness in ns, count) of the
    /// punctual wake-ups of each CPU; the stalls are added to them.
    pub fn finish_wakeups(
        mut self,
        in_time: &[(u64, u64)],
        idle_control: Option<CpuId>,
    ) -> Scenario {
        let (period, threshold) = (Nanos(1_000_000), Nanos(50_000));
        self.manifest.probe.kind = "wakeup".into();
        self.manifest.probe.threshold_ns = threshold;
        self.manifest.probe.wakeup = Some(WakeupConditions {
            period_ns: period,
            hold_latency: false,
            idle_control,
        });
        let end = Ticks(BEGAN) + RATE.ticks(self.manifest.probe.duration_ns);
        for cpu in self.manifest.probe.cpus.iter() {
            let late: Vec<u64> = self
                .stalls
                .iter()
                .filter(|s| s.cpu == cpu)
                .map(|s| RATE.nanos(s.length()).0)
                .collect();
            let mut plain: std::collections::BTreeMap<u64, u64> = in_time.iter().copied().collect();
            for ns in &late {
                *plain.entry(*ns).or_default() += 1;
            }
            let mut corrected = plain.clone();
            for ns in &late {
                for k in 1..=ns / period.0 {
                    *corrected.entry(ns - k * period.0).or_default() += 1;
                }
            }
            let wakeup = WakeupResult {
                cpu,
                tid: 4000 + cpu.0 as i32,
                start: Ticks(BEGAN),
                end,
                wakeups: plain.values().sum(),
                missed: late.iter().map(|ns| ns / period.0).sum(),
                min: Nanos(*plain.keys().next().unwrap()),
                max: Nanos(*plain.keys().last().unwrap()),
                sum: Nanos(plain.iter().map(|(ns, n)| ns * n).sum()),
                plain: plain.into_iter().collect(),
                corrected: corrected.into_iter().collect(),
                stalls: late.len() as u64,
                dropped_records: 0,
                ended_early: None,
            };
            self.manifest
                .results
                .push(wakeup.as_probe_result(threshold, end, RATE));
            self.manifest.wakeups.push(wakeup);
        }
        self.add_intervals();
        self
    }

    pub fn summary(&self) -> RunSummary {
        self.summed_up(SummaryBuilder::new(&self.manifest))
    }

    /// With the default search of a report.
    pub fn summary_with_periods(&self) -> RunSummary {
        self.summed_up(SummaryBuilder::new(&self.manifest).periods(Effort::BRIEF))
    }

    fn summed_up(&self, mut builder: SummaryBuilder<'_>) -> RunSummary {
        for (stall, attribution) in self.stalls.iter().zip(&self.attributions) {
            builder.stall(stall);
            if self.manifest.attributed {
                builder.attribution(attribution);
            }
        }
        for row in &self.intervals {
            builder.interval(row);
        }
        builder.finish()
    }
}

fn manifest(cpus: CpuSet) -> RunManifest {
    let reading = |ticks| ClockReading {
        ticks: Ticks(ticks),
        monotonic_raw_ns: ticks * 10 / 26,
        realtime_ns: 1_795_213_189_826_000_000 + (ticks - BEGAN) * 10 / 26,
        boottime_ns: None,
        width_ticks: 120,
    };
    RunManifest {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        recorder_pid: None,
        id: "7k2m1q".into(),
        label: "BASELINE".into(),
        command_line: vec!["jitterscope".into(), "record".into()],
        host: HostFacts {
            hostname: "box".into(),
            kernel_release: "6.18.44".into(),
            cpu_model: "Intel(R) Xeon(R) Processor @ 2.60GHz".into(),
            hypervisor: Some("KVMKVMKVM\0\0\0".into()),
            ..HostFacts::default()
        },
        clock: ClockKind::Tsc,
        rate: RATE,
        clock_start: reading(BEGAN),
        clock_end: reading(2 * BEGAN),
        probe: ProbeSettings {
            kind: "spin".into(),
            cpus,
            cpus_chosen_because: None,
            duration_ns: Nanos(10_000_000_000),
            warmup_ns: Nanos(500_000_000),
            threshold_ns: Nanos(300),
            clock_costs: None,
            interval_ns: Nanos(1_000_000_000),
            fifo_priority: None,
            wakeup: None,
            event_grain: EventGrain::All,
        },
        results: Vec::new(),
        wakeups: Vec::new(),
        threads: Vec::new(),
        pipeline: None,
        passive: Vec::new(),
        attributed: true,
        sources: vec![
            source("tracefs", SourceStatus::Available, 0),
            source("senders", SourceStatus::Available, 0),
        ],
        counters: Vec::new(),
        edge_costs: Vec::new(),
        sleeping_works: Vec::new(),
        senders_dropped: 0,
        events_in_gaps: EventsInGaps {
            events: 39_222,
            inside: 39_222,
            too_short: 0,
            control_events: 39_222,
            control_inside: 340,
        },
        self_noise: SelfNoise {
            helper_cpus: [CpuId(200)].into_iter().collect(),
            helper_cpu_ns: Nanos(212_000_000),
            peak_rss_bytes: 10_276_044,
            entry_cost_ns: Nanos(212),
            exit_cost_ns: Nanos(148),
            cost_samples: 412,
            events: None,
        },
        trace: StoredTrace {
            bytes: 12_912_044,
            complete: true,
            limit_bytes: 256 << 20,
        },
        interrupted: false,
        killed: false,
        moment: None,
        profile: None,
        imported: None,
        added: None,
        asked: Vec::new(),
        warnings: Vec::new(),
    }
}

pub fn source(name: &str, status: SourceStatus, lost: u64) -> SourceReport {
    SourceReport {
        lost,
        ..SourceReport::of_status(name, status)
    }
}

/// Ticks, a busy thread, a writeback worker, membarriers, a few unusual culprits, and a hypervisor.
pub fn busy(cpus: &[u32]) -> Scenario {
    let mut s = Scenario::new(cpus);
    for &cpu in cpus {
        for n in 0..2500u64 {
            let late = 4_000 + n * 37 % 9_000;
            let tick = 2_100 + n * 13 % 700;
            s.stall(
                cpu,
                n * 4000 + 11 + u64::from(cpu) * 97,
                vec![
                    part(verdict(CulpritKind::Hypervisor, "late interrupt"), late),
                    part(timer("tick_nohz_handler"), tick),
                    part(verdict(CulpritKind::Unresolved, "after last event"), 260),
                ],
            );
        }
        for n in 0..12u64 {
            s.stall(
                cpu,
                n * 800_000 + 2_011,
                vec![
                    part(verdict(CulpritKind::Switch, "context switch"), 900),
                    sent_by(
                        part(
                            of_class("evil", 4242, SchedClass::RealTime(49)),
                            1_200_000 + n * 9_100,
                        ),
                        "cron",
                        3,
                        0,
                        None,
                    ),
                    part(timer("hrtimer_wakeup"), 1_900),
                    part(Subject::Ipi("reschedule".into()), 800),
                    part(Subject::Softirq(7), 1_100),
                ],
            );
            s.stall(
                cpu,
                n * 800_000 + 40_011,
                vec![
                    part(verdict(CulpritKind::Switch, "context switch"), 1_100),
                    sent_by(
                        part(
                            work("wb_workfn", Some("kworker/u8:2"), Some("writeback")),
                            81_000 + n,
                        ),
                        "postgres",
                        911 + n as i32 % 3,
                        0,
                        Some("__mark_inode_dirty"),
                    ),
                ],
            );
        }
        for n in 0..300u64 {
            s.stall(
                cpu,
                n * 33_000 + 555,
                vec![sent_by(
                    part(Subject::Call("ipi_mb".into()), 1_400 + n),
                    "java",
                    777,
                    0,
                    Some("membarrier_private_expedited"),
                )],
            );
        }
        s.stall(
            cpu,
            77,
            vec![part(
                verdict(CulpritKind::Hypervisor, "CPU taken"),
                1_300_000,
            )],
        );
        s.stall(
            cpu,
            7_000,
            vec![part(verdict(CulpritKind::Loss, "trace data lost"), 8_000)],
        );
        s.stall(
            cpu,
            17_000,
            vec![part(
                interrupt(25, "a-device-with-quite-a-long-name-indeed-rx-0"),
                9_000,
            )],
        );
        for n in 0..14u64 {
            s.stall(
                cpu,
                100_000 + n * 50,
                vec![part(thread(&format!("cc1plus-{n}"), 9), 3_000 + n)],
            );
        }
    }
    s.finish()
}

/// Wake-ups that were late for each possible reason.
pub fn late(cpus: &[u32], idle_control: Option<u32>) -> Scenario {
    let mut s = Scenario::new(cpus);
    for &cpu in cpus {
        let busy = Some(cpu) != idle_control;
        let mut late = |at_us, parts: Vec<(&str, Subject, u64)>| {
            let part = |(phase, subject, net)| {
                let mut part = part(subject, net);
                part.phase = Some(Phase::from_word(phase));
                part
            };
            s.stall(cpu, at_us, parts.into_iter().map(part).collect());
        };
        for n in 0..120u64 {
            late(
                n * 80_000 + 1000 + u64::from(cpu) * 7,
                vec![
                    (
                        "idle exit",
                        Subject::Verdict(Verdict::IdleExit, About::IdleState(3)),
                        46_000 + n * 31,
                    ),
                    (
                        "interrupt",
                        Subject::Timer {
                            function: None,
                            source: None,
                        },
                        2_900,
                    ),
                    (
                        "dispatch",
                        verdict(CulpritKind::Switch, "leaving idle"),
                        3_100,
                    ),
                ],
            );
        }
        if !busy {
            continue;
        }
        for n in 0..40u64 {
            late(
                n * 240_000 + 5000,
                vec![
                    ("late timer", late_while("postgres"), 9_000),
                    ("interrupt", Subject::Softirq(3), 61_000),
                    (
                        "run-queue wait",
                        of_class("postgres", 911, SchedClass::of_priority(120)),
                        700_000 + n * 20_000,
                    ),
                    (
                        "dispatch",
                        verdict(CulpritKind::Switch, "return to the thread"),
                        1_200,
                    ),
                ],
            );
        }
        for n in 0..9u64 {
            late(
                n * 1_000_000 + 44_000,
                vec![
                    ("late timer", late_while("a-thread-of-a-name"), 61_000),
                    (
                        "higher priority",
                        worker("kworker/1:1H", 77, SchedClass::of_priority(100)),
                        4_100_000 + n,
                    ),
                ],
            );
        }
    }
    let in_time = [
        (21_900, 11),
        (31_000, 4_000),
        (38_000, 5_000),
        (49_000, 600),
    ];
    s.finish_wakeups(&in_time, idle_control.map(CpuId))
}
