//! A recording of kernel events: both instances, from start to removal.

use super::controls::Depth;
use super::events::{
    CGROUP_ATTACH, CHARGE, EventFilter, LOCAL, LOCAL_FILTERED, MIGRATE, MIGRATE_EITHER, NEW_TASK,
    NEWBORN, RENAMED, SENDERS, Wanted,
};
use super::pipe::{CpuLoss, Drained};
use super::side::{Plan, Side};
use super::watch::Watch;
use super::{Role, TraceError, Tracefs};
use crate::context::TraceContext;
use jitterscope_model::{
    AskedEvent, ClockKind, CpuId, CpuSet, EventGrain, SourceLoss, SourceProblem, SourceReport,
    SourceStatus, TracefsFlaw,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

/// The senders' buffers are smaller by this factor: they only hold events that target a measured CPU.
const SENDERS_SHARE: u64 = 4;
/// The minimum size of a sender's buffer, KiB.
const SENDERS_LEAST_KB: u64 = 64;

/// Maximum of threads that a filter excludes one by one.
const MOST_LEFT_OUT: usize = 64;
/// How often to read the controls even without a notification.
const READ_ALL_EVERY: Duration = Duration::from_secs(1);

/// Another process wrote to the control files of our instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tampering {
    /// The files, as `ROLE/FILE`; an empty name if unknown.
    pub files: BTreeSet<String>,
    /// Whether everything was restored.
    pub repaired: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    /// CPUs whose events are recorded.
    pub measured: CpuSet,
    /// Online CPUs; senders may run on any of them.
    pub online: CpuSet,
    /// The probe's clock, which the events use, too.
    pub clock: ClockKind,
    /// Buffer of each measured CPU, KiB. An event takes about 40 bytes.
    pub buffer_kb_per_cpu: u64,
    /// Whether threads are followed, which needs a few more events.
    pub follow_threads: bool,
    /// Whether the scheduler's charges to followed threads are only recorded after [`Recorder::record_charges`]: they
    /// cost as much as a switch, and only help where a switch left no record.
    pub charges_later: bool,
    /// Which classes of events are recorded.
    pub grain: EventGrain,
    /// Events that the user asked for, recorded on the measured CPUs: see [`Tracefs::check_asked`].
    pub asked: Vec<AskedEvent>,
}

/// A recording in progress. Dropping it ends it and removes both instances.
#[derive(Debug)]
pub struct Recorder {
    /// Comes before the instances, whose folders it holds open. `None` if writes to controls cannot be watched: then
    /// every check reads them.
    watch: Option<Watch>,
    local: Side,
    senders: Result<Side, TraceError>,
    clock: ClockKind,
    grain: EventGrain,
    context: TraceContext,
    /// One sub-buffer, reused for every read.
    buffer: Vec<u8>,
    read_all: Instant,
}

