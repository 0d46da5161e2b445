//! A running watch: gathers requests, divides the recording into sections, and has moments saved.

use super::control::{Line, Listener, Request, control};
use super::cut::{CutError, Window, cut};
use super::history::{Bounds, History, name_of};
use super::hours::{HourSums, HourlySums, newest};
use super::judge::{Judge, Judged};
use super::settings::{RESERVED, WatchSettings};
use super::triggers::{Answer, Asked, Limits, Pending, TriggerCounts, Triggers, tidy};
use super::worker::{Done, Errand, Worker};
use super::{NoWatch, Report};
use crate::engine::{Next, Output, SectionEnd, Sections};
use jitterscope_model::{AskedBy, CpuSet, Nanos, RunManifest, TickRate, Ticks};
use jitterscope_platform::{self as platform, CpuClaim, Machine};
use jitterscope_source::Mark;
use jitterscope_store::{RunReader, remove};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Rows of stalls that end with the window have arrived this long after it.
const SETTLE: Nanos = Nanos(300_000_000);
/// How often limits of the disk are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The shortest section, unless a moment is to be saved.
const SHORTEST: Nanos = Nanos(1_000_000_000);
/// The share of the disk's limit that one section may take.
const SHARE: u64 = 8;
/// Hours that the status shows.
const SHOWN_HOURS: usize = 24;
const DAY: Nanos = Nanos(86_400_000_000_000);

/// The state of a watch, as `watch status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WatchStatus {
    pub pid: u32,
    pub cpus: CpuSet,
    /// A word of `ProbeKind`.
    pub probe: String,
    /// How deep it looks: `attributed`, records are read and attributed as they come.
    pub level: String,
    /// Since when, nanoseconds since the epoch.
    pub since_ns: u64,
    /// The folder of saved runs.
    pub runs: PathBuf,
    /// The application's socket.
    pub socket: Option<PathBuf>,
    pub history: HistoryStatus,
    pub triggers: TriggerCounts,
    /// Conditions that could not be decided at least once, for a reason other than too few stalls.
    pub undecided: Vec<String>,
    /// The runs saved last, oldest first.
    pub saved: Vec<PathBuf>,
    /// CPU time of the process without its probes, nanoseconds, and its memory, bytes.
    pub cpu_time_ns: u64,
    pub rss_bytes: u64,
    /// What went wrong last, if anything.
    pub trouble: Option<String>,
    /// The sums of the last hours, oldest first.
    pub hours: Vec<HourSums>,
}

/// The state of the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryStatus {
    pub sections: u64,
    /// How far it reaches back, nanoseconds.
    pub reaches_ns: u64,
    /// Its size with the section that is being written, bytes, and the limit.
    pub bytes: u64,
    pub limit_bytes: u64,
    /// Sections dropped because the disk was full.
    pub dropped_for_room: u64,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Saved(PathBuf),
    Status(Box<WatchStatus>),
    Stopping,
    /// Why not.
    Refused(String),
}

/// A watch, before its recording and during it.
pub struct Watch {
    machine: Machine,
    settings: WatchSettings,
    cpus: CpuSet,
    history: History,
    control: Listener,
    application: Option<Listener>,
    /// Set by SIGUSR1.
    signal: Arc<AtomicBool>,
    report: Box<dyn FnMut(Report)>,
    /// What is known once the recording has begun.
    manifest: Arc<OnceLock<RunManifest>>,
    judged: (Sender<Judged>, Receiver<Judged>),
    /// Conditions that could not be decided.
    undecided: Vec<String>,
    sections: (Sender<SectionEnd>, Receiver<SectionEnd>),
    begun: Option<Begun>,
    next_client: u64,
    /// The clients that wait for the run that is being saved.
    waiting: Vec<u64>,
    saved: Vec<PathBuf>,
    dropped_for_room: u64,
    trouble: Option<String>,
    looked: Instant,
    _claim: CpuClaim,
}

/// What exists once the recording has begun.
struct Begun {
    rate: TickRate,
    triggers: Triggers,
    worker: Worker,
    /// When the current section began, and whether a border is on its way.
    section: Ticks,
    dividing: bool,
    /// Borders that a save waits for: its window is in closed sections after that of this time.
    saves_at: Option<Ticks>,
    /// Whether a border was made for the pending moment.
    ordered: bool,
    open_bytes: u64,
    stop: bool,
}

