//! Any bytes as a page: raw records, and decoded through the formats of the recorded fixture.
#![no_main]

use jitterscope_model::{AskedEvent, CpuId};
use jitterscope_source::{AskedDecoder, Decoder, FormatText, Page, TraceContext};
use libfuzzer_sys::fuzz_target;
use std::sync::{LazyLock, Mutex};

static DECODER: LazyLock<Mutex<Decoder>> = LazyLock::new(|| {
    Mutex::new(Decoder::new(&context()).expect("the fixture is a context"))
});

fn context() -> TraceContext {
    let text = include_str!("../../crates/source/tests/fixtures/vm-1s/context.json");
    serde_json::from_str(text).expect("the fixture is a context")
}

/// Every event of the fixture, as if the user had asked for it.
static ASKED: LazyLock<AskedDecoder> = LazyLock::new(|| {
    let context = context();
    let event = |of: &FormatText| AskedEvent {
        system: of.system.as_str().into(),
        event: of.event.as_str().into(),
        filter: None,
    };
    let all: Vec<AskedEvent> = context.formats.iter().map(event).collect();
    let decoder = AskedDecoder::new(&context, all.iter()).expect("the fixture is a context");
    decoder.expect("the fixture has events")
});

fuzz_target!(|bytes: &[u8]| {
    let mut decoder = DECODER.lock().expect("one thread");
    let before = decoder.counts();
    let layout = *decoder.layout();
    let mut events = 0;
    let info = decoder.page(CpuId(1), bytes, |_| events += 1);
    let asked = ASKED.page(bytes, |record| assert!(record.fields.len() < 1024));
    assert_eq!(asked.is_err(), info.is_err());
    let Ok(page) = Page::parse(&layout, bytes) else {
        assert!(info.is_err());
        return;
    };
    let info = info.expect("the same bytes are a page");
    let mut records = page.records();
    let raw = records
        .by_ref()
        .map(|record| record.data.len() as u64)
        .fold((0u64, 0u64), |(n, sum), len| (n + 1, sum + len));
    assert!(raw.1 <= bytes.len() as u64);
    assert_eq!(records.is_damaged(), info.damaged);
    assert_eq!(page.time_range(), info.range);
    let counts = decoder.counts();
    let skipped = counts.unknown + counts.malformed - before.unknown - before.malformed;
    assert_eq!(counts.events - before.events, events);
    assert_eq!(events + skipped, raw.0);
    assert!(Page::used(&layout, bytes) <= bytes.len());
});
