//! What a file says of its records: its header, the attributes of its events, and the descriptions at its end.

use super::error::PerfDataError;
use super::sample::Form;
use super::{MAGIC, MAGIC_BIG_ENDIAN};
use crate::context::FormatText;
use crate::page_store::PageStore;
use crate::symbols::{Symbols, SymbolsError};
use crate::tracedat::{Buffer, Cursor, Options, ReadAt, TraceDat, Tracing};
use jitterscope_model::{Comm, Imported};
use std::collections::{BTreeMap, HashMap};

/// The length of a file's header; that of a stream is shorter.
const HEADER: u64 = 104;
const STREAM_HEADER: u64 = 16;
/// A file has an event for each tracepoint, and perhaps for each thread.
const MOST_EVENTS: u64 = 1 << 16;
/// The attributes of an event that are read, bytes.
const ATTRIBUTES: u64 = 96;
/// Its type of event: a tracepoint.
const TRACEPOINT: u32 = 2;
/// Its flags.
const SAMPLE_ID_ALL: u64 = 1 << 18;
const USE_CLOCKID: u64 = 1 << 25;
/// Numbers of the events in all attributes.
const MOST_NUMBERS: u64 = 1 << 20;
/// The longest text of a description, bytes.
const LONGEST_TEXT: usize = 1 << 12;

/// The descriptions, by their bit in the header.
const TRACING_DATA: u32 = 1;
const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const VERSION: u32 = 5;
const ARCH: u32 = 6;
const NRCPUS: u32 = 7;
const CLOCK_DATA: u32 = 29;
const FEATURES: u32 = 256;

/// A part of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Section {
    pub(super) at: u64,
    pub(super) size: u64,
}

/// A file's header and descriptions.
pub(super) struct Header {
    pub(super) data: Section,
    /// How the records of each event are laid out.
    pub(super) forms: Vec<Form>,
    /// The events of the numbers that records state.
    pub(super) numbers: HashMap<u64, usize>,
    pub(super) header_page: String,
    formats: Vec<FormatText>,
    functions: Result<Symbols, SymbolsError>,
    threads: Vec<(i32, Comm)>,
    options: Options,
}

impl Header {
    pub(super) fn read(file: &dyn ReadAt) -> Result<Header, PerfDataError> {
        let mut from = Cursor::new(file, 0, "header")?;
        let magic = from.array::<8>()?;
        if magic == *MAGIC_BIG_ENDIAN {
            return Err(PerfDataError::BigEndian);
        }
        let size = from.u64()?;
        if magic == *MAGIC && size == STREAM_HEADER {
            return Err(PerfDataError::Stream);
        }
        if magic != *MAGIC || size != HEADER {
            return Err(from.damaged("its length is impossible").into());
        }
        let attribute_size = from.u64()?;
        let mut section = || -> Result<Section, PerfDataError> {
            let (at, size) = (from.u64()?, from.u64()?);
            Ok(Section { at, size })
        };
        let (attributes, mut data, _event_types) = (section()?, section()?, section()?);
        let mut features = [0; 4];
        for word in &mut features {
            *word = from.u64()?;
        }
        // A killed recording has not written it.
        let is_killed = data.size == 0;
        if is_killed {
            data.size = file.length()?.saturating_sub(data.at);
        }
        let (events, numbers) = events(file, attributes, attribute_size)?;
        if !events.iter().any(|event| event.is_tracepoint) {
            return Err(PerfDataError::NoTracepoints);
        }
        let clock = clock(&events)?;
        let mut options = Options::default();
        options.clock = Some(clock.to_owned());
        let sections = match is_killed {
            true => Vec::new(),
            false => feature_sections(file, data, features)?,
        };
        let of = |feature: u32| {
            let found = sections.iter().find(|(number, _)| *number == feature);
            found.map(|(_, section)| *section)
        };
        let what = "description of its tracepoints";
        let tracing = of(TRACING_DATA).ok_or(PerfDataError::Ends { what })?;
        let tracing = Tracing::read(file, tracing.at, tracing.size, what)?;
        let text = |feature| of(feature).and_then(|section| text(file, section));
        options.program = text(VERSION).map(|version| format!("perf {version}"));
        let [host, release, arch] =
            [HOSTNAME, OSRELEASE, ARCH].map(|of| text(of).unwrap_or_default());
        options.uname = Some(format!("Linux {host} {release} {arch}"));
        options.cpus = of(NRCPUS).and_then(|section| word(file, section.at));
        options.date_us = of(CLOCK_DATA).and_then(|section| date(file, section, clock));
        Ok(Header {
            data,
            forms: events.into_iter().map(|event| event.form).collect(),
            numbers,
            header_page: tracing.header_page,
            formats: tracing.formats,
            functions: tracing.functions,
            threads: tracing.threads,
            options,
        })
    }

