use super::super::dictionary::TickOf;
use super::*;
use jitterscope_testing::SplitMix64;

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

/// Whether a planted period is found in noise as the best one.
fn finds(random: &mut Random, period: f64, [jitter, keep, noise]: [f64; 3]) -> Result<(), String> {
    let span = (period * 80.0).clamp(1.0, 120.0);
    let mut times = random.pulses(period, jitter, keep, span);
    times.extend(random.poisson(0.01 + noise / period, span));
    let found = search(times, span);
    match found.first().is_some_and(|best| near(best, period)) {
        true => Ok(()),
        false => Err(format!("{period} s, jitter {jitter}, keep {keep}, noise {noise}: {found:?}")),
    }
}

/// At noise as strong as the pulses an overtone is taken for the period now and then: in 2 of the first 1,000 of these
/// cases, and in none of the first 100.
#[test]
fn a_planted_period_is_found_in_noise() {
    let mut random = Random(SplitMix64(1));
    let (cases, mut wrong) = (300, Vec::new());
    for case in 0..cases {
        let mut between = |low: f64, high: f64| low + (high - low) * random.0.uniform();
        let period = if case % 2 == 0 { between(0.003, 0.020) } else { between(0.05, 1.5) };
        let of = [between(0.0, 0.1), between(0.7, 1.0), between(0.0, 1.0)];
        wrong.extend(finds(&mut random, period, of).err());
        assert!(case >= 100 || wrong.is_empty(), "{wrong:#?}");
    }
    // At 2 in 1,000 there are 0.6 on average; beyond 3 lies less than one in two hundred. At 3 in 100 there are 9.
    assert!(wrong.len() <= 3, "{} of {cases}: {wrong:#?}", wrong.len());
    // What was once taken for something else.
    for (seed, period, of) in [
        (
            1_486_097_155_569_361_323,
            0.689_630_541_724_258_3,
            [0.081_104_474_060_002_74, 0.948_532_945_663_069_7, 0.235_721_794_661_519_57],
        ),
        (
            4_785_108_441_604_806_631,
            0.013_524_987_737_882_698,
            [0.015_773_107_922_239_637, 0.750_437_731_979_804_5, 0.963_574_841_465_053],
        ),
    ] {
        finds(&mut Random(SplitMix64(seed)), period, of).unwrap();
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
    assert!(found[0].known.unwrap().name(None, TickOf::default()).unwrap().contains("vmstat"));
}

#[test]
fn two_periods_in_one_series_are_told_apart() {
    let mut random = Random(SplitMix64(3));
    let mut times = random.pulses(0.004, 0.002, 1.0, 20.0);
    times.extend(random.pulses(0.37, 0.002, 1.0, 20.0));
    let found = search(times, 20.0);
    assert!(
        near(&found[0], 0.004)
            && found[0].known.unwrap().name(None, TickOf::default()).unwrap().contains("HZ=250"),
        "{found:?}"
    );
    assert!(found.iter().any(|period| near(period, 0.37)), "{found:?}");
}

#[test]
fn short_or_empty_series_say_nothing() {
    assert!(search(Vec::new(), 10.0).is_empty());
    assert!(search(vec![1.0, 2.0, 3.0], 10.0).is_empty());
    assert!(search((0..100).map(f64::from).collect(), 0.0).is_empty());
    assert!(search(vec![1.0; 100], 10.0).is_empty());
}
