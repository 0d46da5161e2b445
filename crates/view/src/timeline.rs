//! One stall as a timeline of nested frames.

mod fold;

use crate::number::{count, moment, percent, utc};
use crate::style::{Style, Tone, fit, pad, shortened as shortened_to, wrap};
use crate::words;
use fold::{Line, fold};
use jitterscope_model::{
    CpuId, CulpritSums, KeyLevel, Nanos, Part, ProbeKind, StallId, SumRow, TimelineItem,
    TimelineRow,
};
use serde::Serialize;

/// What a stall was to its victim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StallKind {
    /// A gap between two clock reads of a spinning probe.
    #[default]
    Gap,
    /// A wake-up after its deadline.
    LateWakeup,
    /// A message that was dealt with long after its intended publication.
    SlowMessage,
    /// A followed thread that wanted to run and did not.
    Wait,
    /// Something else ran on a watched CPU than what belongs there.
    Taken,
}

/// What one and several of them are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Noun {
    pub(crate) one: &'static str,
    pub(crate) many: &'static str,
    /// Several, as they begin a sentence.
    #[serde(skip)]
    pub(crate) heading: &'static str,
}

impl Noun {
    /// `1 stall`, `1,234 slow messages`.
    pub(crate) fn counted(self, n: u64) -> String {
        format!("{} {}", count(n), if n == 1 { self.one } else { self.many })
    }
}

impl StallKind {
    /// Of the runs of a probe.
    #[must_use]
    pub fn of_probe(probe: &str) -> StallKind {
        match ProbeKind::from_word(probe) {
            Some(ProbeKind::Wakeup) => StallKind::LateWakeup,
            Some(ProbeKind::Pipeline) => StallKind::SlowMessage,
            Some(ProbeKind::Attach) => StallKind::Wait,
            Some(ProbeKind::Passive) => StallKind::Taken,
            Some(ProbeKind::Spin) | None => StallKind::Gap,
        }
    }

    /// What those of a run are called.
    #[must_use]
    pub(crate) fn noun(self) -> Noun {
        let (one, many, heading) = match self {
            StallKind::Gap => ("stall", "stalls", "Stalls"),
            StallKind::LateWakeup => ("late wake-up", "late wake-ups", "Late wake-ups"),
            StallKind::SlowMessage => ("slow message", "slow messages", "Slow messages"),
            StallKind::Wait => ("wait", "waits", "Waits"),
            StallKind::Taken => ("stolen stretch", "stolen stretches", "Stolen stretches"),
        };
        Noun { one, many, heading }
    }

    /// What it is called, what leads to the victim's name, how it began and how it ended.
    fn words(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            StallKind::Gap => (
                "stall",
                "it stalled",
                "last clock read before",
                "first clock read after",
            ),
            StallKind::LateWakeup => ("late wake-up", "of", "the deadline", "awake"),
            StallKind::SlowMessage => (
                "slow message",
                "read by",
                "intended publication",
                "dealt with",
            ),
            StallKind::Wait => ("wait", "of", "it could run from here on", "it ran"),
            StallKind::Taken => (
                "stolen time",
                "from",
                "it could run from here on",
                "it ran again",
            ),
        }
    }
}

/// A stall to be shown. Times are relative to its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineView {
    /// Its number within the run.
    pub stall: StallId,
    /// Where.
    pub cpu: CpuId,
    /// What kind of stall.
    pub kind: StallKind,
    /// Name of the thread that was stalled.
    pub victim: String,
    /// Length.
    pub duration: Nanos,
    /// Start, nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// Start, since that of the measurement.
    pub start_offset: Nanos,
    /// Frames and instants, CPU by CPU in order of their start; a frame before what is nested in it.
    pub rows: Vec<TimelineRow>,
    /// Its parts, largest first.
    pub parts: Vec<Part>,
    /// What limits the view: `no kernel event inside`, `the trace of this stall was not kept`.
    pub remarks: Vec<String>,
}

/// Columns of the bar that shows where in the stall a frame lies.
const BAR: usize = 20;
/// Columns before the label: two numbers, the bar and what stands between.
const BEFORE_LABEL: usize = 11 + 1 + 11 + 1 + BAR + 2 + 1;
/// Column of notes that do not fit beside their label.
const NOTE: usize = 25;
/// Lines of frames that are read at all: with more, the shortest are counted together.
const MOST_LINES: usize = 60;
/// Lines that short ones take.
const SHORT_LINES: usize = 2;
/// Nesting shown by indentation; deeper frames are indented as much.
const DEEPEST: usize = 8;

