//! Follows the offset from the first stretch to both ends of the file.

use super::locate::{Located, Stretch, locate, visits};
use super::overlap::{Known, best};
use jitterscope_model::Nanos;

/// The length of a step, and its longest where visits are rare.
const STEP: Nanos = Nanos(1_000_000_000);
const LONGEST: Nanos = Nanos(16_000_000_000);
/// Visits of a step that are needed, and used at most.
const NEEDED: usize = 12;
const MOST: usize = 400;
/// Of a step's visits, so many must allow its offset; otherwise it has no knot.
const SHARE: f64 = 0.6;
/// The drift follows from knots so far apart.
const SLOPE_OVER: Nanos = Nanos(20_000_000_000);
/// A drift changes by about this: NTP corrects a clock in small steps.
const LEAST_ERROR: f64 = 0.2e-6;
/// A drift may change by so much at once.
const CHANGED: f64 = 200e-6;
/// Rounding.
const SLACK: i64 = 8;

pub(super) struct Tracked {
    /// Times of records, and their offsets, ascending.
    pub(super) knots: Vec<(i64, i64)>,
    /// The widest range of offsets.
    pub(super) width: u64,
    /// Times of records between which no offset fits.
    pub(super) unfit: Vec<(i64, i64)>,
}

#[derive(Clone, Copy)]
struct Knot {
    at: i64,
    offset: i64,
    width: u64,
}

/// The offsets along the file.
pub(super) fn track(known: &Known<'_>, located: &Located) -> Tracked {
    let first = Knot {
        at: located.centre,
        offset: located.offset,
        width: located.uncertain,
    };
    let mut unfit = Vec::new();
    let before = follow(known, located, (first, -1), &mut unfit);
    let after = follow(known, located, (first, 1), &mut unfit);
    let all = before.iter().rev().chain([&first]).chain(&after);
    let mut width = all.clone().map(|knot| knot.width).max().unwrap_or(0);
    let mut knots: Vec<(i64, i64)> = all.map(|knot| (knot.at, knot.offset)).collect();
    if knots.len() == 1 {
        // The drift, too.
        let at = first.at + located.half;
        let grown = (located.half as f64 * located.slope) as i64;
        knots.push((at, first.offset + grown));
        width += (located.half as f64 * located.slope_error) as u64;
    }
    Tracked {
        knots,
        width,
        unfit,
    }
}

/// The knots in one direction of time, 1 or -1, to the end of the file or of the measured time.
fn follow(
    known: &Known<'_>,
    located: &Located,
    (first, direction): (Knot, i64),
    unfit: &mut Vec<(i64, i64)>,
) -> Vec<Knot> {
    let mut knots = vec![first];
    let (mut slope, mut error) = (located.slope, located.slope_error);
    // The first knot with this drift.
    let mut since = 0;
    let usual = known.ticks(STEP);
    let longest = known.ticks(LONGEST);
    let mut edge = first.at + direction * located.half;
    let mut step = usual;
    let (mut ranges, mut edges) = (Vec::new(), Vec::new());
    while (0..=known.records_end).contains(&edge) {
        let last = knots[knots.len() - 1];
        let (from, to) = match direction {
            1 => (edge, edge + step),
            _ => (edge - step, edge),
        };
        let mut found = visits(known, (from, to), MOST);
        let at_end = from <= 0 && direction < 0 || to >= known.records_end && direction > 0;
        if found.len() < NEEDED && step < longest && !at_end {
            step *= 2;
            continue;
        }
        edge += direction * step;
        step = usual;
        let centre = from + (to - from) / 2;
        if known.is_stopped() {
            break;
        }
        let way = (centre - last.at) as f64;
        let expected = last.offset + (way * slope) as i64;
        if !(0..=known.stalls_end).contains(&(centre + expected)) {
            break;
        }
        // Outside of the measured time there are no stalls.
        found.retain(|visit| (0..=known.stalls_end).contains(&(visit.first + expected)));
        let reach = (way.abs() * error) as i64 + last.width as i64 + SLACK;
        ranges.clear();
        for visit in &found {
            let moved = ((visit.first - centre) as f64 * slope) as i64;
            let bounds = (expected - reach, expected + reach);
            known.of[visit.cpu].allowed(visit, moved, bounds, &mut ranges);
        }
        let range = best(&ranges, &mut edges);
        let fits = range.count as f64 >= SHARE * found.len() as f64;
        if found.len() < NEEDED {
            continue;
        }
        if !fits {
            // The drift may have changed.
            let reach = (way.abs() * CHANGED) as i64 + last.width as i64 + SLACK;
            let stretch = Stretch::of(centre, (to - from) / 2 + 1, found);
            let again = locate(known, &stretch, (expected - reach, expected + reach));
            let fits = again.filter(|again| again.check(known).is_ok());
            if fits.is_none() {
                unfit.push((from, to));
            }
            if let Some(again) = fits {
                (slope, error) = (again.slope, again.slope_error);
                knots.push(Knot {
                    at: centre,
                    offset: again.offset,
                    width: again.uncertain,
                });
                since = knots.len() - 1;
            }
            continue;
        }
        if (range.from, range.to) == (expected - reach, expected + reach) {
            // One stall has all of the step: it says nothing.
            continue;
        }
        let knot = Knot {
            at: centre,
            // The line goes on as long as it fits.
            offset: expected.clamp(range.from, range.to),
            width: range.width(),
        };
        knots.push(knot);
        let over = known.ticks(SLOPE_OVER);
        let steady = &knots[since..];
        let is_far = |of: &&Knot| (of.at - knot.at).abs() >= over;
        let far = steady.iter().rev().find(is_far).unwrap_or(&steady[0]);
        let way = (knot.at - far.at) as f64;
        slope = (knot.offset - far.offset) as f64 / way;
        error = ((knot.width + far.width) as f64 / way.abs()).max(LEAST_ERROR);
    }
    knots.split_off(1)
}
