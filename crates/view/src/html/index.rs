//! The served list of runs: a search, and a choice of two to compare.

use super::markup::Markup;
use super::{label, policy};
use crate::number::{percent, span, utc};
use crate::style::tame;
use jitterscope_model::{PutInOrder, RunHead};

/// The list, newest first. `wanted` is the search text and `chosen` the ids of A and B, as in the address. A chosen run
/// stays in the list, whatever the search.
#[must_use]
pub fn render(
    runs: &[RunHead],
    unreadable: usize,
    wanted: &str,
    chosen: [Option<&str>; 2],
) -> String {
    let mut body = Markup::default();
    body.raw(
        "<header><p class=\"brand\">jitterscope</p><h1>Runs</h1></header>\n<main>\n<section>\n",
    );
    // One form for both, so that a search keeps the choice; Enter presses the first of its buttons.
    body.raw("<form method=\"get\" action=\"compare\">\n<p><label>Search <input type=\"search\" name=\"q\" value=\"");
    body.text(wanted)
        .raw("\"></label> <button formaction=\"./\" formnovalidate>Search</button></p>\n");
    let words: Vec<String> = wanted.split_whitespace().map(str::to_lowercase).collect();
    let is_chosen = |run: &RunHead| chosen.contains(&Some(run.id.as_str()));
    let found = |run: &&RunHead| matches(run, &words);
    let mut listed: Vec<&RunHead> = runs
        .iter()
        .filter(|run| found(run) || is_chosen(run))
        .collect();
    listed.order_by_key(|run| (found(run), std::cmp::Reverse(run.started_realtime_ns)));
    let any = listed.iter().any(found);
    if !any {
        body.note(if runs.is_empty() {
            "There are no runs yet: jitterscope record makes one."
        } else {
            "No run has all these words."
        });
    }
    if !listed.is_empty() {
        rows(&mut body, &listed, chosen);
    }
    body.raw("</form>\n");
    if unreadable > 0 {
        body.note(&format!(
            "{unreadable} more folders look like runs and cannot be read: jitterscope list says why."
        ));
    }
    body.end().raw("</main>\n");
    policy::served("Runs \u{2013} jitterscope", &body.into_string())
}

fn matches(run: &RunHead, words: &[String]) -> bool {
    let text = format!(
        "{} {} {} {} {}",
        run.id,
        run.label,
        run.hostname,
        run.probe.kind,
        utc(run.started_realtime_ns)
    )
    .to_lowercase();
    words.iter().all(|word| text.contains(word.as_str()))
}

fn rows(body: &mut Markup, runs: &[&RunHead], chosen: [Option<&str>; 2]) {
    body.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table>");
    body.raw("<caption><span>Runs, the newest first; choose one as A and one as B to compare them</span></caption>\n<thead><tr>");
    for head in ["A", "B"] {
        body.element("<th scope=\"col\" class=\"pick\">", head, "</th>");
    }
    for head in ["label", "id", "started (UTC)", "probe", "CPUs"] {
        body.element("<th scope=\"col\">", head, "</th>");
    }
    for head in ["length", "stalls", "stolen", "worst"] {
        body.element("<th scope=\"col\" class=\"n\">", head, "</th>");
    }
    body.raw("<th scope=\"col\">host</th></tr></thead>\n<tbody>\n");
    for run in runs {
        let figures = &run.figures;
        let label = label(&run.label);
        body.raw("<tr>");
        for (name, chosen) in ["a", "b"].into_iter().zip(chosen) {
            let checked = chosen == Some(run.id.as_str());
            body.raw("<td class=\"pick\"><input type=\"radio\" required name=\"")
                .raw(name)
                .raw("\" value=\"");
            body.text(&run.id)
                .raw("\" aria-label=\"")
                .text(&format!("{label} as {name}"))
                .raw("\"");
            body.raw(if checked { " checked></td>" } else { "></td>" });
        }
        body.raw("<td><a href=\"run/")
            .text(&run.id)
            .raw("\">")
            .text(&label)
            .raw("</a></td>");
        for text in [
            tame(&run.id),
            utc(run.started_realtime_ns),
            crate::words::probe(&run.probe.kind),
            figures.cpus.to_string(),
        ] {
            body.element("<td class=\"when\">", &text, "</td>");
        }
        let number = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".into());
        for text in [
            span(figures.duration_ns),
            number(figures.stalls.map(crate::number::count)),
            number(figures.stolen_fraction.map(percent)),
            number(figures.max_ns.map(|ns| ns.to_string())),
        ] {
            body.element("<td class=\"n\">", &text, "</td>");
        }
        body.element("<td>", &run.hostname, "</td>").raw("</tr>\n");
    }
    body.raw("</tbody></table></div>\n<p><button>Compare A and B</button></p>\n");
}
