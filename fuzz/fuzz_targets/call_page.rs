//! Any bytes as a page of the function graph, through the formats of the recorded fixture; and any text as those
//! formats, through which that fixture's page and the same bytes are read.
#![no_main]

use jitterscope_model::{CpuId, Ticks};
use jitterscope_source::{CallDecoder, FormatText, Page, StackDecoder, TraceContext};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

const PAGE: &[u8] = include_bytes!("../../crates/source/tests/fixtures/graph-6.12/page.bin");

static CONTEXT: LazyLock<TraceContext> = LazyLock::new(|| {
    let text = include_str!("../../crates/source/tests/fixtures/graph-6.12/context.json");
    serde_json::from_str(text).expect("the fixture is a context")
});

static RECORDED: LazyLock<CallDecoder> = LazyLock::new(|| {
    CallDecoder::new(&CONTEXT)
        .expect("the fixture is a context")
        .expect("it has calls")
});

/// What a page gives, held against what its records alone are.
fn read(decoder: &CallDecoder, bytes: &[u8]) {
    let mut times: Vec<Ticks> = Vec::new();
    let range = decoder.page(CpuId(1), bytes, |call| {
        assert_eq!(call.cpu, CpuId(1));
        times.push(call.time);
    });
    let layout = CONTEXT.layout().expect("the fixture is a context");
    let Ok(page) = Page::parse(&layout, bytes) else {
        assert!(range.is_err() && times.is_empty());
        return;
    };
    let range = range.expect("the same bytes are a page");
    assert_eq!(range, page.time_range());
    assert!(
        times.len() <= page.records().count(),
        "a record is one call at most"
    );
    assert!(
        times
            .iter()
            .all(|time| page.records().any(|record| record.time == *time))
    );
}

/// The fields of `kernel_stack` on Linux 6.18.
const STACK: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

/// No stack has more addresses than its page has bytes for.
fn read_stacks(mut decoder: StackDecoder, bytes: &[u8]) {
    let layout = decoder.layout().clone();
    if let Ok(page) = Page::parse(&layout, bytes) {
        decoder.records(CpuId(1), &page.read(), |stack| {
            assert!(stack.frames.len() * 8 <= bytes.len());
        });
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(&RECORDED, bytes);
    let text = String::from_utf8_lossy(bytes);
    let format = |event: &str, id: u32| FormatText {
        system: "ftrace".into(),
        event: event.into(),
        text: format!("name: {event}\nID: {id}\nformat:\n{text}"),
    };
    let formats = vec![format("funcgraph_entry", 11), format("funcgraph_exit", 10)];
    let context = TraceContext {
        formats,
        ..CONTEXT.clone()
    };
    if let Ok(Some(decoder)) = CallDecoder::new(&context) {
        read(&decoder, PAGE);
        read(&decoder, bytes);
    }
    // The stacks of sleeping threads, by their real format and by any.
    for text in [STACK, &*text] {
        let context = TraceContext {
            formats: vec![FormatText {
                text: format!("name: kernel_stack\nID: 11\nformat:\n{text}"),
                ..format("kernel_stack", 11)
            }],
            ..CONTEXT.clone()
        };
        if let Ok(Some(decoder)) = StackDecoder::new(&context) {
            read_stacks(decoder, bytes);
        }
    }
});
