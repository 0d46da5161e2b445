use super::*;
use jitterscope_model::RateSource;
use proptest::prelude::*;

/// Ticks of the simulated probe's clock per second, and of the file's.
const PROBE_HZ: u64 = 2_600_000_000;
const FILE_HZ: u64 = 1_000_000_000;
const SECOND: u64 = PROBE_HZ;

/// Two clocks: the file's reads `zero` when the probe's reads 0, and is `ppm` faster than stated.
#[derive(Clone, Copy)]
struct Clocks {
    zero: u64,
    ppm: f64,
}

impl Clocks {
    fn file(self, probe: u64) -> Ticks {
        let since = probe as f64 / PROBE_HZ as f64 * FILE_HZ as f64 * (1.0 + self.ppm * 1e-6);
        Ticks(self.zero + since.round() as u64)
    }
}

fn rates() -> Rates {
    let rate = |hz| TickRate {
        hz,
        error_ppb: 0,
        source: RateSource::Exact,
    };
    Rates {
        file: rate(FILE_HZ),
        probe: rate(PROBE_HZ),
    }
}

/// Nobody stops a search.
const GOES_ON: fn() -> bool = || false;

/// Random numbers with a known beginning.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }
}

/// What happens on a CPU.
#[derive(Clone, Copy)]
struct Load {
    /// Ticks of the kernel, per second.
    ticks: u64,
    /// Other interruptions, per second on average.
    others: u64,
    /// Of a thousand interruptions, so many are records without a stall, or stalls without a record.
    odd: u64,
    /// The longest interruption, microseconds.
    longest: u64,
}

/// Stalls of `seconds` from `begin` on, and their records on the file's clock.
fn simulated(
    load: Load,
    clocks: impl Fn(u64) -> Ticks,
    (begin, seconds): (u64, u64),
    random: &mut Random,
) -> CpuTimes {
    let mut starts = Vec::new();
    if let Some(period) = SECOND.checked_div(load.ticks) {
        let number = seconds * load.ticks;
        starts.extend((0..number).map(|n| begin + n * period + random.below(SECOND / 5_000_000)));
    }
    starts.extend((0..seconds * load.others).map(|_| begin + random.below(seconds * SECOND)));
    starts.sort_unstable();
    let mut times = CpuTimes::default();
    let mut busy_until = 0;
    for start in starts {
        if start < busy_until {
            continue;
        }
        // 2 us or more, and 0.2 to 2 us at each edge.
        let edge = |random: &mut Random| SECOND / 5_000_000 + random.below(SECOND / 550_000);
        let (lead, trail) = (edge(random), edge(random));
        let length = SECOND / 500_000 + random.below(SECOND / 1_000_000 * (load.longest - 2));
        let end = start + lead + length + trail;
        busy_until = end + SECOND / 1_000_000;
        let kind = random.below(1000);
        if kind >= load.odd {
            times.stalls.push((Ticks(start), Ticks(end)));
        }
        if kind >= load.odd || kind.is_multiple_of(2) {
            let of = [
                start + lead,
                start + lead + length / 2,
                start + lead + length,
            ];
            times.records.extend(of.map(&clocks));
        }
    }
    times
}

fn cpus(load: Load, clocks: Clocks, seconds: u64, seed: u64) -> Vec<CpuTimes> {
    let mut random = Random(seed);
    let span = (7 * SECOND, seconds);
    (0..2)
        .map(|_| simulated(load, |at| clocks.file(at), span, &mut random))
        .collect()
}

const USUAL: Load = Load {
    ticks: 250,
    others: 120,
    odd: 30,
    longest: 20,
};

/// The largest error of a map, in ticks of the probe.
fn worst(map: &ClockMap, clocks: Clocks, seconds: u64) -> u64 {
    let at = |n: u64| 7 * SECOND + n * seconds * SECOND / 1000;
    let error = |n| map.probe_time(clocks.file(at(n))).0.abs_diff(at(n));
    (0..=1000).map(error).max().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_clock_with_any_offset_and_drift_is_found_without_a_guess(
        zero in 1u64 << 40..1 << 60,
        ppm in -400.0..400.0,
        seed in 1u64..u64::MAX,
        seconds in 4u64..20,
    ) {
        let clocks = Clocks { zero, ppm };
        let cpus = cpus(USUAL, clocks, seconds, seed);
        let found = align(&cpus, rates(), None, &GOES_ON).unwrap();
        let error = rates().probe.nanos(Ticks(worst(&found.map, clocks, seconds)));
        prop_assert!(error <= Nanos(2_000), "{error} off, said {}", found.error);
        prop_assert!(found.inside * 100 >= found.records * 96, "{found:?}");
        prop_assert!(found.by_chance * 10 < found.records, "{found:?}");
        prop_assert!((found.drift_ppb as f64 / 1e3 - ppm).abs() < 1.0, "{} {ppm}", found.drift_ppb);
    }
}

