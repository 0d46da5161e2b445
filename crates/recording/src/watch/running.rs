//! A running watch: gathers requests, divides the recording into sections, and has moments saved.

use super::control::{Listener, control};
use super::cut::Window;
use super::history::{Bounds, History, name_of};
use super::hours::HourlySums;
use super::judge::{Judge, Judged, Rules};
use super::left::save_noted;
use super::published::Published;
use super::rollup_host::Described;
use super::settings::{RESERVED, WatchSettings};
use super::status::{LostRecords, Reply};
use super::totals::TotalsSink;
use super::triggers::{Limits, Triggers};
use super::worker::{Done, Errand, Worker};
use super::{NoWatch, Report};
use crate::engine::{Next, Output, SectionEnd, Sections};
use jitterscope_model::{CpuSet, Nanos, RunManifest, SourceReport, TickRate, Ticks, TuningState};
use jitterscope_platform::{CpuClaim, Machine, boot_id};
use jitterscope_source::Mark;
use jitterscope_store::remove;
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

/// Called in every turn of a running watch, about twenty times a second; with `true` once the recording has ended, before
/// the last run is saved.
pub type Attend = Box<dyn FnMut(&mut Watch, bool)>;

/// A watch, before its recording and during it.
pub struct Watch {
    pub(super) machine: Machine,
    pub(super) settings: WatchSettings,
    pub(super) cpus: CpuSet,
    pub(super) history: History,
    pub(super) control: Listener,
    pub(super) application: Option<Listener>,
    /// Set by SIGUSR1.
    pub(super) signal: Arc<AtomicBool>,
    pub(super) report: Box<dyn FnMut(Report)>,
    /// What is known once the recording has begun.
    pub(super) manifest: Arc<OnceLock<RunManifest>>,
    pub(super) judged: (Sender<Judged>, Receiver<Judged>),
    /// Conditions that could not be decided.
    pub(super) undecided: Vec<String>,
    pub(super) sections: (Sender<SectionEnd>, Receiver<SectionEnd>),
    pub(super) begun: Option<Begun>,
    pub(super) next_client: u64,
    /// The clients that wait for the run that is being saved.
    pub(super) waiting: Vec<u64>,
    pub(super) saved: Vec<PathBuf>,
    pub(super) dropped_for_room: u64,
    pub(super) trouble: Option<String>,
    pub(super) looked: Instant,
    /// The state that other threads see, and the time of its last change.
    pub(super) published: Published,
    pub(super) published_at: Option<Instant>,
    pub(super) cpu_time_ns: u64,
    pub(super) saved_runs: u64,
    pub(super) lost: Vec<LostRecords>,
    asked_sources: Instant,
    /// When moments of the last day were saved, nanoseconds since the epoch, oldest first.
    pub(super) daily: Vec<u64>,
    rules: Rules,
    attend: Option<Attend>,
    _claim: CpuClaim,
}

