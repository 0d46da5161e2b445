//! `top`: a watch with a live screen.

use super::measure_args::EventsArg;
use super::top_screen::{Screen, Sources};
use super::watch::{self, Service, Serving};
use super::watch_args::{Actions, MetricsArgs, UploadArgs, WatchArgs, WatchProbe};
use crate::completion;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::reading::ReadingArgs;
use crate::signals;
use crate::units::some_duration;
use anyhow::Context;
use clap::Args;
use jitterscope_model::{CpuList, Nanos};
use jitterscope_platform::Machine;
use jitterscope_recording::Output;
use jitterscope_recording::watch::{Action, Live, Report, Watch};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The history that a moment can be saved from, and the room for it.
const KEEP: Nanos = Nanos(120_000_000_000);
const DISK: u64 = 1 << 30;
const BEFORE: Nanos = Nanos(10_000_000_000);
const AFTER: Nanos = Nanos(500_000_000);
const TRACE_BUFFER: u64 = 8 << 20;

/// Arguments of `top`.
#[derive(Args, Debug)]
#[command(
    mut_arg("threshold", |arg| arg.help("The shortest stall [default: 300ns, or what the clock allows if that is more]"))
)]
#[command(after_help = "\
Shows what takes time from the CPUs' owners while it happens, and measures as 'watch' does. Keys: q ends it, ? lists the \
others. w saves the last seconds as a run, which report, diff and export read. Needs root, tracefs and a terminal.

  jitterscope top --cpus 2-5
  jitterscope top --cpus 1 --for rx-thread")]
pub struct TopArgs {
    /// CPUs to watch: 0-3,5 or 0-31:2, 'all', 'isolated' [default: CPUs that tune isolated, else the isolated ones, else
    /// the highest]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, add = completion::cpus())]
    cpus: Option<CpuList>,
    /// The CPUs' owner: a process id, a thread name, unit:NAME of systemd, pod:UID or cgroup:/PATH [default: on each CPU
    /// the thread that runs most at the start]
    #[arg(long = "for", value_name = "OWNER")]
    owner: Option<String>,
    /// How to measure
    #[arg(long, value_enum, default_value = "auto", value_name = "PROBE")]
    probe: WatchProbe,
    /// How often the screen changes
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = every)]
    every: Nanos,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Name of saved runs
    #[arg(long, short, default_value = "top", value_name = "NAME", add = completion::labels())]
    label: String,
    /// Which kernel events to record; each record takes time from the measured CPU
    #[arg(long, value_enum, value_name = "GRAIN", default_value = "all")]
    events: EventsArg,
}

fn every(text: &str) -> Result<Nanos, String> {
    match some_duration(text)? {
        Nanos(0..=99_999_999) => Err("must be at least 100ms".into()),
        Nanos(60_000_000_001..) => Err("must be at most 1m".into()),
        some => Ok(some),
    }
}

/// Runs `top`.
///
/// # Errors
/// There is no terminal, or nothing can be watched.
pub fn run(args: &TopArgs, places: &Places) -> anyhow::Result<Exit> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let text = "top needs a terminal for its screen and its keys; 'watch' and 'watch status' need none";
        return Err(UsageError(text.into()).into());
    }
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let said = Said::default();
    let top = Top {
        live: Live::default(),
        every: args.every,
        said: said.clone(),
        stop: Arc::clone(&stop),
        screen: None,
    };
    output::talk("top sets up the measurement ...");
    let ended = watch::watch(&watched(args), places, Some((Box::new(top), stop)));
    // The screen is gone.
    for run in said.saved() {
        output::talk(format_args!("saved {run}"));
    }
    if let (Ok(_), Some(trouble)) = (&ended, said.last()) {
        output::talk(trouble);
    }
    ended
}

/// The watch behind the screen.
fn watched(args: &TopArgs) -> WatchArgs {
    WatchArgs {
        ask: None,
        cpus: args.cpus.clone(),
        owner: args.owner.clone(),
        probe: args.probe,
        keep: KEEP,
        disk: DISK,
        before: BEFORE,
        after: AFTER,
        save_if: Vec::new(),
        over: Nanos(1_000_000_000),
        socket: None,
        on_trigger: Actions(vec![Action::Save]),
        apart: Nanos(0),
        daily: u32::MAX,
        section: None,
        metrics: MetricsArgs::default(),
        upload: UploadArgs::default(),
        reading: args.reading,
        label: args.label.clone(),
        events: args.events,
        trace_buffer: TRACE_BUFFER,
        quiet: true,
    }
}

/// What the watch said: it cannot print beside the screen.
#[derive(Clone, Default)]
pub struct Said(Arc<Mutex<Words>>);

#[derive(Default)]
struct Words {
    saved: Vec<String>,
    trouble: Option<String>,
}

impl Said {
    fn take(&self, report: &Report) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match report {
            Report::Saved(run) => words.saved.push(run.display().to_string()),
            Report::Trouble(what) => words.trouble = Some(what.clone()),
            // The screen asked for it.
            Report::Triggered(_) | Report::Undecided(_) => {}
        }
    }

    fn saved(&self) -> Vec<String> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.saved.clone()
    }

    /// The problem that came last.
    pub fn last(&self) -> Option<String> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.trouble.clone()
    }
}

struct Top {
    live: Live,
    every: Nanos,
    said: Said,
    stop: Arc<AtomicBool>,
    /// From the first turn on: before it, errors must be readable.
    screen: Option<Screen>,
}

impl Service for Top {
    fn outputs<'a>(&self) -> Vec<Output<'a>> {
        let live = self.live.clone();
        vec![Output::new("live sums", move || Ok(live.sink()))]
    }

    fn report(&self, _quiet: bool) -> Box<dyn FnMut(Report)> {
        let said = self.said.clone();
        Box::new(move |report| said.take(&report))
    }

    fn turn(&mut self, watch: &mut Watch, serving: &Serving, has_ended: bool) {
        if has_ended {
            self.screen = None;
            return;
        }
        if self.screen.is_some() {
            return;
        }
        let sources = Sources {
            live: self.live.clone(),
            published: watch.published(),
            said: self.said.clone(),
            machine: Machine::host(),
            control: watch.control().to_path_buf(),
            cpus: serving.chosen.cpus.cpus.clone(),
            probe: serving.chosen.kind.as_str().to_owned(),
            every: self.every,
        };
        match Screen::open(sources, Arc::clone(&self.stop)) {
            Ok(screen) => self.screen = Some(screen),
            Err(error) => {
                output::talk(format_args!("the terminal gives no screen: {error}"));
                self.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}
