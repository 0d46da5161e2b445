//! Finds how another tool's clock maps to a probe's: a kernel record of a CPU lies within a stall of the CPU's spinning
//! probe.
//!
//! A record at time `t` within a stall from `a` to `b` allows the offsets from `a - t` to `b - t`. The offset that most
//! records of a short stretch allow is the stretch's offset ([`mod@locate`] finds the first one, with the rate at which the
//! clocks drift apart; [`mod@track`] goes on from there). The map between the clocks is linear from stretch to stretch.
//!
//! Ticks of a kernel are periodic: a trace that has nothing else fits at many offsets, and is refused.

mod locate;
mod map;
mod overlap;
mod track;

#[cfg(test)]
mod tests;

pub use map::ClockMap;

use jitterscope_model::{FirstStretch, Nanos, TickRate, Ticks};
use locate::{Located, Stretch, locate};
use overlap::{Known, Share, is_enough};

/// What is known of one CPU, each in order of time.
#[derive(Clone, Debug, Default)]
pub struct CpuTimes {
    /// Start and end of the probe's stalls, on its clock.
    pub stalls: Vec<(Ticks, Ticks)>,
    /// The kernel's records on this CPU, on the file's clock.
    pub records: Vec<Ticks>,
}

/// One moment on both clocks, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guess {
    pub file: Ticks,
    pub probe: Ticks,
    /// How far it may be off; zero if both are one clock.
    pub within: Nanos,
}

/// The rates of both clocks, as stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub file: TickRate,
    pub probe: TickRate,
}

/// A map between the clocks, with its proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Alignment {
    pub map: ClockMap,
    /// How far a mapped time may be off: the widest range of offsets that fits a stretch best.
    pub error: Nanos,
    /// How much faster the file's clock runs than stated, relative to the probe's, parts per billion.
    pub drift_ppb: i64,
    /// Records of the measured time, and those within a stall.
    pub records: u64,
    pub inside: u64,
    /// Those that were within a stall after a shift in time.
    pub by_chance: u64,
    /// `None` if both are one clock.
    pub first: Option<FirstStretch>,
    /// Times of the file between which no offset fits: the map is not valid there.
    pub unfit: Vec<(Ticks, Ticks)>,
}

/// Why the clocks cannot be aligned.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AlignError {
    /// Too few records or stalls.
    #[error(
        "the file has {records} records of the measured CPUs and the run has {stalls} stalls: too few to compare them"
    )]
    TooFew { records: u64, stalls: u64 },
    /// No offset puts the records into stalls.
    #[error(
        "at the best offset, {inside} of {records} records lie in a stall of the probe. The file is of another time or \
         another machine, or its records are of other CPUs"
    )]
    Unrelated { inside: u64, records: u64 },
    /// An offset fits, but nothing proves it.
    #[error(
        "at the best offset, {inside} of {records} visits of the kernel lie in a stall, but so would they by chance: \
         nearly all time is stalled, or there are too few. Record more of the same time"
    )]
    Unproven { inside: u64, records: u64 },
    /// The caller ended the search.
    #[error("interrupted")]
    Stopped,
    /// Two offsets fit.
    #[error(
        "two offsets that are {apart} apart fit alike ({inside} and {elsewhere} of {records} comparisons): \
         nearly all records are periodic, such as ticks, or nearly all time is stalled. Record more of the same time"
    )]
    Ambiguous {
        apart: Nanos,
        inside: u64,
        elsewhere: u64,
        records: u64,
    },
}

/// Records to compare at least.
const FEWEST: usize = 24;
/// Of all records, at least so many lie in a stall once the clocks are aligned. Others belong to visits of the kernel
/// that were too short for a stall.
const SHARE_INSIDE: f64 = 0.75;
/// Of the records that chance does not put into a stall, at least so many lie in one.
const SHARE_BEYOND_CHANCE: f64 = 0.5;
/// Wrong offsets pass with at most this probability.
const CHANCE: f64 = 1e-9;

