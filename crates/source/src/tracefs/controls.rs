//! Checks and repairs the controls of an instance. Every root process can write to its control files: `trace-cmd reset
//! -a` writes to those of all instances.

use super::instance::Instance;
use super::{Clocks, TraceError};
use jitterscope_model::CpuSet;
use jitterscope_platform::KeptFile;
use std::collections::BTreeSet;

/// Switches an instance on and off.
const ON: &str = "tracing_on";
/// The enabled events, one per line.
const EVENTS: &str = "set_event";
/// Other files that control recording. Not every kernel has all of them.
const GENERAL: [&str; 5] = [
    "trace_clock",
    "tracing_cpumask",
    "set_event_pid",
    "set_event_notrace_pid",
    "current_tracer",
];
/// Files that control which records of an event are kept.
const OF_EVENT: [&str; 2] = ["filter", "trigger"];

/// How much a check reads. Each level includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Whether recording is on.
    On,
    /// Settings of the whole instance.
    Instance,
    /// Settings of each event.
    Events,
}

/// The expected values of an instance's controls.
#[derive(Debug)]
pub(super) struct Controls {
    tracing_on: KeptFile,
    is_on: bool,
    events: BTreeSet<String>,
    /// Files and their text.
    general: Vec<(String, String)>,
    of_events: Vec<(String, String)>,
}

impl Controls {
    /// Their current values. `events`: `SYSTEM/EVENT` for each described event.
    pub(super) fn of(instance: &Instance, cpus: &CpuSet, events: &[String]) -> Controls {
        let text = |file: String| {
            let text = said(instance, &file)?;
            Some((file, text))
        };
        let general = GENERAL.map(String::from).into_iter();
        let sizes = cpus
            .iter()
            .map(|cpu| format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        let of_event = |event: &String| OF_EVENT.map(|file| format!("events/{event}/{file}"));
        Controls {
            tracing_on: KeptFile::of_one_record(instance.machine(), instance.file(ON)),
            is_on: false,
            events: enabled(instance).unwrap_or_default(),
            general: general.chain(sizes).filter_map(text).collect(),
            of_events: events.iter().flat_map(of_event).filter_map(text).collect(),
        }
    }

    /// Notes that we switched recording on or off.
    pub(super) fn switched(&mut self, on: bool) {
        self.is_on = on;
    }

    /// Notes that we switched an event on or off.
    pub(super) fn switched_event(&mut self, system: &str, event: &str, on: bool) {
        let name = format!("{system}:{event}");
        if on {
            self.events.insert(name);
        } else {
            self.events.remove(&name);
        }
    }

    /// Notes that we wrote to a file of an event.
    pub(super) fn rewritten(&mut self, instance: &Instance, file: &str) {
        if let Some((_, text)) = self.of_events.iter_mut().find(|(known, _)| known == file)
            && let Some(now) = said(instance, file)
        {
            *text = now;
        }
    }

    fn on(&mut self) -> Option<bool> {
        self.tracing_on.read().ok().map(|text| text.trim() == "1")
    }

    /// The files that have another value, or cannot be read.
    pub(super) fn changed(&mut self, instance: &Instance, depth: Depth) -> Vec<String> {
        let mut changed = Vec::new();
        if self.on() != Some(self.is_on) {
            changed.push(ON.to_owned());
        }
        if depth >= Depth::Instance && enabled(instance).as_ref() != Some(&self.events) {
            changed.push(EVENTS.to_owned());
        }
        let general = self.general.iter().filter(|_| depth >= Depth::Instance);
        let of_events = self.of_events.iter().filter(|_| depth >= Depth::Events);
        let is_other =
            |(file, text): &&(String, String)| said(instance, file).as_ref() != Some(text);
        changed.extend(
            general
                .chain(of_events)
                .filter(is_other)
                .map(|(file, _)| file.clone()),
        );
        changed
    }

    /// Restores changed values, and switches recording on last. Adds each file that it writes to `written`, and returns
    /// the files that had another value: another process may have written to them after the last check.
    ///
    /// # Errors
    /// The kernel refuses, or the instance is gone.
    pub(super) fn repair(
        &mut self,
        instance: &Instance,
        written: &mut BTreeSet<String>,
    ) -> Result<Vec<String>, TraceError> {
        let mut changed = self.changed(instance, Depth::Events);
        for (file, text) in self.general.iter().chain(&self.of_events) {
            if changed.contains(file) {
                written.insert(file.clone());
                put_back(instance, file, text)?;
            }
        }
        let now = enabled(instance).unwrap_or_default();
        let mut write = |file: String, value| {
            let result = instance.write(&file, value);
            written.insert(file);
            result
        };
        let switch = |event: &str| format!("events/{}/enable", event.replacen(':', "/", 1));
        for event in self.events.difference(&now) {
            write(switch(event), "1")?;
        }
        for event in now.difference(&self.events) {
            write(switch(event), "0")?;
        }
        // Another process may have written to it while the other files were read, and our write hides its own.
        if self.on() != Some(self.is_on) && !changed.iter().any(|file| file == ON) {
            changed.push(ON.to_owned());
        }
        write(ON.to_owned(), if self.is_on { "1" } else { "0" })?;
        Ok(changed)
    }
}

/// The content of a control file.
fn said(instance: &Instance, file: &str) -> Option<String> {
    Some(instance.read(file).ok()?.trim().to_owned())
}

/// The enabled events, as `SYSTEM:EVENT`.
fn enabled(instance: &Instance) -> Option<BTreeSet<String>> {
    let text = instance.read(EVENTS).ok()?;
    Some(text.lines().map(|line| line.trim().to_owned()).collect())
}

/// Writes the value that restores a file to this content.
fn put_back(instance: &Instance, file: &str, text: &str) -> Result<(), TraceError> {
    let name = file.rsplit('/').next().unwrap_or(file);
    match name {
        // Writing to these files adds to their content.
        "set_event_pid" | "set_event_notrace_pid" | "trigger" => Ok(instance.empty(file)?),
        "trace_clock" => instance.write(file, &Clocks::parse(text).current),
        "filter" if text == "none" => instance.write(file, "0"),
        _ => instance.write(file, text),
    }
}
