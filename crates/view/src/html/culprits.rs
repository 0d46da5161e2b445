//! The culprits.

use super::charts;
use super::markup::Markup;
use crate::chart::ChartKind;
use crate::drawn::Drawn;
use crate::report::Links;
use crate::text::{culprits, headline};

pub(super) fn render(body: &mut Markup, run: &Drawn, links: &Links<'_>) {
    body.section("culprits", "Culprits");
    let report = match (&run.summary.attribution, headline::unproven(&run.summary)) {
        (_, Some(why)) => Err(why),
        (None, None) => Err(
            "Stalls were only counted: nothing recorded what ran instead. Under Trust is what would show it.".into(),
        ),
        (Some(attribution), None) => Ok(culprits::report(&run.summary, attribution)),
    };
    match report {
        Err(why) => {
            body.note(&why);
        }
        Ok(report) if report.is_empty() => {
            body.note("Nothing was stolen.");
        }
        Ok(report) => {
            charts::figure(body, run, ChartKind::Culprits);
            report.html(body, links);
            body.note(
                "Dashed bars, and names after \u{201c}hypervisor\u{201d}, \u{201c}unresolved\u{201d} and the \
                 like, are time that nothing recorded explains: a verdict by exclusion, or none.",
            );
        }
    }
    body.end();
}
