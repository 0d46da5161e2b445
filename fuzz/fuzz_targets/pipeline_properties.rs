//! Any text as perf-workshop's properties file.
#![no_main]

use jitterscope_model::{CpuId, PipelineProperties, PipelineRole};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(read) = PipelineProperties::parse(&text) else {
        return;
    };
    // What is set behind a whole line holds, whatever stood before it: the last of a key counts.
    let more = "\n\nperf.workshop.affinity.producer=7\nperf.workshop.affinity.journaller=\n";
    let again =
        PipelineProperties::parse(&format!("{text}{more}")).expect("only good lines were added");
    assert_eq!(again.cpu(PipelineRole::Producer), Some(CpuId(7)));
    assert_eq!(again.cpu(PipelineRole::Journaller), None);
    assert_eq!(
        again.cpu(PipelineRole::Accumulator),
        read.cpu(PipelineRole::Accumulator)
    );
    assert_eq!(again.journaller, read.journaller);
});
