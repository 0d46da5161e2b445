//! One instance of a recording, from its creation to its pipes.

use super::controls::{Controls, Depth};
use super::events::{EventFilter, Missing, VECTORS, Wanted};
use super::instance::Instance;
use super::pipe::Pipe;
use super::{Clocks, TraceError, Tracefs, clock_name, filter};
use crate::context::FormatText;
use crate::format::EventFormat;
use crate::ring::PageLayout;
use jitterscope_model::{AskedEvent, ClockKind, CpuId, CpuSet, EventGrain, SourceLoss};
use std::collections::BTreeSet;

/// The smallest useful buffer, KiB per CPU; unrecorded CPUs get it, too.
const SMALLEST_KB: u64 = 8;
/// Total size of unrecorded CPUs' buffers that is acceptable, KiB: making them smaller costs another wait for all CPUs.
const UNUSED_KB: u64 = 4096;

/// One instance. Its open files come first, because they must be closed before the instance can be removed.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) pipes: Vec<Pipe>,
    /// The expected controls, once everything is set.
    controls: Option<Controls>,
    instance: Instance,
    pub(super) header_page: String,
    pub(super) layout: PageLayout,
    pub(super) formats: Vec<FormatText>,
    /// Pages per CPU buffer.
    pub(super) buffer_pages: u64,
    /// Events that the kernel does not have, or refused.
    pub(super) missing: Missing,
    /// What is missing because its events were not requested, although the kernel has them.
    pub(super) not_asked: BTreeSet<SourceLoss>,
    /// Events that the kernel could not filter by target.
    pub(super) unfiltered: Vec<String>,
}

/// What a side records.
pub(super) struct Plan<'a> {
    pub(super) role: &'static str,
    pub(super) clock: ClockKind,
    pub(super) cpus: &'a CpuSet,
    pub(super) kb_per_cpu: u64,
    /// The events, some with a filter.
    pub(super) events: Vec<(Wanted, Option<EventFilter>)>,
    /// Events that are described and filtered now, but enabled later.
    pub(super) later: Vec<(Wanted, Option<EventFilter>)>,
    pub(super) grain: &'a EventGrain,
    /// Whether to record all interrupt vectors, too.
    pub(super) vectors: bool,
    /// The CPUs that senders must target; `None` for no filter.
    pub(super) targets: Option<&'a CpuSet>,
    /// The highest CPU of the machine.
    pub(super) last: CpuId,
    /// What the user asked for as well.
    pub(super) asked: &'a [AskedEvent],
}

impl Side {
    /// Makes the instance and sets everything but `tracing_on`.
    pub(super) fn prepare(tracefs: &Tracefs, plan: &Plan<'_>) -> Result<Side, TraceError> {
        let instance = Instance::create(tracefs, plan.role)?;
        let mut side = Side::without_events(instance, plan.clock, plan.cpus, plan.kb_per_cpu)?;
        side.enable_events(plan);
        for asked in plan.asked {
            side.enable_asked(asked)?;
        }
        if side.formats.is_empty() {
            return Err(TraceError::NoEvents(side.missing.events));
        }
        side.open_pipes(plan.cpus)?;
        let events: Vec<String> = side
            .formats
            .iter()
            .map(|format| format!("{}/{}", format.system, format.event))
            .collect();
        side.controls = Some(Controls::of(&side.instance, plan.cpus, &events));
        Ok(side)
    }

    /// Folders with control files.
    pub(super) fn folders(&self) -> BTreeSet<String> {
        let mut folders: BTreeSet<String> = ["", "/options", "/events"].map(String::from).into();
        for pipe in &self.pipes {
            folders.insert(format!("/per_cpu/cpu{}", pipe.cpu));
        }
        for format in &self.formats {
            folders.insert(format!("/events/{}", format.system));
            folders.insert(format!("/events/{}/{}", format.system, format.event));
        }
        let there = |folder: &String| self.instance.exists(folder.trim_start_matches('/'));
        folders.into_iter().filter(there).collect()
    }

