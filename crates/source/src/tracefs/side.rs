//! One instance of a recording, from its creation to its pipes.

use super::events::{EventFilter, Missing, VECTORS, Wanted};
use super::instance::Instance;
use super::pipe::Pipe;
use super::{Clocks, TraceError, Tracefs, clock_name, filter};
use crate::context::FormatText;
use crate::format::EventFormat;
use crate::ring::PageLayout;
use jitterscope_model::{ClockKind, CpuId, CpuSet, EventGrain, SourceLoss};
use std::collections::BTreeSet;

/// The smallest buffer worth having, KiB a CPU; also what CPUs get that are not recorded.
const SMALLEST_KB: u64 = 8;
/// What buffers of CPUs that are not recorded may take together, KiB: to make them smaller the kernel waits for all
/// CPUs once more.
const UNUSED_KB: u64 = 4096;

/// One instance: pipes first, since they must be closed before the instance can go.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) pipes: Vec<Pipe>,
    instance: Instance,
    pub(super) header_page: String,
    pub(super) layout: PageLayout,
    pub(super) formats: Vec<FormatText>,
    /// Pages that one CPU's buffer holds.
    pub(super) buffer_pages: u64,
    /// Events that the kernel does not have, or refused.
    pub(super) missing: Missing,
    /// What cannot be seen because its events were not asked for, though the kernel has them.
    pub(super) not_asked: BTreeSet<SourceLoss>,
    /// Events that the kernel would not filter by target.
    pub(super) unfiltered: Vec<String>,
}

/// What a side is to record.
pub(super) struct Plan<'a> {
    pub(super) role: &'static str,
    pub(super) clock: ClockKind,
    /// CPUs that record.
    pub(super) cpus: &'a CpuSet,
    pub(super) kb_per_cpu: u64,
    /// Wanted events, some with what to filter them by.
    pub(super) events: Vec<(Wanted, Option<EventFilter>)>,
    /// The same, of those that are described and filtered, and are recorded once they are enabled.
    pub(super) later: Vec<(Wanted, Option<EventFilter>)>,
    /// Which of them are asked for.
    pub(super) grain: &'a EventGrain,
    /// Whether every interrupt vector is wanted, too.
    pub(super) vectors: bool,
    /// What senders must aim at; `None` for no filter.
    pub(super) targets: Option<&'a CpuSet>,
    /// The highest CPU of the machine.
    pub(super) last: CpuId,
}

impl Side {
    /// Makes the instance and sets everything but `tracing_on`.
    pub(super) fn prepare(tracefs: &Tracefs, plan: &Plan<'_>) -> Result<Side, TraceError> {
        let instance = Instance::create(tracefs, plan.role)?;
        let mut side = Side::without_events(instance, plan.clock, plan.cpus, plan.kb_per_cpu)?;
        side.enable_events(plan);
        if side.formats.is_empty() {
            return Err(TraceError::NoEvents(side.missing.events));
        }
        side.open_pipes(plan.cpus)?;
        Ok(side)
    }

    /// An instance whose clock, buffers and CPUs are set, and which records nothing yet.
    pub(super) fn without_events(
        instance: Instance,
        clock: ClockKind,
        cpus: &CpuSet,
        kb_per_cpu: u64,
    ) -> Result<Side, TraceError> {
        instance.write("tracing_on", "0")?;
        set_clock(&instance, clock)?;
        let kb = kb_per_cpu.max(SMALLEST_KB);
        size_buffers(&instance, cpus, kb)?;
        // Not before a sub-buffer is full would a reader be woken, were there one that waits.
        for (option, value) in [("buffer_percent", "100"), ("options/overwrite", "1")] {
            if instance.exists(option) {
                instance.write(option, value)?;
            }
        }
        instance.write("tracing_cpumask", &cpus.to_mask())?;
        let header_page = instance.read("events/header_page")?;
        let layout = PageLayout::parse(&header_page)?;
        let buffer_pages = (kb * 1024).div_ceil(layout.page_size() as u64);
        Ok(Side {
            pipes: Vec::new(),
            instance,
            header_page,
            layout,
            formats: Vec::new(),
            buffer_pages,
            missing: Missing::default(),
            not_asked: BTreeSet::new(),
            unfiltered: Vec::new(),
        })
    }

