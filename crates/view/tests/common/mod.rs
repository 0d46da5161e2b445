//! Synthetic runs: rows and the manifest that a probe would have written with them.
#![allow(dead_code, reason = "each test uses its part")]

use jitterscope_analyze::periods::Effort;
use jitterscope_analyze::{RunSummary, SummaryBuilder};
use jitterscope_model::*;
use jitterscope_store::culprit_of_version_1;

pub const RATE: TickRate = TickRate {
    hz: 2_600_000_000,
    error_ppb: 12_000,
    source: RateSource::HypervisorCpuid,
};
const BEGAN: u64 = 26_000_000_000;

/// A run being made up.
pub struct Scenario {
    pub manifest: RunManifest,
    pub stalls: Vec<Stall>,
    pub attributions: Vec<Attribution>,
    pub intervals: Vec<IntervalRow>,
}

/// A culprit in the words of version 1, so that what a reader sees of old and new runs is held together.
pub fn part(kind: CulpritKind, name: &str, detail: &str, net: u64) -> Part {
    let (placement, confidence) = if kind.is_explained() {
        (Placement::Inside, Confidence::High)
    } else {
        (Placement::Lead, Confidence::Medium)
    };
    let subject = culprit_of_version_1(kind.as_str(), name, detail);
    Part {
        placement,
        confidence,
        ..Part::inside(subject, Nanos(net), Evidence::LocalTimerRecords)
    }
}

pub fn sent_by(mut part: Part, comm: &str, tid: i32, cpu: u32, via: Option<&str>) -> Part {
    std::sync::Arc::make_mut(&mut part.culprit).sender = Some(Sender {
        context: ExecutionContext::Thread,
        comm: Some(comm.into()),
        tid,
        tgid: None,
        cpu: CpuId(cpu),
        via: via.map(Into::into),
    });
    part
}

impl Scenario {
    /// Ten seconds on these CPUs, with no stall yet.
    pub fn new(cpus: &[u32]) -> Scenario {
        let set: CpuSet = cpus.iter().copied().map(CpuId).collect();
        Scenario {
            manifest: manifest(set),
            stalls: Vec::new(),
            attributions: Vec::new(),
            intervals: Vec::new(),
        }
    }

    /// A stall that begins so many microseconds into the run and is as long as its parts together.
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

    /// The probe's results and the intervals, from the stalls.
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

    /// The same of a wake-up probe with a deadline every millisecond: (lateness in ns, how often) of those
    /// that were in time, a CPU; the stalls are added to them.
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

    /// With what a report looks for unless asked otherwise.
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
        audit: MachineAudit::new(),
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
        warnings: Vec::new(),
    }
}

pub fn source(name: &str, status: SourceStatus, lost: u64) -> SourceReport {
    SourceReport {
        lost,
        ..SourceReport::of_status(name, status)
    }
}

