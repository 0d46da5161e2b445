//! The file, opened: which pages are read, and on which clock.

use super::error::ImportError;
use super::foreign::unnamed;
use super::settings::ImportSettings;
use jitterscope_attribute::ClockMap;
use jitterscope_model::{
    ClockKind, CpuId, CpuSet, Imported, RateSource, TickRate, Ticks, TraceRole, visible,
};
use jitterscope_source::format::EventFormat;
use jitterscope_source::perfetto;
use jitterscope_source::tracedat::{
    Buffer, CpuData, CpuPages, Measured, RetimeError, TraceDat, TraceDatError, least_memory,
};
use jitterscope_source::{FormatText, Page, PageLayout, Symbols, SymbolsError, TraceContext};
use std::fs::File;
use std::io;
use std::sync::atomic::AtomicBool;

/// What all CPUs' pages may hold in memory at a time, bytes: shared by them, and what damaged tables may claim at most.
const MEMORY: usize = 64 << 20;
const MOST_MEMORY: u64 = 1 << 30;
/// The clock of a file that names none: the kernel's default.
const DEFAULT_CLOCK: &str = Imported::LOCAL_CLOCK;
/// The program whose files have our two sides in two buffers.
const OURS: &str = "jitterscope";

/// The clock of a file's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileClock {
    /// The kernel's name.
    pub(super) name: String,
    pub(super) kind: ClockKind,
    pub(super) rate: TickRate,
}

/// The pages of a CPU.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) role: TraceRole,
    pub(super) cpu: CpuId,
    /// The number of its buffer in the file.
    buffer: usize,
    data: CpuData,
}

/// A file with its chosen pages.
pub(super) struct Opened {
    pub(super) dat: TraceDat,
    pub(super) clock: FileClock,
    pub(super) layout: PageLayout,
    pub(super) streams: Vec<Stream>,
    /// Its name, without its folder.
    pub(super) name: String,
    /// The last change of the file, nanoseconds since the epoch.
    pub(super) changed_ns: u64,
    /// CPUs whose records end too early.
    pub(super) cut: CpuSet,
    /// Records that have the time of the one before, because they are out of order.
    pub(super) moved: u64,
    /// Events that no verdict uses and that have no record.
    pub(super) unread: u64,
}

/// What the records of a file lack of a probe's measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Added {
    /// Losses and records that are not in the file, but mark where its records begin and end.
    pub(super) losses: u64,
    pub(super) records: u64,
    /// The measured time with records, the sum over the CPUs.
    pub(super) covered: Ticks,
    /// Pages that were left out because they are out of order.
    pub(super) disordered: u64,
}

impl Opened {
    pub(super) fn of(
        file: File,
        name: String,
        changed_ns: u64,
        settings: &ImportSettings,
    ) -> Result<Opened, ImportError> {
        let dat = TraceDat::open(file).map_err(|source| match source {
            TraceDatError::Io(source) => ImportError::Read(source),
            source => ImportError::Format {
                path: settings.file.clone(),
                source,
            },
        })?;
        Opened::of_dat(dat, name, changed_ns, settings)
    }

    pub(super) fn of_dat(
        dat: TraceDat,
        name: String,
        changed_ns: u64,
        settings: &ImportSettings,
    ) -> Result<Opened, ImportError> {
        let file = recognised(&dat);
        let layout =
            PageLayout::parse(&dat.header_page).map_err(|source| ImportError::Described {
                file: file.clone(),
                source: source.into(),
            })?;
        let chosen = choose(&dat, settings.buffer.as_deref())?;
        let mut streams = Vec::new();
        for (role, buffer) in &chosen {
            let of_cpu = |data: &CpuData| Stream {
                role: *role,
                cpu: data.cpu,
                buffer: *buffer,
                data: *data,
            };
            streams.extend(dat.buffers[*buffer].cpus.iter().map(of_cpu));
        }
        let page_size = chosen
            .iter()
            .map(|(_, at)| dat.buffers[*at].page_size)
            .max();
        let page_size = page_size.unwrap_or(0);
        if least_memory(page_size).saturating_mul(streams.len() as u64) > MOST_MEMORY {
            return Err(ImportError::Implausible {
                file,
                streams: streams.len(),
                page_size,
            });
        }
        let of_buffer = chosen
            .first()
            .and_then(|(_, at)| dat.buffers[*at].clock.clone());
        let clock = clock(&dat, of_buffer, settings.tsc_hz)?;
        Ok(Opened {
            dat,
            clock,
            layout,
            streams,
            name,
            changed_ns,
            cut: CpuSet::new(),
            moved: 0,
            unread: 0,
        })
    }

