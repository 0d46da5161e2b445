//! Culprits of two sides, compared.

use super::poisson::Count;
use super::rules::DiffRules;
use super::run::{ComparedRun, CulpritFigures};
use super::side::Side;
use super::{Basis, Comparison, Design, FigureUnit, Grain, Hypothesis, Margin, Verdict, family};
use jitterscope_model::{CulpritKey, KeyLevel, PutInOrder, Subject};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The change of a culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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

/// A culprit on both sides. In an experiment, the row of a predicted culprit is that of the look that decided it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CulpritDiff {
    #[serde(flatten)]
    pub subject: Subject,
    /// Whether the changed knobs should remove it. Predicted culprits are decided in their own family.
    pub predicted: bool,
    /// The direction of the figure that the verdict is about, whatever the verdict.
    pub became: Became,
    /// The one statement about it, that of [`CulpritDiff::telling`].
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

    fn new(
        subject: Subject,
        predicted: bool,
        events: Comparison,
        stolen: Comparison,
    ) -> CulpritDiff {
        let mut row = CulpritDiff {
            subject,
            predicted,
            became: Became::NotSeen,
            verdict: Verdict::Inconclusive,
            events,
            stolen,
        };
        (row.became, row.verdict) = (became(row.telling()), row.telling().verdict);
        row
    }

    /// The comparison that its verdict is of: that of its time or of its count, whichever has a direction, and the
    /// time's if both or neither do.
    #[must_use]
    pub fn telling(&self) -> &Comparison {
        match self.goes_by_count() {
            true => &self.events,
            false => &self.stolen,
        }
    }

    /// The unit of the comparison that its verdict is of.
    #[must_use]
    pub fn telling_unit(&self) -> FigureUnit {
        match self.goes_by_count() {
            true => FigureUnit::PerSec,
            false => FigureUnit::Fraction,
        }
    }

    fn goes_by_count(&self) -> bool {
        let direction = |c: &Comparison| matches!(c.verdict, Verdict::Better | Verdict::Worse);
        direction(&self.events) && !direction(&self.stolen)
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
                grain,
            }
        };
        [
            of(&|figures| (figures.count as f64, figures.count)),
            of(&|figures| (figures.total.as_secs_f64(), figures.behind)),
        ]
    };
    let all = subjects.into_iter().map(|(key, subject)| {
        let ([events, stolen], predicted) = (pair(&key), predicted(&subject));
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
    let (first, others): (Vec<_>, Vec<_>) = culprit_hypotheses(sides, rules.margin, predicted)?
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
            rows.push(CulpritDiff::new(subject, predicted, events, stolen));
        }
    }
    // Predicted culprits first, then decided ones, then by size of the change.
    let weight =
        |row: &CulpritDiff| row.stolen.second.unwrap_or(0.0) - row.stolen.first.unwrap_or(0.0);
    let decided = |row: &CulpritDiff| matches!(row.verdict, Verdict::Better | Verdict::Worse);
    rows.order_by(|a, b| {
        let rank = |row: &CulpritDiff| (!row.predicted, !decided(row));
        rank(a)
            .cmp(&rank(b))
            .then(weight(b).abs().total_cmp(&weight(a).abs()))
    });
    Some(rows)
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
    fn the_change_of_a_culprit_is_judged_by_its_time_and_the_margin() {
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
        let of = |events, stolen| {
            let (events, stolen) = (comparison(1.0, 2.0, events), comparison(1.0, 2.0, stolen));
            CulpritDiff::new(subject.clone(), false, events, stolen)
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
            let row = of(events, stolen);
            assert_eq!(
                (row.verdict, row.telling().verdict),
                (expected, expected),
                "{events:?} {stolen:?}"
            );
        }
        assert_eq!(
            of(Verdict::Better, Verdict::Better).title(),
            "softirq NET_RX"
        );
    }
}
