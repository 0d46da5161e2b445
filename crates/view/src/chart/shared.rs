//! Common properties of charts side by side: equal lengths have equal sizes, and a culprit is the same series in all of
//! them.

use super::scale::Scale;
use super::theme::{SERIES, WIDTH};
use super::words;
use crate::drawn::Drawn;
use crate::style::fit;
use crate::words::{detail, kind_and_name};
use jitterscope_analyze::picture::{Curve, CurveOf, DrawnCulprit, DrawnStall, OffsetMap};
use jitterscope_model::{CulpritKey, KeyLevel, Nanos, PutInOrder, Subject};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

const BARS: f64 = 16.0;
/// A period of a unit shows only if the run has at least this many units.
const UNITS: u64 = 3;

/// The common properties of charts shown side by side, or of a single one.
pub(super) struct Shared {
    /// The width of each, in units of the view box.
    pub(super) width: f64,
    pub(super) lengths: Scale,
    /// The series of each culprit.
    pub(super) shown: Shown,
    /// The largest share of a run's time that a culprit has.
    stolen: f64,
    /// Whether there are several.
    pub(super) several: bool,
    pub(super) messages: Scale,
    /// The number of messages in a bar.
    pub(super) bars: Scale,
    /// The longest duration: the time axis is the same in all.
    pub(super) longest: Nanos,
    /// The longest offset map, whose last column is always whole.
    pub(super) across: Nanos,
    /// The common unit of the offset maps, if all runs are long enough for it.
    unit: Option<Nanos>,
    /// The largest number of stalls in a cell of the offset maps.
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
        // The largest unit that each run can resolve; a smaller unit has no map.
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

    /// Whether each chart has half the width.
    pub(super) fn is_narrow(&self) -> bool {
        self.width < WIDTH
    }

    /// The offset map of a run, in the common unit if there is one.
    pub(super) fn map<'r>(&self, run: &'r Drawn) -> Cow<'r, OffsetMap> {
        in_unit(run, self.unit)
    }

    /// A culprit's share of its run's time, relative to the largest such share in any run.
    pub(super) fn of_the_largest(&self, run: &Drawn, time: u64) -> f64 {
        let share = of_its_time(run, time) / self.stolen;
        if share.is_finite() { share } else { 0.0 }
    }
}

/// The distributions to draw.
pub(super) fn of_messages(run: &Drawn) -> impl Iterator<Item = &Curve> {
    let wanted = |curve: &&Curve| {
        matches!(
            curve.of,
            CurveOf::Transit(_) | CurveOf::FromIntended(_) | CurveOf::Inter(_)
        )
    };
    run.picture.curves.iter().filter(wanted)
}

/// The count in each bar.
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

/// The total time of its columns.
pub(super) fn across(map: &OffsetMap) -> Nanos {
    Nanos(
        map.unit
            .0
            .saturating_mul(map.units_per_column)
            .saturating_mul(map.columns as u64),
    )
}

/// Whether a run of this length can show a period of this unit.
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

/// A time as a share of its run's time, as in `diff`, because runs may differ in length and number of CPUs. For
/// messages it is the share of their total time: messages that waited together are each late, so their sum can exceed
/// the run.
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

/// The series of culprits: the largest have their own, the last one is for all others.
pub(super) struct Shown {
    series: HashMap<Option<CulpritKey>, usize>,
    /// The name of each series; empty if nothing of it is drawn.
    pub(super) names: Vec<String>,
}

impl Shown {
    /// The culprits with the most time. A culprit that leads no stall is not drawn, and has no name here.
    fn of(runs: &[&Drawn]) -> Shown {
        // By the key used for comparing runs: one run knows more of the same culprit than another.
        let mut sums: HashMap<Option<CulpritKey>, (Option<Subject>, u64)> = HashMap::new();
        let mut leaders: HashSet<Option<CulpritKey>> = HashSet::new();
        for run in runs {
            let keys = Keys::of(run);
            for (culprit, key) in run.picture.culprits.iter().zip(&keys.0) {
                let (subject, sum) = sums.entry(Some(key.clone())).or_default();
                *sum = sum.saturating_add(culprit.total.0);
                match subject {
                    Some(known) => known.meet(&culprit.subject),
                    None => *subject = Some(culprit.subject.clone()),
                }
            }
            for stall in &run.picture.stalls {
                let key = leader(run, stall).map(|culprit| keys.0[culprit].clone());
                if key.is_none() {
                    let (_, sum) = sums.entry(None).or_default();
                    *sum = sum.saturating_add(stall.length.0);
                }
                leaders.insert(key);
            }
        }
        let mut ranked: Vec<_> = sums.into_iter().filter(|(_, (_, sum))| *sum > 0).collect();
        ranked.order_by(|(a, (_, of_a)), (b, (_, of_b))| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        let own = if ranked.len() <= SERIES {
            ranked.len()
        } else {
            SERIES - 1
        };
        let name = |subject: &Option<Subject>| match subject {
            Some(subject) => (kind_and_name(subject), detail(subject, 1)),
            None if ranked.len() == 1 => (
                runs.first()
                    .map_or("stalls", |run| words::noun(run).many)
                    .to_owned(),
                String::new(),
            ),
            None => ("not attributed".into(), String::new()),
        };
        let leads = |key: &Option<CulpritKey>| leaders.contains(key);
        let named = ranked.iter().take(own).map(|(key, (subject, _))| {
            if leads(key) {
                name(subject)
            } else {
                Default::default()
            }
        });
        let mut names: Vec<String> = words::told_apart(named.collect())
            .iter()
            .map(|name| fit(name, 34))
            .collect();
        if ranked.len() > own {
            let others = ranked.iter().skip(own).filter(|(key, _)| leads(key));
            names.push(match others.count() {
                0 => String::new(),
                n => format!("{n} others"),
            });
        }
        let series = ranked
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

/// The series of one run's culprits, by index.
pub(super) struct SeriesOf {
    culprits: Vec<usize>,
    /// The series of stalls that were only counted.
    none: usize,
}

impl SeriesOf {
    /// The series of a stall: that of its largest part.
    pub(super) fn stall(&self, run: &Drawn, stall: &DrawnStall) -> usize {
        leader(run, stall).map_or(self.none, |culprit| self.culprits[culprit])
    }
}

/// The keys of a run's culprits, as used for comparing runs.
struct Keys(Vec<CulpritKey>);

impl Keys {
    fn of(run: &Drawn) -> Keys {
        let key = |culprit: &DrawnCulprit| CulpritKey::of(&culprit.subject, KeyLevel::Program);
        Keys(run.picture.culprits.iter().map(key).collect())
    }
}

/// The culprit of a stall's largest part, as an index; `None` if the stall was only counted.
fn leader(run: &Drawn, stall: &DrawnStall) -> Option<usize> {
    Some(run.picture.sorts[stall.largest()?.sort].culprit)
}
