//! One stall as a timeline of nested frames.

mod fold;

use crate::number::{count, moment, percent, utc};
use crate::style::{Style, Tone, fit, pad, tame, wrap};
use crate::words;
use fold::{Line, fold};
use jitterscope_model::{
    CpuId, CulpritSums, KeyLevel, Nanos, Part, ProbeKind, PutInOrder, StallId, SumRow,
    TimelineItem, TimelineRow,
};
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

/// The kind of a stall, from its victim's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StallKind {
    /// A gap between two clock reads of a spinning probe.
    #[default]
    Gap,
    /// A wake-up after its deadline.
    LateWakeup,
    /// A message that was received long after its intended publication.
    SlowMessage,
    /// A followed thread that was runnable but did not run.
    Wait,
    /// Something other than the owner ran on a watched CPU.
    Taken,
}

/// The singular and plural nouns for a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Noun {
    pub(crate) one: &'static str,
    pub(crate) many: &'static str,
    /// The plural, at the beginning of a sentence.
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
    /// The kind in the runs of a probe.
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

    /// The nouns of this kind.
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

    /// The noun, the words before the victim's name, and the events at its begin and end.
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

/// A stall to show. Times are relative to its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineView {
    /// Its number within the run.
    pub stall: StallId,
    pub cpu: CpuId,
    /// What kind of stall.
    pub kind: StallKind,
    /// The name of the stalled thread.
    pub victim: String,
    pub duration: Nanos,
    /// Its start, nanoseconds since the epoch.
    pub start_realtime_ns: u64,
    /// Its start, since the start of the measurement.
    pub start_offset: Nanos,
    /// Frames and instants, by CPU and then by start; a frame before those nested in it.
    pub rows: Vec<TimelineRow>,
    /// Whether its trace is gone or unreadable, so that only the sums of its parts are known.
    pub order_lost: bool,
    /// Its parts, largest first.
    pub parts: Vec<Part>,
    /// Limits of the view: `no kernel event inside`, `the trace of this stall was not kept`.
    pub remarks: Vec<String>,
}

/// Columns of the bar that shows a frame's position in the stall.
const BAR: usize = 20;
/// Columns before the label: two numbers, the bar and the separators.
const BEFORE_LABEL: usize = 11 + 1 + 11 + 1 + BAR + 2 + 1;
/// The column of notes that do not fit beside their label.
const NOTE: usize = 25;
/// The number of culprits below a timeline that must fit on a screen.
const FEW_PARTS: usize = 5;
/// The least number of lines for frames.
const LEAST_FRAMES: usize = 4;
/// The least width of a cut note, in columns: less would be useless.
const LEAST_NOTE: usize = 10;
/// The deepest nesting shown by indentation; deeper frames have the same.
const DEEPEST: usize = 8;