impl Recorder {
    /// Removes the leftovers of killed recordings, makes both instances, enables everything, and switches recording on
    /// last. If only the senders are unavailable, it records without them and [`Recorder::reports`] says so.
    ///
    /// # Errors
    /// The measured CPUs' events cannot be recorded. Then nothing is left behind.
    pub fn start(tracefs: &Tracefs, settings: &RecorderSettings) -> Result<Recorder, TraceError> {
        // A leftover that cannot be removed does not prevent this recording.
        let _ = tracefs.clean_leftovers();
        tracefs.may_use_instances()?;
        if let Some(cpu) = settings.measured.difference(&settings.online).first() {
            return Err(TraceError::NoCpu {
                cpu,
                source: io::Error::other("it is not online"),
            });
        }
        let last = settings.online.last().unwrap_or_default();
        let everywhere = settings.measured == settings.online;
        // Threads that belong on some CPUs only may start on others and move to others.
        let watch = settings.follow_threads && !everywhere;
        let born = (settings.follow_threads && !watch).then_some((NEW_TASK, None));
        let charges = settings.follow_threads.then_some(CHARGE);
        let (later, at_once) = if settings.charges_later {
            (charges, None)
        } else {
            (None, charges)
        };
        let filtered = LOCAL_FILTERED
            .iter()
            .map(|(wanted, filter)| (*wanted, Some(*filter)));
        let whole = LOCAL.iter().map(|wanted| (*wanted, None));
        let local = whole.chain(filtered).chain(born).chain(at_once);
        let local = Side::prepare(
            tracefs,
            &Plan {
                role: Role::Local.as_str(),
                clock: settings.clock,
                cpus: &settings.measured,
                kb_per_cpu: settings.buffer_kb_per_cpu,
                events: local.collect(),
                later: later.into_iter().collect(),
                grain: &settings.grain,
                vectors: true,
                targets: None,
                last,
                asked: &settings.asked,
            },
        )?;
        let of_sender = |(wanted, target): &(Wanted, EventFilter)| {
            let target = if watch && *wanted == MIGRATE {
                MIGRATE_EITHER
            } else {
                *target
            };
            (*wanted, Some(target))
        };
        let births: &[Wanted] = match (settings.follow_threads, watch) {
            (true, true) => &[NEW_TASK, RENAMED, CGROUP_ATTACH],
            (true, false) => &[RENAMED, CGROUP_ATTACH],
            (false, _) => &[NEWBORN, RENAMED, CGROUP_ATTACH],
        };
        let mut senders = Side::prepare(
            tracefs,
            &Plan {
                role: Role::Senders.as_str(),
                clock: settings.clock,
                cpus: &settings.online,
                kb_per_cpu: (settings.buffer_kb_per_cpu / SENDERS_SHARE).max(SENDERS_LEAST_KB),
                events: SENDERS
                    .iter()
                    .map(of_sender)
                    .chain(births.iter().map(|wanted| (*wanted, None)))
                    .collect(),
                later: Vec::new(),
                grain: &settings.grain,
                vectors: false,
                targets: (!everywhere).then_some(&settings.measured),
                last,
                asked: &[],
            },
        );
        // One description must fit the pages of both.
        if senders
            .as_ref()
            .is_ok_and(|side| side.header_page != local.header_page)
        {
            senders = Err(TraceError::NotSupported {
                flaw: TracefsFlaw::PagesDiffer,
            });
        }
        let mut formats = local.formats.clone();
        if let Ok(side) = &senders {
            formats.extend(side.formats.iter().cloned());
        }
        let context = TraceContext {
            header_page: local.header_page.clone(),
            formats,
            clock: settings.clock,
            symbols: BTreeMap::new(),
            tasks: BTreeMap::new(),
            setup: Vec::new(),
        };
        let buffer = vec![0; local.layout.page_size()];
        let (clock, grain) = (settings.clock, settings.grain.clone());
        let mut recorder = Recorder {
            local,
            senders,
            clock,
            grain,
            context,
            buffer,
            watch: None,
            read_all: Instant::now(),
        };
        let watch = recorder.watched(tracefs);
        // A watch that misses this write does not work.
        let touched = format!("{}/{}", Role::Local.as_str(), recorder.local.touch()?);
        recorder.watch = watch
            .ok()
            .filter(|watch| watch.written().contains(&touched));
        // Senders first, so that the cause of every recorded effect is recorded.
        for side in recorder.sides() {
            side.set_tracing(true)?;
        }
        recorder.forget_own_writes();
        Ok(recorder)
    }

    /// Both instances, senders first.
    fn sides(&mut self) -> impl Iterator<Item = &mut Side> {
        self.senders
            .as_mut()
            .ok()
            .into_iter()
            .chain([&mut self.local])
    }

    /// Watches the control files of both.
    fn watched(&mut self, tracefs: &Tracefs) -> io::Result<Watch> {
        let folders: Vec<(String, String)> = self
            .sides()
            .flat_map(|side| {
                let role = side.instance().role();
                let folder =
                    |below: String| (side.instance().file(&below), format!("{role}{below}"));
                side.folders().into_iter().map(folder).collect::<Vec<_>>()
            })
            .collect();
        Watch::of(tracefs.machine(), folders.into_iter())
    }

    /// Checks whether another process wrote to the control files of our instances since the last check, and restores
    /// them. If so, the records in between are not trusted. With a watch, this normally reads whether recording is on,
    /// and once a second the settings of whole instances. Without a watch, it reads the settings of whole instances
    /// each time, and all files once a second. With `all`, or after a foreign write, it reads all files.
    pub fn look(&mut self, all: bool) -> Option<Tampering> {
        let mut files = self.watch.as_ref().map(Watch::written).unwrap_or_default();
        let is_due = self.read_all.elapsed() >= READ_ALL_EVERY;
        if is_due {
            self.read_all = Instant::now();
        }
        let depth = match (all || !files.is_empty(), is_due, self.watch.is_some()) {
            (true, ..) | (_, true, false) => Depth::Events,
            (_, true, true) | (_, false, false) => Depth::Instance,
            (_, false, true) => Depth::On,
        };
        let changed = self.changed(depth);
        let repaired = changed.is_empty() || self.repair(&mut files);
        files.extend(changed);
        (!files.is_empty()).then_some(Tampering { files, repaired })
    }

