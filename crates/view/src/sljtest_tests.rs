use super::*;
use jitterscope_model::CpuId;

const DEFAULTS: SljSettings = SljSettings {
    bins: 20,
    knee: 50,
    min: 10,
    sum: false,
    width: 80,
};

fn rate() -> TickRate {
    TickRate {
        hz: 2_992_580_000,
        ..TickRate::NANOSECONDS
    }
}

/// A result of these deltas; those from 100 ticks on are stalls.
fn result(deltas: &[(u64, u64)]) -> ProbeResult {
    let sum = |f: fn(u128) -> u128| {
        deltas
            .iter()
            .map(|(d, n)| f(u128::from(*d)) * u128::from(*n))
            .sum::<u128>()
    };
    let ticks = u64::try_from(sum(|d| d)).unwrap();
    ProbeResult {
        cpu: CpuId(0),
        tid: 1,
        start: Ticks(1000),
        end: Ticks(1000 + ticks),
        planned_end: Ticks(1000 + ticks),
        samples: deltas.iter().map(|(_, n)| n).sum(),
        sum_ticks: ticks,
        sum_squares: sum(|d| d * d),
        min_ticks: deltas.iter().map(|(d, _)| *d).min().unwrap_or(0),
        max_ticks: deltas.iter().map(|(d, _)| *d).max().unwrap_or(0),
        threshold_ticks: 100,
        below: deltas
            .iter()
            .filter(|(d, _)| *d < 100)
            .map(|(d, n)| (*d as u32, *n))
            .collect(),
        above: deltas.iter().filter(|(d, _)| *d >= 100).copied().collect(),
        stalls: 0,
        stalled_ticks: 0,
        dropped_records: 0,
        own_bookkeeping: 0,
        page_faults: 0,
        involuntary_switches: 0,
        ended_early: None,
    }
}

fn screen(settings: SljSettings, deltas: &[(u64, u64)], outliers: Option<OutlierBuffer>) -> String {
    let result = result(deltas);
    let mut bins = DeltaBins::new(settings.bins, Ticks(settings.min), Ticks(settings.knee));
    bins.add_below(&result);
    bins.add_above(&result);
    render(settings, &bins, &result, rate(), outliers)
}

/// The published example: a quiet server.
const QUIET: [(u64, u64); 5] = [
    (36, 6_997_631),
    (46, 9_634_329),
    (900, 2),
    (4000, 36),
    (6984, 2),
];

#[test]
fn the_documents_example_is_reproduced() {
    let settings = SljSettings {
        min: 30,
        ..DEFAULTS
    };
    let expected = "\
Time    Ticks    Count        Percent    Cumulative  Graph ln(Count-e)
10.7ns  32       0             0.0000%     0.0000%
11.4ns  34       0             0.0000%     0.0000%
  12ns  36       6997631      42.0733%    42.0733%   **************************
12.7ns  38       0             0.0000%    42.0733%
13.4ns  40       0             0.0000%    42.0733%
  14ns  42       0             0.0000%    42.0733%
14.7ns  44       0             0.0000%    42.0733%
15.4ns  46       9634329      57.9265%    99.9998%   ***************************
  16ns  48       0             0.0000%    99.9998%
16.7ns  50       0             0.0000%    99.9998%

33.4ns  100      0             0.0000%    99.9998%
 167ns  500      0             0.0000%    99.9998%
 334ns  1000     2             0.0000%    99.9998%   *
1.67us  5000     36            0.0002%   100.0000%   ******
3.34us  10000    2             0.0000%   100.0000%   *
16.7us  50000    0             0.0000%   100.0000%
33.4us  100000   0             0.0000%   100.0000%
 167us  500000   0             0.0000%   100.0000%
 334us  1000000  0             0.0000%   100.0000%
Infini  Infinite 0             0.0000%   100.0000%

Timing was measured for 232ms, 100.00% of runtime
CPU speed measured  : 2992.58 MHz over 16632000 iterations
Min / Average / Std Dev / Max : 36 / 42 / 8 / 6984 ticks
Min / Average / Std Dev / Max : 12ns / 14ns / 2.68ns / 2.33us
Recommend decreasing knee setting from 50 ticks
";
    assert_eq!(screen(settings, &QUIET, None), expected);
}

#[test]
fn the_default_screen_has_28_lines_of_at_most_80_columns() {
    let cases: [&[(u64, u64)]; 4] = [
        &QUIET,
        // No advice.
        &[(12, 95), (60, 5)],
        &[(20, 10), (1_000_000_000, 15_000_000)],
        &[],
    ];
    for deltas in cases {
        for sum in [false, true] {
            let screen = screen(SljSettings { sum, ..DEFAULTS }, deltas, None);
            assert_eq!(screen.lines().count(), 28, "{screen}");
            assert!(screen.lines().all(|line| line.len() <= 80), "{screen}");
        }
    }
}

