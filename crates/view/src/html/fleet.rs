//! The page of a fleet.

use super::markup::Markup;
use super::policy;
use crate::report::{Links, Report};

/// A stand-alone page of a report.
pub(crate) fn fleet_page(title: &str, report: &Report) -> String {
    let mut body = Markup::default();
    body.raw("<header><p class=\"brand\">jitterscope</p>");
    body.element("<h1>", title, "</h1></header>\n<main>\n<section>\n");
    report.html(&mut body, &Links::default());
    body.end().raw("</main>\n");
    policy::document(
        &format!("{title} \u{2013} jitterscope"),
        &body.into_string(),
        &[],
    )
}
