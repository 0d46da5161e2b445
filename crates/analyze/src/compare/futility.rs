//! Whether more pairs would hardly decide anything.

use super::culprits::{culprit_hypotheses, title};
use super::diff::{of_figure, total_title};
use super::{DiffRules, FigureKind, Hypothesis, Looks, Side};
use jitterscope_model::Subject;

/// Whether an experiment may be given up after the pairs of these sides: nothing that was fixed to be asked, and is not
/// decided yet, is likely to be by the last look, and no other culprit is about to be called better or worse.
/// `decided` says whether what is called so is; the other arguments are those of [`super::diff`].
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
    // Where a run names nobody, nothing is ever decided of culprits.
    let culprits = culprit_hypotheses(sides, rules.margin, &predicted).unwrap_or_default();
    let among = 2 * culprits.iter().filter(|of| !of.predicted).count();
    let hardly = |figure: &Hypothesis, among: usize| {
        values(figure).is_none_or(|[first, second]| looks.hardly_differs(&first, &second, among))
    };
    culprits.iter().all(|of| match of.predicted {
        // Its stolen time decides that it is equivalent, either figure that it is not.
        true => {
            decided(&title(&of.subject))
                || (hardly(&of.events, 1) && is_given_up(&of.stolen, looks))
        }
        false => hardly(&of.events, among) && hardly(&of.stolen, among),
    })
}

/// Whether a figure is hardly decided by the last look, or never: where a run does not have it.
fn is_given_up(figure: &Hypothesis, looks: &Looks) -> bool {
    values(figure)
        .is_none_or(|[first, second]| looks.futile(&first, &second, figure.margin, figure.grain))
}

fn values(figure: &Hypothesis) -> Option<[Vec<f64>; 2]> {
    let all = |arm: &[Option<f64>]| arm.iter().copied().collect::<Option<Vec<f64>>>();
    Some([all(&figure.first)?, all(&figure.second)?])
}
