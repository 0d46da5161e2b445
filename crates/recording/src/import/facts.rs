//! What a run states of an imported file.

use super::error::ImportError;
use super::file_facts::FileFacts;
use super::opened::{Added, Opened};
use super::pages::FilePages;
use super::settings::ImportSettings;
use super::victims::{Plan, Results, threshold};
use crate::settings::RecordSettings;
use crate::threads::INTERVAL;
use jitterscope_model::{
    ClockKind, ClockReading, CpuSet, EventGrain, EventsInGaps, HostFacts, Nanos, ProbeKind,
    ProbeSettings, RUN_SCHEMA_VERSION, RunFacts, RunManifest, SelfNoise, StoredTrace, TickRate,
    Ticks,
};
use jitterscope_source::{Symbols, SymbolsError};
use std::io;

/// Limit on a text that the file states of its machine, bytes.
const LONGEST: usize = 128;
/// A program whose files state `CLOCK_BOOTTIME` as the offset of their times.
const OURS: &str = "jitterscope";

/// What is known before the first row.
pub(super) struct Facts {
    /// The first record of the victims' CPUs.
    pub(super) from: Ticks,
    /// How long the trace lasts, as far as its last pages show it.
    pub(super) span: Ticks,
    pub(super) interval: Nanos,
    pub(super) threshold: Nanos,
    /// CPUs whose time counts.
    pub(super) measured: CpuSet,
    pub(super) clock_start: ClockReading,
    probe: ProbeSettings,
    host: HostFacts,
    label: String,
    command_line: Vec<String>,
    rate: TickRate,
    clock: ClockKind,
    file: FileFacts,
    trace_limit: u64,
}

impl Facts {
    pub(super) fn of(
        opened: &Opened,
        settings: &ImportSettings,
        plan: &Plan,
        (unreadable, symbols): (Vec<String>, &Result<Symbols, SymbolsError>),
    ) -> Result<Facts, ImportError> {
        let options = &opened.dat.options;
        let watched = plan.watched();
        let (from, to) = span(opened, watched)?.ok_or_else(|| ImportError::Empty {
            file: opened.recognised(),
        })?;
        let rate = opened.clock.rate;
        let span = to.since(from);
        let online: CpuSet = match options.cpus {
            Some(count) => (0..count.min(MOST_CPUS))
                .map(jitterscope_model::CpuId)
                .collect(),
            None => opened.streams.iter().map(|stream| stream.cpu).collect(),
        };
        let kind = match watched {
            Some(_) => ProbeKind::Passive,
            None => ProbeKind::Attach,
        };
        let measured = watched.cloned().unwrap_or_else(|| opened.cpus());
        let interval = match watched {
            Some(_) => RecordSettings::default_interval(rate.nanos(span)),
            None => INTERVAL,
        };
        let threshold = threshold(settings);
        Ok(Facts {
            from,
            span,
            interval,
            threshold,
            clock_start: clock_start(opened, from, span),
            probe: ProbeSettings {
                kind: kind.as_str().into(),
                cpus: measured.clone(),
                cpus_chosen_because: None,
                duration_ns: rate.nanos(span),
                warmup_ns: Nanos::ZERO,
                threshold_ns: threshold,
                clock_costs: None,
                interval_ns: interval,
                fifo_priority: None,
                wakeup: None,
                event_grain: EventGrain::All,
            },
            measured,
            host: host(
                options.uname.as_deref().unwrap_or_default(),
                online,
                settings.virtual_machine,
            ),
            label: settings.label.clone(),
            command_line: settings.command_line.clone(),
            rate,
            clock: opened.clock.kind,
            file: FileFacts::of(opened, (unreadable, plan.unswitched(opened)), symbols),
            trace_limit: settings.trace_limit_bytes,
        })
    }

    /// The facts for takers of rows.
    pub(super) fn run(&self, id: &str) -> RunFacts {
        RunFacts {
            id: id.to_owned(),
            label: self.label.clone(),
            hostname: self.host.hostname.clone(),
            probe: self.probe.kind.clone(),
            cpus: self.probe.cpus.clone(),
            threshold: self.threshold,
            interval: self.interval,
            rate: self.rate,
            clock: self.clock_start,
        }
    }