    /// Restores all controls, and adds what another process wrote in the meantime. Returns whether all values are now
    /// ours.
    pub(super) fn repair(&mut self, files: &mut BTreeSet<String>) -> bool {
        let mut own = BTreeSet::new();
        let mut is_done = true;
        for side in self.sides() {
            let role = side.instance().role().to_owned();
            let named = |file: String| format!("{role}/{file}");
            let mut written = BTreeSet::new();
            match side.repair(&mut written) {
                Ok(changed) => files.extend(changed.into_iter().map(named)),
                Err(_) => is_done = false,
            }
            own.extend(written.into_iter().map(named));
        }
        let notes = self.watch.as_ref().map(Watch::written).unwrap_or_default();
        files.extend(notes.difference(&own).cloned());
        is_done && self.changed(Depth::Events).is_empty()
    }

    /// Whether writes to controls are watched.
    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// For testing without a watch.
    #[cfg(test)]
    pub(super) fn stop_watching(&mut self) {
        self.watch = None;
    }

    fn changed(&mut self, depth: Depth) -> Vec<String> {
        let of_side = |side: &mut Side| {
            let role = side.instance().role().to_owned();
            let named = move |file| format!("{role}/{file}");
            side.changed(depth).into_iter().map(named)
        };
        self.sides().flat_map(of_side).collect()
    }

    /// Discards the notifications of our own writes.
    fn forget_own_writes(&mut self) {
        if let Some(watch) = &self.watch {
            watch.written();
        }
    }