/// The timeline as text.
#[must_use]
pub fn render(view: &TimelineView, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let (what, victim, from, to) = view.kind.words();
    let title = format!(
        "{what} {} on CPU {}: {}",
        view.stall.0, view.cpu, view.duration
    );
    line(&style.paint(Tone::Strong, &title));
    line(&style.paint(
        Tone::Dim,
        &fit(
            &format!(
                "{} after the start, {} UTC; {victim} {}",
                moment(view.start_offset),
                utc(view.start_realtime_ns),
                view.victim
            ),
            style.columns(),
        ),
    ));
    for remark in &view.remarks {
        for text in wrap(remark, style.columns()) {
            line(&style.paint(Tone::Warning, &text));
        }
    }
    line("");
    let unit = Unit::of(view.duration);
    let (start, length) = (
        format!("start {}", unit.name()),
        format!("length {}", unit.name()),
    );
    line(&style.paint(Tone::Dim, &format!("{start:>11} {length:>11}")));
    let edge = |at: Nanos, what: &str| {
        style.paint(
            Tone::Dim,
            &format!(
                "{:>11} {:>11} {}{what}",
                unit.of_time(at),
                "",
                " ".repeat(BAR + 3)
            ),
        )
    };
    line(&edge(Nanos::ZERO, from));
    let (mut cpu, mut shortened) = (None, false);
    let most = if style.all_records {
        usize::MAX
    } else {
        MOST_LINES
    };
    for folded in fold(&view.rows, view.duration, most) {
        let row = match folded {
            Line::Row(row) => row,
            Line::Short {
                rows,
                depth,
                start,
                total,
                most,
            } => {
                let indent = " ".repeat(2 * depth.min(DEEPEST));
                let numbers = format!("{:>11} {:>11}", unit.of_time(start), unit.of_time(total));
                let room = style.columns().saturating_sub(BEFORE_LABEL + indent.len());
                let named = most.iter().map(|(what, time, times)| match times {
                    1 => format!("{what} {time}"),
                    times => format!("{what} {time} ({} times)", count(*times as u64)),
                });
                let text = format!(
                    "{} short records: {}",
                    count(rows as u64),
                    named.collect::<Vec<_>>().join(", ")
                );
                for (at, text) in shortened_to(&text, room, SHORT_LINES)
                    .into_iter()
                    .enumerate()
                {
                    let numbers = if at == 0 {
                        numbers.clone()
                    } else {
                        " ".repeat(11 + 1 + 11)
                    };
                    line(&style.paint(
                        Tone::Dim,
                        &format!("{numbers} {}{indent}{text}", " ".repeat(BAR + 3)),
                    ));
                }
                shortened = true;
                continue;
            }
            Line::More {
                times,
                frames,
                depth,
                start,
                total,
            } => {
                let what = if frames == 1 {
                    "that".to_owned()
                } else {
                    format!("the last {frames}")
                };
                let indent = " ".repeat(2 * depth.min(DEEPEST));
                let numbers = format!("{:>11} {:>11}", unit.of_time(start), unit.of_time(total));
                let text = format!(
                    "{numbers} {}{indent}{what}, {times} times more",
                    " ".repeat(BAR + 3)
                );
                line(&style.paint(Tone::Dim, &text));
                continue;
            }
        };
        if let Some(here) = row.cpu.filter(|here| cpu != Some(*here)) {
            line(&style.paint(
                Tone::Dim,
                &format!("{}CPU {here}", " ".repeat(BEFORE_LABEL - 1)),
            ));
            cpu = Some(here);
        }
        line(&frame(row, view.duration, unit, style));
    }
    line(&edge(view.duration, to));
    if shortened {
        line(&style.paint(
            Tone::Dim,
            "Short records are counted together; --full shows each.",
        ));
    }
    if !view.parts.is_empty() {
        line("");
        for row in by_culprit(&view.parts) {
            let share = percent(row.value.0 as f64 / view.duration.0.max(1) as f64);
            let what = words::kind_and_name(&row.subject);
            let text = format!("{:>11} {share:>11}  {what}", unit.of_time(row.value));
            let text = fit(&text, style.columns());
            // As in every other table: what the rows of one program have in common, beside its name.
            let room = style
                .columns()
                .saturating_sub(unicode_width::UnicodeWidthStr::width(text.as_str()) + 2);
            let detail = fit(&words::detail(&row.subject, row.threads()), room);
            let detail = if detail.is_empty() {
                detail
            } else {
                format!("  {detail}")
            };
            line(&format!("{text}{}", style.paint(Tone::Dim, &detail)));
        }
    }
    out
}

