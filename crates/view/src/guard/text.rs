//! The text of a series: one screen, or a line of each iteration.

use super::words;
use crate::number::percent_cell;
use crate::style::{Style, Tone, fit, pad};
use crate::text::Page;
use jitterscope_analyze::guard::{Contamination, Iteration, Series};

/// The columns of a row before the culprit, and of the run's id behind it.
const BEFORE: usize = 47;
const ID: usize = 6;
/// The fewest rows of a screen.
const ROWS: usize = 2;
/// The most lines of reasons on a screen.
const REASONS: usize = 2;

/// What the reader may do next.
#[derive(Clone, Debug)]
pub struct Next {
    /// The program's command line that finds the runs.
    pub program: String,
}

/// The headline and a table. `full`: all iterations and reasons, on as many lines as it takes.
#[must_use]
pub fn render(series: &Series, next: &Next, full: bool, style: Style) -> String {
    let mut head = Page::new(style);
    let headline = series.headline();
    let title = format!("`{}`", words::command(series));
    head.line(&fit(&title, style.columns()));
    head.prose(Some(Tone::Strong), 0, &words::times(series, &headline));
    let tone = match series.outcome() {
        Contamination::Clean => Tone::Good,
        Contamination::Contaminated => Tone::Bad,
        Contamination::Unknown => Tone::Warning,
    };
    head.prose(Some(tone), 0, &words::disturbed(series, &headline));
    if let Some(text) = words::ended(series) {
        head.prose(Some(Tone::Warning), 0, &text);
    }
    if let Some(text) = words::disturbed_by_us(series) {
        head.prose(None, 0, &text);
    }
    if let Some(text) = words::own(series) {
        head.prose(Some(Tone::Dim), 0, &text);
    }
    let foot = foot(series, next, full, style);
    let mut page = head;
    if !series.iterations.is_empty() {
        page.line("");
        page.line(&heads(style));
    }
    let mut text = page.into_text();
    // A line for the rest of the iterations, and one for the prompt.
    let used = text.lines().count() + foot.lines().count() + 2;
    let room = match full {
        true => usize::MAX,
        false => style.lines().saturating_sub(used).max(ROWS),
    };
    text += &table(series, room, style);
    text + &foot
}

/// The heads of [`row`]'s columns.
fn heads(style: Style) -> String {
    let head = "   #      time     lost   share  verdict       most to";
    let run = " ".repeat(style.columns().saturating_sub(head.len() + ID));
    style.paint(Tone::Dim, &format!("{head}{run}run"))
}

fn table(series: &Series, room: usize, style: Style) -> String {
    let mut page = Page::new(style);
    let shown = shown(series, room);
    let of_each = series.iterations.iter().enumerate();
    for (at, iteration) in of_each.filter(|(at, _)| shown.contains(at)) {
        page.line(&row(at, iteration, style));
    }
    let more = series.iterations.len() - shown.len();
    if more > 0 {
        let text = format!("{more} more (--full shows them)");
        page.prose(Some(Tone::Dim), 4, &text);
    }
    page.into_text()
}

/// The iterations that fit: the contaminated ones first, then the unknown ones, then those that lost most.
fn shown(series: &Series, room: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..series.iterations.len()).collect();
    let weight = |at: &usize| {
        let of = &series.iterations[*at];
        let kind = match of.contamination {
            Contamination::Contaminated => 0,
            Contamination::Unknown => 1,
            Contamination::Clean => 2,
        };
        (kind, -of.stolen.share())
    };
    numbers.sort_by(|a, b| {
        let (a, b) = (weight(a), weight(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    numbers.truncate(room);
    numbers
}

/// An iteration in a line.
fn row(at: usize, iteration: &Iteration, style: Style) -> String {
    let verdict = pad(words::verdict(iteration), 12);
    let verdict = match iteration.contamination {
        Contamination::Clean => verdict,
        Contamination::Contaminated => style.paint(Tone::Bad, &verdict),
        Contamination::Unknown => style.paint(Tone::Warning, &verdict),
    };
    let time = match iteration.is_whole() {
        true => iteration.time.to_string(),
        false => "ended".into(),
    };
    let room = style.columns().saturating_sub(BEFORE + ID + 2);
    format!(
        "{:>5} {time:>8} {:>8} {:>7}  {verdict}  {}  {}",
        words::number(at, iteration),
        iteration.stolen.lost().to_string(),
        percent_cell(iteration.stolen.share()),
        pad(&words::culprit_name(iteration), room),
        fit(&iteration.run, ID)
    )
}

/// Reasons, cost, and what to do next.
fn foot(series: &Series, next: &Next, full: bool, style: Style) -> String {
    let mut page = Page::new(style);
    let of_each = series.iterations.iter().enumerate();
    let mut reasons: Vec<String> = of_each
        .filter(|(_, one)| !one.unsure.is_empty())
        .flat_map(|(at, one)| {
            let text = format!("Iteration {}: {}.", at + 1, words::all_unsure(one));
            style.prose(Some(Tone::Warning), 0, &text)
        })
        .collect();
    let all = reasons.len();
    if !full {
        reasons.truncate(REASONS);
    }
    for line in &reasons {
        page.line(line);
    }
    if all > reasons.len() {
        page.prose(Some(Tone::Dim), 0, "More reasons: --full shows them.");
    }
    page.prose(Some(Tone::Dim), 0, words::COST);
    if let Some(worst) = series.worst() {
        let program = &next.program;
        let text = format!(
            "Longest stall where most was lost: `{program} report {} --worst 1`",
            worst.run
        );
        page.prose(None, 0, &text);
    }
    page.into_text()
}
