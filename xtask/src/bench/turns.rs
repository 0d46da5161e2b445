//! Statistics of alternating turns.

use super::claim::Verdict;
use std::time::{Duration, Instant};

/// The median; for an even number the mean of the two middle values; NaN if empty.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle).copied().unwrap_or(f64::NAN);
    if values.len() % 2 == 1 {
        upper
    } else {
        middle
            .checked_sub(1)
            .map_or(upper, |at| (values[at] + upper) / 2.0)
    }
}

/// The factor, at least 1, by which neighbouring turns of one setting differ: the noise of the machine.
pub(super) fn noise(values: &[f64]) -> f64 {
    median(
        values
            .windows(2)
            .map(|pair| (pair[1] / pair[0]).max(pair[0] / pair[1]))
            .collect(),
    )
}

/// Pairs in order, each divided by its partner.
pub(super) fn ratios(values: &[f64], partners: &[f64]) -> Vec<f64> {
    values
        .iter()
        .zip(partners)
        .map(|(value, partner)| value / partner)
        .collect()
}

/// The verdict on a ratio. It is undecided if turns of the same setting differ by such a large factor, `noise`, that
/// the median of `turns`, which took `took`, hides `effect`, the relevant difference from 1. Otherwise `holds` decides.
pub(super) fn judged(
    holds: bool,
    effect: f64,
    noise: f64,
    (turns, took): (usize, Duration),
) -> Verdict {
    // The error of a median falls with the root of the number of turns.
    let needed = ((noise - 1.0) / effect).powi(2);
    match holds {
        _ if needed > turns as f64 => {
            let more = needed / turns.max(1) as f64;
            // If one turn is many times another, the time may exceed the range of a duration.
            let for_about = Duration::try_from_secs_f64(took.as_secs_f64() * more);
            Verdict::Noise {
                for_about: for_about.unwrap_or(Duration::MAX),
            }
        }
        true => Verdict::Holds,
        false => Verdict::Missed,
    }
}

/// Measures how long `work` takes.
pub(super) fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, Duration)> {
    let began = Instant::now();
    let done = work()?;
    Ok((done, began.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_two_in_the_middle() {
        assert_eq!(
            [
                median(vec![3.0, 1.0, 2.0]),
                median(vec![4.0, 1.0, 3.0, 2.0])
            ],
            [2.0, 2.5]
        );
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn where_noise_hides_the_effect_nothing_holds_and_nothing_is_missed() {
        let minute = Duration::from_secs(60);
        let judged = |holds, noise| judged(holds, 0.08, noise, (6, minute));
        assert_eq!(
            [judged(true, 1.01), judged(false, 1.01)],
            [Verdict::Holds, Verdict::Missed]
        );
        // Six turns hide at most 2.449 times the effect.
        assert_eq!(judged(true, 1.195), Verdict::Holds);
        for holds in [true, false] {
            assert!(matches!(judged(holds, 1.197), Verdict::Noise { .. }));
        }
        // Twice the noise needs four times the turns: noise of 0.4 for 0.08 needs 25 turns of 10 s.
        let Verdict::Noise { for_about } = judged(true, 1.4) else {
            panic!("that is hidden")
        };
        assert_eq!(for_about.as_secs_f64().round(), 250.0);
    }

    #[test]
    fn noise_is_a_factor_whichever_way_it_goes() {
        assert!((noise(&[1.0, 2.0, 1.0]) - 2.0).abs() < 1e-12);
        assert!((noise(&[3.0, 3.0]) - 1.0).abs() < 1e-12);
    }
}
