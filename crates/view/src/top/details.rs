//! What is shown of one culprit, of one stall, and of the keys.

use super::state::Open;
use super::{BARS, MINUTES, TopFacts, TopState, bold, minute};
use crate::number::{count, percent, utc};
use crate::style::{tame, wrap};
use crate::words::{detail, explain, kind_and_name};
use jitterscope_model::{Nanos, PutInOrder, Subject};
use jitterscope_recording::watch::{LiveCulprit, LiveStall, LiveSum, LiveView};
use jitterscope_tune::{Effect, catalogue};
use ratatui::text::Line;

const HELP: [(&str, &str); 13] = [
    ("q, Ctrl-C", "ends the watch; what it saved stays"),
    (
        "p, Space",
        "keeps the screen as it is; the measurement goes on",
    ),
    (
        "Tab",
        "culprits, or the longest stalls of the last ten minutes",
    ),
    ("s", "sorts by time, by number, by the worst"),
    ("t", "rates of the last second, ten seconds, minute"),
    ("/", "shows names that contain a text"),
    ("Up, Down, j, k", "select a row, or scroll"),
    (
        "Enter",
        "shows a culprit's owner and knobs, or a stall's parts",
    ),
    ("t in a stall", "saves its moment and shows its timeline"),
    ("w", "saves the last seconds as a run"),
    ("Esc", "goes back, or clears the filter"),
    ("", ""),
    (
        "",
        "A stall counts in the second in which it ends. Shares are of the time lost on all watched CPUs.",
    ),
];

pub(super) fn lines(
    live: &LiveView,
    facts: &TopFacts,
    state: &TopState,
    width: usize,
) -> Vec<Line<'static>> {
    match &state.open {
        Some(Open::Culprit(subject)) => {
            let now = live.culprits.iter().find(|of| of.subject == *subject);
            culprit(subject, now, live, facts, width)
        }
        Some(Open::Stall(of)) => match &state.timeline {
            Some(text) => text.lines().map(|line| Line::raw(tame(line))).collect(),
            None => stall(of, width),
        },
        Some(Open::Help) => HELP
            .iter()
            .flat_map(|(key, does)| entry(key, does, 16, width))
            .collect(),
        None => Vec::new(),
    }
}

fn culprit(
    subject: &Subject,
    now: Option<&LiveCulprit>,
    live: &LiveView,
    facts: &TopFacts,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(kind_and_name(subject), bold())];
    let mut fact = |name: &str, value: &str| lines.extend(entry(name, value, 12, width));
    fact("what", explain(subject));
    let threads = now.map_or(0, |of| of.threads);
    fact("details", &detail(subject, threads));
    if let Some(task) = subject.task() {
        if let Some(group) = task.group() {
            fact("unit", group.unit().unwrap_or_default());
            fact("container", group.container().unwrap_or_default());
            fact("pod", &group.pod().unwrap_or_default());
            fact("cgroup", group.0);
        }
        let user = task.owner.as_ref().and_then(|owner| owner.uid);
        fact("user", &user.map(|uid| uid.to_string()).unwrap_or_default());
    }
    if let Some(of) = now {
        fact("last minute", &sum(of.sums.before(live.second, 60)));
        fact("since start", &sum(of.sums.total));
        fact("", minute(&of.sums, live.second, MINUTES[0]).trim());
    }
    let mut answers: Vec<_> = catalogue::all()
        .filter_map(|knob| Some((knob.answers(subject, &facts.cpus)?, knob)))
        .collect();
    answers.order_by_key(|(effect, _)| *effect);
    if answers.is_empty() {
        fact("knobs", "none of the catalogue answers it");
    }
    for (at, (effect, knob)) in answers.iter().enumerate() {
        let does = match effect {
            Effect::Removes => "removes it",
            Effect::Lessens => "reduces it",
            Effect::Perhaps => "may be its cause",
        };
        let head = if at == 0 { "knobs" } else { "" };
        fact(head, &format!("{}: {does}. {}", knob.id, knob.title));
    }
    if let Some((_, knob)) = answers.first() {
        fact("", &format!("jitterscope audit --explain {}", knob.id));
    }
    lines
}

fn stall(of: &LiveStall, width: usize) -> Vec<Line<'static>> {
    let began = format!(
        "{} {} UTC, CPU {}: a stall of {}",
        utc(of.realtime_ns).split(' ').next().unwrap_or_default(),
        time_of_day(of.realtime_ns),
        of.cpu,
        of.length
    );
    let mut lines = vec![Line::styled(began, bold())];
    if of.parts.is_empty() {
        lines.push(Line::raw("not attributed"));
    }
    // Threads of one name are one line.
    let mut sums: Vec<(String, Nanos, &'static str)> = Vec::new();
    for (subject, time) in &of.parts {
        let name = kind_and_name(subject);
        match sums.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, sum, _)) => *sum += *time,
            None => sums.push((name, *time, explain(subject))),
        }
    }
    sums.order_by_key(|(_, time, _)| std::cmp::Reverse(*time));
    let bars = u64::try_from(BARS.len()).unwrap_or(8);
    let mut explained = Vec::new();
    for (name, time, what) in sums {
        let share = time.0 as f64 / of.length.0.max(1) as f64;
        let bar = usize::try_from(time.0.saturating_mul(bars) / of.length.0.max(1)).unwrap_or(0);
        lines.push(Line::raw(format!(
            "  {:>8} {:>9} {:<8}  {name}",
            percent(share),
            time.to_string(),
            "█".repeat(bar.min(8)),
        )));
        if !explained.contains(&what) {
            explained.push(what);
            let text = wrap(what, width.saturating_sub(31)).into_iter();
            lines.extend(text.map(|line| Line::styled(format!("{:31}{line}", ""), super::dim())));
        }
    }
    lines
}

/// A name and a text beside it; nothing without a text.
fn entry(name: &str, text: &str, column: usize, width: usize) -> Vec<Line<'static>> {
    let lines = wrap(text, width.saturating_sub(column + 2));
    let named = lines.into_iter().enumerate().map(|(at, line)| {
        let name = if at == 0 { name } else { "" };
        Line::raw(format!("{name:column$}  {line}"))
    });
    named.collect()
}

fn sum(of: LiveSum) -> String {
    let mean = of.time.0.checked_div(of.count).map_or(Nanos(0), Nanos);
    match of.count {
        0 => "nothing".to_owned(),
        n => format!(
            "{} in {} stalls, {mean} in the mean, {} at most",
            of.time,
            count(n),
            of.longest
        ),
    }
}

/// A time since the epoch as its time of day in UTC: `21:40:07.123456`.
pub(super) fn time_of_day(realtime_ns: u64) -> String {
    let utc = utc(realtime_ns);
    let time = utc.split(' ').nth(1).unwrap_or_default();
    format!("{time}.{:06}", realtime_ns / 1000 % 1_000_000)
}