#[test]
fn the_same_clock_stays_exactly_the_same() {
    let mut random = Random(5);
    let of = simulated(USUAL, Ticks, (3 * SECOND, 30), &mut random);
    // Whatever its rate is said to be.
    let stated = TickRate {
        hz: PROBE_HZ + 1234,
        ..rates().probe
    };
    let same = Rates {
        file: stated,
        probe: rates().probe,
    };
    let guess = Guess {
        file: Ticks(0),
        probe: Ticks(0),
        within: Nanos::ZERO,
    };
    let found = align(&[of], same, Some(guess), &GOES_ON).unwrap();
    for at in [0, SECOND, 10 * SECOND, 100 * SECOND] {
        assert_eq!(found.map.probe_time(Ticks(at)), Ticks(at));
    }
    assert_eq!(
        found.drift_ppb,
        1234 * 1_000_000_000 / -(PROBE_HZ as i64) - 1
    );
}

#[test]
fn a_drift_that_changes_is_followed() {
    // NTP corrects the file's clock from the 30th second on.
    let (before, after) = (12e-6, -25e-6);
    let turn = 37 * SECOND;
    let file = |probe: u64| {
        let slow = probe.min(turn) as f64 * before + probe.saturating_sub(turn) as f64 * after;
        let since = (probe as f64 + slow) / PROBE_HZ as f64 * FILE_HZ as f64;
        Ticks((1 << 50) + since.round() as u64)
    };
    let mut random = Random(11);
    let of = simulated(USUAL, file, (7 * SECOND, 60), &mut random);
    let found = align(&[of], rates(), None, &GOES_ON).unwrap();
    let worst = (0..600).map(|n| {
        let at = 7 * SECOND + n * SECOND / 10;
        found.map.probe_time(file(at)).0.abs_diff(at)
    });
    let worst = rates().probe.nanos(Ticks(worst.max().unwrap()));
    // Within the second of the turn, the map is a line.
    assert!(worst < Nanos(40_000), "{worst}");
    assert!(found.inside * 100 > found.records * 90, "{found:?}");
}

#[test]
fn a_guess_decides_between_ticks_and_without_one_they_are_refused() {
    let clocks = Clocks {
        zero: 1 << 45,
        ppm: 20.0,
    };
    let load = Load {
        ticks: 250,
        others: 0,
        odd: 0,
        longest: 2,
    };
    let mut random = Random(23);
    let of = [simulated(
        load,
        |at| clocks.file(at),
        (7 * SECOND, 10),
        &mut random,
    )];
    let refused = align(&of, rates(), None, &GOES_ON).unwrap_err();
    assert!(matches!(refused, AlignError::Ambiguous { .. }), "{refused}");
    let guess = Guess {
        file: clocks.file(9 * SECOND),
        probe: Ticks(9 * SECOND + SECOND / 2000),
        within: Nanos(1_000_000),
    };
    let found = align(&of, rates(), Some(guess), &GOES_ON).unwrap();
    assert!(
        worst(&found.map, clocks, 10) < SECOND / 500_000,
        "{found:?}"
    );
}

#[test]
fn records_of_another_time_are_refused() {
    let clocks = Clocks {
        zero: 1 << 45,
        ppm: 0.0,
    };
    let ours = cpus(USUAL, clocks, 10, 3);
    let others = cpus(USUAL, clocks, 10, 4);
    let mixed: Vec<CpuTimes> = ours
        .into_iter()
        .zip(others)
        .map(|(own, other)| CpuTimes {
            stalls: own.stalls,
            records: other.records,
        })
        .collect();
    let refused = align(&mixed, rates(), None, &GOES_ON).unwrap_err();
    assert!(
        matches!(
            refused,
            AlignError::Unrelated { .. } | AlignError::Ambiguous { .. }
        ),
        "{refused}"
    );
}

#[test]
fn too_little_is_said_to_be_too_little() {
    let few = CpuTimes {
        stalls: vec![(Ticks(5), Ticks(9)); 3],
        records: vec![Ticks(7); 3],
    };
    let refused = align(&[few], rates(), None, &GOES_ON).unwrap_err();
    assert_eq!(
        refused,
        AlignError::TooFew {
            records: 3,
            stalls: 3
        }
    );
    let none = align(&[], rates(), None, &GOES_ON).unwrap_err();
    assert_eq!(
        none,
        AlignError::TooFew {
            records: 0,
            stalls: 0
        }
    );
}

#[test]
fn a_busy_cpu_and_a_quiet_one_are_aligned() {
    let clocks = Clocks {
        zero: 1 << 45,
        ppm: -33.0,
    };
    // 20,000 stalls per second; and 6 per second.
    for (ticks, others, seconds) in [(1000, 19_000, 1), (0, 6, 40)] {
        let load = Load {
            ticks,
            others,
            odd: 30,
            longest: 20,
        };
        let mut random = Random(77);
        let of = [simulated(
            load,
            |at| clocks.file(at),
            (7 * SECOND, seconds),
            &mut random,
        )];
        let found = align(&of, rates(), None, &GOES_ON).unwrap();
        let error = rates()
            .probe
            .nanos(Ticks(worst(&found.map, clocks, seconds)));
        assert!(error < Nanos(12_000), "{others}: {error}, {found:?}");
    }
}

