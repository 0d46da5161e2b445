//! The outcome of an experiment as Markdown, for the summary page of a build.

use crate::gate::gate_outcome;
use jitterscope_analyze::gate::{GateResult, GateVerdict};
use jitterscope_model::visible;

/// A title, the conditions, and the whole text as it is on a screen.
#[must_use]
pub fn markdown(title: &str, conditions: &[GateResult], text: &str) -> String {
    let mut page = format!("### {}\n\n", cell(title));
    if !conditions.is_empty() {
        page.push_str("| | condition | outcome |\n|---|---|---|\n");
    }
    for result in conditions {
        let mark = match result.verdict {
            GateVerdict::Kept => "ok",
            GateVerdict::Exceeded => "**FAILED**",
            GateVerdict::Undecided => "**undecided**",
        };
        let [condition, outcome] = [&result.condition, &gate_outcome(result)].map(|of| cell(of));
        page.push_str(&format!("| {mark} | {condition} | {outcome} |\n"));
    }
    let text = text.trim_matches('\n');
    // A name in the text may contain backticks; a longer fence keeps them inside.
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    page.push_str(&format!("\n{fence}text\n{text}\n{fence}\n"));
    page
}

/// Text that has no meaning in Markdown or HTML.
pub(crate) fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' => safe.extend(['\\', c]),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_neither_markup_nor_cells() {
        let kept = GateResult {
            condition: "culprit(a|<b>*)>1%".into(),
            verdict: GateVerdict::Undecided,
            value: None,
            why: None,
            note: None,
        };
        let page = markdown("knob `a`", &[kept], "thread ```` x\nend\n");
        assert!(page.starts_with("### knob \\`a\\`\n"), "{page}");
        let row = page.lines().find(|line| line.contains("culprit")).unwrap();
        let bars = row.replace("\\|", "").matches('|').count();
        assert!(bars == 4 && row.contains("&lt;b>\\*"), "{page}");
        assert!(
            page.ends_with("`````text\nthread ```` x\nend\n`````\n"),
            "{page}"
        );
    }
}
