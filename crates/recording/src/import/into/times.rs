//! Aligns the clock of a file with that of a probe.

use crate::import::error::ImportError;
use crate::import::facts;
use crate::import::opened::{Opened, Stream};
use jitterscope_attribute::{AlignError, Alignment, CpuTimes, Guess, Rates, align as aligned};
use jitterscope_model::{
    AlignmentStart, ClockKind, ClockReading, CpuId, Imported, Nanos, RunManifest, TickRate, Ticks,
    TraceRole,
};
use jitterscope_source::Page;
use jitterscope_store::RunReader;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stalls that are compared at most, and records, from the first on: on all CPUs together. Each takes 48 bytes in all.
const MOST: usize = 2 << 20;
/// How far a reading of a clock that the recorder read can be off.
const OF_READING: Nanos = Nanos(50_000_000);
/// Clocks that start when the machine does differ by so much; those of `local` and `perf` also drift apart.
const OF_BOOT: Nanos = Nanos(10_000_000_000);
/// The time of day may be corrected between two readings.
const OF_DAY: Nanos = Nanos(3_000_000_000);

/// A map between the clocks, and how it was found.
pub(super) struct Aligned {
    pub(super) alignment: Alignment,
    pub(super) start: AlignmentStart,
    /// The first compared record, and the first stall.
    pub(super) first_record: Ticks,
    pub(super) first_stall: Ticks,
    pub(super) file_rate: TickRate,
}

/// Aligns the clocks by the file's records of the measured CPUs.
pub(super) fn align(
    opened: &Opened,
    run: &RunReader,
    stop: &AtomicBool,
) -> Result<Aligned, ImportError> {
    let manifest = run.manifest();
    let most = MOST / manifest.probe.cpus.len().max(1);
    let mut cpus: BTreeMap<CpuId, CpuTimes> = BTreeMap::new();
    for stall in run.stalls()? {
        let stall = stall?;
        let of = &mut cpus.entry(stall.cpu).or_default().stalls;
        let follows = of.last().is_none_or(|(_, end)| *end <= stall.start);
        if of.len() < most && follows && stall.start <= stall.end {
            of.push((stall.start, stall.end));
        }
    }
    for stream in opened
        .streams
        .iter()
        .filter(|of| of.role == TraceRole::Local)
    {
        if let Some(of) = cpus.get_mut(&stream.cpu) {
            of.records = records((opened, stream), most, stop)?;
        }
    }
    let cpus: Vec<CpuTimes> = cpus.into_values().collect();
    let rates = Rates {
        file: opened.clock.rate,
        probe: manifest.rate,
    };
    let mut refused = None;
    for (start, guess) in guesses(opened, manifest)? {
        match aligned(&cpus, rates, guess, &|| stop.load(Ordering::Relaxed)) {
            Ok(alignment) => {
                let first = |of: fn(&CpuTimes) -> Option<Ticks>| cpus.iter().filter_map(of).min();
                return Ok(Aligned {
                    alignment,
                    start,
                    first_record: first(|cpu| cpu.records.first().copied()).unwrap_or_default(),
                    first_stall: first(|cpu| cpu.stalls.first().map(|of| of.0)).unwrap_or_default(),
                    file_rate: rates.file,
                });
            }
            Err(AlignError::Stopped) => return Err(ImportError::Interrupted),
            // The first search that found something says most.
            Err(error) => match &refused {
                Some(AlignError::Ambiguous { .. } | AlignError::Unproven { .. }) => {}
                _ => refused = Some(error),
            },
        }
    }
    let none = AlignError::TooFew {
        records: 0,
        stalls: 0,
    };
    Err(ImportError::NotAligned {
        file: opened.recognised(),
        run: manifest.id.clone(),
        source: refused.unwrap_or(none),
    })
}

/// The times of a CPU's records.
fn records(
    (opened, stream): (&Opened, &Stream),
    most: usize,
    stop: &AtomicBool,
) -> Result<Vec<Ticks>, ImportError> {
    let mut times = Vec::new();
    let mut pages = opened.pages(stream);
    while let Some(bytes) = pages.peek()? {
        if stop.load(Ordering::Relaxed) {
            return Err(ImportError::Interrupted);
        }
        if let Ok(page) = Page::parse(&opened.layout, bytes) {
            let last = times.last().copied().unwrap_or_default();
            let page = page.records().map(|record| record.time);
            // A page out of order has no use here.
            times.extend(page.filter(|at| *at >= last).take(most - times.len()));
        }
        if times.len() >= most {
            break;
        }
        pages.pass();
    }
    times.sort_unstable();
    Ok(times)
}

/// Where to search, the most certain place first.
fn guesses(
    opened: &Opened,
    run: &RunManifest,
) -> Result<Vec<(AlignmentStart, Option<Guess>)>, ImportError> {
    let begin = run.clock_start;
    let mut guesses = Vec::new();
    let clock = opened.clock.name.as_str();
    if clock == kernel_clock(run.clock) {
        guesses.push((AlignmentStart::SameClock, Ticks(0), Ticks(0), Nanos::ZERO));
    }
    for (reading, within) in readings(clock, &begin) {
        let file = opened.clock.rate.ticks(Nanos(reading));
        guesses.push((AlignmentStart::ClockReadings, file, begin.ticks, within));
    }
    if opened.dat.options.date_us.is_some()
        && let Some((from, until)) = facts::span(opened, None)?
    {
        let file = facts::clock_start(opened, from, until.since(from));
        // The probe's time at the file's first record.
        let ahead = file.realtime_ns.saturating_sub(begin.realtime_ns);
        let behind = begin.realtime_ns.saturating_sub(file.realtime_ns);
        let ticks = |ns| run.rate.ticks(Nanos(ns));
        let probe = begin.ticks + ticks(ahead) - ticks(behind);
        guesses.push((AlignmentStart::TimeOfDay, from, probe, OF_DAY));
    }
    let guesses = guesses.into_iter().map(|(start, file, probe, within)| {
        (
            start,
            Some(Guess {
                file,
                probe,
                within,
            }),
        )
    });
    Ok(guesses
        .chain([(AlignmentStart::Everywhere, None)])
        .collect())
}

/// The kernel's name of a probe's clock.
pub(super) fn kernel_clock(kind: ClockKind) -> &'static str {
    match kind {
        ClockKind::Tsc => Imported::TSC_CLOCK,
        ClockKind::MonotonicRaw => "mono_raw",
    }
}

/// What the file's clock may have read when the recorder read its own, nanoseconds, and how far that may be off.
fn readings(clock: &str, begin: &ClockReading) -> Vec<(u64, Nanos)> {
    let raw = begin.monotonic_raw_ns;
    let boot = begin.boottime_ns.map(|ns| (ns, OF_READING));
    let readings = match clock {
        "mono_raw" => [Some((raw, OF_READING)), None],
        "boot" => [boot, None],
        // That of boot, unless the machine slept.
        "mono" => [boot, Some((raw, OF_BOOT))],
        "local" | "global" | "perf" => [Some((raw, OF_BOOT)), None],
        _ => [None, None],
    };
    readings.into_iter().flatten().collect()
}

impl Aligned {
    /// Times of the file that the map does not hold for, in order.
    pub(super) fn unfit(&self) -> Vec<(Ticks, Ticks)> {
        let mut unfit = self.alignment.unfit.clone();
        unfit.sort_unstable();
        unfit
    }
}
