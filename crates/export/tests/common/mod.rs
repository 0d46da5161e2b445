//! A small stored run with known content.
#![allow(dead_code)]

pub mod stored_rows;

use hdrhistogram::Histogram;
use jitterscope_model::{
    Attribution, ClockKind, ClockReading, Comm, CpuId, EventGrain, EventsInGaps, Evidence,
    HostFacts, IntervalRow, Nanos, Part, ProbeSettings, RunManifest, SCHEMA_VERSION, SelfNoise,
    Stall, StallId, StoredTrace, Subject, ThreadRef, TickRate, Ticks, TimerSource, Verdict,
};
use jitterscope_store::{RunReader, RunWriter};
use std::path::Path;

/// A tick is a nanosecond. The run begins at tick 1,000,000 and at this time since the epoch.
pub const EPOCH: u64 = 1_700_000_000_000_000_000;
const START: u64 = 1_000_000;
pub const INTERVALS: u64 = 3;
pub const STALLS_AN_INTERVAL: u64 = 50;

/// Stalls on two CPUs in turn, with lengths from 1 us.
pub fn stalls() -> Vec<(Stall, Attribution)> {
    (0..2 * INTERVALS * STALLS_AN_INTERVAL).map(stall).collect()
}

fn stall(n: u64) -> (Stall, Attribution) {
    let cpu = CpuId((n % 2) as u32);
    let length = 1000 + n * n * 7;
    let start = START + (n / 2) * (1_000_000_000 / STALLS_AN_INTERVAL) + 17;
    let stall = Stall {
        id: StallId(n),
        cpu,
        victim: ThreadRef {
            tid: 40 + n as i32 % 2,
            comm: Comm::new("js-spin, \"x\""),
        },
        start: Ticks(start),
        end: Ticks(start + length),
    };
    let part = |subject, net| Part::inside(subject, Nanos(net), Evidence::TimerRecords);
    let tick = Subject::Timer {
        function: Some("tick_sched_timer".into()),
        source: Some(TimerSource::Wheel),
    };
    let parts = vec![
        part(tick, length - 300),
        part(Subject::verdict(Verdict::OutsideThisKernel), 300),
    ];
    (
        stall,
        Attribution {
            stall: StallId(n),
            parts,
        },
    )
}

/// A short recorded run of a kind, with its trace.
pub fn recorded(kind: &str) -> RunReader {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures");
    RunReader::open(&fixtures.join(kind)).unwrap()
}

/// Writes the run below `runs` and opens it.
pub fn run(runs: &Path) -> RunReader {
    let clock = ClockReading {
        ticks: Ticks(START),
        monotonic_raw_ns: START,
        realtime_ns: EPOCH,
        boottime_ns: None,
        width_ticks: 0,
    };
    let rate = TickRate::NANOSECONDS;
    let mut writer = RunWriter::create(runs, "golden", EPOCH).unwrap();
    writer.begin(clock, rate).unwrap();
    for (stall, attribution) in stalls() {
        writer.stall(&stall).unwrap();
        writer.attribution(&attribution).unwrap();
    }
    for n in 0..INTERVALS {
        for cpu in [CpuId(0), CpuId(1)] {
            let (start, end) = (
                Ticks(START + n * 1_000_000_000),
                Ticks(START + (n + 1) * 1_000_000_000),
            );
            let mut lengths = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
            let mut row = IntervalRow {
                cpu,
                start,
                end,
                count: 0,
                max: Nanos(0),
                stolen: Nanos(0),
            };
            for (stall, _) in stalls()
                .iter()
                .filter(|(s, _)| s.cpu == cpu && s.end > start && s.end <= end)
            {
                let length = Nanos(stall.length().0);
                lengths.record(length.0).unwrap();
                row.count += 1;
                row.max = row.max.max(length);
                row.stolen += length;
            }
            writer.interval(&row).unwrap();
            writer
                .interval_histogram("spin", cpu, start, end, &lengths)
                .unwrap();
        }
    }
    let path = writer.finish(manifest(clock, rate)).unwrap();
    RunReader::open(&path).unwrap()
}

pub fn manifest(clock: ClockReading, rate: TickRate) -> RunManifest {
    RunManifest {
        schema_version: SCHEMA_VERSION,
        tool_version: "test".into(),
        recorder_pid: None,
        id: String::new(),
        label: "golden".into(),
        command_line: Vec::new(),
        host: HostFacts {
            hostname: "box".into(),
            ..HostFacts::default()
        },
        clock: ClockKind::MonotonicRaw,
        rate,
        clock_start: clock,
        clock_end: clock,
        probe: ProbeSettings {
            kind: "spin".into(),
            cpus: [CpuId(0), CpuId(1)].into_iter().collect(),
            cpus_chosen_because: None,
            duration_ns: Nanos(INTERVALS * 1_000_000_000),
            warmup_ns: Nanos(0),
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
        sources: Vec::new(),
        counters: Vec::new(),
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
        warnings: Vec::new(),
    }
}

/// What another tool says, on stdout and on stderr; `None` if it is not installed.
pub fn output_of(tool: &mut std::process::Command) -> Option<(String, String)> {
    let output = match tool.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let name = tool.get_program().to_string_lossy().into_owned();
            jitterscope_testing::skip(&format!("{name} is not installed"));
            return None;
        }
        output => output.unwrap(),
    };
    let [out, error] =
        [&output.stdout, &output.stderr].map(|of| String::from_utf8_lossy(of).into_owned());
    assert!(output.status.success(), "{error}");
    Some((out, error))
}
