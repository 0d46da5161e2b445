//! What the user of the live screen chose, by keys.

use super::rows;
use jitterscope_model::Subject;
use jitterscope_recording::watch::{LiveStall, LiveView};

/// The longest filter, characters.
const LONGEST_FILTER: usize = 40;
/// The lines of a page key.
const PAGE: usize = 10;

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
}

/// What the screen cannot do itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    Quit,
    /// Save the moment that is now.
    Save,
    /// Save the moment of this stall, and show its timeline.
    Timeline(Box<LiveStall>),
}

/// The table that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pane {
    #[default]
    Culprits,
    Stalls,
}

/// The order of culprits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Time,
    Count,
    Worst,
}

/// The time that rates are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Window {
    Second,
    #[default]
    Ten,
    Minute,
}

impl Window {
    pub(super) fn seconds(self) -> u64 {
        match self {
            Window::Second => 1,
            Window::Ten => 10,
            Window::Minute => 60,
        }
    }
}

/// What is shown in place of the tables.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Open {
    Culprit(Subject),
    Stall(Box<LiveStall>),
    Help,
}

/// What the user chose.
#[derive(Clone, Debug, Default)]
pub struct TopState {
    pub(super) pane: Pane,
    pub(super) sort: Sort,
    pub(super) window: Window,
    pub(super) filter: String,
    pub(super) typing: bool,
    /// The selected row, once one is.
    pub(super) selected: Option<usize>,
    pub(super) open: Option<Open>,
    pub(super) scroll: usize,
    /// The timeline of the open stall.
    pub(super) timeline: Option<String>,
    /// What the screen keeps showing while it is paused.
    paused: Option<LiveView>,
    /// The last message.
    pub note: Option<String>,
}

impl TopState {
    /// What is shown: what is now, or what was at the pause.
    #[must_use]
    pub fn shown(&self, now: LiveView) -> LiveView {
        self.paused.clone().unwrap_or(now)
    }

    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Shows the timeline of a stall, if that is still open.
    pub fn show_timeline(&mut self, of: &LiveStall, text: String) {
        if matches!(&self.open, Some(Open::Stall(open)) if **open == *of) {
            self.timeline = Some(text);
            self.scroll = 0;
        }
    }

    /// Takes a key. `live` is what is shown.
    pub fn key(&mut self, key: Key, live: &LiveView) -> Option<Wish> {
        if self.typing {
            self.type_key(key);
            return None;
        }
        self.note = None;
        match key {
            Key::Char('q') => return Some(Wish::Quit),
            Key::Char('w') => {
                self.note = Some("saving this moment ...".into());
                return Some(Wish::Save);
            }
            Key::Char('p' | ' ') => {
                self.paused = match self.paused {
                    Some(_) => None,
                    None => Some(live.clone()),
                };
            }
            Key::Char('?' | 'h') => self.show(Open::Help),
            Key::Escape | Key::Backspace if self.open.is_some() => self.open = None,
            Key::Escape => {
                self.filter.clear();
                self.selected = None;
            }
            Key::Char('t') => {
                if let Some(Open::Stall(stall)) = &self.open {
                    self.note = Some("saving the moment of this stall ...".into());
                    return Some(Wish::Timeline(stall.clone()));
                }
                self.window = match self.window {
                    Window::Second => Window::Ten,
                    Window::Ten => Window::Minute,
                    Window::Minute => Window::Second,
                };
            }
            Key::Char('s') => {
                self.sort = match self.sort {
                    Sort::Time => Sort::Count,
                    Sort::Count => Sort::Worst,
                    Sort::Worst => Sort::Time,
                };
                self.note = Some(format!("sorted by {}", self.sorted_by()));
            }
            Key::Char('/') if self.open.is_none() => {
                self.typing = true;
                self.selected = None;
            }
            Key::Tab => {
                self.open = None;
                self.selected = None;
                self.pane = match self.pane {
                    Pane::Culprits => Pane::Stalls,
                    Pane::Stalls => Pane::Culprits,
                };
            }
            Key::Enter if self.open.is_none() => self.enter(live),
            Key::Up | Key::Char('k') => self.go(-1),
            Key::Down | Key::Char('j') => self.go(1),
            Key::PageUp => self.go(-(PAGE as isize)),
            Key::PageDown => self.go(PAGE as isize),
            Key::Home => self.go(isize::MIN),
            Key::Char(_) | Key::Enter | Key::Backspace => {}
        }
        None
    }

    fn sorted_by(&self) -> &'static str {
        match (self.pane, self.sort) {
            (Pane::Culprits, Sort::Time) => "time",
            (Pane::Culprits, Sort::Count) => "number",
            (Pane::Culprits, Sort::Worst) => "the worst",
            (Pane::Stalls, Sort::Count) => "their start",
            (Pane::Stalls, Sort::Time | Sort::Worst) => "length",
        }
    }

    fn type_key(&mut self, key: Key) {
        match key {
            Key::Char(c) if self.filter.chars().count() < LONGEST_FILTER => self.filter.push(c),
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            _ => {}
        }
    }

    fn show(&mut self, open: Open) {
        self.open = Some(open);
        self.scroll = 0;
        self.timeline = None;
    }

    fn enter(&mut self, live: &LiveView) {
        let at = self.selected.unwrap_or(0);
        let open = match self.pane {
            Pane::Culprits => rows::culprits(live, self)
                .get(at)
                .map(|(of, _)| Open::Culprit(of.subject.clone())),
            Pane::Stalls => rows::stalls(live, self)
                .get(at)
                .map(|of| Open::Stall(Box::new((*of).clone()))),
        };
        if let Some(open) = open {
            self.show(open);
        }
    }

    /// Moves the selection, or the text of what is open, by so many lines.
    fn go(&mut self, lines: isize) {
        let place = match (self.open.is_some(), self.selected) {
            (true, _) => &mut self.scroll,
            (false, Some(_)) => self.selected.get_or_insert_default(),
            // The first key selects the first row.
            (false, None) => {
                self.selected = Some(0);
                return;
            }
        };
        *place = place.saturating_add_signed(lines);
    }

    /// Keeps the selection within so many rows.
    pub(super) fn keep_selection(&mut self, rows: usize) {
        self.selected = self.selected.map(|at| at.min(rows.saturating_sub(1)));
    }

    /// Whether a name contains the filter, whatever its case.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.filter.is_empty() || name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    /// The seconds that rates are divided by: fewer at the beginning.
    pub(super) fn seconds(&self, live: &LiveView) -> f64 {
        self.window.seconds().min(live.second).max(1) as f64
    }

    /// The keys that do something now, and what.
    pub(super) fn keys(&self) -> &'static [(&'static str, &'static str)] {
        match &self.open {
            Some(Open::Stall(_)) => &[
                ("t", "timeline"),
                ("Esc", "back"),
                ("w", "save"),
                ("q", "quit"),
            ],
            Some(_) => &[("Esc", "back"), ("w", "save"), ("q", "quit")],
            None => &[
                ("q", "quit"),
                ("p", "pause"),
                ("Tab", "stalls"),
                ("s", "sort"),
                ("t", "time"),
                ("/", "find"),
                ("Enter", "more"),
                ("w", "save"),
                ("?", "help"),
            ],
        }
    }
}