#[test]
fn advice_follows_the_lower_half_and_the_minimum() {
    let advises = |deltas: &[(u64, u64)], sum, words: &[&str]| {
        let text = screen(SljSettings { sum, ..DEFAULTS }, deltas, None);
        let found: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("Recommend"))
            .collect();
        assert_eq!(found, words, "{text}");
    };
    advises(&[(12, 95), (60, 5)], false, &[]);
    advises(
        &[(12, 80), (60, 20)],
        false,
        &["Recommend increasing knee setting from 50 ticks"],
    );
    advises(
        &[(20, 1000)],
        false,
        &[
            "Recommend min setting of 16 ticks",
            "Recommend decreasing knee setting from 50 ticks",
        ],
    );
    advises(
        &[(5, 95), (60, 5)],
        false,
        &["Recommend min setting of 4 ticks"],
    );
    // By sum, the few long ones weigh more.
    advises(
        &[(12, 95), (600, 5)],
        true,
        &["Recommend increasing knee setting from 50 ticks"],
    );
    let text = screen(
        DEFAULTS,
        &[(12, 95), (60, 5)],
        Some(OutlierBuffer {
            seen: 11,
            size: 10,
            knee_decides: true,
        }),
    );
    assert!(text.contains("increasing knee"), "{text}");
    let text = screen(
        DEFAULTS,
        &[(12, 95), (60, 5)],
        Some(OutlierBuffer {
            seen: 2,
            size: 10,
            knee_decides: true,
        }),
    );
    assert!(text.contains("decreasing knee"), "{text}");
    // A lower knee would not add outliers to the file, so it is not advised.
    let text = screen(
        DEFAULTS,
        &[(12, 95), (60, 5)],
        Some(OutlierBuffer {
            seen: 2,
            size: 10,
            knee_decides: false,
        }),
    );
    assert!(!text.contains("knee setting"), "{text}");
}

#[test]
fn sums_stand_under_their_heading_as_counts_do() {
    let row = |sum| {
        let text = screen(SljSettings { sum, ..DEFAULTS }, &QUIET, None);
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(
        row(true).replace("Sum  ", "Count").replace("Sum", "Count"),
        row(false)
    );
}

#[test]
fn the_screen_keeps_its_width_and_the_largest_bin_fills_it() {
    for width in [54, 80, 120] {
        let text = screen(SljSettings { width, ..DEFAULTS }, &QUIET, None);
        let longest = text
            .lines()
            .skip(1)
            .filter(|line| line.contains('*'))
            .map(str::len)
            .max();
        assert_eq!(longest, Some(width));
    }
}

#[test]
fn senseless_settings_are_refused() {
    let refused = |settings: SljSettings| settings.check().unwrap_err().to_string();
    assert!(
        refused(SljSettings {
            knee: 10,
            ..DEFAULTS
        })
        .contains("-k 10 must be greater than -m 10")
    );
    assert!(
        refused(SljSettings {
            knee: 19,
            ..DEFAULTS
        })
        .contains("at least half of -b 20")
    );
    assert!(
        refused(SljSettings {
            width: 53,
            ..DEFAULTS
        })
        .contains("54 to 120")
    );
    assert!(
        refused(SljSettings {
            width: 121,
            ..DEFAULTS
        })
        .contains("-w 121")
    );
    assert!(
        refused(SljSettings {
            bins: 7,
            ..DEFAULTS
        })
        .contains("even number")
    );
    assert_eq!(DEFAULTS.check(), Ok(()));
}

#[test]
fn times_have_three_digits_as_c_prints_them() {
    let shown = |nanos: f64| time(nanos, TickRate::NANOSECONDS);
    assert_eq!(
        [
            1.0, 12.04, 12.7, 999.4, 999.7, 3340.0, 1.5e8, 2.29e9, 9.999e11, 1e12
        ]
        .map(shown),
        [
            "   1ns", "  12ns", "12.7ns", " 999ns", "   1us", "3.34us", " 150ms", "2.29s", "1000s",
            "Infini"
        ]
    );
}

#[test]
fn outliers_are_in_order_of_time() {
    let rate = TickRate::NANOSECONDS;
    let ticks = [
        (Ticks(3_001_000), Ticks(2500)),
        (Ticks(1_501_000), Ticks(300)),
    ];
    assert_eq!(
        outlier_file(&ticks, Ticks(1000), rate),
        "1.500000, 0.300000\n3.000000, 2.500000\n"
    );
}