    /// Notes that the file ends early: records of any CPU may be missing.
    pub(super) fn cut(self, is_cut: bool) -> Opened {
        let cut = match is_cut {
            true => self.streams.iter().map(|stream| stream.cpu).collect(),
            false => CpuSet::new(),
        };
        Opened { cut, ..self }
    }

    /// How to record a file of this format.
    pub(super) fn how(&self) -> &'static str {
        match self.dat.format {
            Imported::PERF_DATA => {
                "perf record -a -k CLOCK_MONOTONIC -e 'sched:*,irq:*,irq_vectors:local_timer_*,irq_vectors:reschedule_*,timer:*,workqueue:*'"
            }
            Imported::PERFETTO => perfetto::HOW_TO_RECORD,
            Imported::CTF => {
                "lttng enable-event --kernel 'sched_*,irq_*,timer_*,workqueue_*,power_*,x86_irq_vectors_*'"
            }
            _ => "trace-cmd record -C mono -e sched -e irq -e irq_vectors -e timer -e workqueue",
        }
    }

    /// The same records on the clock of a probe, as far as they are near its measurement. Also returns what was added.
    pub(super) fn retimed(
        self,
        clock: FileClock,
        (measured, map): (&Measured, &ClockMap),
        settings: &ImportSettings,
        stop: &AtomicBool,
    ) -> Result<(Opened, Added), ImportError> {
        let dir = &settings.runs_dir;
        let file = unnamed(dir).map_err(|source| ImportError::temporary(dir, source))?;
        let mut buffers: Vec<usize> = self.streams.iter().map(|of| of.buffer).collect();
        buffers.dedup();
        let time = |at: Ticks| map.probe_time(at);
        let retimed = self
            .dat
            .retimed(&buffers, &self.layout, (measured, &time), file, stop)
            .map_err(|source| match source {
                RetimeError::Stopped => ImportError::Interrupted,
                RetimeError::Read(source) => ImportError::Read(source),
                RetimeError::Write(source) => ImportError::of_pages(dir, source),
                source @ (RetimeError::Tables | RetimeError::Losses) => ImportError::Damaged {
                    file: settings.file.clone(),
                    source,
                },
            })?;
        let role = |buffer: usize, cpu: CpuId| {
            let of = |of: &&Stream| of.buffer == buffers[buffer] && of.cpu == cpu;
            // A measured CPU without a record has only a loss.
            self.streams
                .iter()
                .find(of)
                .map_or(TraceRole::Local, |of| of.role)
        };
        let mut streams = Vec::new();
        for (number, buffer) in retimed.dat.buffers.iter().enumerate() {
            streams.extend(buffer.cpus.iter().map(|data| Stream {
                role: role(number, data.cpu),
                cpu: data.cpu,
                buffer: number,
                data: *data,
            }));
        }
        let added = Added {
            losses: retimed.added_losses,
            records: retimed.added_records,
            covered: retimed.covered,
            disordered: retimed.disordered,
        };
        let cut = self.cut.iter().chain(retimed.cut.iter());
        let opened = Opened {
            dat: retimed.dat,
            clock,
            streams,
            cut: cut.collect(),
            ..self
        };
        Ok((opened, added))
    }

    /// Takes the kernel's functions out of it.
    pub(super) fn take_functions(&mut self) -> Result<Symbols, SymbolsError> {
        std::mem::replace(&mut self.dat.functions, Err(SymbolsError::Empty))
    }

    /// What the file is, in words.
    pub(super) fn recognised(&self) -> String {
        recognised(&self.dat)
    }

    /// The pages of a stream.
    pub(super) fn pages(&self, stream: &Stream) -> CpuPages<'_> {
        let memory = MEMORY / self.streams.len().max(1);
        let buffer = &self.dat.buffers[stream.buffer];
        self.dat.pages(buffer, &stream.data, memory)
    }

    /// The CPUs with records of their own.
    pub(super) fn cpus(&self) -> CpuSet {
        let local = self.streams.iter().filter(|of| of.role == TraceRole::Local);
        local.map(|stream| stream.cpu).collect()
    }

    /// Makes the CPUs other than these the sending side, as in a recording that watches some CPUs.
    pub(super) fn watch(&mut self, cpus: &CpuSet) {
        for stream in &mut self.streams {
            if stream.role == TraceRole::Local && !cpus.contains(stream.cpu) {
                stream.role = TraceRole::Senders;
            }
        }
    }

    /// The time of the first record of a stream; `None` without any.
    pub(super) fn first(&self, stream: &Stream) -> io::Result<Option<Ticks>> {
        let mut pages = self.pages(stream);
        while let Some(bytes) = pages.peek()? {
            let page = Page::parse(&self.layout, bytes).ok();
            if let Some((first, _)) = page.and_then(|page| page.time_range()) {
                return Ok(Some(first));
            }
            pages.pass();
        }
        Ok(None)
    }

    /// The time of the last record of a stream, as far as its last page shows it.
    pub(super) fn last(&self, stream: &Stream) -> io::Result<Option<Ticks>> {
        let buffer = &self.dat.buffers[stream.buffer];
        let Some(bytes) = self.dat.last_page(buffer, &stream.data)? else {
            return Ok(None);
        };
        let page = Page::parse(&self.layout, &bytes).ok();
        Ok(page.and_then(|page| Some(page.time_range()?.1)))
    }

    /// What decoding needs, without names: the formats that can be read, and those that cannot, each as `system:event`.
    pub(super) fn context(&self) -> (TraceContext, Vec<String>) {
        let readable =
            |of: &&FormatText| EventFormat::parse(&of.system, &of.event, &of.text).is_ok();
        let (formats, bad): (Vec<_>, Vec<_>) = self.dat.formats.iter().partition(readable);
        let context = TraceContext {
            header_page: self.dat.header_page.clone(),
            formats: formats.into_iter().cloned().collect(),
            clock: self.clock.kind,
            symbols: Default::default(),
            tasks: Default::default(),
            setup: Vec::new(),
        };
        let bad = bad.iter().map(|of| format!("{}:{}", of.system, of.event));
        (context, bad.collect())
    }
}

