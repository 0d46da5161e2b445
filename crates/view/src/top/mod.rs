//! The live screen of `top`: CPUs, culprits and the longest stalls of a running watch. It fits 80 columns and 24 lines.
//!
//! [`TopState`] takes keys, [`draw`] shows it. Neither reads a clock or a terminal, so tests give them both.

mod details;
mod rows;
mod state;

pub use state::{Key, Pane, TopState, Wish};

use crate::lines::short_cpus_text;
use crate::number::{bytes, count, percent, percent_cell, rate, span};
use crate::style::{fit, tame};
use crate::words::kind_and_name;
use jitterscope_model::{CpuId, CpuSet, Nanos, ProbeKind, PutInOrder, ThreadRef};
use jitterscope_recording::watch::{LiveCpu, LiveSums, LiveView, SECONDS};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState};

/// The least size, columns and lines.
const LEAST: (u16, u16) = (60, 12);
/// The most lines of CPUs; the others have the most lost time of theirs in one line.
const MOST_CPUS: usize = 8;
/// The columns of a minute: that of a CPU, and that of a culprit.
const MINUTES: [u16; 2] = [20, 15];
/// The width from which culprits have a mean.
const WIDE: u16 = 100;
/// Levels of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What the screen says of the watch itself.
#[derive(Clone, Debug, Default)]
pub struct TopFacts {
    pub cpus: CpuSet,
    /// A word of `ProbeKind`.
    pub probe: String,
    /// The share of a CPU that the watch and this screen take, without the probes; `None` until it is known.
    pub own_share: Option<f64>,
    /// Memory of the process, bytes.
    pub own_memory: u64,
    /// Kernel records that were lost; `None` until it is known.
    pub lost: Option<u64>,
    /// A CPU whose measured thread has ended, and that thread: nothing is measured there any more.
    pub without_owner: Option<(CpuId, ThreadRef)>,
    /// The problem that came last, if any.
    pub trouble: Option<String>,
}

impl TopFacts {
    fn spins(&self) -> bool {
        ProbeKind::from_word(&self.probe) == Some(ProbeKind::Spin)
    }
}

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, live: &LiveView, facts: &TopFacts, state: &mut TopState) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("{} columns and {} lines are needed", LEAST.0, LEAST.1);
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let cpus = u16::try_from(live.cpus.len().min(MOST_CPUS)).unwrap_or(1);
    let more = u16::from(live.cpus.len() > MOST_CPUS);
    let [head, of_cpus, body, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(cpus + more + 2),
        Constraint::Min(3),
        Constraint::Length(2),
    ])
    .areas(area);
    frame.render_widget(Paragraph::new(heading(facts, live, state)), head);
    draw_cpus(frame, of_cpus, live, state, facts.spins());
    if state.open.is_some() {
        let lines = details::lines(live, facts, state, usize::from(body.width));
        let hidden = lines.len().saturating_sub(usize::from(body.height));
        state.scroll = state.scroll.min(hidden);
        let scroll = u16::try_from(state.scroll).unwrap_or(u16::MAX);
        frame.render_widget(Paragraph::new(lines).scroll((scroll, 0)), body);
    } else if state.pane == Pane::Culprits {
        draw_culprits(frame, body, live, state);
    } else {
        draw_stalls(frame, body, live, state);
    }
    frame.render_widget(Paragraph::new(bottom(facts, state, area.width)), foot);
}

fn heading(facts: &TopFacts, live: &LiveView, state: &TopState) -> Vec<Line<'static>> {
    let own = match facts.own_share {
        Some(share) => format!(
            "own cost {} of a CPU, {}",
            percent(share),
            bytes(facts.own_memory)
        ),
        None => "own cost not known yet".to_owned(),
    };
    let lost = match facts.lost {
        None => String::new(),
        Some(0) => "nothing lost".to_owned(),
        Some(n) => format!("{} kernel records lost", count(n)),
    };
    let how = match facts.spins() {
        true => "spinning probe",
        false => "no probe",
    };
    let first = format!(
        "jitterscope top  {}, {how}  {}{}",
        short_cpus_text(&facts.cpus),
        span(Nanos(live.second.saturating_mul(1_000_000_000))),
        if state.is_paused() { "  PAUSED" } else { "" }
    );
    vec![
        Line::styled(first, bold()),
        Line::styled(
            format!(
                "rates of the last {} s   {own}   {lost}",
                state.window.seconds()
            ),
            dim(),
        ),
    ]
}

