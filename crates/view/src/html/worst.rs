//! The longest stalls, with links into the timeline.

use super::markup::Markup;
use crate::chart::words as chart;
use crate::drawn::Drawn;
use crate::number::count;
use crate::report::Links;
use crate::text::{headline, worst};
use jitterscope_analyze::picture::CurveOf;
use jitterscope_model::Nanos;

/// The number of rows shown at first.
const FEW: usize = 20;

pub(super) fn render(body: &mut Markup, run: &Drawn, links: &Links<'_>) {
    let noun = chart::noun(run);
    body.section("worst", &format!("Worst {}", noun.many));
    if run.summary.worst.is_empty() {
        body.note(&format!("No {} was recorded.", noun.one));
    } else {
        for why in headline::unproven(&run.summary)
            .into_iter()
            .chain(only_counted(run))
        {
            body.note(&why);
        }
        worst::report(&run.summary, FEW).html(body, links);
    }
    body.end();
}

/// The messages missing from the list, if more were slow than have rows.
fn only_counted(run: &Drawn) -> Option<String> {
    let slow = chart::slow_messages(run)?;
    let note = format!(
        "Of {} slow messages {} were recorded one by one, and these are the longest of those",
        count(slow),
        count(run.picture.stalls_read)
    );
    let intended = run
        .picture
        .curves
        .iter()
        .filter(|curve| matches!(curve.of, CurveOf::FromIntended(_)));
    let longest = intended.map(|curve| curve.longest().1).fold(0.0, f64::max);
    let here = run
        .summary
        .worst
        .iter()
        .map(|stall| stall.duration_ns.0)
        .max()
        .unwrap_or(0);
    // Distributions keep three digits.
    match longest > here as f64 * 1.01 {
        true => Some(format!(
            "{note}: the longest of all, {}, has no row.",
            Nanos(longest as u64)
        )),
        false => Some(format!("{note}; the others have no row.")),
    }
}
