use super::*;
use jitterscope_testing::SplitMix64;
use proptest::prelude::*;

/// Points in time that a seed repeats.
struct Random(SplitMix64);

impl Random {
    /// A Poisson process of this many events a second.
    fn poisson(&mut self, rate: f64, span: f64) -> Vec<f64> {
        let (mut time, mut times) = (0.0, Vec::new());
        loop {
            time -= (1.0 - self.0.uniform()).ln() / rate;
            if time >= span {
                return times;
            }
            times.push(time);
        }
    }

    fn pulses(&mut self, period: f64, jitter: f64, keep: f64, span: f64) -> Vec<f64> {
        let phase = self.0.uniform() * period;
        let cycles = ((span - phase) / period) as usize;
        (0..cycles)
            .filter_map(|n| {
                let time = phase + (n as f64 + jitter * (self.0.uniform() - 0.5)) * period;
                (self.0.uniform() < keep && time >= 0.0).then_some(time)
            })
            .collect()
    }
}

fn nanos(mut times: Vec<f64>) -> Vec<Nanos> {
    times.sort_by(f64::total_cmp);
    times.into_iter().map(|time| Nanos((time * 1e9) as u64)).collect()
}

fn search(times: Vec<f64>, span: f64) -> Vec<Period> {
    find(&nanos(times), Nanos((span * 1e9) as u64), SearchSettings::default())
}

fn near(period: &Period, wanted: f64) -> bool {
    (period.period.as_secs_f64() / wanted - 1.0).abs() < 0.002
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_planted_period_is_found_in_noise(
        seed: u64,
        period_ms in prop_oneof![3.0f64..20.0, 50.0f64..1500.0],
        jitter in 0.0f64..0.1,
        keep in 0.7f64..1.0,
        noise in 0.0f64..1.0,
    ) {
        let mut random = Random(SplitMix64(seed));
        let period = period_ms / 1e3;
        let span = (period * 80.0).clamp(1.0, 120.0);
        let mut times = random.pulses(period, jitter, keep, span);
        times.extend(random.poisson(0.01 + noise / period, span));
        let found = search(times, span);
        prop_assert!(found.first().is_some_and(|best| near(best, period)), "{period} {found:?}");
    }
}

#[test]
fn poisson_noise_has_no_period_at_the_stated_rate() {
    let mut random = Random(SplitMix64(7));
    let settings = SearchSettings { false_alarm: 0.05, ..SearchSettings::default() };
    let trials = 150;
    let mut alarms = 0;
    for trial in 0..trials {
        let span = [2.0, 10.0][trial % 2];
        let times = nanos(random.poisson([8.0, 40.0, 150.0][trial % 3], span));
        alarms += usize::from(!find(&times, Nanos((span * 1e9) as u64), settings).is_empty());
    }
    // 7.5 of 150 are allowed on average; beyond 17 lies less than one in a thousand.
    assert!(alarms <= 17, "{alarms} false alarms in {trials} trials at 5 %");
}

#[test]
fn overtones_and_fractions_are_not_told() {
    let mut random = Random(SplitMix64(1));
    let found = search(random.pulses(1.0, 0.001, 1.0, 60.0), 60.0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(near(&found[0], 1.0) && found[0].hit > 0.95, "{found:?}");
    assert!(found[0].known.unwrap().name.contains("vmstat"));
}

#[test]
fn two_periods_in_one_series_are_told_apart() {
    let mut random = Random(SplitMix64(3));
    let mut times = random.pulses(0.004, 0.002, 1.0, 20.0);
    times.extend(random.pulses(0.37, 0.002, 1.0, 20.0));
    let found = search(times, 20.0);
    assert!(near(&found[0], 0.004) && found[0].known.unwrap().name.contains("HZ=250"), "{found:?}");
    assert!(found.iter().any(|period| near(period, 0.37)), "{found:?}");
}

#[test]
fn short_or_empty_series_say_nothing() {
    assert!(search(Vec::new(), 10.0).is_empty());
    assert!(search(vec![1.0, 2.0, 3.0], 10.0).is_empty());
    assert!(search((0..100).map(f64::from).collect(), 0.0).is_empty());
    assert!(search(vec![1.0; 100], 10.0).is_empty());
}