/// The timeline as text: on one screen, unless `style` asks for every record.
#[must_use]
pub fn render(view: &TimelineView, style: Style) -> String {
    let head = head(view, style);
    let unit = Unit::of(view.duration);
    let most = if style.all_records {
        usize::MAX
    } else {
        FEW_PARTS
    };
    let parts = parts(view, unit, most, style);
    // Two edges and a line for the prompt.
    let taken = head.len() + parts.len() + 3;
    let room = if style.all_records {
        usize::MAX
    } else {
        style.lines().saturating_sub(taken).max(LEAST_FRAMES)
    };
    let (_, _, from, to) = view.kind.words();
    let edge = |at: Nanos, what: &str| {
        let margin = " ".repeat(BAR + 3);
        let text = format!("{:>11} {:>11} {margin}{what}", unit.of_time(at), "");
        style.paint(Tone::Dim, &text)
    };
    let mut lines = head;
    lines.push(edge(Nanos::ZERO, from));
    if view.order_lost
        && view
            .parts
            .iter()
            .map(|part| u64::from(part.turns))
            .sum::<u64>()
            > 1
    {
        let text = format!("{}order lost", " ".repeat(BEFORE_LABEL));
        lines.push(style.paint(Tone::Dim, &text));
    }
    lines.extend(frames(view, unit, room, style));
    lines.push(edge(view.duration, to));
    lines.extend(parts);
    let mut out = String::new();
    for line in lines {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn head(view: &TimelineView, style: Style) -> Vec<String> {
    let (what, victim, ..) = view.kind.words();
    let title = format!(
        "{what} {} on CPU {}: {}",
        view.stall.0, view.cpu, view.duration
    );
    let place = format!(
        "{} after the start, {} UTC; {victim} {}",
        moment(view.start_offset),
        utc(view.start_realtime_ns),
        view.victim
    );
    let mut lines = vec![
        style.paint(Tone::Strong, &title),
        style.paint(Tone::Dim, &fit(&place, style.columns())),
    ];
    for remark in &view.remarks {
        lines.extend(style.prose(Some(Tone::Warning), 0, remark));
    }
    let unit = Unit::of(view.duration).name();
    let (start, length) = (format!("start {unit}"), format!("length {unit}"));
    lines.push(String::new());
    lines.push(style.paint(Tone::Dim, &format!("{start:>11} {length:>11}")));
    lines
}

/// The frames in order of time, on as many lines as there are: if room is short, short records are merged.
fn frames(view: &TimelineView, unit: Unit, room: usize, style: Style) -> Vec<String> {
    let all = fold(&view.rows, view.duration, usize::MAX);
    for notes in [true, false] {
        let lines = frame_lines(view, unit, notes, style, &all);
        if lines.len() <= room {
            return lines;
        }
    }
    let mut cpus: Vec<Option<CpuId>> = view.rows.iter().map(|row| row.cpu).collect();
    cpus.dedup();
    // A heading each, and the text below it.
    let beside = cpus.iter().flatten().count() + 1;
    let most = room.saturating_sub(beside).max(1);
    let mut folded = fold(&view.rows, view.duration, most);
    let left_out = folded.len().saturating_sub(most);
    folded.truncate(most);
    let mut lines = frame_lines(view, unit, false, style, &folded);
    let left_out = match left_out {
        0 => String::new(),
        1 => "One later line is left out. ".to_owned(),
        n => format!("{n} later lines are left out. "),
    };
    let text = format!("{left_out}[---]: short records together; --full shows each.");
    lines.push(style.paint(Tone::Dim, &text));
    lines
}

fn frame_lines(
    view: &TimelineView,
    unit: Unit,
    notes: bool,
    style: Style,
    folded: &[Line<'_>],
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut cpu = None;
    for folded in folded {
        let here = match folded {
            Line::Row(row) => row.cpu,
            Line::Short { cpu, .. } => *cpu,
            Line::More { .. } => None,
        };
        if let Some(here) = here.filter(|here| cpu != Some(*here)) {
            let text = format!("{}CPU {here}", " ".repeat(BEFORE_LABEL - 1));
            lines.push(style.paint(Tone::Dim, &text));
            cpu = Some(here);
        }
        let (depth, start, total, bar, text) = match folded {
            Line::Row(row) => {
                lines.extend(frame(row, view.duration, unit, notes, style));
                continue;
            }
            Line::Short {
                rows,
                depth,
                start,
                end,
                total,
                most,
                ..
            } => {
                let indent = 2 * (*depth).min(DEEPEST);
                let room = style.columns().saturating_sub(BEFORE_LABEL + indent);
                let bar = format!("[{}] ", bar(*start, Some(*end), '-', view.duration));
                (
                    *depth,
                    *start,
                    *total,
                    bar,
                    short_records(*rows, most, room),
                )
            }
            Line::More {
                times,
                frames,
                depth,
                start,
                total,
            } => {
                let what = if *frames == 1 {
                    "that".to_owned()
                } else {
                    format!("the last {frames}")
                };
                let text = format!("{what}, {times} times more");
                (*depth, *start, *total, " ".repeat(BAR + 3), text)
            }
        };
        let indent = " ".repeat(2 * depth.min(DEEPEST));
        let numbers = format!("{:>11} {:>11}", unit.of_time(start), unit.of_time(total));
        let text = format!("{numbers} {bar}{indent}{text}");
        lines.push(style.paint(Tone::Dim, &text));
    }
    lines
}

/// `thread make 3.94 ms, +23 short`: those with the most time, as many as fit, the first cut if necessary.
fn short_records(rows: usize, most: &[(String, Nanos, usize)], room: usize) -> String {
    let mut text = String::new();
    let mut named = 0;
    for (what, time, times) in most {
        let left = rows.saturating_sub(named + times);
        let rest = if left > 0 {
            format!(", +{} short", count(left as u64))
        } else {
            String::new()
        };
        let long = format!(" {time}");
        let separator = if text.is_empty() { "" } else { ", " };
        let room = room.saturating_sub(text.width() + separator.len() + long.len() + rest.len());
        let name = if text.is_empty() {
            fit(what, room)
        } else {
            tame(what)
        };
        if name.width() > room {
            break;
        }
        text += &format!("{separator}{name}{long}");
        named += times;
    }
    match rows.saturating_sub(named) {
        0 => text,
        left => format!("{text}, +{} short", count(left as u64)),
    }
}

/// The culprits of the time, the `most` largest first.
fn parts(view: &TimelineView, unit: Unit, most: usize, style: Style) -> Vec<String> {
    let rows = by_culprit(&view.parts);
    if rows.is_empty() {
        return Vec::new();
    }
    let share = |time: Nanos| percent(time.0 as f64 / view.duration.0.max(1) as f64);
    let line = |time: Nanos, what: &str| {
        let share = share(time);
        format!("{:>11} {share:>11}  {what}", unit.of_time(time))
    };
    let mut lines = vec![String::new()];
    for row in rows.iter().take(most) {
        let text = line(row.value.net, &words::kind_and_name(&row.subject));
        let text = fit(&text, style.columns());
        // As in every other table: the common properties of a program's rows, beside its name.
        let width = text.width();
        let room = style.columns().saturating_sub(width + 2);
        let turns = match row.value.turns {
            turns if view.order_lost && turns > 1 => format!("sum of {} turns", count(turns)),
            _ => String::new(),
        };
        let detail = [turns, words::detail(&row.subject, row.threads())];
        let detail: Vec<String> = detail.into_iter().filter(|text| !text.is_empty()).collect();
        let detail = fit(&detail.join(", "), room);
        let detail = if detail.is_empty() {
            detail
        } else {
            format!("  {detail}")
        };
        lines.push(format!("{text}{}", style.paint(Tone::Dim, &detail)));
    }
    if let Some(rest) = rows.get(most..).filter(|rest| !rest.is_empty()) {
        let total = rest.iter().map(|row| row.value.net).sum();
        let text = line(total, &format!("{} more", rest.len()));
        lines.push(style.paint(Tone::Dim, &text));
    }
    lines
}

/// A culprit's time in a stall.
#[derive(Clone, Copy, Default)]
struct Total {
    net: Nanos,
    turns: u64,
}

/// The culprits, each once and largest first, named as in the headline of a report.
fn by_culprit(parts: &[Part]) -> Vec<SumRow<(), Total>> {
    let mut sums: CulpritSums<(), Total> = CulpritSums::new(KeyLevel::Program, usize::MAX);
    for part in parts {
        let sum = sums.of((), &part.culprit.subject);
        sum.net += part.net;
        sum.turns += u64::from(part.turns);
    }
    let mut rows = sums.into_rows();
    rows.order_by_key(|row| std::cmp::Reverse(row.value.net));
    rows
}

/// A frame and its note: beside its label if it fits, else below it if `notes`, else cut.
fn frame(row: &TimelineRow, whole: Nanos, unit: Unit, notes: bool, style: Style) -> Vec<String> {
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
    let left = room.saturating_sub(label.width() + 2);
    let text = format!(
        "{:>11} {length:>11} [{}] {label}",
        unit.of_time(row.start),
        bar(row.start, row.end, '=', whole)
    );
    let fits = note.width() <= left;
    if note.is_empty() || (!fits && !notes && left < LEAST_NOTE) {
        return vec![text];
    }
    if fits || !notes {
        let note = style.paint(Tone::Dim, &format!("  {}", fit(&note, left)));
        return vec![text + &note];
    }
    let mut lines = vec![text];
    for line in wrap(&note, style.columns() - NOTE).into_iter().take(3) {
        let note = style.paint(Tone::Dim, &line);
        lines.push(format!("{}{note}", " ".repeat(NOTE)));
    }
    lines
}

/// Whether it is a whole call without time in other calls: its length suffices.
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

/// The position in the stall; at least one mark, however short.
fn bar(start: Nanos, end: Option<Nanos>, mark: char, whole: Nanos) -> String {
    let at = |time: Nanos| (time.0 as f64 / whole.0.max(1) as f64 * BAR as f64) as usize;
    let first = at(start).min(BAR - 1);
    let marks = match end {
        None => "|".to_owned(),
        Some(end) => mark
            .to_string()
            .repeat(at(end).clamp(first + 1, BAR) - first),
    };
    pad(&format!("{}{marks}", " ".repeat(first)), BAR)
}

/// The unit of a timeline's times, which show every nanosecond.
#[derive(Clone, Copy)]
enum Unit {
    /// `1302.113`.
    Micros,
    /// `64.302113`.
    Millis,
}

impl Unit {
    /// The unit for a stall of this length.
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

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Culprit, Evidence, Subject};

    fn call(name: &str) -> Subject {
        Subject::Call(name.to_owned().into())
    }

    /// Frames of varying lengths and names, on several CPUs.
    fn crowded(cpus: u32, frames: u64) -> TimelineView {
        let row = |cpu: u32, n: u64| TimelineRow {
            cpu: Some(CpuId(cpu)),
            depth: (n % 3) as usize,
            start: Nanos(1_000 * n),
            end: Some(Nanos(1_000 * n + 10 + 89 * (n * n % 11))),
            item: TimelineItem::Frame {
                culprit: Culprit {
                    subject: call(&format!("f{}", n * 7 % 13)),
                    sender: None,
                },
                ended: true,
                named_inside: false,
            },
        };
        let part = |n: u64| Part::inside(call(&format!("f{n}")), Nanos(n), Evidence::CallRecords);
        TimelineView {
            stall: StallId(1),
            cpu: CpuId(0),
            kind: StallKind::Gap,
            victim: "victim".into(),
            duration: Nanos(1_000 * frames),
            start_realtime_ns: 0,
            start_offset: Nanos::ZERO,
            rows: (0..cpus)
                .flat_map(|cpu| (0..frames).map(move |n| row(cpu, n)))
                .collect(),
            order_lost: false,
            parts: (1..30).map(part).collect(),
            remarks: vec!["Something to know of it. ".repeat(5)],
        }
    }

    #[test]
    fn a_crowded_stall_fits_on_a_screen_and_full_shows_all() {
        for (cpus, frames) in [(1, 3), (1, 400), (2, 400), (4, 50)] {
            let view = crowded(cpus, frames);
            for height in [24, 50] {
                let style = Style {
                    height,
                    ..Style::default()
                };
                let text = render(&view, style);
                assert!(text.lines().count() < height, "{cpus} {frames}:\n{text}");
                assert!(text.lines().all(|line| line.width() <= 80), "{text}");
                assert!(text.contains(" 24 more"), "{text}");
            }
            let full = Style {
                all_records: true,
                ..Style::default()
            };
            let text = render(&view, full);
            let records = text.lines().filter(|line| line.contains('=')).count();
            assert_eq!(records as u64, u64::from(cpus) * frames, "{text}");
        }
    }

    #[test]
    fn records_together_are_named_by_what_took_most() {
        let most = [
            ("thread make".to_owned(), Nanos(3_000_000), 2),
            ("softirq RCU".to_owned(), Nanos(1_000), 1),
        ];
        let of = |rows, room| short_records(rows, &most, room);
        assert_eq!(of(3, 60), "thread make 3.00 ms, softirq RCU 1.00 us");
        assert_eq!(
            of(9, 60),
            "thread make 3.00 ms, softirq RCU 1.00 us, +6 short"
        );
        assert_eq!(of(9, 33), "thread make 3.00 ms, +7 short");
        assert_eq!(of(9, 24), "thre.. 3.00 ms, +7 short");
    }
}