#[test]
fn a_file_that_is_longer_than_the_run_or_shorter_is_aligned() {
    let clocks = Clocks {
        zero: 1 << 45,
        ppm: 18.0,
    };
    let mut random = Random(91);
    let begin = 30 * SECOND;
    let all = simulated(USUAL, |at| clocks.file(at), (begin, 30), &mut random);
    let part = |(from, to): (u64, u64), (first, last): (u64, u64)| {
        let at = |second: u64| Ticks(begin + second * SECOND);
        let within = |stall: &(Ticks, Ticks)| at(from) <= stall.0 && stall.1 <= at(to);
        let record = |at: &Ticks| {
            clocks.file(begin + first * SECOND) <= *at && *at <= clocks.file(begin + last * SECOND)
        };
        CpuTimes {
            stalls: all.stalls.iter().copied().filter(within).collect(),
            records: all.records.iter().copied().filter(record).collect(),
        }
    };
    // The run within the file, before it, after it, and the file within the run.
    for (run, file) in [
        ((10, 20), (0, 30)),
        ((0, 10), (3, 30)),
        ((15, 30), (0, 20)),
        ((0, 30), (10, 15)),
    ] {
        let found = align(&[part(run, file)], rates(), None, &GOES_ON).unwrap();
        let (from, to) = (run.0.max(file.0), run.1.min(file.1));
        let at = |n: u64| begin + from * SECOND + n * (to - from) * SECOND / 100;
        let error = |n| found.map.probe_time(clocks.file(at(n))).0.abs_diff(at(n));
        let worst = rates()
            .probe
            .nanos(Ticks((0..=100).map(error).max().unwrap()));
        assert!(worst < Nanos(3_000), "{run:?} {file:?}: {worst}");
        assert!(
            found.unfit.is_empty(),
            "{run:?} {file:?}: {:?}",
            found.unfit
        );
    }
}

#[test]
fn a_step_of_the_clock_leaves_no_wrong_times() {
    // The file's clock loses half a second in the 30th second.
    let turn = 37 * SECOND;
    let file = |probe: u64| {
        let since = probe as f64 / PROBE_HZ as f64 * FILE_HZ as f64;
        let step = if probe < turn { 0 } else { FILE_HZ / 2 };
        Ticks((1 << 50) + since.round() as u64 - step)
    };
    let mut random = Random(12);
    let mut of = simulated(USUAL, file, (7 * SECOND, 60), &mut random);
    of.records.sort_unstable();
    let found = align(&[of], rates(), None, &GOES_ON);
    // Either half of the file is not aligned, or the file is refused.
    if let Ok(found) = found {
        let wrong = |probe: u64| {
            let at = file(probe);
            let is_unfit = found
                .unfit
                .iter()
                .any(|(from, to)| *from <= at && at <= *to);
            !is_unfit && found.map.probe_time(at).0.abs_diff(probe) > SECOND / 20_000
        };
        let wrong = (0..600)
            .filter(|n| wrong(7 * SECOND + n * SECOND / 10))
            .count();
        assert!(wrong <= 30, "{wrong} of 600");
    }
}

#[test]
fn a_search_can_be_stopped() {
    let clocks = Clocks {
        zero: 1 << 45,
        ppm: 18.0,
    };
    let cpus = cpus(USUAL, clocks, 4, 9);
    let stopped = align(&cpus, rates(), None, &|| true).unwrap_err();
    assert_eq!(stopped, AlignError::Stopped);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn times_without_sense_are_refused_or_mapped(
        stalls in prop::collection::vec((any::<u64>(), any::<u64>()), 20..60),
        records in prop::collection::vec(any::<u64>(), 20..60),
        // Far apart, or within some seconds.
        near in prop::sample::select(vec![0, 28, 30, 32, 40]),
        file_hz in 1u64..100_000_000_000,
        at in any::<u64>(),
    ) {
        let mut stalls: Vec<(Ticks, Ticks)> = stalls
            .into_iter()
            .map(|(a, b)| (a >> near, b >> near))
            .map(|(a, b)| (Ticks(a.min(b)), Ticks(a.max(b))))
            .collect();
        stalls.sort_unstable();
        let mut records: Vec<Ticks> = records.into_iter().map(|at| Ticks(at >> near)).collect();
        records.sort_unstable();
        let rates = Rates {
            file: TickRate { hz: file_hz, ..rates().file },
            ..rates()
        };
        let asked = std::cell::Cell::new(0);
        // Long searches end.
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > 4
        };
        if let Ok(found) = align(&[CpuTimes { stalls, records }], rates, None, &stop) {
            let _ = found.map.probe_time(Ticks(at));
        }
    }
}
