//! The five largest culprits of all kinds in one ranking.

use crate::number::{count, percent_cell};
use crate::style::{Style, Tone, fit, tame};
use crate::text::Page;
use crate::words;
use jitterscope_analyze::{AttributionSummary, Blame, CulpritRow, RunSummary};
use jitterscope_model::{Nanos, Subject};
use std::collections::HashSet;

const ROWS: usize = 5;
/// The column of names.
const NAME: usize = 39;
/// Rows below this share have no explanation.
const EXPLAINED_FROM: f64 = 0.005;

struct RankedCulprit<'a> {
    share: f64,
    total: Nanos,
    times: u64,
    max: Nanos,
    subject: &'a Subject,
    /// The name, and details that distinguish it.
    name: String,
    detail: String,
    phrase: String,
}

/// The largest culprits, and the rest.
pub(super) struct Ranking<'a> {
    head: String,
    rows: Vec<RankedCulprit<'a>>,
    rest: Vec<RankedCulprit<'a>>,
}

impl<'a> Ranking<'a> {
    /// The ranking of all stalled time, explained or not; `None` if there was none.
    pub(super) fn of_culprits(
        summary: &RunSummary,
        attribution: &'a AttributionSummary,
    ) -> Option<Ranking<'a>> {
        let times = if summary.wakeup.is_some() {
            "wake-ups"
        } else {
            "stalls"
        };
        let all = attribution
            .culprits
            .iter()
            .chain(&attribution.unexplained.classes)
            .map(of_culprit);
        Ranking::of("stolen", times, all.collect())
    }

    /// The ranking of what delayed a consumer's messages.
    pub(super) fn of_blame(blame: &'a Blame) -> Option<Ranking<'a>> {
        let all = blame.rows.iter().map(|row| RankedCulprit {
            share: row.share,
            total: row.total_ns,
            times: row.messages,
            max: row.max_ns,
            subject: &row.subject,
            name: words::phase_and_name(Some(&row.phase), &row.subject),
            detail: words::detail(&row.subject, row.threads),
            phrase: String::new(),
        });
        Ranking::of("time", "messages", all.collect())
    }

    fn of(time: &str, times: &str, mut rows: Vec<RankedCulprit<'a>>) -> Option<Ranking<'a>> {
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        // Details distinguish equal names; otherwise the explanation of such a class suffices.
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        for row in &mut rows {
            let alone = names.iter().filter(|name| **name == row.name).count() == 1;
            if alone && !row.subject.kind().is_explained() && !row.phrase.is_empty() {
                row.detail.clear();
            }
        }
        let rest = rows.split_off(ROWS.min(rows.len()));
        let head = format!("   share {time:>8} {times:>10}      max  culprit");
        (!rows.is_empty()).then_some(Ranking { head, rows, rest })
    }

    /// The number of lines without explanations, with or without a blank line above.
    pub(super) fn needed(&self, blank: bool) -> usize {
        usize::from(blank) + 1 + self.rows.len() + usize::from(!self.rest.is_empty())
    }

    /// At most `lines` lines, at least four: first the explanations go, then the smallest culprits join the rest.
    pub(super) fn text(&self, lines: usize, blank: bool, style: Style) -> String {
        let mut page = Page::new(style);
        if blank {
            page.line("");
        }
        page.line(&style.paint(Tone::Dim, &self.head));
        let mut spare = lines.saturating_sub(self.needed(blank));
        let shown = if lines < self.needed(blank) {
            lines.saturating_sub(2 + usize::from(blank)).max(1)
        } else {
            self.rows.len()
        };
        let (rows, small) = self.rows.split_at(shown.min(self.rows.len()));
        let mut printed = HashSet::new();
        for row in rows {
            row_line(&mut page, row, &self.rows);
            if !printed.insert(&row.phrase) {
                continue;
            }
            if spare > 0 && row.share >= EXPLAINED_FROM && !row.phrase.is_empty() {
                let phrase = fit(&row.phrase, style.columns() - NAME);
                page.line(&format!(
                    "{}{}",
                    " ".repeat(NAME),
                    style.paint(Tone::Dim, &phrase)
                ));
                spare -= 1;
            }
        }
        let more: Vec<&RankedCulprit<'_>> = small.iter().chain(&self.rest).collect();
        if !more.is_empty() {
            let total: Nanos = more.iter().map(|row| row.total).sum();
            let mut text = format!(
                "{:>8} {:>8}  {} more",
                percent_cell(more.iter().map(|row| row.share).sum()),
                total.to_string(),
                more.len()
            );
            // Many names together may hide a culprit that would rank higher.
            let least = rows.last().map_or(Nanos::ZERO, |row| row.total);
            if let Some((common, time)) =
                words::in_common(more.iter().map(|row| (row.subject, row.total)))
                && more.len() > 1
                && time > least
            {
                text += &format!(", {common}");
            }
            let text = fit(&text, style.columns());
            page.line(&style.paint(Tone::Dim, &text));
        }
        page.into_text()
    }
}

fn of_culprit(row: &CulpritRow) -> RankedCulprit<'_> {
    RankedCulprit {
        share: row.share,
        total: row.total_ns,
        times: row.count,
        max: row.max_ns,
        subject: &row.subject,
        name: words::kind_and_name(&row.subject),
        detail: words::row_detail(row),
        phrase: words::row_explanation(row),
    }
}