/// Finds the map between the clocks. Without a guess, any offset counts at which the two overlap. The search ends early
/// if `stop` returns true.
///
/// # Errors
/// There is too little to compare, no offset fits, or several do; or the search was stopped.
pub fn align(
    cpus: &[CpuTimes],
    rates: Rates,
    guess: Option<Guess>,
    stop: &dyn Fn() -> bool,
) -> Result<Alignment, AlignError> {
    let known = Known::new(cpus, rates, stop).ok_or_else(|| AlignError::too_few(cpus))?;
    if let Some(Guess {
        file,
        probe,
        within: Nanos::ZERO,
    }) = guess
    {
        // Whatever rates are stated.
        let map = ClockMap::new(vec![(file.0, probe.0), (file.0 + 1, probe.0 + 1)], rates);
        return proven(&known, map, None);
    }
    let offsets = known.offsets(guess);
    let found = first(&known, offsets);
    if known.is_stopped() {
        return Err(AlignError::Stopped);
    }
    let mut located = found.ok_or_else(|| AlignError::too_few(cpus))?;
    located.check(&known)?;
    if guess.is_some() {
        // A guess that fits is better than the middle of all offsets that do.
        let guessed = offsets.0 + (offsets.1 - offsets.0) / 2;
        located.offset = guessed.clamp(located.range.from, located.range.to);
    }
    let tracked = track::track(&known, &located);
    if known.is_stopped() {
        return Err(AlignError::Stopped);
    }
    let map = ClockMap::new(known.knots(&tracked.knots), rates);
    let found = proven(&known, map, Some((&located, tracked.width)))?;
    let unfit = tracked.unfit.into_iter();
    Ok(Alignment {
        unfit: unfit
            .map(|(from, to)| (known.file_time(from), known.file_time(to)))
            .collect(),
        ..found
    })
}

/// The alignment by this map, if enough of all records lie in stalls. `found`: how it was found, and the widest range of
/// offsets.
fn proven(
    known: &Known<'_>,
    map: ClockMap,
    found: Option<(&Located, u64)>,
) -> Result<Alignment, AlignError> {
    let Share {
        records,
        inside,
        by_chance,
    } = known.share(&map);
    if !is_enough(usize::try_from(records).unwrap_or(usize::MAX)) {
        return Err(AlignError::Unrelated { inside, records });
    }
    let due = |share: f64| inside as f64 >= share * records as f64;
    let beyond = SHARE_BEYOND_CHANCE * records.saturating_sub(by_chance) as f64;
    let is_proven = inside.saturating_sub(by_chance) as f64 >= beyond;
    if !due(SHARE_INSIDE) || !is_proven {
        return Err(AlignError::Unrelated { inside, records });
    }
    let width = found.map_or(0, |(_, width)| width);
    Ok(Alignment {
        drift_ppb: map.drift_ppb(),
        map,
        error: known.rates.probe.nanos(Ticks(width)),
        records,
        inside,
        by_chance,
        first: found.map(|(located, _)| FirstStretch {
            compared: located.score.compared(),
            fits: located.score.fits(),
            elsewhere: located.elsewhere.fits(),
        }),
        unfit: Vec::new(),
    })
}

/// Stretches to try at least, in parts of the file's time that may meet the run's.
const PLACES: [f64; 5] = [0.5, 0.3, 0.7, 0.1, 0.9];
/// More of them, so that a short run in a long file is met: at most so many.
const MOST_PLACES: i64 = 64;

/// The first stretch whose offset is clear, or the best one; `None` without enough records in the range.
fn first(known: &Known, offsets: (i64, i64)) -> Option<Located> {
    let mut best: Option<Located> = None;
    let more = (known.records_end / (known.stalls_end / 2).max(1)).min(MOST_PLACES);
    let more = (PLACES.len() as i64..more).map(|n| (n as f64 + 0.5) / more as f64);
    for place in PLACES.into_iter().chain(more) {
        let stretch = Stretch::at(known, offsets, place);
        let Some(found) = stretch.and_then(|stretch| locate(known, &stretch, offsets)) else {
            continue;
        };
        if known.is_stopped() {
            return None;
        }
        if found.check(known).is_ok() {
            return Some(found);
        }
        if best
            .as_ref()
            .is_none_or(|best| best.margin() < found.margin())
        {
            best = Some(found);
        }
    }
    best
}

impl AlignError {
    fn too_few(cpus: &[CpuTimes]) -> AlignError {
        let count = |of: fn(&CpuTimes) -> usize| cpus.iter().map(|cpu| of(cpu) as u64).sum();
        AlignError::TooFew {
            records: count(|cpu| cpu.records.len()),
            stalls: count(|cpu| cpu.stalls.len()),
        }
    }
}