    /// Whether renames of threads are recorded on all online CPUs: they serve to measure the cost of a record, until
    /// [`Recorder::end_pricing`].
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.senders
            .iter()
            .chain([&self.local])
            .any(|side| side.records(&RENAMED))
    }

    /// Discards all records so far, because other threads' renames may have filled the buffers. Call it before the
    /// first drain.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn end_pricing(&mut self) -> Result<(), TraceError> {
        let Recorder {
            local,
            senders,
            buffer,
            ..
        } = self;
        let mut senders = senders.as_mut().ok();
        // Local recording restarts first: for every recorded wake-up, its consequences must be recorded, too. Otherwise
        // its thread would seem to wait until it gets a CPU the next time.
        if let Some(senders) = &mut senders {
            senders.set_tracing(false)?;
        }
        local.set_tracing(false)?;
        local.forget(buffer)?;
        local.set_tracing(true)?;
        if let Some(senders) = &mut senders {
            senders.forget(buffer)?;
            senders.set_tracing(true)?;
        }
        self.forget_own_writes();
        Ok(())
    }

    /// From now on records the scheduler's charges, if they were deferred.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn record_charges(&mut self) -> Result<(), TraceError> {
        if self.local.records(&CHARGE.0) {
            self.local.set_recorded(&CHARGE.0, true)?;
            self.forget_own_writes();
        }
        Ok(())
    }

    /// From now on does not record renames of these threads, because they are too frequent. If there are too many such
    /// threads, it records no renames at all.
    pub fn leave_out_renames(&mut self, threads: &BTreeSet<i32>) {
        let Ok(senders) = &mut self.senders else {
            return;
        };
        let left_out =
            threads.len() <= MOST_LEFT_OUT && senders.leave_threads_out(&RENAMED, threads);
        if !left_out {
            // If the kernel refuses that, too, the recording continues: its buffer loses records, and reports them.
            let _ = senders.set_recorded(&RENAMED, false);
        }
        self.forget_own_writes();
    }

    /// The clock of the events.
    #[must_use]
    pub fn clock(&self) -> ClockKind {
        self.clock
    }

    /// The data for decoding the pages of both roles.
    #[must_use]
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    fn side(&self, role: Role) -> Option<&Side> {
        match role {
            Role::Local => Some(&self.local),
            Role::Senders => self.senders.as_ref().ok(),
            // Recorded separately, see `CallGraph` and `SleepStacks`.
            Role::Graph | Role::Stacks => None,
        }
    }

    /// The CPUs with a buffer in this role; empty if the role is not recorded.
    #[must_use]
    pub fn cpus(&self, role: Role) -> CpuSet {
        self.side(role)
            .into_iter()
            .flat_map(|side| side.pipes.iter().map(|pipe| pipe.cpu))
            .collect()
    }

    /// Passes every page of `cpu`'s buffer in this role to `sink`, header and used records only. Never waits. Stops
    /// (with [`Drained::more`]) after twice the buffer's length, so that a flood of events cannot block the reader
    /// forever. Without such a buffer it reads nothing.
    ///
    /// # Errors
    /// [`TraceError::NoCpu`]: the CPU has gone offline.
    pub fn drain(
        &mut self,
        role: Role,
        cpu: CpuId,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Drained, TraceError> {
        let side = match (role, &mut self.senders) {
            (Role::Local, _) => &mut self.local,
            (Role::Senders, Ok(side)) => side,
            (Role::Senders, Err(_)) | (Role::Graph | Role::Stacks, _) => {
                return Ok(Drained::default());
            }
        };
        let limit = side.buffer_pages * 2 + 2;
        let Some(pipe) = side.pipes.iter_mut().find(|pipe| pipe.cpu == cpu) else {
            return Ok(Drained::default());
        };
        pipe.drain(&side.layout, &mut self.buffer, limit, sink)
    }

    /// Ends recording; the buffers can still be drained.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn stop(&mut self) -> Result<(), TraceError> {
        let local = self.local.set_tracing(false);
        let senders = self
            .senders
            .as_mut()
            .map_or(Ok(()), |side| side.set_tracing(false));
        self.forget_own_writes();
        local.and(senders)
    }

    /// The losses of `cpu`'s events so far, by the pages and by the buffer's own counts.
    #[must_use]
    pub fn loss(&self, role: Role, cpu: CpuId) -> CpuLoss {
        let Some(side) = self.side(role) else {
            return CpuLoss::default();
        };
        let pipe = side.pipes.iter().find(|pipe| pipe.cpu == cpu);
        CpuLoss {
            stats: side.stats(cpu),
            ..pipe.map_or_else(CpuLoss::default, |pipe| pipe.loss)
        }
    }

    /// Events of this role that the kernel could not filter by target: the recording has more of them than needed.
    #[must_use]
    pub fn unfiltered(&self, role: Role) -> &[String] {
        self.side(role).map_or(&[], |side| &side.unfiltered)
    }

    fn lost(&self, role: Role) -> u64 {
        self.cpus(role)
            .iter()
            .map(|cpu| self.loss(role, cpu).total())
            .fold(0, u64::saturating_add)
    }

    /// The state of the sources `tracefs` and `senders`. Call it after the last drain.
    #[must_use]
    pub fn reports(&self) -> Vec<SourceReport> {
        let senders = match &self.senders {
            Ok(side) => report("senders", side, (&self.grain, self.lost(Role::Senders))),
            Err(error) => refused("senders", SourceLoss::Senders, error),
        };
        vec![
            report(
                "tracefs",
                &self.local,
                (&self.grain, self.lost(Role::Local)),
            ),
            senders,
        ]
    }
}

/// The report of an unavailable source.
pub(crate) fn refused(name: &str, loss: SourceLoss, error: &TraceError) -> SourceReport {
    SourceReport::limited(name, error.status(), error.problem(), loss)
}

fn report(name: &str, side: &Side, (grain, lost): (&EventGrain, u64)) -> SourceReport {
    let mut report = SourceReport {
        lost,
        ..SourceReport::available(name)
    };
    report.losses = side
        .missing
        .losses
        .union(&side.not_asked)
        .cloned()
        .collect();
    if !side.missing.events.is_empty() {
        report.problems.push(SourceProblem::EventsMissing {
            events: side.missing.events.clone(),
        });
    }
    if !side.not_asked.is_empty() {
        report.problems.push(SourceProblem::EventsNotAsked {
            grain: grain.clone(),
        });
    }
    if lost > 0 {
        report.problems.push(SourceProblem::EventsLost { lost });
        report.losses.push(SourceLoss::NearLostEvents);
    }
    if !report.problems.is_empty() {
        report.status = SourceStatus::Degraded;
    }
    report
}