fn row_line(page: &mut Page, row: &RankedCulprit<'_>, all: &[RankedCulprit<'_>]) {
    let numbers = format!(
        "{:>8} {:>8} {:>10} {:>8}  ",
        percent_cell(row.share),
        row.total.to_string(),
        count(row.times),
        row.max.to_string()
    );
    let room = page.style.columns() - NAME;
    let name = fit(&row.name, room);
    let tone = if row.subject.kind().is_explained() {
        Tone::Strong
    } else {
        Tone::Warning
    };
    let mut line = format!("{numbers}{}", page.style.paint(tone, &name));
    let width = unicode_width::UnicodeWidthStr::width(name.as_str());
    let mut detail = tame(&row.detail);
    let left = room.saturating_sub(width + 2);
    let mut fits = unicode_width::UnicodeWidthStr::width(detail.as_str()) <= left;
    let of_name = || all.iter().filter(|other| other.name == row.name);
    if !fits
        && of_name().count() > 1
        && let Subject::Quota(quota) =
            words::group_apart(row.subject, of_name().map(|other| other.subject), left)
    {
        // Of several quotas, the group alone distinguishes them.
        (detail, fits) = (quota.cgroup.to_string(), true);
    }
    // A detail that alone distinguishes rows is cut rather than omitted.
    if !detail.is_empty() && (fits || (!row.subject.kind().is_explained() && left > 8)) {
        line += &page
            .style
            .paint(Tone::Dim, &format!("  {}", fit(&detail, left)));
    }
    page.line(&line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Quota;

    #[test]
    fn two_quotas_of_long_groups_are_distinguishable() {
        let subjects = ["one", "two"].map(|name| {
            Subject::Quota(Quota {
                cgroup: format!("/kubepods.slice/burstable.slice/pod-0123456789/{name}").into(),
                limit: None,
                beside: None,
            })
        });
        let rows = subjects.each_ref().map(|subject| RankedCulprit {
            share: 0.5,
            total: Nanos(5),
            times: 1,
            max: Nanos(5),
            subject,
            name: words::kind_and_name(subject),
            detail: words::detail(subject, 1),
            phrase: String::new(),
        });
        let ranking = Ranking::of("stolen", "stalls", rows.into()).unwrap();
        let text = ranking.text(20, false, Style::default());
        assert!(text.contains("../one") && text.contains("../two"), "{text}");
    }
}