impl Watch {
    /// Prepares a watch of these CPUs. `signal` becomes true when a moment is to be saved.
    ///
    /// # Errors
    /// Another watch has one of the CPUs, another user could change a folder or a socket, or the disk's limit is too
    /// small.
    pub fn prepare(
        machine: &Machine,
        settings: WatchSettings,
        cpus: &CpuSet,
        signal: Arc<AtomicBool>,
        mut report: Box<dyn FnMut(Report)>,
    ) -> Result<Watch, NoWatch> {
        let least = settings.least_disk(cpus.len());
        if settings.disk < least {
            return Err(NoWatch::Disk {
                given: settings.disk,
                least,
            });
        }
        let reach = settings.before + settings.after + settings.section;
        if settings.keep < reach {
            return Err(NoWatch::Keep {
                given: settings.keep,
                least: reach,
            });
        }
        let claim = CpuClaim::take_to_watch(machine, cpus)?;
        let boot = machine
            .read("/proc/sys/kernel/random/boot_id")
            .unwrap_or_default();
        let (mut history, left) = History::open(&settings.runs_dir, &name_of(cpus), boot.trim())?;
        for what in &left.failed {
            report(Report::Trouble(what.clone()));
        }
        let control = control(machine, cpus).map_err(NoWatch::Control)?;
        let application = settings.socket.as_deref().map(Listener::make);
        let application = application.transpose().map_err(NoWatch::Socket)?;
        let mut saved = Vec::new();
        if let Some(pending) = left.pending {
            match save_left(&history, &settings, &pending) {
                Ok(run) => {
                    report(Report::Saved(run.clone()));
                    saved.push(run);
                }
                Err(error) => report(Report::Trouble(format!(
                    "what a killed watch was about to save is lost: {error}"
                ))),
            }
            history.forget_note();
        }
        if left.earlier_boot {
            history.clear();
        }
        Ok(Watch {
            machine: machine.clone(),
            cpus: cpus.clone(),
            history,
            control,
            application,
            signal,
            report,
            manifest: Arc::new(OnceLock::new()),
            judged: channel(),
            undecided: Vec::new(),
            sections: channel(),
            begun: None,
            next_client: 0,
            waiting: Vec::new(),
            saved,
            dropped_for_room: 0,
            trouble: None,
            looked: Instant::now(),
            settings,
            _claim: claim,
        })
    }

    /// The folder that the recording writes its sections to.
    #[must_use]
    pub fn history(&self) -> &Path {
        self.history.path()
    }

    /// The outputs that the recording needs besides its sections.
    #[must_use]
    pub fn outputs<'a>(&self) -> Vec<Output<'a>> {
        let history = self.history.path().to_path_buf();
        let mut outputs = vec![Output::new("hourly sums", move || {
            Ok(Box::new(HourlySums::new(&history)))
        })];
        if !self.settings.conditions.is_empty() {
            let judge = Judge::new(
                self.settings.conditions.clone(),
                self.settings.over,
                Arc::clone(&self.manifest),
                self.judged.0.clone(),
            );
            outputs.push(Output::new("--save-if", move || Ok(Box::new(judge))));
        }
        outputs
    }

    fn trouble(&mut self, what: String) {
        self.trouble = Some(what.clone());
        (self.report)(Report::Trouble(what));
    }

