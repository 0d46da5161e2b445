//! Any bytes as a page of the function graph, and any text as the formats of its events.
#![no_main]

use jitterscope_model::{ClockKind, CpuId};
use jitterscope_source::{CallDecoder, FormatText, TraceContext};
use libfuzzer_sys::fuzz_target;

const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

const FIELDS: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n";

fuzz_target!(|input: (&str, &[u8])| {
    let (text, bytes) = input;
    let format = |event: &str, id: u32, fields: &str| FormatText {
        system: "ftrace".into(),
        event: event.into(),
        text: format!("name: {event}\nID: {id}\nformat:\n{fields}"),
    };
    for fields in [FIELDS, text] {
        let context = TraceContext {
            header_page: HEADER.into(),
            formats: vec![format("funcgraph_entry", 11, fields), format("funcgraph_exit", 10, fields)],
            clock: ClockKind::Tsc,
            symbols: Default::default(),
            tasks: Default::default(),
            setup: Vec::new(),
        };
        if let Ok(Some(decoder)) = CallDecoder::new(&context) {
            let _ = decoder.page(CpuId(1), bytes, |call| {
                std::hint::black_box(call);
            });
        }
    }
});
