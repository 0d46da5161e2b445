//! Culprits of two sides, compared.

use super::poisson::{Count, dispersion};
use super::rules::DiffRules;
use super::run::{ComparedRun, CulpritFigures};
use super::side::Side;
use super::{Basis, Comparison, Design, Grain, Hypothesis, Margin, SingleCounts, Verdict, family};
use jitterscope_model::{CulpritKey, KeyLevel, Subject};
use serde::Serialize;
use std::collections::BTreeMap;

/// The change of a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Became {
    /// Only the second side has it.
    Appeared,
    /// The second side has more of it.
    Grew,
    /// The second side has less of it.
    Shrank,
    /// Only the first side has it.
    Vanished,
    /// Equal within the margin.
    Stayed,
    /// It was predicted, and neither side has it.
    NotSeen,
}

/// A culprit on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct CulpritDiff {
    #[serde(flatten)]
    pub subject: Subject,
    /// Whether the changed knobs should remove it. Predicted culprits are decided in their own family.
    pub predicted: bool,
    /// The direction of the figure that the verdict is about, whatever the verdict.
    pub became: Became,
    /// The one statement about it: that of its time or of its count, whichever has a direction, and the time's if both
    /// do; in an experiment, that of the look that decided it.
    pub verdict: Verdict,
    /// Its events per second.
    pub events: Comparison,
    /// The share of the time that it stole.
    pub stolen: Comparison,
}

impl CulpritDiff {
    /// Kind and name: its title in a list of decisions.
    #[must_use]
    pub fn title(&self) -> String {
        title(&self.subject)
    }

    /// The more decisive figure: one with a direction, if there is one.
    #[must_use]
    pub fn telling(&self) -> &Comparison {
        telling(&self.events, &self.stolen)
    }
}

fn telling<'c>(events: &'c Comparison, stolen: &'c Comparison) -> &'c Comparison {
    let direction = |c: &Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
    if direction(stolen) || !direction(events) {
        stolen
    } else {
        events
    }
}

pub(super) fn title(subject: &Subject) -> String {
    format!("{} {}", subject.kind_word(), subject.name())
}

/// The hypotheses about a culprit.
pub(super) struct CulpritHypotheses {
    pub(super) subject: Subject,
    pub(super) predicted: bool,
    /// Its events per second.
    pub(super) events: Hypothesis,
    /// The share of the time that it stole.
    pub(super) stolen: Hypothesis,
}