    /// Takes a request. `client` waits for the run.
    fn ask(&mut self, now: Ticks, asked: Asked, client: Option<u64>) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        let is_new = match begun.triggers.ask(now, asked) {
            Answer::Begins => true,
            Answer::Joins => false,
            Answer::TooSoon | Answer::OverCap => return,
        };
        if let Some(client) = client {
            self.control.let_wait(client);
            self.waiting.push(client);
        }
        let Some(pending) = begun.triggers.pending().filter(|_| is_new).cloned() else {
            return;
        };
        begun.worker.begin(pending.moment.clone());
        (self.report)(Report::Triggered(pending.moment.clone()));
        if let Err(error) = self.history.note(&pending) {
            self.trouble(format!("what is to be saved cannot be noted: {error}"));
        }
    }

    /// Gathers what has been asked for.
    fn gather(&mut self, now: Ticks, marks: &[Mark]) {
        let here = |by, text: String| Asked {
            by,
            text,
            from: now,
            to: now,
            realtime_ns: realtime_ns(),
        };
        if self.signal.swap(false, Ordering::Relaxed) {
            self.ask(now, here(AskedBy::Signal, String::new()), None);
        }
        for mark in marks {
            let asked = Asked {
                from: mark.time,
                to: mark.time,
                ..here(AskedBy::Marker, mark.text.clone())
            };
            self.ask(now, asked, None);
        }
        while let Ok(judged) = self.judged.1.try_recv() {
            match judged {
                Judged::Met(asked) => self.ask(now, asked, None),
                Judged::Undecided(result) => {
                    self.undecided.push(result.condition.clone());
                    (self.report)(Report::Undecided(result));
                }
            }
        }
        if let Some(application) = &mut self.application {
            let lines = application.lines(&mut self.next_client);
            for line in lines {
                let text = tidy(&line.text);
                self.ask(now, here(AskedBy::Application, text), None);
            }
        }
        for line in self.control.lines(&mut self.next_client) {
            self.request(now, &line);
        }
    }

    fn request(&mut self, now: Ticks, line: &Line) {
        let client = line.client;
        let refuse = |watch: &mut Watch, why: String| {
            watch.control.answer(client, &Reply::Refused(why));
        };
        match serde_json::from_str::<Request>(&line.text) {
            Err(error) => refuse(self, format!("this is no request: {error}")),
            Ok(Request::Status) => {
                let status = self.status(now);
                self.control
                    .answer(client, &Reply::Status(Box::new(status)));
            }
            Ok(Request::Stop) => {
                if let Some(begun) = &mut self.begun {
                    begun.stop = true;
                }
                self.control.answer(client, &Reply::Stopping);
            }
            Ok(Request::Save { at_ns }) => match self.moment(now, at_ns) {
                Ok(asked) => self.ask(now, asked, Some(client)),
                Err(why) => refuse(self, why),
            },
        }
    }

    /// The moment that a person means.
    fn moment(&self, now: Ticks, at_ns: Option<u64>) -> Result<Asked, String> {
        let here = realtime_ns();
        let (at_ns, at) = match (at_ns, &self.begun) {
            (Some(at_ns), Some(begun)) => {
                if at_ns > here {
                    return Err("that time is still to come".into());
                }
                let ago = Nanos(here - at_ns);
                let at = now - begun.rate.ticks(ago);
                let oldest = self
                    .history
                    .chain
                    .first()
                    .map_or(begun.section, |of| of.from);
                if at < oldest {
                    let reach = begun.rate.nanos(now.since(oldest));
                    return Err(format!(
                        "the history reaches back {reach}, not to that time"
                    ));
                }
                (at_ns, at)
            }
            _ => (here, now),
        };
        Ok(Asked {
            by: AskedBy::Person,
            text: String::new(),
            from: at,
            to: at,
            realtime_ns: at_ns,
        })
    }

    fn status(&self, now: Ticks) -> WatchStatus {
        let begun = self.begun.as_ref();
        let manifest = self.manifest.get();
        let oldest = self.history.chain.first().map(|of| of.from);
        let oldest = oldest.or(begun.map(|of| of.section)).unwrap_or(now);
        WatchStatus {
            pid: std::process::id(),
            cpus: self.cpus.clone(),
            probe: manifest.map_or_else(String::new, |of| of.probe.kind.clone()),
            level: "attributed".into(),
            since_ns: manifest.map_or(0, |of| of.clock_start.realtime_ns),
            runs: self.settings.runs_dir.clone(),
            socket: self.application.as_ref().map(|of| of.path().to_path_buf()),
            history: HistoryStatus {
                sections: self.history.chain.len() as u64,
                reaches_ns: begun.map_or(0, |of| of.rate.nanos(now.since(oldest)).0),
                bytes: self.history.chain.bytes() + begun.map_or(0, |of| of.open_bytes),
                limit_bytes: self.settings.disk,
                dropped_for_room: self.dropped_for_room,
            },
            triggers: begun.map_or_else(TriggerCounts::default, |of| of.triggers.counts()),
            undecided: self.undecided.clone(),
            saved: self.saved.clone(),
            cpu_time_ns: own_cpu_time(&self.machine),
            rss_bytes: platform::resident_bytes(),
            trouble: self.trouble.clone(),
            hours: newest(self.history.path(), SHOWN_HOURS),
        }
    }

    /// Takes in what became of borders.
    fn take_sections(&mut self) {
        while let Ok(end) = self.sections.1.try_recv() {
            self.take_section(end);
        }
    }

    fn take_section(&mut self, end: SectionEnd) {
        let SectionEnd {
            at,
            closed,
            goes_on,
        } = end;
        let added = closed.and_then(|path| self.history.add(&path));
        if let Some(begun) = &mut self.begun {
            begun.dividing = false;
            if !goes_on {
                begun.section = at;
            }
        }
        if let Err(error) = added {
            let what = match goes_on {
                true => "no section can be begun, and the last one goes on",
                false => "a section of the history is lost",
            };
            self.trouble(format!("{what}: {error}"));
        }
        let due = self.begun.as_ref().and_then(|of| of.saves_at);
        // Without a border, what there is is saved.
        if due.is_some_and(|due| at >= due || goes_on) {
            self.save();
        }
    }

    /// Has the pending moment saved from closed sections.
    fn save(&mut self) {
        let Some(begun) = &mut self.begun else {
            return;
        };
        begun.saves_at = None;
        let Some(pending) = begun.triggers.pending() else {
            return;
        };
        let window = Window {
            from: pending.from,
            to: pending.to,
        };
        let sections = self.history.chain.of(window, begun.rate);
        begun.worker.ready(sections, window, pending.moment.clone());
    }

    fn take_done(&mut self, done: Done) {
        let failed = done.failed.is_some();
        if let Some(begun) = &mut self.begun {
            begun.triggers.over(failed && done.run.is_none());
            begun.stop |= done.stop;
            begun.ordered = false;
        }
        self.history.forget_note();
        let reply = match (&done.run, &done.failed) {
            (Some(run), _) => Reply::Saved(run.clone()),
            (None, Some(why)) => Reply::Refused(why.clone()),
            (None, None) => Reply::Refused("--on-trigger has no 'save'".into()),
        };
        for client in std::mem::take(&mut self.waiting) {
            self.control.answer(client, &reply);
        }
        if let Some(run) = done.run {
            const SHOWN: usize = 16;
            if self.saved.len() == SHOWN {
                self.saved.remove(0);
            }
            self.saved.push(run.clone());
            (self.report)(Report::Saved(run));
        }
        if let Some(why) = done.failed {
            self.trouble(format!("after a trigger: {why}"));
        }
    }

    /// Drops history beyond the limits, and when the disk is full.
    fn keep_limits(&mut self, now: Ticks) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        let open = self.history.open_bytes().saturating_add(RESERVED);
        let Some(begun) = &mut self.begun else {
            return;
        };
        begun.open_bytes = open;
        let window = begun.triggers.pending().map(|pending| Window {
            from: pending.from,
            to: pending.to,
        });
        let bounds = Bounds {
            keep: begun.rate.ticks(self.settings.keep),
            bytes: self.settings.disk,
        };
        for section in self.history.chain.drop_old(now, bounds, open, window) {
            self.drop_section(&section.path);
        }
        let mut dropped = 0;
        while self.history.is_space_low()
            && let Some(section) = self.history.chain.drop_oldest(window)
        {
            self.drop_section(&section.path);
            dropped += 1;
        }
        if dropped > 0 {
            self.dropped_for_room += dropped;
            self.trouble(format!(
                "the disk is nearly full: the {dropped} oldest sections of the history were dropped"
            ));
        }
    }

    fn drop_section(&mut self, path: &Path) {
        if let Err(error) = remove(path) {
            self.trouble(format!("history cannot be removed: {error}"));
        }
    }

    /// Whether a section ends now.
    fn is_border(&mut self, now: Ticks) -> bool {
        let share = (self.settings.disk / SHARE).max(32 << 20);
        let Some(begun) = &mut self.begun else {
            return false;
        };
        let pending = begun.triggers.pending();
        let settled = |to: Ticks| now >= to + begun.rate.ticks(SETTLE);
        // Its window is over, and no border has been made for it.
        let is_due = pending.is_some_and(|pending| settled(pending.to)) && !begun.ordered;
        let age = begun.rate.nanos(now.since(begun.section));
        let is_long = age >= self.settings.section
            || (age >= SHORTEST && begun.open_bytes > share + RESERVED);
        if begun.dividing || !(is_due || is_long) {
            return false;
        }
        if is_due {
            begun.saves_at = Some(now);
            begun.ordered = true;
        }
        begun.dividing = true;
        true
    }
}

