//! Whether more pairs are unlikely to decide anything.

use super::culprits::{culprit_hypotheses, title};
use super::diff::{of_figure, total_title};
use super::{DiffRules, FigureKind, Hypothesis, Looks, Side};
use jitterscope_model::Subject;

/// Whether an experiment may stop early after these pairs: no undecided planned question is likely to be decided by the
/// last look, and no other culprit is about to become better or worse. `decided` returns whether the question of that
/// title is decided; the other arguments are those of [`super::diff()`].
#[must_use]
pub fn is_futile(
    sides: [&Side; 2],
    looks: &Looks,
    rules: DiffRules,
    knobs: &[String],
    answers: &dyn Fn(&str, &Subject) -> bool,
    decided: &dyn Fn(&str) -> bool,
) -> bool {
    let mut kinds: Vec<FigureKind> = Vec::new();
    let figures = sides
        .iter()
        .flat_map(|side| &side.runs)
        .flat_map(|run| &run.figures);
    for kind in figures
        .map(|figure| figure.kind)
        .filter(|kind| kind.is_total())
    {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for (at, kind) in kinds.into_iter().enumerate() {
        let total = of_figure(sides, kind, rules.margin);
        if !decided(&total_title(at, kind)) && !is_given_up(&total, looks) {
            return false;
        }
    }
    let predicted = |subject: &Subject| knobs.iter().any(|knob| answers(knob, subject));
    // If a run names no culprits, culprits are never decided.
    let culprits = culprit_hypotheses(sides, rules.margin, &predicted).unwrap_or_default();
    let among = 2 * culprits.iter().filter(|of| !of.predicted).count();
    let hardly = |figure: &Hypothesis, among: usize| {
        values(figure).is_none_or(|[first, second]| looks.hardly_differs(&first, &second, among))
    };
    culprits.iter().all(|of| match of.predicted {
        // The stolen time decides equivalence; either figure decides a difference.
        true => {
            decided(&title(&of.subject))
                || (hardly(&of.events, 1) && is_given_up(&of.stolen, looks))
        }
        false => hardly(&of.events, among) && hardly(&of.stolen, among),
    })
}

/// Whether a figure is unlikely to be decided by the last look. True if a run does not have it.
fn is_given_up(figure: &Hypothesis, looks: &Looks) -> bool {
    values(figure)
        .is_none_or(|[first, second]| looks.futile(&first, &second, figure.margin, figure.grain))
}

fn values(figure: &Hypothesis) -> Option<[Vec<f64>; 2]> {
    let all = |arm: &[Option<f64>]| arm.iter().copied().collect::<Option<Vec<f64>>>();
    Some([all(&figure.first)?, all(&figure.second)?])
}