/// The hypotheses about each culprit of either side; `None` if a run names no culprits.
pub(super) fn culprit_hypotheses(
    sides: [&Side; 2],
    design: Design,
    margin: f64,
    predicted: &dyn Fn(&Subject) -> bool,
) -> Option<Vec<CulpritHypotheses>> {
    let mut subjects: BTreeMap<CulpritKey, Subject> = BTreeMap::new();
    // By key: one run may know a culprit by thread id, another only by name.
    let mut of_runs: [Vec<BTreeMap<CulpritKey, &CulpritFigures>>; 2] = [Vec::new(), Vec::new()];
    for (side, maps) in sides.iter().zip(&mut of_runs) {
        for run in &side.runs {
            let mut map = BTreeMap::new();
            for figures in run.culprits.as_ref()? {
                let Some(subject) = &figures.subject else {
                    continue;
                };
                let key = CulpritKey::of(subject, KeyLevel::Program);
                let known = subjects
                    .entry(key.clone())
                    .or_insert_with(|| subject.clone());
                known.meet(subject);
                map.insert(key, figures);
            }
            maps.push(map);
        }
    }
    let margin = Margin {
        relative: margin,
        absolute: 0.0,
    };
    let pair = |key: &CulpritKey| -> [Hypothesis; 2] {
        let of = |figure: &dyn Fn(&CulpritFigures) -> (f64, u64)| {
            let found = [0, 1].map(|side: usize| {
                let runs = of_runs[side].iter().zip(&sides[side].runs);
                let one = |(map, run): (&BTreeMap<CulpritKey, &CulpritFigures>, &ComparedRun)| {
                    let (figure, events) = map.get(key).map_or((0.0, 0), |figures| figure(figures));
                    let seconds = run.seconds.max(1e-9);
                    (figure / seconds, Basis::Events(Count { events, seconds }))
                };
                runs.map(one).collect::<Vec<_>>()
            });
            let bases = found
                .each_ref()
                .map(|runs| runs.iter().map(|(_, basis)| *basis).collect::<Vec<_>>());
            let [first, second] =
                found.map(|runs| runs.into_iter().map(|run| Some(run.0)).collect());
            let grain = Grain::of([&bases[0], &bases[1]]);
            Hypothesis {
                first,
                second,
                margin,
                seconds: sides.map(Side::seconds),
                counts: None,
                grain,
            }
        };
        let mut events = of(&|figures| (figures.count as f64, figures.count));
        // Runs of one stretch of time say as much as one run.
        let single = design == Design::Blocks || sides.iter().all(|side| side.runs.len() == 1);
        events.counts = single.then(|| {
            let of = |side: usize| of_runs[side].iter().map(|map| map.get(key).copied());
            single_counts(sides, [of(0).collect(), of(1).collect()])
        });
        [
            events,
            of(&|figures| (figures.total.as_secs_f64(), figures.behind)),
        ]
    };
    let all = subjects.into_iter().map(|(key, subject)| {
        let ([mut events, stolen], predicted) = (pair(&key), predicted(&subject));
        if !predicted {
            // Single runs cannot show how runs of one setting differ: a hog's turns come evenly within a run, and the
            // next run has no hog. Predicted culprits are tested anyway.
            events.counts = None;
        }
        CulpritHypotheses {
            predicted,
            subject,
            events,
            stolen,
        }
    });
    Some(all.collect())
}

pub(super) fn culprit_rows(
    sides: [&Side; 2],
    design: Design,
    rules: DiffRules,
    predicted: &dyn Fn(&Subject) -> bool,
) -> Option<Vec<CulpritDiff>> {
    let (first, others): (Vec<_>, Vec<_>) =
        culprit_hypotheses(sides, design, rules.margin, predicted)?
            .into_iter()
            .partition(|of| of.predicted);
    let mut rows = Vec::with_capacity(first.len() + others.len());
    for members in [first, others] {
        let (asked, hypotheses): (Vec<_>, Vec<_>) = members
            .into_iter()
            .map(|of| ((of.subject, of.predicted), [of.events, of.stolen]))
            .unzip();
        let mut decided = family(design, rules.alpha, &hypotheses.concat()).into_iter();
        for (subject, predicted) in asked {
            let (Some(events), Some(stolen)) = (decided.next(), decided.next()) else {
                break;
            };
            let became = became(telling(&events, &stolen));
            rows.push(CulpritDiff {
                subject,
                predicted,
                became,
                verdict: telling(&events, &stolen).verdict,
                events,
                stolen,
            });
        }
    }
    // Predicted culprits first, then decided ones, then by size of the change.
    let weight =
        |row: &CulpritDiff| row.stolen.second.unwrap_or(0.0) - row.stolen.first.unwrap_or(0.0);
    let decided = |row: &CulpritDiff| matches!(row.verdict, Verdict::Better | Verdict::Worse);
    rows.sort_by(|a, b| {
        let rank = |row: &CulpritDiff| (!row.predicted, !decided(row));
        rank(a)
            .cmp(&rank(b))
            .then(weight(b).abs().total_cmp(&weight(a).abs()))
    });
    Some(rows)
}