impl Sections for Watch {
    fn begun(&mut self, manifest: &RunManifest) {
        let rate = manifest.rate;
        let limits = Limits {
            before: rate.ticks(self.settings.before),
            after: rate.ticks(self.settings.after),
            apart: rate.ticks(self.settings.apart),
            day: rate.ticks(DAY),
            daily: usize::try_from(self.settings.daily).unwrap_or(usize::MAX),
        };
        let errand = Errand {
            machine: self.machine.clone(),
            actions: self.settings.actions.clone(),
            runs: self.settings.runs_dir.clone(),
            label: self.settings.label.clone(),
        };
        match Worker::start(errand) {
            Ok(worker) => {
                self.begun = Some(Begun {
                    rate,
                    triggers: Triggers::new(limits),
                    worker,
                    section: manifest.clock_start.ticks,
                    dividing: false,
                    saves_at: None,
                    ordered: false,
                    open_bytes: 0,
                    stop: false,
                });
            }
            Err(error) => self.trouble(format!("no thread to save with: {error}")),
        }
        // It is set once.
        let _ = self.manifest.set(manifest.clone());
    }

    fn turn(&mut self, now: Ticks, marks: &[Mark]) -> Next {
        self.gather(now, marks);
        self.take_sections();
        while let Some(done) = self.begun.as_ref().and_then(|begun| begun.worker.done()) {
            self.take_done(done);
        }
        self.keep_limits(now);
        // Nothing can be saved without its thread.
        if self.begun.as_ref().is_none_or(|begun| begun.stop) {
            return Next::Stop;
        }
        match self.is_border(now) {
            true => Next::Border,
            false => Next::GoOn,
        }
    }