    /// The manifest, once everything was read.
    pub(super) fn manifest(
        &self,
        opened: &Opened,
        source: &FilePages<'_>,
        results: Results,
    ) -> RunManifest {
        let last = source.last;
        let start = self.clock_start;
        let added = Added::default();
        let sources = self.file.sources(opened, source, added);
        let mut warnings = self.file.warnings(opened, source, (&sources, added));
        warnings.extend(results.warnings);
        RunManifest {
            schema_version: RUN_SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            id: String::new(),
            recorder_pid: None,
            label: self.label.clone(),
            command_line: self.command_line.clone(),
            host: self.host.clone(),
            clock: self.clock,
            rate: self.rate,
            clock_start: start,
            clock_end: ClockReading {
                ticks: last,
                monotonic_raw_ns: start.moved(start.monotonic_raw_ns, last, self.rate),
                realtime_ns: start.realtime_of(last, self.rate),
                boottime_ns: start.boottime_ns.map(|at| start.moved(at, last, self.rate)),
                width_ticks: 0,
            },
            probe: self.probe.clone(),
            results: Vec::new(),
            wakeups: Vec::new(),
            threads: results.threads,
            pipeline: None,
            passive: results.passive,
            attributed: true,
            asked: Vec::new(),
            sources,
            counters: Vec::new(),
            edge_costs: Vec::new(),
            sleeping_works: Vec::new(),
            events_in_gaps: EventsInGaps {
                events: results.events,
                ..EventsInGaps::default()
            },
            senders_dropped: results.senders_dropped,
            self_noise: SelfNoise {
                events: Some(source.price()),
                ..SelfNoise::default()
            },
            trace: StoredTrace {
                limit_bytes: self.trace_limit,
                ..StoredTrace::default()
            },
            interrupted: false,
            killed: false,
            moment: None,
            profile: None,
            imported: Some(self.file.imported(opened, source, added)),
            added: None,
            warnings,
        }
    }
}

/// No kernel has more CPUs.
const MOST_CPUS: u32 = 8192;

/// First record of the CPUs that count, and the last one of any.
pub(super) fn span(
    opened: &Opened,
    watched: Option<&CpuSet>,
) -> io::Result<Option<(Ticks, Ticks)>> {
    let (mut from, mut to) = (None, None);
    for stream in &opened.streams {
        if watched.is_none_or(|cpus| cpus.contains(stream.cpu)) {
            from = opened.first(stream)?.into_iter().chain(from).min();
        }
        to = opened.last(stream)?.into_iter().chain(to).max();
    }
    Ok(from.map(|from: Ticks| (from, to.unwrap_or(from).max(from))))
}

/// The clocks at the first record.
pub(super) fn clock_start(opened: &Opened, from: Ticks, span: Ticks) -> ClockReading {
    let options = &opened.dat.options;
    let rate = opened.clock.rate;
    let own_ns = rate.nanos(from).0;
    let shifted = own_ns.saturating_add_signed(options.offset);
    let is_ours = options
        .program
        .as_deref()
        .is_some_and(|program| program.starts_with(OURS));
    let boottime_ns = match opened.clock.name.as_str() {
        "boot" => Some(own_ns),
        _ => is_ours.then_some(shifted),
    };
    let realtime_ns = match options.date_us {
        Some(us) => shifted.saturating_add_signed(us.saturating_mul(1000)),
        None => opened.changed_ns.saturating_sub(rate.nanos(span).0),
    };
    ClockReading {
        ticks: from,
        monotonic_raw_ns: own_ns,
        realtime_ns,
        boottime_ns,
        width_ticks: 0,
    }
}

/// The machine, as far as the file states it.
fn host(uname: &str, online: CpuSet, virtual_machine: bool) -> HostFacts {
    // `Linux host release processor`; our own files have the version before the processor.
    let words: Vec<&str> = uname.split_whitespace().collect();
    let word = |at: usize| {
        let word = words.get(at).copied().unwrap_or_default();
        word.chars().take(LONGEST).collect::<String>()
    };
    let arch = words.len().saturating_sub(1).max(3);
    let version = words.get(3..arch).unwrap_or_default().join(" ");
    HostFacts {
        hostname: word(1),
        kernel_release: word(2),
        kernel_version: version.chars().take(LONGEST).collect(),
        arch: word(arch),
        online,
        hypervisor: virtual_machine.then(|| "unknown".to_owned()),
        ..HostFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_what_uname_says() {
        let of = |uname: &str| host(uname, CpuSet::new(), false);
        let theirs = of("Linux box 6.1.0-18-amd64 x86_64");
        assert_eq!(
            [
                &theirs.hostname,
                &theirs.kernel_release,
                &theirs.kernel_version,
                &theirs.arch
            ],
            ["box", "6.1.0-18-amd64", "", "x86_64"]
        );
        let ours = of("Linux box 6.1.0 #1 SMP PREEMPT x86_64");
        assert_eq!(
            [&ours.kernel_version, &ours.arch],
            ["#1 SMP PREEMPT", "x86_64"]
        );
        assert_eq!(of("").hostname, "");
    }
}