fn recognised(dat: &TraceDat) -> String {
    let mut what = format!("a {}", dat.format);
    // Perfetto's traces have no version.
    if dat.version > 0 {
        what.push_str(&format!(" of version {}", dat.version));
    }
    if let Some(program) = &dat.options.program {
        what.push_str(&format!(", written by {}", program_of(program)));
    }
    what
}

/// A program's name and version, as far as they can be shown in a line. trace-cmd states only its version, and where it
/// was built.
pub(super) fn program_of(text: &str) -> String {
    let text: String = text.chars().take(64).collect();
    let text = visible(&text);
    match text.split_whitespace().next() {
        Some(version) if version.starts_with(|first: char| first.is_ascii_digit()) => {
            format!("trace-cmd {version}")
        }
        _ => text.into_owned(),
    }
}

/// The buffers to read: their roles, and their numbers in the file.
fn choose(dat: &TraceDat, wanted: Option<&str>) -> Result<Vec<(TraceRole, usize)>, ImportError> {
    let with_records = |buffer: &Buffer| !buffer.cpus.is_empty();
    let full: Vec<(usize, &Buffer)> = dat
        .buffers
        .iter()
        .enumerate()
        .filter(|(_, buffer)| with_records(buffer))
        .collect();
    let names = || {
        let shown = |(_, buffer): &(usize, &Buffer)| match buffer.name.as_str() {
            "" => "the kernel's own (--buffer '')".to_owned(),
            name => visible(name).into_owned(),
        };
        let names: Vec<String> = full.iter().map(shown).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    };
    let file = || recognised(dat);
    if let Some(name) = wanted {
        let found = full.iter().find(|(_, buffer)| buffer.name == name);
        return match found {
            Some((at, _)) => Ok(vec![(TraceRole::Local, *at)]),
            None => Err(ImportError::NoBuffer {
                file: file(),
                name: visible(name).into_owned(),
                buffers: names(),
            }),
        };
    }
    let program = dat.options.program.as_deref().unwrap_or_default();
    if program.starts_with(OURS) {
        let role = |name: &str| match name {
            "" => Some(TraceRole::Local),
            name => TraceRole::ALL
                .into_iter()
                .find(|role| role.as_str() == name),
        };
        let ours: Option<Vec<_>> = full
            .iter()
            .map(|(at, buffer)| Some((role(&buffer.name)?, *at)))
            .collect();
        if let Some(ours) = ours.filter(|ours| !ours.is_empty()) {
            let read = |(role, _): &(TraceRole, usize)| role.has_events();
            return Ok(ours.into_iter().filter(read).collect());
        }
    }
    match full.as_slice() {
        [] => Err(ImportError::Empty { file: file() }),
        [(at, _)] => Ok(vec![(TraceRole::Local, *at)]),
        _ => Err(ImportError::Buffers {
            file: file(),
            buffers: names(),
        }),
    }
}