    fn tell(&self) -> Sender<SectionEnd> {
        self.sections.0.clone()
    }

    fn over(&mut self, last: PathBuf) {
        self.take_sections();
        if let Err(error) = self.history.add(&last) {
            self.trouble(format!("the last section is lost: {error}"));
        }
        // What is pending is saved with what there is.
        let is_pending = self
            .begun
            .as_ref()
            .is_some_and(|begun| begun.triggers.pending().is_some());
        if is_pending {
            let is_ready = self
                .begun
                .as_ref()
                .is_some_and(|begun| begun.ordered && begun.saves_at.is_none());
            if !is_ready {
                self.save();
            }
            let done = self.begun.as_ref().and_then(|begun| begun.worker.wait());
            match done {
                Some(done) => self.take_done(done),
                None => self.trouble("the thread that saves panicked; this is a bug".into()),
            }
        }
        self.history.clear();
    }
}

/// Saves what a killed watch was about to save.
fn save_left(
    history: &History,
    settings: &WatchSettings,
    pending: &Pending,
) -> Result<PathBuf, CutError> {
    let window = Window {
        from: pending.from,
        to: pending.to,
    };
    let first = history.chain.first().ok_or(CutError::Nothing)?;
    let rate = RunReader::open(&first.path)?.manifest().rate;
    cut(
        &history.chain.of(window, rate),
        window,
        (&settings.runs_dir, &settings.label),
        &pending.moment,
    )
}

/// CPU time of this process without its probes, nanoseconds.
fn own_cpu_time(machine: &Machine) -> u64 {
    let tasks = std::fs::read_dir(machine.path("/proc/self/task"));
    let of = |tid: String| {
        let file = |name: &str| machine.read(&format!("/proc/self/task/{tid}/{name}")).ok();
        let is_probe = file("comm")?.starts_with("js-spin");
        let time = file("schedstat")?
            .split_whitespace()
            .next()?
            .parse::<u64>()
            .ok()?;
        (!is_probe).then_some(time)
    };
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| of(entry.file_name().into_string().ok()?))
        .sum()
}

fn realtime_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