    /// Writes a control file's current value to it. Returns the file's name.
    pub(super) fn touch(&self) -> Result<String, TraceError> {
        let Some(FormatText { system, event, .. }) = self.formats.first() else {
            return Ok(String::new());
        };
        self.set_event(system, event, true)?;
        Ok(format!("events/{system}/{event}/enable"))
    }

    /// Control files whose content has changed.
    pub(super) fn changed(&mut self, depth: Depth) -> Vec<String> {
        match &mut self.controls {
            Some(controls) => controls.changed(&self.instance, depth),
            None => Vec::new(),
        }
    }

    /// Restores the control files: see [`Controls::repair`].
    pub(super) fn repair(
        &mut self,
        written: &mut BTreeSet<String>,
    ) -> Result<Vec<String>, TraceError> {
        match &mut self.controls {
            Some(controls) => controls.repair(&self.instance, written),
            None => Ok(Vec::new()),
        }
    }

    /// An instance with clock, buffers and CPUs, which records nothing yet.
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
        // Even a waiting reader would only be woken when a sub-buffer is full.
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
            controls: None,
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

    /// Notes an event that is not requested; if the kernel does not have it anyway, that is reported instead.
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

    /// Filters and enables one event, and keeps its format. `Err` if the event does not exist, cannot be read or is
    /// refused: the recording then continues without it.
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

    /// Filters one event and returns its format.
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
            (Some(EventFilter::Signals), _) => Some(filter::signals(&format)),
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
                // A refused filter leaves its error text in the file; this clears it.
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

    /// Whether this side has an event, enabled or not.
    pub(super) fn records(&self, wanted: &Wanted) -> bool {
        self.formats
            .iter()
            .any(|format| (&*format.system, &*format.event) == (wanted.system, wanted.event))
    }

    /// Enables or disables an event.
    pub(super) fn set_recorded(&mut self, wanted: &Wanted, on: bool) -> Result<(), TraceError> {
        self.set_event(wanted.system, wanted.event, on)?;
        if let Some(controls) = &mut self.controls {
            controls.switched_event(wanted.system, wanted.event, on);
        }
        Ok(())
    }

    /// Excludes these threads from an event; false if the kernel refuses.
    pub(super) fn leave_threads_out(&mut self, wanted: &Wanted, threads: &BTreeSet<i32>) -> bool {
        // The thread that the event is about, or else the thread that writes the record.
        let file = format!("events/{}/{}/filter", wanted.system, wanted.event);
        let is_left_out = ["pid", "common_pid"].into_iter().any(|field| {
            let each = threads.iter().map(|tid| format!("{field} != {tid}"));
            let filter = each.collect::<Vec<_>>().join(" && ");
            self.instance.write(&file, &filter).is_ok()
        });
        if let Some(controls) = &mut self.controls {
            controls.rewritten(&self.instance, &file);
        }
        is_left_out
    }

    fn set_event(&self, system: &str, event: &str, on: bool) -> Result<(), TraceError> {
        self.instance.write(
            &format!("events/{system}/{event}/enable"),
            if on { "1" } else { "0" },
        )
    }

    /// Discards the contents of the buffers, and their loss counts.
    pub(super) fn clear(&self) -> Result<(), TraceError> {
        Ok(self.instance.clear()?)
    }

    /// The same, while nothing is recorded. Reads buffers without losses to their end, because emptying them makes the
    /// caller wait for every CPU, twice.
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
    pub(super) fn set_tracing(&mut self, on: bool) -> Result<(), TraceError> {
        if let Some(controls) = &mut self.controls {
            controls.switched(on);
        }
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

/// Sets the clock and checks the result: a kernel without that clock refuses, or keeps the old one.
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

/// Sizes the recorded CPUs' buffers. All others get the smallest size, unless there are few of them: a new instance has
/// more than a mebibyte for every possible CPU.
fn size_buffers(instance: &Instance, cpus: &CpuSet, kb: u64) -> Result<(), TraceError> {
    let resize = |file: &str| match instance.write(file, &kb.to_string()) {
        Err(TraceError::Refused { file, .. }) if !file.is_denied() => Err(TraceError::Buffer {
            kb,
            source: file.source,
        }),
        other => other,
    };
    // Each resize waits for all CPUs; if all of them record, one resize is enough.
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