fn draw_cpus(frame: &mut Frame<'_>, area: Rect, live: &LiveView, state: &TopState, spins: bool) {
    let mut cpus: Vec<_> = live
        .cpus
        .iter()
        .map(|of| (of, of.sums.before(live.second, state.window.seconds())))
        .collect();
    let hidden = cpus.len().saturating_sub(MOST_CPUS);
    if hidden > 0 {
        cpus.order_by_key(|(of, sum)| (std::cmp::Reverse(sum.time), of.cpu));
    }
    let seconds = state.seconds(live);
    let rows = cpus.iter().take(MOST_CPUS).map(|(of, sum)| {
        Row::new([
            Cell::new(if spins {
                format!("CPU {}", of.cpu)
            } else {
                victim(of)
            }),
            number(percent(sum.time.0 as f64 / (seconds * 1e9))),
            number(rate(sum.count as f64 / seconds)),
            number(longest(sum.longest)),
            number(longest(of.sums.total.longest)),
            Cell::new(minute(&of.sums, live.second, MINUTES[0])),
        ])
    });
    let more = (hidden > 0).then(|| Row::new([format!("{hidden} more")]));
    let table = Table::new(
        rows.chain(more),
        [
            Constraint::Min(18),
            Constraint::Length(9),
            Constraint::Length(8),
            Constraint::Length(10),
            Constraint::Length(10),
            Constraint::Length(MINUTES[0]),
        ],
    )
    .header(header(&[
        "measured",
        "lost",
        "stalls/s",
        "worst",
        "ever",
        "last minute",
    ]));
    frame.render_widget(table, area);
}

fn draw_culprits(frame: &mut Frame<'_>, area: Rect, live: &LiveView, state: &mut TopState) {
    let rows = rows::culprits(live, state);
    state.keep_selection(rows.len());
    let seconds = state.seconds(live);
    let all: u64 = live
        .cpus
        .iter()
        .map(|of| of.sums.before(live.second, state.window.seconds()).time.0)
        .sum();
    let is_wide = area.width >= WIDE;
    let shown = rows.iter().map(|(of, sum)| {
        let mean = sum.time.0.checked_div(sum.count).map(Nanos);
        let mean = number(mean.map_or_else(String::new, |mean| mean.to_string()));
        let cells = [
            Cell::new(tame(&kind_and_name(&of.subject))),
            number(percent_cell(sum.time.0 as f64 / all.max(1) as f64)),
            number(rate(sum.count as f64 / seconds)),
            number(longest(sum.longest)),
        ];
        let minute = Cell::new(minute(&of.sums, live.second, MINUTES[1]));
        Row::new(
            cells
                .into_iter()
                .chain(is_wide.then_some(mean))
                .chain([minute]),
        )
    });
    let widths = [
        Constraint::Min(20),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(10),
    ];
    let [mean, minute] = [Constraint::Length(10), Constraint::Length(MINUTES[1])];
    let titles = ["culprit", "share", "per s", "worst"];
    let titles: Vec<&str> = titles
        .into_iter()
        .chain(is_wide.then_some("mean"))
        .chain(["last minute"])
        .collect();
    let widths = widths
        .into_iter()
        .chain(is_wide.then_some(mean))
        .chain([minute]);
    let table = Table::new(shown.collect::<Vec<_>>(), widths).header(header(&titles));
    render(frame, area, table, state, rows.is_empty());
}