    /// Opens the buffers of these CPUs for reading.
    pub(super) fn open_pipes(&mut self, cpus: &CpuSet) -> Result<(), TraceError> {
        for cpu in cpus.iter() {
            let path = self.instance.machine().path(
                self.instance
                    .file(&format!("per_cpu/cpu{cpu}/trace_pipe_raw")),
            );
            self.pipes.push(Pipe::open(cpu, &path)?);
        }
        Ok(())
    }

    /// The instance, for what is no event.
    pub(super) fn instance(&self) -> &Instance {
        &self.instance
    }

    fn enable_events(&mut self, plan: &Plan<'_>) {
        for (wanted, target) in &plan.events {
            if !wanted.is_in(plan.grain) {
                self.leave_out(wanted);
            } else if self
                .enable(wanted.system, wanted.event, *target, plan)
                .is_err()
            {
                self.missing.add(wanted);
            }
        }
        for (wanted, target) in &plan.later {
            match self.describe(wanted.system, wanted.event, *target, plan) {
                Ok(format) => self.formats.push(format),
                Err(()) => self.missing.add(wanted),
            }
        }
        if plan.vectors {
            let names = self
                .instance
                .machine()
                .list(self.instance.file(&format!("events/{VECTORS}")));
            let mut any = false;
            for name in names
                .iter()
                .filter(|name| name.ends_with("_entry") || name.ends_with("_exit"))
            {
                match self.enable(VECTORS, name, None, plan) {
                    Ok(()) => any = true,
                    Err(()) => self.missing.events.push(format!("{VECTORS}:{name}")),
                }
            }
            if !any {
                self.missing.add_vectors();
            }
        }
    }

    /// An event that is not asked for; what a kernel lacks all the same is told as that.
    fn leave_out(&mut self, wanted: &Wanted) {
        if self
            .instance
            .exists(&format!("events/{}/{}/format", wanted.system, wanted.event))
        {
            self.not_asked.extend(wanted.loses.cloned());
        } else {
            self.missing.add(wanted);
        }
    }

    /// Filters and enables one event, and keeps its format. An event that is not there, cannot be read
    /// or is refused is an `Err`: the recording goes on without it.
    fn enable(
        &mut self,
        system: &str,
        event: &str,
        target: Option<EventFilter>,
        plan: &Plan<'_>,
    ) -> Result<(), ()> {
        let format = self.describe(system, event, target, plan)?;
        self.set_event(system, event, true).map_err(drop)?;
        self.formats.push(format);
        Ok(())
    }

    /// Filters one event: its format.
    fn describe(
        &mut self,
        system: &str,
        event: &str,
        target: Option<EventFilter>,
        plan: &Plan<'_>,
    ) -> Result<FormatText, ()> {
        let folder = format!("events/{system}/{event}");
        let text = self
            .instance
            .read(&format!("{folder}/format"))
            .map_err(drop)?;
        let format = EventFormat::parse(system, event, &text).map_err(drop)?;
        let candidates = match (target, plan.targets) {
            (Some(EventFilter::AtLeast(field, value)), _) => {
                Some(filter::at_least(&format, field, value))
            }
            (Some(EventFilter::Between(field, low, high)), _) => {
                Some(filter::between(&format, field, (low, high)))
            }
            (Some(target), Some(targets)) => {
                Some(filter::candidates(&format, target, targets, plan.last))
            }
            _ => None,
        };
        if let Some(candidates) = candidates {
            let file = format!("{folder}/filter");
            if !candidates
                .iter()
                .any(|filter| self.instance.write(&file, filter).is_ok())
            {
                // What is left of a refused filter is its error text; clear it.
                let _ = self.instance.write(&file, "0");
                self.unfiltered.push(format!("{system}:{event}"));
            }
        }
        Ok(FormatText {
            system: system.into(),
            event: event.into(),
            text,
        })
    }

    /// Whether an event is recorded, was until it was disabled, or is once it is enabled.
    pub(super) fn records(&self, wanted: &Wanted) -> bool {
        self.formats
            .iter()
            .any(|format| (&*format.system, &*format.event) == (wanted.system, wanted.event))
    }