/// The counts of both sides over all their runs. Events that are uneven from run to run are as good as bursts.
fn single_counts(sides: [&Side; 2], figures: [Vec<Option<&CulpritFigures>>; 2]) -> SingleCounts {
    let events = |of: &Option<&CulpritFigures>| of.map_or(0, |figures| figures.count);
    let count = |at: usize| Count {
        events: figures[at].iter().map(events).sum(),
        seconds: sides[at].seconds(),
    };
    let spread = |arm: &Vec<Option<&CulpritFigures>>| {
        let of_runs: Vec<u64> = arm.iter().map(events).collect();
        let within = arm
            .iter()
            .flatten()
            .map(|figures| dispersion(&figures.blocks));
        within
            .chain([dispersion(&of_runs)])
            .flatten()
            .reduce(f64::max)
    };
    SingleCounts {
        first: count(0),
        second: count(1),
        dispersion: figures.iter().filter_map(spread).reduce(f64::max),
    }
}

fn became(of: &Comparison) -> Became {
    let (first, second) = (of.first.unwrap_or(0.0), of.second.unwrap_or(0.0));
    match (first > 0.0, second > 0.0) {
        (false, false) => Became::NotSeen,
        (false, true) => Became::Appeared,
        (true, false) => Became::Vanished,
        _ if (second - first).abs() <= of.margin * first => Became::Stayed,
        _ if second > first => Became::Grew,
        _ => Became::Shrank,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Design;

    /// A comparison of two figures with a given verdict.
    fn comparison(first: f64, second: f64, verdict: Verdict) -> Comparison {
        let value = |value: f64| Hypothesis {
            first: vec![Some(value)],
            second: vec![Some(value)],
            margin: Margin {
                relative: 0.1,
                absolute: 0.0,
            },
            seconds: [1.0; 2],
            counts: None,
            grain: Grain::Fine,
        };
        let neutral = family(Design::Unpaired, 0.05, &[value(1.0)]).remove(0);
        let (first, second) = (Some(first), Some(second));
        Comparison {
            first,
            second,
            verdict,
            margin: 0.1,
            ..neutral
        }
    }

    #[test]
    fn what_became_of_a_culprit_is_told_by_its_time_beside_the_margin() {
        for (first, second, expected) in [
            (0.0, 0.0, Became::NotSeen),
            (0.0, 0.1, Became::Appeared),
            (0.1, 0.0, Became::Vanished),
            (1.0, 1.0, Became::Stayed),
            (1.0, 1.0625, Became::Stayed),
            (1.0, 0.9375, Became::Stayed),
            (10.0, 10.5, Became::Stayed),
            (1.0, 1.125, Became::Grew),
            (1.0, 0.875, Became::Shrank),
        ] {
            let found = became(&comparison(first, second, Verdict::Inconclusive));
            assert_eq!(found, expected, "{first} to {second}");
        }
    }

    #[test]
    fn a_culprits_verdict_is_that_of_whichever_figure_says_more() {
        let subject = Subject::Softirq(3);
        let of = |events, stolen| CulpritDiff {
            subject: subject.clone(),
            predicted: false,
            became: Became::Grew,
            verdict: Verdict::NotSeen,
            events: comparison(1.0, 2.0, events),
            stolen: comparison(1.0, 2.0, stolen),
        };
        for (events, stolen, expected) in [
            (Verdict::Better, Verdict::Worse, Verdict::Worse),
            (Verdict::Better, Verdict::Inconclusive, Verdict::Better),
            (Verdict::Worse, Verdict::Equivalent, Verdict::Worse),
            (
                Verdict::Inconclusive,
                Verdict::Equivalent,
                Verdict::Equivalent,
            ),
            (
                Verdict::Equivalent,
                Verdict::Inconclusive,
                Verdict::Inconclusive,
            ),
            (Verdict::Inconclusive, Verdict::Better, Verdict::Better),
        ] {
            assert_eq!(
                of(events, stolen).telling().verdict,
                expected,
                "{events:?} {stolen:?}"
            );
        }
        assert_eq!(
            of(Verdict::Better, Verdict::Better).title(),
            "softirq NET_RX"
        );
    }
}