fn draw_stalls(frame: &mut Frame<'_>, area: Rect, live: &LiveView, state: &mut TopState) {
    let rows = rows::stalls(live, state);
    state.keep_selection(rows.len());
    let shown = rows.iter().map(|of| {
        let first = of.parts.first().map_or_else(
            || "not attributed".to_owned(),
            |(subject, time)| {
                let share = time.0 as f64 / of.length.0.max(1) as f64;
                format!("{}  {}", percent_cell(share), kind_and_name(subject))
            },
        );
        Row::new([
            Cell::new(details::time_of_day(of.realtime_ns)),
            Cell::new(format!("CPU {}", of.cpu)),
            number(of.length.to_string()),
            Cell::new(tame(&first)),
        ])
    });
    let table = Table::new(
        shown.collect::<Vec<_>>(),
        [
            Constraint::Length(16),
            Constraint::Length(8),
            Constraint::Length(10),
            Constraint::Min(20),
        ],
    )
    .header(header(&["began (UTC)", "CPU", "length", "most of it"]));
    render(frame, area, table, state, rows.is_empty());
}

/// Shows a table with its selected row.
fn render(frame: &mut Frame<'_>, area: Rect, table: Table<'_>, state: &TopState, is_empty: bool) {
    if is_empty {
        let text = if state.filter.is_empty() {
            "no stall yet"
        } else {
            "nothing matches the filter"
        };
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let table = table.row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut selection = TableState::new().with_selected(state.selected);
    frame.render_stateful_widget(table, area, &mut selection);
}

fn header(titles: &[&'static str]) -> Row<'static> {
    let last = titles.len() - 1;
    Row::new(titles.iter().enumerate().map(|(at, title)| {
        let is_number = at > 0 && at < last && *title != "CPU";
        if is_number {
            number((*title).to_owned())
        } else {
            Cell::new(*title)
        }
    }))
    .style(dim())
}

/// A cell that ends at the right of its column.
fn number(text: String) -> Cell<'static> {
    Cell::new(Line::raw(text).right_aligned())
}

fn longest(time: Nanos) -> String {
    match time {
        Nanos(0) => "-".to_owned(),
        some => some.to_string(),
    }
}

/// A CPU and the thread that is measured there.
fn victim(of: &LiveCpu) -> String {
    match of.victim {
        Some(victim) => format!("CPU {}  {}", of.cpu, tame(&victim.comm.to_string())),
        None => format!("CPU {}", of.cpu),
    }
}

/// The time of the last minute in so many bars, scaled to the most of it; one without stalls is empty.
fn minute(sums: &LiveSums, second: u64, columns: u16) -> String {
    let each = SECONDS as u64 / u64::from(columns);
    let from = |column: u64| second.saturating_sub(each * column);
    let times: Vec<u64> = (0..u64::from(columns))
        .rev()
        .map(|column| match second > each * column {
            true => sums.before(from(column), each).time.0,
            false => 0,
        })
        .collect();
    let most = times.iter().copied().max().unwrap_or(0);
    times
        .iter()
        .map(|time| match (*time, most) {
            (0, _) | (_, 0) => ' ',
            (time, most) => {
                let level = u128::from(time) * BARS.len() as u128 / u128::from(most);
                BARS[usize::try_from(level)
                    .unwrap_or(BARS.len())
                    .min(BARS.len() - 1)]
            }
        })
        .collect()
}

fn bottom(facts: &TopFacts, state: &TopState, width: u16) -> Vec<Line<'static>> {
    let note = match (&state.typing, &state.note, &facts.trouble) {
        (true, _, _) => format!(
            "filter: {}_   Enter keeps it, Esc clears it",
            tame(&state.filter)
        ),
        (false, Some(note), _) => tame(note),
        (false, None, Some(trouble)) => format!("! {}", tame(trouble)),
        (false, None, None) if !state.filter.is_empty() => {
            format!("filter: {}", tame(&state.filter))
        }
        (false, None, None) => String::new(),
    };
    let mut keys = Line::default();
    for (key, does) in state.keys() {
        let marked = Style::new().add_modifier(Modifier::REVERSED);
        keys.push_span(Span::styled(*key, marked));
        keys.push_span(Span::raw(format!(" {does}  ")));
    }
    let note = fit(&note, usize::from(width));
    vec![Line::styled(note, Style::new().fg(Color::Yellow)), keys]
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}
