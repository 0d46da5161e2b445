//! What charts beside one another have in common: what is equally long is equally large in all of them, and a
//! culprit is the same series.

use super::scale::Scale;
use super::theme::{SERIES, WIDTH};
use super::words;
use crate::drawn::Drawn;
use crate::style::fit;
use crate::words::{detail, kind_and_name};
use jitterscope_analyze::picture::{Curve, CurveOf, DrawnCulprit, DrawnStall, OffsetMap};
use jitterscope_model::{CulpritKey, KeyLevel, Nanos, Subject};
use std::borrow::Cow;
use std::collections::HashMap;

/// Bars a decade.
const BARS: f64 = 16.0;
/// Less than so many units of time show no period of one.
const UNITS: u64 = 3;

/// Of runs that are shown beside one another, or of one alone.
pub(super) struct Shared {
    /// How wide each is, units of the view box.
    pub(super) width: f64,
    /// Lengths of stalls.
    pub(super) lengths: Scale,
    /// Which series each culprit is.
    pub(super) shown: Shown,
    /// The largest share of its run's time that a culprit has.
    stolen: f64,
    /// Whether there is more than one.
    pub(super) several: bool,
    /// Times of messages.
    pub(super) messages: Scale,
    /// How many messages a bar stands for.
    pub(super) bars: Scale,
    /// The longest of them: time is as wide in all.
    pub(super) longest: Nanos,
    /// The longest that a map of offsets is, which ends with a whole column.
    pub(super) across: Nanos,
    /// Maps of offsets of one unit, in the order of the runs, where all are long enough for it.
    unit: Option<Nanos>,
    /// The most stalls in a field of the map of offsets.
    pub(super) offsets: u64,
}

impl Shared {
    pub(super) fn of(runs: &[&Drawn], width: f64) -> Shared {
        let stalls = || runs.iter().flat_map(|run| &run.picture.stalls);
        let messages = || runs.iter().flat_map(|run| of_messages(run));
        let times =
            Scale::decades(messages().flat_map(|curve| curve.counts.iter().map(|(ns, _)| ns.0)));
        let highest = messages()
            .flat_map(|curve| bars(curve, times))
            .max()
            .unwrap_or(1)
            .max(1);
        let culprits = |run: &&Drawn| {
            let largest = run
                .picture
                .culprits
                .iter()
                .map(|culprit| culprit.total.0)
                .max();
            of_its_time(run, largest.unwrap_or(0))
        };
        // The largest unit, where each run has enough of it to show a period: of a smaller one no map is made.
        let largest = runs.iter().map(|run| run.picture.offsets.unit).max();
        let unit = largest.filter(|unit| {
            runs.iter()
                .all(|run| has_periods(run.picture.duration, *unit))
        });
        let across = |run: &&Drawn| across(&in_unit(run, unit));
        let most = |run: &&Drawn| in_unit(run, unit).counts.iter().copied().max();
        Shared {
            width,
            longest: runs
                .iter()
                .map(|run| run.picture.duration)
                .max()
                .unwrap_or_default(),
            across: runs.iter().map(across).max().unwrap_or_default(),
            unit,
            lengths: Scale::decades(stalls().map(|stall| stall.length.0 as f64)),
            shown: Shown::of(runs),
            stolen: runs.iter().map(culprits).fold(0.0, f64::max),
            several: runs.len() > 1,
            messages: times,
            // From one half, so that a single message shows.
            bars: Scale::Log(0.5, 10f64.powf((highest as f64).log10().ceil().max(1.0))),
            offsets: runs.iter().filter_map(most).max().unwrap_or(0),
        }
    }

    /// Whether there is room for half as much.
    pub(super) fn is_narrow(&self) -> bool {
        self.width < WIDTH
    }

    /// When within a unit of time the run's stalls began, which is the same of all where they are long enough.
    pub(super) fn map<'r>(&self, run: &'r Drawn) -> Cow<'r, OffsetMap> {
        in_unit(run, self.unit)
    }

    /// A time that a culprit of the run took, as a share of its run's, beside the largest such share of all.
    pub(super) fn of_the_largest(&self, run: &Drawn, time: u64) -> f64 {
        let share = of_its_time(run, time) / self.stolen;
        if share.is_finite() { share } else { 0.0 }
    }
}

/// The distributions that are drawn.
pub(super) fn of_messages(run: &Drawn) -> impl Iterator<Item = &Curve> {
    let wanted = |curve: &&Curve| {
        matches!(
            curve.of,
            CurveOf::Transit(_) | CurveOf::FromIntended(_) | CurveOf::Inter(_)
        )
    };
    run.picture.curves.iter().filter(wanted)
}

/// How many are in each bar.
pub(super) fn bars(curve: &Curve, x_scale: Scale) -> Vec<u64> {
    let Scale::Log(from, to) = x_scale else {
        return Vec::new();
    };
    let bars = ((to / from).log10() * BARS).round().max(1.0) as usize;
    let mut counts = vec![0u64; bars];
    for (ns, n) in &curve.counts {
        let at = (x_scale.share(ns.0) * bars as f64) as usize;
        counts[at.min(bars - 1)] += n;
    }
    counts
}

