//! Logs of applications, in every form: no panic, and no mark outside of the run's time.

#![no_main]

use jitterscope_model::MarkForm;
use jitterscope_source::marks::{MarkOptions, read_marks};
use libfuzzer_sys::fuzz_target;

/// A minute on 2026-11-21, nanoseconds since the epoch.
const RUN: std::ops::Range<u64> = 1_795_297_200_000_000_000..1_795_297_260_000_000_000;

fuzz_target!(|data: &[u8]| {
    for form in [None, Some(MarkForm::Jvm), Some(MarkForm::Csv), Some(MarkForm::Log)] {
        for took in [false, true] {
            let options = MarkOptions {
                form,
                took,
                ..MarkOptions::default()
            };
            if let Ok(log) = read_marks(data, "log".to_owned(), &options, RUN) {
                for mark in &log.marks {
                    assert!(mark.start_realtime_ns < RUN.end && mark.end_realtime_ns() >= RUN.start);
                }
            }
        }
    }
});
