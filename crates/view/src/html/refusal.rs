//! A served page that says why there is no other.

use super::markup::Markup;
use super::policy;

/// The page. `list`: where the list of runs is.
#[must_use]
pub fn render(heading: &str, why: &str, list: &'static str) -> String {
    let mut body = Markup::default();
    body.raw("<header><p class=\"brand\"><a href=\"")
        .raw(list)
        .raw("\">jitterscope</a></p>");
    body.element("<h1>", heading, "</h1></header>\n<main>\n<section>\n");
    body.element("<p class=\"warning\">", why, "</p>\n");
    body.raw("<p><a href=\"")
        .raw(list)
        .raw("\">To the list of runs</a></p>\n")
        .end()
        .raw("</main>\n");
    policy::served(
        &format!("{heading} \u{2013} jitterscope"),
        &body.into_string(),
    )
}
