//! A served page that explains why the requested one is missing.

use super::markup::Markup;
use super::policy;

/// Renders the page. `list`: the address of the list of runs.
#[must_use]
pub fn render(heading: &str, why: &str, list: &str) -> String {
    let mut body = Markup::default();
    body.raw("<header><p class=\"brand\"><a href=\"")
        .text(list)
        .raw("\">jitterscope</a></p>");
    body.element("<h1>", heading, "</h1></header>\n<main>\n<section>\n");
    body.element("<p class=\"warning\">", why, "</p>\n");
    body.raw("<p><a href=\"")
        .text(list)
        .raw("\">To the list of runs</a></p>\n")
        .end()
        .raw("</main>\n");
    policy::served(
        &format!("{heading} \u{2013} jitterscope"),
        &body.into_string(),
    )
}
