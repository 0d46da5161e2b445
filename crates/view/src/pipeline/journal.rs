//! A pipeline's journal as text.

use crate::number::count;
use crate::style::{Style, Tone};
use crate::text::Page;
use jitterscope_analyze::{JournalSummary, MESSAGE_LEVELS, TimesSummary};
use jitterscope_model::{JournalEntry, Nanos};

/// The columns of a table of records.
#[must_use]
pub fn table_head() -> String {
    format!(
        "{:>11} {:>20} {:>20} {:>12}\n",
        "sequence", "published (ns)", "journalled (ns)", "transit (ns)"
    )
}

/// A record as a row of the table.
#[must_use]
pub fn table_row(entry: &JournalEntry) -> String {
    let JournalEntry {
        sequence,
        published_ns,
        journalled_ns,
        delta_ns,
    } = entry;
    format!("{sequence:>11} {published_ns:>20} {journalled_ns:>20} {delta_ns:>12}\n")
}

/// The names of the CSV columns.
#[must_use]
pub fn csv_head() -> &'static str {
    "sequence,published_ns,journalled_ns,delta_ns\n"
}

/// A record as a line of CSV.
#[must_use]
pub fn csv_row(entry: &JournalEntry) -> String {
    format!(
        "{},{},{},{}\n",
        entry.sequence, entry.published_ns, entry.journalled_ns, entry.delta_ns
    )
}

/// A summary of the journal in a few lines.
#[must_use]
pub fn summary(path: &str, journal: &JournalSummary, style: Style) -> String {
    let mut page = Page::new(style);
    page.line(&style.paint(Tone::Strong, &crate::style::tame(path)));
    let (Some(first), Some(last)) = (journal.first_published_ns, journal.last_journalled_ns) else {
        page.line("No records.");
        damage(&mut page, journal);
        return page.into_text();
    };
    let span = Nanos(u64::try_from(last.saturating_sub(first)).unwrap_or(0));
    page.line(&format!(
        "{} records over {span}, numbers {} to {}",
        count(journal.records),
        journal.first_sequence.unwrap_or_default(),
        journal.last_sequence.unwrap_or_default()
    ));
    page.line("");
    let mut head = " ".repeat(9);
    for name in MESSAGE_LEVELS.iter().map(|(name, _)| *name).chain(["max"]) {
        head += &format!("{name:>8}");
    }
    page.line(&style.paint(Tone::Dim, &head));
    for (name, times) in [("transit", &journal.transit), ("between", &journal.inter)] {
        page.line(&row(name, times));
    }
    for (n, what) in [
        (journal.out_of_sequence, "do not follow the number before"),
        (
            journal.inconsistent,
            "state a difference that is not that of their times",
        ),
    ] {
        if n > 0 {
            page.prose(
                Some(Tone::Warning),
                0,
                &format!("{} records {what}.", count(n)),
            );
        }
    }
    damage(&mut page, journal);
    page.into_text()
}

fn row(name: &str, times: &TimesSummary) -> String {
    let mut line = format!("{name:<9}");
    for (level, _) in MESSAGE_LEVELS {
        let value = times
            .supported(level)
            .map_or_else(|| "-".into(), |time| time.to_string());
        line += &format!("{value:>8}");
    }
    format!("{line}{:>8}", times.max_ns.to_string())
}

fn damage(page: &mut Page, journal: &JournalSummary) {
    if let Some(damage) = &journal.damage {
        page.prose(
            Some(Tone::Bad),
            0,
            &format!("It ends in damage: {}.", damage.why),
        );
    }
}