/// How long its columns are together.
pub(super) fn across(map: &OffsetMap) -> Nanos {
    Nanos(
        map.unit
            .0
            .saturating_mul(map.units_per_column)
            .saturating_mul(map.columns as u64),
    )
}

/// Whether so long a run can show a period of this unit.
pub(super) fn has_periods(duration: Nanos, unit: Nanos) -> bool {
    duration.0 >= unit.0.saturating_mul(UNITS)
}

fn in_unit(run: &Drawn, unit: Option<Nanos>) -> Cow<'_, OffsetMap> {
    let own = &run.picture.offsets;
    match unit.and_then(|unit| own.in_unit(unit)) {
        Some(coarser) => Cow::Owned(coarser),
        None => Cow::Borrowed(own),
    }
}

/// Runs may be of different lengths and of different numbers of CPUs: a share as `diff` has it. Messages that waited
/// together are each as late: of these it is the share of what they took, for the time in which that was is less.
pub(crate) fn of_its_time(run: &Drawn, time: u64) -> f64 {
    let whole = match run.summary.pipeline {
        Some(_) => run
            .picture
            .culprits
            .iter()
            .map(|culprit| culprit.total.0)
            .fold(0, u64::saturating_add),
        None => run.picture.measured.0,
    };
    time as f64 / whole.max(1) as f64
}

/// Which series each culprit is: the largest have their own, the last is everybody else's.
pub(super) struct Shown {
    series: HashMap<Option<CulpritKey>, usize>,
    pub(super) names: Vec<String>,
}

impl Shown {
    /// The culprits that are the largest part of most of the stalls' time.
    fn of(runs: &[&Drawn]) -> Shown {
        // By what runs are compared by: one knows more of the same culprit than another.
        let mut sums: HashMap<Option<CulpritKey>, (Option<Subject>, u64)> = HashMap::new();
        for run in runs {
            let keys = Keys::of(run);
            for stall in &run.picture.stalls {
                let leader = leader(run, stall);
                let key = leader.map(|culprit| keys.0[culprit].clone());
                let (subject, sum) = sums.entry(key).or_default();
                *sum = sum.saturating_add(stall.length.0);
                let found = leader.map(|culprit| &run.picture.culprits[culprit].subject);
                match (subject.as_mut(), found) {
                    (Some(known), Some(found)) => known.meet(found),
                    _ => *subject = found.cloned(),
                }
            }
        }
        let mut leads: Vec<_> = sums.into_iter().filter(|(_, (_, sum))| *sum > 0).collect();
        leads.sort_by(|(a, (_, of_a)), (b, (_, of_b))| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        let own = if leads.len() <= SERIES {
            leads.len()
        } else {
            SERIES - 1
        };
        let name = |subject: &Option<Subject>| match subject {
            Some(subject) => (kind_and_name(subject), detail(subject, 1)),
            None if leads.len() == 1 => (
                runs.first()
                    .map_or("stalls", |run| words::noun(run).many)
                    .to_owned(),
                String::new(),
            ),
            None => ("not attributed".into(), String::new()),
        };
        let named = leads
            .iter()
            .take(own)
            .map(|(_, (subject, _))| name(subject))
            .collect();
        let mut names: Vec<String> = words::told_apart(named)
            .iter()
            .map(|name| fit(name, 34))
            .collect();
        if leads.len() > own {
            names.push(format!("{} others", leads.len() - own));
        }
        let series = leads
            .into_iter()
            .take(own)
            .enumerate()
            .map(|(at, (key, _))| (key, at));
        Shown {
            series: series.collect(),
            names,
        }
    }

    /// The series of each culprit of a run.
    pub(super) fn of_run(&self, run: &Drawn) -> SeriesOf {
        let last = self.names.len().saturating_sub(1);
        let series = |key: Option<CulpritKey>| self.series.get(&key).copied().unwrap_or(last);
        SeriesOf {
            culprits: Keys::of(run)
                .0
                .into_iter()
                .map(|key| series(Some(key)))
                .collect(),
            none: series(None),
        }
    }
}

/// Which series the culprits of one run are, by their indices.
pub(super) struct SeriesOf {
    culprits: Vec<usize>,
    /// That of stalls that were only counted.
    none: usize,
}

impl SeriesOf {
    /// The series of a stall: that of its largest part.
    pub(super) fn stall(&self, run: &Drawn, stall: &DrawnStall) -> usize {
        leader(run, stall).map_or(self.none, |culprit| self.culprits[culprit])
    }
}

/// The keys of a run's culprits, as runs are compared.
struct Keys(Vec<CulpritKey>);

impl Keys {
    fn of(run: &Drawn) -> Keys {
        let key = |culprit: &DrawnCulprit| CulpritKey::of(&culprit.subject, KeyLevel::Program);
        Keys(run.picture.culprits.iter().map(key).collect())
    }
}

/// Whose the largest part of a stall is, an index; `None` where it was only counted.
fn leader(run: &Drawn, stall: &DrawnStall) -> Option<usize> {
    Some(run.picture.sorts[stall.largest()?.sort].culprit)
}