    /// The file as one whose pages are ready.
    pub(super) fn into_dat(
        self,
        store: PageStore,
        buffer: Buffer,
        named: BTreeMap<i32, Comm>,
        lost: u64,
    ) -> TraceDat {
        let mut options = self.options;
        options.overrun = lost;
        // A name that a record states is newer than those of the end.
        let mut threads = self.threads;
        threads.retain(|(tid, _)| !named.contains_key(tid));
        threads.extend(named);
        let tracing = Tracing {
            header_page: self.header_page,
            formats: self.formats,
            functions: self.functions,
            threads,
        };
        TraceDat::of_pages((Imported::PERF_DATA, 2), store, tracing, options, buffer)
    }
}

/// An event of the file.
struct Event {
    is_tracepoint: bool,
    /// The clock of its records, as `clock_gettime` numbers it; `None`: perf's own.
    clock: Option<u32>,
    form: Form,
}

type Numbered = (Vec<Event>, HashMap<u64, usize>);

/// The events, and which event has which number.
fn events(file: &dyn ReadAt, all: Section, size: u64) -> Result<Numbered, PerfDataError> {
    let mut from = Cursor::new(file, all.at, "list of events")?;
    if size < ATTRIBUTES + 16 || all.size / size > MOST_EVENTS {
        return Err(from.damaged("its length is impossible").into());
    }
    let (mut events, mut numbers) = (Vec::new(), HashMap::new());
    let mut left = MOST_NUMBERS;
    for number in 0..all.size / size {
        from.at = all.at.saturating_add(number * size);
        let words: [u32; 2] = [from.u32()?, from.u32()?];
        let _config = from.u64()?;
        let _period = from.u64()?;
        let [sample, read, flags] = [from.u64()?, from.u64()?, from.u64()?];
        from.at = all.at.saturating_add(number * size + 92);
        let clock = from.u32()?;
        events.push(Event {
            is_tracepoint: words[0] == TRACEPOINT,
            clock: (flags & USE_CLOCKID != 0).then_some(clock),
            form: Form {
                sample,
                read,
                on_all: flags & SAMPLE_ID_ALL != 0,
                is_tracepoint: words[0] == TRACEPOINT,
            },
        });
        from.at = all.at.saturating_add((number + 1) * size - 16);
        let (at, length) = (from.u64()?, from.u64()?);
        left = left
            .checked_sub(length / 8)
            .ok_or_else(|| from.damaged("it counts more events than there can be"))?;
        let mut own = Cursor::new(file, at, "list of events")?;
        for _ in 0..length / 8 {
            numbers.insert(own.u64()?, events.len() - 1);
        }
    }
    Ok((events, numbers))
}

/// The kernel's name of the clock of all tracepoints.
fn clock(events: &[Event]) -> Result<&'static str, PerfDataError> {
    let mut clocks = events
        .iter()
        .filter(|event| event.is_tracepoint)
        .map(|event| event.clock);
    let first = clocks.next().flatten();
    if clocks.any(|clock| clock != first) {
        return Err(PerfDataError::Clocks);
    }
    Ok(match first {
        None => "perf",
        Some(1) => "mono",
        Some(4) => "mono_raw",
        Some(7) => "boot",
        Some(11) => "tai",
        // The importer refuses what is not a clock that only counts up.
        Some(_) => "realtime",
    })
}

/// Where the descriptions are.
fn feature_sections(
    file: &dyn ReadAt,
    data: Section,
    features: [u64; 4],
) -> Result<Vec<(u32, Section)>, PerfDataError> {
    let mut from = Cursor::new(
        file,
        data.at.saturating_add(data.size),
        "list of descriptions",
    )?;
    let mut sections = Vec::new();
    for feature in 0..FEATURES {
        if features[feature as usize / 64] & (1 << (feature % 64)) == 0 {
            continue;
        }
        let (at, size) = (from.u64()?, from.u64()?);
        sections.push((feature, Section { at, size }));
    }
    Ok(sections)
}

/// The text of a description; `None` if it is cut off or is none.
fn text(file: &dyn ReadAt, section: Section) -> Option<String> {
    let mut from = Cursor::new(file, section.at, "description").ok()?;
    let length = from.u32().ok()?;
    let bytes = from.bytes(length.into(), LONGEST_TEXT).ok()?;
    let text = crate::tracedat::text_of(&bytes);
    (!text.is_empty()).then_some(text)
}

fn word(file: &dyn ReadAt, at: u64) -> Option<u32> {
    Cursor::new(file, at, "description").ok()?.u32().ok()
}

/// What is added to the clock so that it is the time of day, microseconds.
fn date(file: &dyn ReadAt, section: Section, clock: &str) -> Option<i64> {
    let mut from = Cursor::new(file, section.at, "description").ok()?;
    let _version = from.u32().ok()?;
    let of_clock = from.u32().ok()?;
    let [of_day, of_records] = [from.u64().ok()?, from.u64().ok()?];
    let is_of_records = match clock {
        "mono" => of_clock == 1,
        "mono_raw" => of_clock == 4,
        "boot" => of_clock == 7,
        "tai" => of_clock == 11,
        _ => false,
    };
    let apart = i128::from(of_day) - i128::from(of_records);
    i64::try_from(apart / 1000).ok().filter(|_| is_of_records)
}
