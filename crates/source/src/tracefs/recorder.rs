//! A recording of kernel events: both instances, from start to removal.

use super::events::{
    CHARGE, EventFilter, LOCAL, LOCAL_FILTERED, MIGRATE, MIGRATE_EITHER, NEW_TASK, NEWBORN, PRICED,
    RENAMED, SENDERS, Wanted,
};
use super::pipe::{CpuLoss, Drained};
use super::side::{Plan, Side};
use super::{Role, TraceError, Tracefs};
use crate::context::TraceContext;
use jitterscope_model::{
    ClockKind, CpuId, CpuSet, EventGrain, SourceLoss, SourceProblem, SourceReport, SourceStatus,
    TracefsFlaw,
};
use std::collections::BTreeMap;
use std::io;

/// The senders' buffers are smaller by this factor: they hold only what is aimed at a measured CPU.
const SENDERS_SHARE: u64 = 4;
/// The least a sender's buffer has, KiB.
const SENDERS_LEAST_KB: u64 = 64;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderSettings {
    /// CPUs whose events are wanted.
    pub measured: CpuSet,
    /// CPUs that are online; senders may run on any of them.
    pub online: CpuSet,
    /// The probe's clock: events are stamped with the same.
    pub clock: ClockKind,
    /// Buffer of each measured CPU, KiB. An event takes about 40 bytes.
    pub buffer_kb_per_cpu: u64,
    /// Whether threads are followed, which takes a few more events.
    pub follow_threads: bool,
    /// Whether the scheduler's charges to threads that are followed are recorded from [`Recorder::record_charges`]
    /// on only: they take as long as a switch, and say something only where a switch left no record.
    pub charges_later: bool,
    /// Whether it is wanted that threads take other names, on all CPUs.
    pub renames: bool,
    /// Which classes of events are asked for.
    pub grain: EventGrain,
}

/// A recording in progress. Dropping it ends it and removes both instances.
#[derive(Debug)]
pub struct Recorder {
    local: Side,
    senders: Result<Side, TraceError>,
    clock: ClockKind,
    renames: bool,
    grain: EventGrain,
    context: TraceContext,
    /// One sub-buffer, used for every read.
    buffer: Vec<u8>,
}