    /// Records an event that was left for later, or one no more.
    pub(super) fn set_recorded(&self, wanted: &Wanted, on: bool) -> Result<(), TraceError> {
        self.set_event(wanted.system, wanted.event, on)
    }

    fn set_event(&self, system: &str, event: &str, on: bool) -> Result<(), TraceError> {
        self.instance.write(
            &format!("events/{system}/{event}/enable"),
            if on { "1" } else { "0" },
        )
    }

    /// Forgets what is in the buffers, and what they lost.
    pub(super) fn clear(&self) -> Result<(), TraceError> {
        Ok(self.instance.clear()?)
    }

    /// The same while nothing is recorded. Buffers that lost nothing are read to their end, for the kernel makes whoever
    /// empties them wait for every CPU, twice.
    pub(super) fn forget(&mut self, buffer: &mut [u8]) -> Result<(), TraceError> {
        let limit = self.buffer_pages * 2 + 2;
        let mut is_forgotten = true;
        for pipe in &mut self.pipes {
            let drained = pipe.drain(&self.layout, buffer, limit, &mut |_| {});
            let lost = std::mem::take(&mut pipe.loss);
            is_forgotten &= drained.is_ok_and(|drained| !drained.more)
                && (lost.in_pages, lost.unknown) == (0, 0);
        }
        let has_lost = |pipe: &Pipe| self.stats(pipe.cpu).is_some_and(|stats| stats.lost() > 0);
        if is_forgotten && !self.pipes.iter().any(has_lost) {
            Ok(())
        } else {
            self.clear()
        }
    }

    /// Switches recording on or off; events and buffers stay as they are.
    pub(super) fn set_tracing(&self, on: bool) -> Result<(), TraceError> {
        self.instance
            .write("tracing_on", if on { "1" } else { "0" })
    }

    pub(super) fn stats(&self, cpu: CpuId) -> Option<super::BufferStats> {
        let text = self
            .instance
            .read(&format!("per_cpu/cpu{cpu}/stats"))
            .ok()?;
        Some(super::BufferStats::parse(&text))
    }
}

/// Sets the clock and looks whether it took: a kernel without it refuses, or stays at its own.
fn set_clock(instance: &Instance, clock: ClockKind) -> Result<(), TraceError> {
    let wanted = clock_name(clock);
    let written = instance.write("trace_clock", wanted);
    let got = Clocks::parse(&instance.read("trace_clock")?).current;
    match written {
        Ok(()) if got == wanted => Ok(()),
        Err(TraceError::Refused { value, file }) if file.is_denied() => {
            Err(TraceError::Refused { value, file })
        }
        _ => Err(TraceError::ClockRefused { wanted, got }),
    }
}

/// Gives the recording CPUs their buffers. All others get the smallest, unless there are few of them: a new instance
/// has more than a mebibyte for every possible CPU.
fn size_buffers(instance: &Instance, cpus: &CpuSet, kb: u64) -> Result<(), TraceError> {
    let resize = |file: &str| match instance.write(file, &kb.to_string()) {
        Err(TraceError::Refused { file, .. }) if !file.is_denied() => Err(TraceError::Buffer {
            kb,
            source: file.source,
        }),
        other => other,
    };
    // Each time the kernel waits for all CPUs: once is enough where all of them record.
    let folders = instance.machine().list(instance.file("per_cpu"));
    let recorded = |name: &String| {
        name.strip_prefix("cpu")?
            .parse()
            .ok()
            .map(|cpu| cpus.contains(CpuId(cpu)))
    };
    if folders.len() == cpus.len() && folders.iter().all(|name| recorded(name) == Some(true)) {
        return resize("buffer_size_kb");
    }
    let others = folders.len().saturating_sub(cpus.len()) as u64;
    let each = instance
        .read("buffer_size_kb")
        .ok()
        .and_then(|kb| kb.trim().parse::<u64>().ok());
    if each.is_none_or(|kb| kb.saturating_mul(others) > UNUSED_KB) {
        instance.write("buffer_size_kb", &SMALLEST_KB.to_string())?;
    }
    for cpu in cpus.iter() {
        let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
        if !instance.exists(&file) {
            return Err(TraceError::NoCpu {
                cpu,
                source: std::io::ErrorKind::NotFound.into(),
            });
        }
        resize(&file)?;
    }
    Ok(())
}