fn clock(
    dat: &TraceDat,
    of_buffer: Option<String>,
    tsc_hz: Option<u64>,
) -> Result<FileClock, ImportError> {
    let name = of_buffer
        .or_else(|| dat.options.clock.clone())
        .unwrap_or_else(|| DEFAULT_CLOCK.to_owned());
    let is_nanoseconds = dat.options.hz == Some(TickRate::NANOSECONDS.hz);
    if Imported::NANOSECOND_CLOCKS.contains(&name.as_str()) || is_nanoseconds {
        return Ok(FileClock {
            name,
            kind: ClockKind::MonotonicRaw,
            rate: TickRate::NANOSECONDS,
        });
    }
    if let Some(hz) = dat.options.hz {
        return Ok(FileClock {
            name,
            kind: ClockKind::Tsc,
            rate: TickRate {
                hz,
                error_ppb: 0,
                source: RateSource::Kernel,
            },
        });
    }
    let refused = |advice| ImportError::Clock {
        file: recognised(dat),
        clock: visible(&name).chars().take(32).collect(),
        advice,
    };
    if dat.format == Imported::PERF_DATA {
        return Err(refused(
            "it may go back. Record with another one: perf record -k CLOCK_MONOTONIC",
        ));
    }
    if name != Imported::TSC_CLOCK {
        return Err(refused(
            "it is not known how long its ticks are. Record with another one: trace-cmd record -C mono",
        ));
    }
    let stated = dat.options.tsc_scale.and_then(|scale| {
        // A scale of 32 bits is off by half of its last one.
        let error_ppb = 500_000_000 / u64::from(scale.mult.max(1)) + 1;
        Some((scale.hz()?, error_ppb))
    });
    let (hz, error_ppb) = tsc_hz.map(|hz| (hz, 0)).or(stated).ok_or_else(|| {
        refused(
            "it does not state how fast that counts. Give its rate (dmesg of that machine has 'tsc: Refined TSC \
             clocksource calibration'): --tsc-hz HZ; or record with another clock: trace-cmd record -C mono",
        )
    })?;
    Ok(FileClock {
        name,
        kind: ClockKind::Tsc,
        rate: TickRate {
            hz,
            error_ppb,
            source: RateSource::Kernel,
        },
    })
}
