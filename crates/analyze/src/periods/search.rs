//! Searches one series of times for periods.

use super::dictionary::{Known, frequencies, known};
use super::htest::{GRID, ln_probability, z_at, z_grid};
use super::regularity::{Regularity, judge};
use super::spectrum::{SHORTEST, candidates, highest_frequency};
use super::{blocks, intervals};
use jitterscope_model::{Nanos, PutInOrder};

/// The settings of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchSettings {
    pub shortest: Nanos,
    /// The probability of finding a period where there is none, over the whole search.
    pub false_alarm: f64,
    /// The number of searches; they share the false alarms.
    pub searches: usize,
}

impl Default for SearchSettings {
    fn default() -> SearchSettings {
        SearchSettings {
            shortest: SHORTEST,
            false_alarm: 0.001,
            searches: 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    pub period: Nanos,
    /// The natural logarithm of the probability of such a result without a period, over all trials.
    pub ln_probability: f64,
    /// Stalls in the pulse: the tenth of the period with most of them.
    pub in_pulse: u64,
    /// Examined stalls; those closer together than half the shortest period count as one.
    pub events: u64,
    /// The share of periods with a stall in the pulse.
    pub hit: f64,
    /// Whether a clock keeps it.
    pub regularity: Regularity,
    /// The known activity with this period.
    pub known: Option<Known>,
}

/// The fewest events and the fewest periods in the window for a result.
pub(super) const FEWEST: usize = 10;
const CYCLES: f64 = 5.0;
/// The largest number of periods of one series.
const MOST_PERIODS: usize = 4;
const CANDIDATES: usize = 24;
/// The pulse's share of the period.
const PULSE: f64 = 0.1;
/// A pulse in fewer of the periods than this is in step with something periodic, but is not periodic itself; it is
/// removed and not reported.
const LEAST_HIT: f64 = 0.2;
/// A named period has a stall in this share of its periods at least; with less it may be a fraction or a multiple of
/// another period that happens to have this length.
const NAMED_HIT: f64 = 0.5;
/// A pulse with no more than this times the stalls that a tenth of the period has by chance is not worth acting on:
/// bursts are less independent than the test assumes.
const LEAST_EXCESS: f64 = 1.5;
/// A fundamental has at least this share of the power of its strongest overtone: with noise, the strongest of many is
/// far above the mean...
const LEAST_POWER: f64 = 0.25;
/// ...and at least this power (Z², twice the logarithm of its chance), which a mere fraction has once in a thousand
/// times.
const LEAST_OWN: f64 = 14.0;
/// Up to this denominator, a fraction of a found frequency is not reported: the rest of a removed pulse beats with it.
const FRACTIONS: i32 = 8;
/// Independent frequencies lie 1/span apart; a finer search finds a little more.
const OVERSAMPLING: f64 = 3.0;

/// The significant periods of `times` (ascending, from the start of a window of length `span`), the most significant
/// first.
#[must_use]
pub fn find(times: &[Nanos], span: Nanos, settings: SearchSettings) -> Vec<Period> {
    let span = span.as_secs_f64();
    let mut left: Vec<f64> = thinned(times, settings.shortest);
    let events = left.len() as u64;
    let mut found: Vec<Period> = Vec::new();
    let mut taken: Vec<f64> = Vec::new();
    while taken.len() < MOST_PERIODS && left.len() >= FEWEST && span > 0.0 {
        let Some((frequency, ln_probability)) = best(&left, span, &taken, settings) else {
            break;
        };
        let pulse = Pulse::of(&left, frequency);
        let before = left.len();
        let cycles = pulse.hits(&left);
        let (inside, outside): (Vec<f64>, Vec<f64>) =
            left.iter().partition(|time| pulse.has(**time));
        left = outside;
        let period = Nanos((1e9 / frequency).round() as u64);
        taken.push(frequency);
        let hit = (cycles as f64 / (span * frequency)).min(1.0);
        let in_pulse = before - left.len();
        let excess = in_pulse as f64 / (PULSE * before as f64);
        // The pulse must occur in enough of the window's periods.
        if hit < LEAST_HIT || excess < LEAST_EXCESS || (cycles as f64) < CYCLES {
            continue;
        }
        let regularity = judge(&inside, 1.0 / frequency);
        found.push(Period {
            period,
            ln_probability,
            in_pulse: in_pulse as u64,
            events,
            hit,
            regularity,
            known: known(period).filter(|_| hit >= NAMED_HIT && regularity != Regularity::Drifting),
        });
    }
    if found.is_empty() {
        found.extend(without_a_clock(
            &thinned(times, settings.shortest),
            span,
            settings,
        ));
    }
    found
}

/// A period of intervals of equal length without a fixed phase.
fn without_a_clock(times: &[f64], span: f64, settings: SearchSettings) -> Option<Period> {
    if times.len() < FEWEST || span <= 0.0 {
        return None;
    }
    let (period, ln) = intervals::regular(times)?;
    let ln_probability = ln + (settings.searches.max(1) as f64).ln();
    let close = |pair: &&[f64]| ((pair[1] - pair[0]) / period - 1.0).abs() <= PULSE / 2.0;
    let regular = times.windows(2).filter(close).count();
    let hit = (regular as f64 * period / span).min(1.0);
    let known_length = period * 1e9 >= settings.shortest.0 as f64 && hit >= LEAST_HIT;
    (known_length && ln_probability <= settings.false_alarm.ln()).then_some(Period {
        period: Nanos((period * 1e9).round() as u64),
        ln_probability,
        in_pulse: regular as u64,
        events: times.len() as u64,
        hit,
        // Unless there are few events, a clock would have shown in the spectrum.
        regularity: match judge(times, period) {
            Regularity::Drifting => Regularity::Drifting,
            _ => Regularity::Undecided,
        },
        known: None,
    })
}

/// Times in seconds, with events closer together than half the shortest period merged into the first: a burst is one
/// event.
fn thinned(times: &[Nanos], shortest: Nanos) -> Vec<f64> {
    let mut kept: Vec<Nanos> = Vec::with_capacity(times.len());
    for time in times {
        if kept
            .last()
            .is_none_or(|last| time.saturating_sub(*last) >= Nanos(shortest.0 / 2))
        {
            kept.push(*time);
        }
    }
    kept.into_iter().map(Nanos::as_secs_f64).collect()
}

/// The most significant frequency, and ln of its probability; `None` if none is significant.
fn best(times: &[f64], span: f64, taken: &[f64], settings: SearchSettings) -> Option<(f64, f64)> {
    let lowest = CYCLES / span;
    let highest = (1e9 / settings.shortest.0.max(1) as f64).min(highest_frequency(span));
    if highest <= lowest {
        return None;
    }
    let ln_trials = (highest * span * OVERSAMPLING * settings.searches.max(1) as f64).ln();
    let mut scored: Vec<(f64, f64)> = candidates(times, span, lowest, highest, CANDIDATES)
        .into_iter()
        .chain(frequencies().filter(|f| (lowest..=highest).contains(f)))
        .map(|frequency| refined(times, span, frequency))
        .filter(|frequency| *frequency >= lowest && !explained(taken, *frequency, span))
        .map(|frequency| (frequency, blocks::h(times, span, frequency)))
        .collect();
    scored.order_by(|a, b| b.1.total_cmp(&a.1));
    let (top, top_h) = *scored.first()?;
    // Overtones of a narrow pulse are as significant as its fundamental, and so may be a fraction of it, whose own
    // overtones they all are. But a fraction has no power of its own: the lowest frequency with power is the right one.
    let family: Vec<(f64, f64, f64)> = scored
        .iter()
        .filter(|(f, h)| *h >= 0.5 * top_h && related(top, *f, span))
        .map(|(f, h)| (*f, *h, z_at(times, *f, 1)))
        .collect();
    let strongest = family.iter().map(|member| member.2).fold(0.0, f64::max);
    let (frequency, h) = family
        .iter()
        .filter(|(_, _, own)| {
            *own >= 0.5 * strongest || *own >= (LEAST_POWER * strongest).max(LEAST_OWN)
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or((top, top_h), |(f, h, _)| (*f, *h));
    let ln_corrected = ln_probability(h) + ln_trials;
    (ln_corrected <= settings.false_alarm.ln()).then_some((frequency, ln_corrected))
}

/// The number of frequencies tried on either side of another.
const EITHER_SIDE: i32 = (GRID / 2) as i32;

/// The nearby frequency at which the times agree best, to a small part of 1/span.
fn refined(times: &[f64], span: f64, around: f64) -> f64 {
    let best_of = |centre: f64, step: f64, overtones: usize| {
        let grid = z_grid(
            times,
            centre - f64::from(EITHER_SIDE) * step,
            step,
            overtones,
        );
        (-EITHER_SIDE..=EITHER_SIDE)
            .zip(grid)
            .map(|(n, z)| (centre + f64::from(n) * step, z))
            .filter(|(frequency, _)| *frequency > 0.0)
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or(centre, |best| best.0)
    };
    let coarse = best_of(around, 1.0 / (8.0 * span), 1);
    let fine = best_of(coarse, 1.0 / (64.0 * span), 4);
    best_of(fine, 1.0 / (400.0 * span), 10)
}

/// Whether `high` is a whole multiple of `low`, within the resolution of the window.
fn is_multiple(high: f64, low: f64, span: f64) -> bool {
    let times = (high / low).round();
    times >= 1.0 && (high - times * low).abs() <= (1.0 + 0.05 * times) / span
}

fn related(a: f64, b: f64, span: f64) -> bool {
    if a >= b {
        is_multiple(a, b, span)
    } else {
        is_multiple(b, a, span)
    }
}

/// Whether a found frequency already explains this one.
fn explained(taken: &[f64], frequency: f64, span: f64) -> bool {
    taken
        .iter()
        .any(|t| (1..=FRACTIONS).any(|q| related(t / f64::from(q), frequency, span)))
}

/// The part of the period with most events.
struct Pulse {
    frequency: f64,
    start: f64,
}

impl Pulse {
    fn of(times: &[f64], frequency: f64) -> Pulse {
        let mut phases: Vec<f64> = times
            .iter()
            .map(|time| (time * frequency).fract())
            .collect();
        phases.sort_by(f64::total_cmp);
        let n = phases.len();
        let (mut best, mut end) = ((0, 0.0), 0);
        for start in 0..n {
            let limit = phases[start] + PULSE;
            while end < start + n && phases[end % n] + if end >= n { 1.0 } else { 0.0 } <= limit {
                end += 1;
            }
            if end - start > best.0 {
                best = (end - start, phases[start]);
            }
        }
        Pulse {
            frequency,
            start: best.1,
        }
    }

    fn has(&self, time: f64) -> bool {
        // Slightly before the first phase too: rounding must not exclude its own event.
        (time * self.frequency - self.start + 1e-9).rem_euclid(1.0) <= PULSE + 2e-9
    }

    /// The number of periods with an event in the pulse.
    fn hits(&self, times: &[f64]) -> usize {
        let mut cycles: Vec<i64> = times
            .iter()
            .filter(|time| self.has(**time))
            .map(|time| (time * self.frequency - self.start).round() as i64)
            .collect();
        cycles.dedup();
        cycles.len()
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