impl Recorder {
    /// Removes what killed recordings left behind, makes both instances, enables everything, and
    /// switches recording on last. When only the senders cannot be had, it records without them and
    /// [`Recorder::reports`] says so.
    ///
    /// # Errors
    /// The measured CPUs' events cannot be recorded. Nothing is left behind then.
    pub fn start(tracefs: &Tracefs, settings: &RecorderSettings) -> Result<Recorder, TraceError> {
        // A leftover that cannot be removed does not hinder this recording.
        let _ = tracefs.clean_leftovers();
        if let Some(cpu) = settings.measured.difference(&settings.online).first() {
            return Err(TraceError::NoCpu {
                cpu,
                source: io::Error::other("it is not online"),
            });
        }
        let last = settings.online.last().unwrap_or_default();
        let everywhere = settings.measured == settings.online;
        // Threads that belong on some CPUs only begin on others and leave for others.
        let watch = settings.follow_threads && !everywhere;
        let born = (settings.follow_threads && !watch).then_some((NEW_TASK, None));
        let charges = settings.follow_threads.then_some(CHARGE);
        let (later, at_once) = if settings.charges_later {
            (charges, None)
        } else {
            (None, charges)
        };
        let renamed = if settings.renames { RENAMED } else { PRICED };
        // Once on every CPU: beside the threads that are followed everywhere, else beside the senders.
        let here = (settings.follow_threads && !watch).then_some((renamed, None));
        let filtered = LOCAL_FILTERED
            .iter()
            .map(|(wanted, filter)| (*wanted, Some(*filter)));
        let whole = LOCAL.iter().map(|wanted| (*wanted, None));
        let local = whole.chain(filtered).chain(born).chain(at_once).chain(here);
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
            (true, true) => &[NEW_TASK, renamed],
            (true, false) => &[],
            (false, _) => &[NEWBORN, renamed],
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
            },
        );
        // One description serves the pages of both.
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
        let (clock, renames, grain) = (settings.clock, settings.renames, settings.grain.clone());
        let recorder = Recorder {
            local,
            senders,
            clock,
            renames,
            grain,
            context,
            buffer,
        };
        // Senders first: an effect that is recorded has its cause recorded.
        for side in recorder.senders.iter().chain([&recorder.local]) {
            side.set_tracing(true)?;
        }
        Ok(recorder)
    }

    /// Whether a thread that gives itself a name is recorded, on whichever CPU that is online: what a record
    /// costs can be measured on that until [`Recorder::end_pricing`].
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.senders
            .iter()
            .chain([&self.local])
            .any(|side| side.records(&PRICED))
    }

    /// From now on it is recorded only where it is wanted that a thread gives itself a name, and what was recorded
    /// until now is forgotten: others' names may have filled the buffers. Before the first drain.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn end_pricing(&mut self) -> Result<(), TraceError> {
        let Recorder {
            local,
            senders,
            buffer,
            renames,
            ..
        } = self;
        let mut senders = senders.as_mut().ok();
        for side in [&*local].into_iter().chain(senders.as_deref()) {
            if side.records(&PRICED) && !*renames {
                side.set_recorded(&PRICED, false)?;
            }
        }
        // The local ones go on first, for a wake-up that is kept must have what came of it kept: its thread would be
        // taken to wait until it is put on a CPU the next time.
        if let Some(senders) = &senders {
            senders.set_tracing(false)?;
        }
        local.set_tracing(false)?;
        local.forget(buffer)?;
        local.set_tracing(true)?;
        if let Some(senders) = &mut senders {
            senders.forget(buffer)?;
            senders.set_tracing(true)?;
        }
        Ok(())
    }

    /// From now on the scheduler's charges are recorded, where they were left for later.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn record_charges(&self) -> Result<(), TraceError> {
        if self.local.records(&CHARGE.0) {
            self.local.set_recorded(&CHARGE.0, true)
        } else {
            Ok(())
        }
    }

    /// The clock that events are stamped with.
    #[must_use]
    pub fn clock(&self) -> ClockKind {
        self.clock
    }

    /// What the pages of both roles need to be decoded.
    #[must_use]
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    fn side(&self, role: Role) -> Option<&Side> {
        match role {
            Role::Local => Some(&self.local),
            Role::Senders => self.senders.as_ref().ok(),
            // Has a recording of its own, see `CallGraph`.
            Role::Graph => None,
        }
    }

    /// The CPUs that have a buffer in this role; none when the role is not recorded.
    #[must_use]
    pub fn cpus(&self, role: Role) -> CpuSet {
        self.side(role)
            .into_iter()
            .flat_map(|side| side.pipes.iter().map(|pipe| pipe.cpu))
            .collect()
    }

    /// Hands every page that `cpu` has in this role to `sink`, header and used records only. Never
    /// waits, and stops (with [`Drained::more`]) after twice the buffer's length, so that a flood of
    /// events cannot hold the reader for ever. Without such a buffer it reads nothing.
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
            (Role::Senders, Err(_)) | (Role::Graph, _) => return Ok(Drained::default()),
        };
        let limit = side.buffer_pages * 2 + 2;
        let Some(pipe) = side.pipes.iter_mut().find(|pipe| pipe.cpu == cpu) else {
            return Ok(Drained::default());
        };
        pipe.drain(&side.layout, &mut self.buffer, limit, sink)
    }

    /// Ends recording; what is in the buffers can still be drained.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn stop(&mut self) -> Result<(), TraceError> {
        let local = self.local.set_tracing(false);
        let senders = self
            .senders
            .as_ref()
            .map_or(Ok(()), |side| side.set_tracing(false));
        local.and(senders)
    }

    /// What was lost of `cpu`'s events so far: as its pages say, and as the buffer itself counts.
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

    /// Events of this role that the kernel would not filter by their target: more was recorded than is
    /// needed.
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

    /// What was recorded, and what could not be: `tracefs` and `senders`. Call it after the last drain.
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

/// The report of a source that could not be had.
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
