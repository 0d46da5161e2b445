//! The terminal of `top`: a thread that draws, and takes keys.

use super::stall::{self, Which};
use super::top::Said;
use super::watch_ask::save_at;
use crate::output;
use crate::redact::Redact;
use anyhow::Context;
use jitterscope_model::{CpuId, CpuSet, Nanos, ThreadRef};
use jitterscope_platform::Machine;
use jitterscope_recording::watch::{Live, LiveStall, LiveView, Published};
use jitterscope_view::timeline;
use jitterscope_view::top::{self, Key, TopFacts, TopState, Wish};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{Terminal, backend::CrosstermBackend};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, Stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The longest wait for a key.
const KEYS: Duration = Duration::from_millis(100);

/// What the screen reads.
pub struct Sources {
    pub live: Live,
    pub published: Published,
    pub said: Said,
    pub machine: Machine,
    /// The control socket of the watch.
    pub control: PathBuf,
    pub cpus: CpuSet,
    /// A word of `ProbeKind`.
    pub probe: String,
    /// How often it changes.
    pub every: Nanos,
}

/// The open screen. Dropping it gives the terminal back.
pub struct Screen {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Takes the terminal. `stop` ends the watch.
    ///
    /// # Errors
    /// The terminal refuses, or there is no thread.
    pub fn open(sources: Sources, stop: Arc<AtomicBool>) -> io::Result<Screen> {
        let terminal = Taken::new()?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("js-screen".to_owned())
            .spawn(move || {
                if let Err(error) = Shown::new(sources, terminal).run(&seen) {
                    output::talk(format_args!("the screen ended: {error}"));
                }
                stop.store(true, Ordering::Relaxed);
            })?;
        Ok(Screen {
            over,
            thread: Some(thread),
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            output::talk("the screen panicked; this is a bug");
        }
    }
}

/// The terminal in raw mode, with another screen. Dropping it restores both.
struct Taken(Terminal<CrosstermBackend<Stdout>>);

impl Taken {
    fn new() -> io::Result<Taken> {
        enable_raw_mode()?;
        // From here on, dropping it restores the terminal.
        let made = Terminal::new(CrosstermBackend::new(io::stdout())).map(Taken);
        if made.is_err() {
            let _ = disable_raw_mode();
        }
        let taken = made?;
        // The library's own way to clear asks the terminal where its cursor is, and not every terminal answers.
        execute!(io::stdout(), EnterAlternateScreen, Clear(ClearType::All))?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Whatever fails, the rest is tried.
        let _ = self.0.show_cursor();
        let _ = execute!(io::stdout(), LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// The answer to a wish.
struct Answer {
    note: String,
    /// A stall and its timeline.
    timeline: Option<(LiveStall, String)>,
}

struct Shown {
    sources: Sources,
    terminal: Taken,
    state: TopState,
    /// CPU time of the process without its probes at two moments, nanoseconds.
    cost: Option<(Instant, u64)>,
    own_share: Option<f64>,
    answers: (Sender<Answer>, Receiver<Answer>),
}

impl Shown {
    fn new(sources: Sources, terminal: Taken) -> Shown {
        Shown {
            sources,
            terminal,
            state: TopState::default(),
            cost: None,
            own_share: None,
            answers: channel(),
        }
    }

    fn run(mut self, over: &AtomicBool) -> io::Result<()> {
        let every = Duration::from_nanos(self.sources.every.0);
        let mut drawn: Option<Instant> = None;
        while !over.load(Ordering::Relaxed) {
            while let Ok(answer) = self.answers.1.try_recv() {
                self.state.note = Some(answer.note);
                if let Some((stall, text)) = answer.timeline {
                    self.state.show_timeline(&stall, text);
                }
                drawn = None;
            }
            if drawn.is_none_or(|at| at.elapsed() >= every) {
                self.draw()?;
                drawn = Some(Instant::now());
            }
            let left = drawn.map_or(KEYS, |at| every.saturating_sub(at.elapsed()));
            if is_gone(left.min(KEYS))? {
                return Ok(());
            }
            while event::poll(Duration::ZERO)? {
                drawn = None;
                if !self.take(&event::read()?) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes a key. Returns whether to go on.
    fn take(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else {
            return true;
        };
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let key = match known(*key) {
            None => return false,
            Some(None) => return true,
            Some(Some(key)) => key,
        };
        let live = self.shown();
        match self.state.key(key, &live) {
            Some(Wish::Quit) => return false,
            Some(Wish::Save) => self.save(None),
            Some(Wish::Timeline(stall)) => self.save(Some(*stall)),
            None => {}
        }
        true
    }

    fn shown(&self) -> LiveView {
        self.state.shown(self.sources.live.look())
    }

    fn draw(&mut self) -> io::Result<()> {
        let live = self.shown();
        let mut facts = self.facts();
        facts.without_owner = self.without_owner(&live);
        let state = &mut self.state;
        self.terminal
            .0
            .draw(|frame| top::draw(frame, &live, &facts, state))?;
        Ok(())
    }

    fn facts(&mut self) -> TopFacts {
        let mut facts = TopFacts {
            cpus: self.sources.cpus.clone(),
            probe: self.sources.probe.clone(),
            trouble: self.sources.said.last(),
            ..TopFacts::default()
        };
        if let Some((status, _)) = self.sources.published.look() {
            facts.own_memory = status.rss_bytes;
            facts.lost = Some(status.lost.iter().map(|of| of.records).sum());
            let now = Instant::now();
            match self.cost {
                // The status is younger than the last one.
                Some((at, before)) if before != status.cpu_time_ns => {
                    let used = status.cpu_time_ns.saturating_sub(before) as f64;
                    self.own_share = Some(used / 1e9 / now.duration_since(at).as_secs_f64());
                    self.cost = Some((now, status.cpu_time_ns));
                }
                Some(_) => {}
                None => self.cost = Some((now, status.cpu_time_ns)),
            }
        }
        facts.own_share = self.own_share;
        facts
    }

    /// The first CPU whose measured thread has ended. A probe's own thread lives until the end.
    fn without_owner(&self, live: &LiveView) -> Option<(CpuId, ThreadRef)> {
        let measured = live.cpus.iter().filter_map(|of| Some((of.cpu, of.victim?)));
        let ended = |tid: i32| !self.sources.machine.path(format!("/proc/{tid}")).exists();
        measured.into_iter().find(|(_, victim)| ended(victim.tid))
    }

    /// Has the watch save a moment, on a thread that may wait: now, or that of a stall, whose timeline follows.
    fn save(&self, stall: Option<LiveStall>) {
        let (answers, control) = (self.answers.0.clone(), self.sources.control.clone());
        let width = self
            .terminal
            .0
            .size()
            .map_or(80, |size| usize::from(size.width));
        let spawned = thread::Builder::new()
            .name("js-save".to_owned())
            .spawn(move || {
                let answer = saved(&control, stall, width).unwrap_or_else(|error| Answer {
                    note: format!("! {error:#}"),
                    timeline: None,
                });
                // The screen may be gone.
                let _ = answers.send(answer);
            });
        if let Err(error) = spawned {
            let note = format!("! no thread to save with: {error}");
            let _ = self.answers.0.send(Answer {
                note,
                timeline: None,
            });
        }
    }
}

fn saved(
    control: &std::path::Path,
    stall: Option<LiveStall>,
    width: usize,
) -> anyhow::Result<Answer> {
    let Some(stall) = stall else {
        let run = save_at(control, None)?;
        return Ok(Answer {
            note: format!("saved {}", run.display()),
            timeline: None,
        });
    };
    let middle = stall.realtime_ns.saturating_add(stall.length.0 / 2);
    let run = save_at(control, Some(middle))?;
    let moment = middle.to_string().parse().map_err(anyhow::Error::msg)?;
    let seen = stall::look(&run, &Which::At(moment), Redact { on: false })
        .with_context(|| format!("saved {}, without a timeline", run.display()))?;
    let style = jitterscope_view::Style {
        color: false,
        width,
        ..output::style()
    };
    Ok(Answer {
        note: format!("saved {}", run.display()),
        timeline: Some((stall, timeline::render(&seen.view, style))),
    })
}

/// Waits for a key, and returns whether the terminal is gone: the library would read its end for ever.
fn is_gone(patience: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    match poll(&mut fds, Some(&patience)) {
        // A signal, such as that of another size.
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(fds[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
    }
}

/// A key of the screen; outside `None` for Ctrl-C, which ends it.
fn known(key: KeyEvent) -> Option<Option<Key>> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => None,
            _ => Some(None),
        };
    }
    Some(match key.code {
        KeyCode::Char(c) => Some(Key::Char(c)),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Escape),
        KeyCode::Tab => Some(Key::Tab),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::PageUp => Some(Key::PageUp),
        KeyCode::PageDown => Some(Key::PageDown),
        KeyCode::Home => Some(Key::Home),
        _ => None,
    })
}