/// What exists once the recording has begun.
pub(super) struct Begun {
    pub(super) rate: TickRate,
    pub(super) triggers: Triggers,
    pub(super) worker: Worker,
    /// When the current section began, and whether a border is on its way.
    pub(super) section: Ticks,
    pub(super) dividing: bool,
    /// Borders that a save waits for: its window is in closed sections after that of this time.
    pub(super) saves_at: Option<Ticks>,
    /// Whether a border was made for the pending moment.
    pub(super) ordered: bool,
    pub(super) open_bytes: u64,
    pub(super) stop: bool,
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
        settings.check(cpus.len())?;
        let claim = CpuClaim::take_to_watch(machine, cpus)?;
        let boot = boot_id(machine);
        let (mut history, left) = History::open(&settings.runs_dir, &name_of(cpus), &boot)?;
        for what in &left.failed {
            report(Report::Trouble(what.clone()));
        }
        let control = control(machine, cpus).map_err(NoWatch::Control)?;
        let application = settings.socket.as_deref().map(Listener::make);
        let application = application.transpose().map_err(NoWatch::Socket)?;
        let mut saved = Vec::new();
        if let Some(noted) = left.pending {
            match save_noted(&history, &settings.runs_dir, &noted) {
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
            published: Published::default(),
            published_at: None,
            cpu_time_ns: 0,
            saved_runs: 0,
            lost: Vec::new(),
            asked_sources: Instant::now(),
            daily: left.daily,
            rules: Rules::default(),
            attend: None,
            settings,
            _claim: claim,
        })
    }

    /// The folder that the recording writes its sections to.
    #[must_use]
    pub fn history(&self) -> &Path {
        self.history.path()
    }

    /// What the watch shows of itself, for metrics.
    #[must_use]
    pub fn published(&self) -> Published {
        self.published.clone()
    }

    /// The outputs that the recording needs besides its sections. `tuning`: the state of the machine's knobs.
    #[must_use]
    pub fn outputs<'a>(&self, tuning: Option<&TuningState>) -> Vec<Output<'a>> {
        let history = self.history.path().to_path_buf();
        let described = Described::read(&self.machine, &self.cpus, tuning);
        let counts = self.published.hours.clone();
        let totals = self.published.totals.clone();
        let mut outputs = vec![
            Output::new("hourly sums", move || {
                Ok(Box::new(HourlySums::new(&history, described, counts)))
            }),
            Output::new("sums for metrics", move || {
                Ok(Box::new(TotalsSink::new(totals)))
            }),
        ];
        self.set_rules();
        let judge = Judge::new(
            self.rules.clone(),
            Arc::clone(&self.manifest),
            self.judged.0.clone(),
        );
        outputs.push(Output::new("--save-if", move || Ok(Box::new(judge))));
        outputs
    }

    fn set_rules(&self) {
        let settings = &self.settings;
        self.rules.set(settings.conditions.clone(), settings.over);
    }

    /// Has `attend` called in every turn.
    pub fn attend(&mut self, attend: Attend) {
        self.attend = Some(attend);
    }

    fn call_attend(&mut self, has_ended: bool) {
        if let Some(mut attend) = self.attend.take() {
            attend(self, has_ended);
            self.attend = Some(attend);
        }
    }

    /// Goes on with other conditions, actions and limits. The folder of saved runs and the socket stay.
    ///
    /// # Errors
    /// The limits do not fit; then nothing has changed.
    pub fn change(&mut self, settings: WatchSettings) -> Result<(), NoWatch> {
        settings.check(self.cpus.len())?;
        self.settings = WatchSettings {
            runs_dir: std::mem::take(&mut self.settings.runs_dir),
            socket: self.settings.socket.take(),
            ..settings
        };
        self.set_rules();
        self.undecided.clear();
        if let Some(begun) = &mut self.begun {
            begun.triggers.limit(Limits::of(&self.settings, begun.rate));
        }
        Ok(())
    }

    pub(super) fn trouble(&mut self, what: String) {
        self.trouble = Some(what.clone());
        (self.report)(Report::Trouble(what));
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
            self.saved_runs += 1;
            // The next turn publishes it.
            self.published_at = None;
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
        let mut triggers = Triggers::new(Limits::of(&self.settings, rate));
        let here = manifest.clock_start;
        let ago = |at: &u64| rate.ticks(Nanos(here.realtime_ns.saturating_sub(*at)));
        let ago: Vec<Ticks> = self.daily.iter().map(ago).collect();
        triggers.remember(here.ticks, &ago);
        let errand = Errand {
            machine: self.machine.clone(),
            workshop: self.history.workshop(),
            runs: self.settings.runs_dir.clone(),
        };
        match Worker::start(errand) {
            Ok(worker) => {
                self.begun = Some(Begun {
                    rate,
                    triggers,
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

    fn wants_sources(&self) -> bool {
        self.asked_sources.elapsed() >= LOOK
    }

    fn sources(&mut self, sources: &[SourceReport]) {
        self.asked_sources = Instant::now();
        for source in sources {
            let known = self.lost.iter_mut().find(|of| of.source == source.name);
            match known {
                Some(known) => known.records = known.records.max(source.lost),
                None => self.lost.push(LostRecords {
                    source: source.name.clone(),
                    records: source.lost,
                }),
            }
        }
        let lost = self.lost.iter().map(|of| of.records).sum();
        self.published.hours.lost.store(lost, Ordering::Relaxed);
    }

    fn turn(&mut self, now: Ticks, marks: &[Mark]) -> Next {
        self.call_attend(false);
        self.gather(now, marks);
        self.take_sections();
        while let Some(done) = self.begun.as_ref().and_then(|begun| begun.worker.done()) {
            self.take_done(done);
        }
        self.keep_limits(now);
        self.publish(now);
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
        // The end may come between two turns.
        self.call_attend(true);
        self.take_sections();
        if let Err(error) = self.history.add(&last) {
            self.trouble(format!("the last section is lost: {error}"));
        }
        // What is pending is saved with what there is.
        let begun = self.begun.as_ref();
        let is_pending = begun.is_some_and(|begun| begun.triggers.pending().is_some());
        let is_ready = begun.is_some_and(|begun| begun.ordered && begun.saves_at.is_none());
        if is_pending {
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
