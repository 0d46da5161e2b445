//! A page of function_graph from Linux 6.12 in a guest of the lab, while `vmstat_update` was traced.

use jitterscope_model::{CallRecord, CpuId};
use jitterscope_source::{CallDecoder, Decoder, TraceContext};

const PAGE: &[u8] = include_bytes!("../fixtures/graph-6.12/page.bin");
const CONTEXT: &str = include_str!("../fixtures/graph-6.12/context.json");

#[test]
fn every_call_of_a_recorded_page_is_read() {
    let context: TraceContext = serde_json::from_str(CONTEXT).unwrap();
    let decoder = CallDecoder::new(&context).unwrap().unwrap();
    let mut calls = Vec::new();
    let range = decoder
        .page(CpuId(1), PAGE, |call| calls.push(call))
        .unwrap()
        .unwrap();
    let symbols = context.symbol_table();
    let (begins, ends): (Vec<CallRecord>, Vec<CallRecord>) =
        calls.iter().partition(|call| !call.ends);
    assert_eq!((begins.len(), ends.len()), (23, 18));
    assert_eq!(range, (calls[0].time, calls[calls.len() - 1].time));
    assert!(calls.is_sorted_by_key(|call| call.time));
    assert!(
        calls
            .iter()
            .all(|call| symbols.name(call.function).is_some()),
        "each has a name"
    );
    // Calls end in reverse order; some were still running when the page was read.
    let mut open: Vec<CallRecord> = Vec::new();
    for call in &calls {
        if call.ends {
            let begun = open.pop().unwrap();
            assert_eq!(
                (begun.function, begun.depth, begun.tid),
                (call.function, call.depth, call.tid)
            );
        } else {
            assert_eq!(call.depth as usize, open.len());
            open.push(*call);
        }
    }
    assert_eq!(open.len(), 5);
    let outer: Vec<&str> = begins
        .iter()
        .filter(|call| call.depth == 0)
        .filter_map(|call| symbols.name(call.function))
        .collect();
    assert!(
        outer.iter().all(|name| *name == "vmstat_update") && !outer.is_empty(),
        "{outer:?}"
    );
}

/// Attribution skips these pages: its decoder finds no event in them.
#[test]
fn the_events_decoder_knows_none_of_them() {
    let context: TraceContext = serde_json::from_str(CONTEXT).unwrap();
    let mut decoder = Decoder::new(&context).unwrap();
    decoder
        .page(CpuId(1), PAGE, |event| panic!("{event:?}"))
        .unwrap();
    assert_eq!(decoder.counts().events, 0);
}