/// Ticks, an evil thread, a writeback worker, membarriers, a few odd things, and a hypervisor.
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
                    part(
                        CulpritKind::Hypervisor,
                        "late interrupt",
                        "the CPU stood still before the interrupt was delivered",
                        late,
                    ),
                    part(
                        CulpritKind::Timer,
                        "tick_nohz_handler",
                        "hrtimer, local_timer interrupt",
                        tick,
                    ),
                    part(
                        CulpritKind::Unresolved,
                        "after last event",
                        "kernel exit, or the CPU was taken",
                        260,
                    ),
                ],
            );
        }
        for n in 0..12u64 {
            s.stall(
                cpu,
                n * 800_000 + 2_011,
                vec![
                    part(
                        CulpritKind::Switch,
                        "context switch",
                        "scheduler path beside sched_switch",
                        900,
                    ),
                    sent_by(
                        part(
                            CulpritKind::Thread,
                            "evil",
                            "pid 4242, real-time 49",
                            1_200_000 + n * 9_100,
                        ),
                        "cron",
                        3,
                        0,
                        None,
                    ),
                    part(
                        CulpritKind::Timer,
                        "hrtimer_wakeup",
                        "hrtimer, local_timer interrupt",
                        1_900,
                    ),
                    part(
                        CulpritKind::Ipi,
                        "reschedule",
                        "a task was woken for this CPU",
                        800,
                    ),
                    part(CulpritKind::Softirq, "SCHED", "vector 7", 1_100),
                ],
            );
            s.stall(
                cpu,
                n * 800_000 + 40_011,
                vec![
                    part(
                        CulpritKind::Switch,
                        "context switch",
                        "scheduler path beside sched_switch",
                        1_100,
                    ),
                    sent_by(
                        part(
                            CulpritKind::Kworker,
                            "wb_workfn",
                            "kworker/u8:2, workqueue writeback",
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
                    part(
                        CulpritKind::Ipi,
                        "ipi_mb",
                        "function call interrupt",
                        1_400 + n,
                    ),
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
                CulpritKind::Hypervisor,
                "CPU taken",
                "no kernel event inside, on a virtual machine",
                1_300_000,
            )],
        );
        s.stall(
            cpu,
            7_000,
            vec![part(
                CulpritKind::Loss,
                "trace data lost",
                "the ring buffer overran near this stall",
                8_000,
            )],
        );
        s.stall(
            cpu,
            17_000,
            vec![part(
                CulpritKind::Irq,
                "a-device-with-quite-a-long-name-indeed-rx-0",
                "irq 25",
                9_000,
            )],
        );
        for n in 0..14u64 {
            s.stall(
                cpu,
                100_000 + n * 50,
                vec![part(
                    CulpritKind::Thread,
                    &format!("cc1plus-{n}"),
                    "pid 9",
                    3_000 + n,
                )],
            );
        }
    }
    s.finish()
}

/// Wake-ups that were late for each of the reasons that there are.
pub fn late(cpus: &[u32], idle_control: Option<u32>) -> Scenario {
    let mut s = Scenario::new(cpus);
    for &cpu in cpus {
        let busy = Some(cpu) != idle_control;
        let mut late = |at_us, parts: &[(&str, CulpritKind, &str, &str, u64)]| {
            let part = |(phase, kind, name, detail, net): &(&str, CulpritKind, &str, &str, u64)| {
                let mut part = part(*kind, name, detail, *net);
                part.phase = Some(Phase::from_word(phase));
                part
            };
            s.stall(cpu, at_us, parts.iter().map(part).collect());
        };
        use CulpritKind::{Kworker, Softirq, Switch, Thread, Timer, Unresolved};
        for n in 0..120u64 {
            late(
                n * 80_000 + 1000 + u64::from(cpu) * 7,
                &[
                    (
                        "idle exit",
                        Switch,
                        "idle exit",
                        "idle state 3",
                        46_000 + n * 31,
                    ),
                    ("interrupt", Timer, "local_timer", "", 2_900),
                    ("dispatch", Switch, "leaving idle", "", 3_100),
                ],
            );
        }
        if !busy {
            continue;
        }
        for n in 0..40u64 {
            late(
                n * 240_000 + 5000,
                &[
                    (
                        "late timer",
                        Unresolved,
                        "late timer",
                        "while postgres ran",
                        9_000,
                    ),
                    ("interrupt", Softirq, "NET_RX", "", 61_000),
                    (
                        "run-queue wait",
                        Thread,
                        "postgres",
                        "pid 911, priority 120",
                        700_000 + n * 20_000,
                    ),
                    ("dispatch", Switch, "return to the thread", "", 1_200),
                ],
            );
        }
        for n in 0..9u64 {
            late(
                n * 1_000_000 + 44_000,
                &[
                    (
                        "late timer",
                        Unresolved,
                        "late timer",
                        "while a-thread-of-a-name ran",
                        61_000,
                    ),
                    (
                        "higher priority",
                        Kworker,
                        "kworker/1:1H",
                        "pid 77, priority 100",
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