/// Who made it, each once and largest first, as the headline of a report names them.
fn by_culprit(parts: &[Part]) -> Vec<SumRow<(), Nanos>> {
    let mut sums: CulpritSums<(), Nanos> = CulpritSums::new(KeyLevel::Program, usize::MAX);
    for part in parts {
        *sums.of((), &part.culprit.subject) += part.net;
    }
    let mut rows = sums.into_rows();
    rows.sort_by_key(|row| std::cmp::Reverse(row.value));
    rows
}

fn frame(row: &TimelineRow, whole: Nanos, unit: Unit, style: Style) -> String {
    let length = row.end.map_or_else(String::new, |end| {
        unit.of_time(end.saturating_sub(row.start))
    });
    let room = style.columns() - BEFORE_LABEL;
    let indent = " ".repeat(2 * row.depth.min(DEEPEST));
    let (label, mut note) = words::timeline_item(&row.item);
    if is_all_its_own(row) {
        note.clear();
    }
    let label = fit(&format!("{indent}{label}"), room);
    let left = room.saturating_sub(unicode_width::UnicodeWidthStr::width(label.as_str()) + 2);
    let mut text = format!(
        "{:>11} {length:>11} [{}] {label}",
        unit.of_time(row.start),
        bar(row, whole)
    );
    if note.is_empty() {
        return text;
    }
    if unicode_width::UnicodeWidthStr::width(note.as_str()) <= left {
        text += &style.paint(Tone::Dim, &format!("  {note}"));
        return text;
    }
    // Beside the label it would be cut: it gets lines of its own.
    for line in wrap(&note, style.columns() - NOTE).into_iter().take(3) {
        text += &format!("\n{}{}", " ".repeat(NOTE), style.paint(Tone::Dim, &line));
    }
    text
}

/// Whether it is a whole call in which no other took any time: its length says all.
fn is_all_its_own(row: &TimelineRow) -> bool {
    let TimelineItem::Call {
        self_ns,
        began_before: false,
        ended: true,
        ..
    } = &row.item
    else {
        return false;
    };
    row.end
        .is_some_and(|end| end.saturating_sub(row.start) == *self_ns)
}

/// Where in the stall a frame lies: at least one mark, however short it is.
fn bar(row: &TimelineRow, whole: Nanos) -> String {
    let at = |time: Nanos| (time.0 as f64 / whole.0.max(1) as f64 * BAR as f64) as usize;
    let first = at(row.start).min(BAR - 1);
    match row.end {
        None => pad(&format!("{}|", " ".repeat(first)), BAR),
        Some(end) => {
            let last = at(end).clamp(first + 1, BAR);
            pad(
                &format!("{}{}", " ".repeat(first), "=".repeat(last - first)),
                BAR,
            )
        }
    }
}

/// The unit of the times of a timeline, all nanoseconds of them.
#[derive(Clone, Copy)]
enum Unit {
    /// `1302.113`.
    Micros,
    /// `64.302113`.
    Millis,
}

impl Unit {
    /// That of a stall so long.
    fn of(whole: Nanos) -> Unit {
        if whole.0 < 10_000_000 {
            Unit::Micros
        } else {
            Unit::Millis
        }
    }

    fn name(self) -> &'static str {
        match self {
            Unit::Micros => "us",
            Unit::Millis => "ms",
        }
    }

    fn of_time(self, time: Nanos) -> String {
        match self {
            Unit::Micros => format!("{}.{:03}", time.0 / 1000, time.0 % 1000),
            Unit::Millis => format!("{}.{:06}", time.0 / 1_000_000, time.0 % 1_000_000),
        }
    }
}
