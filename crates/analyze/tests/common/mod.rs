//! Synthetic runs.
#![allow(dead_code, reason = "each test file uses a part of it")]

use jitterscope_model::*;

pub const RATE: TickRate = TickRate {
    hz: 2_600_000_000,
    error_ppb: 100,
    source: RateSource::Cpuid,
};

pub fn result(cpu: u32, stalls: &[u64]) -> ProbeResult {
    let below = vec![(18u32, 900_000u64), (20, 100_000)];
    let mut above: Vec<(u64, u64)> = stalls.iter().map(|s| (*s, 1)).collect();
    above.sort_unstable();
    let all = || {
        below
            .iter()
            .map(|(t, c)| (u64::from(*t), *c))
            .chain(above.iter().copied())
    };
    let sum: u64 = all().map(|(t, c)| t * c).sum();
    ProbeResult {
        cpu: CpuId(cpu),
        tid: 100 + cpu as i32,
        start: Ticks(1_000_000),
        end: Ticks(1_000_000 + sum),
        planned_end: Ticks(1_000_000 + sum),
        samples: all().map(|(_, c)| c).sum(),
        sum_ticks: sum,
        sum_squares: all()
            .map(|(t, c)| u128::from(t).pow(2) * u128::from(c))
            .sum(),
        min_ticks: 18,
        max_ticks: all().map(|(t, _)| t).max().unwrap(),
        threshold_ticks: 780,
        stalls: stalls.len() as u64,
        stalled_ticks: stalls.iter().sum(),
        below,
        above,
        dropped_records: 0,
        own_bookkeeping: 0,
        page_faults: 0,
        involuntary_switches: 3,
        ended_early: None,
    }
}

pub fn manifest(results: Vec<ProbeResult>, attributed: bool) -> RunManifest {
    RunManifest {
        schema_version: SCHEMA_VERSION,
        tool_version: "0.1.0".into(),
        recorder_pid: None,
        id: "abc123".into(),
        label: "TEST".into(),
        command_line: vec![],
        host: HostFacts::default(),
        clock: ClockKind::Tsc,
        rate: RATE,
        clock_start: ClockReading {
            ticks: Ticks(0),
            monotonic_raw_ns: 0,
            realtime_ns: 1_795_213_189_000_000_000,
            boottime_ns: None,
            width_ticks: 100,
        },
        clock_end: ClockReading {
            ticks: Ticks(26_000_000_000),
            monotonic_raw_ns: 10_000_000_000,
            realtime_ns: 1_795_213_199_000_000_000,
            boottime_ns: None,
            width_ticks: 100,
        },
        probe: ProbeSettings {
            kind: "spin".into(),
            cpus: results.iter().map(|r| r.cpu).collect(),
            cpus_chosen_because: None,
            duration_ns: Nanos(10_000_000_000),
            warmup_ns: Nanos(1),
            threshold_ns: Nanos(300),
            clock_costs: None,
            interval_ns: Nanos(1_000_000_000),
            fifo_priority: None,
            wakeup: None,
            event_grain: EventGrain::All,
        },
        results,
        wakeups: Vec::new(),
        threads: Vec::new(),
        passive: Vec::new(),
        pipeline: None,
        attributed,
        sources: vec![],
        counters: vec![],
        edge_costs: vec![],
        sleeping_works: vec![],
        senders_dropped: 0,
        events_in_gaps: EventsInGaps {
            events: 200,
            inside: 199,
            too_short: 0,
            control_events: 200,
            control_inside: 2,
        },
        self_noise: SelfNoise::default(),
        trace: StoredTrace::default(),
        interrupted: false,
        killed: false,
        moment: None,
        profile: None,
        imported: None,
        added: None,
        asked: Vec::new(),
        warnings: vec![],
    }
}

/// A wake-up measurement with this CPU as the idle control.
pub fn with_control(cpu: u32) -> WakeupConditions {
    let idle_control = Some(CpuId(cpu));
    WakeupConditions {
        period_ns: Nanos(1_000_000),
        hold_latency: false,
        idle_control,
    }
}

pub fn stall(id: u64, cpu: u32, start: u64, length: u64) -> Stall {
    let victim = ThreadRef {
        tid: 1,
        comm: Comm::new("js-spin"),
    };
    Stall {
        id: StallId(id),
        cpu: CpuId(cpu),
        victim,
        start: Ticks(start),
        end: Ticks(start + length),
    }
}

pub fn part(kind: CulpritKind, name: &str, net: u64) -> Part {
    let subject = match Verdict::parse(kind, name) {
        Some(verdict) => Subject::verdict(verdict),
        // An unknown kind with this name.
        None => Subject::Unknown {
            kind: kind.as_str().into(),
            name: name.into(),
            detail: "".into(),
        },
    };
    Part::inside(subject, Nanos(net), Evidence::SwitchRecords)
}
