//! Synthetic runs in a folder of runs.

use crate::common::Scenario;
use jitterscope_store::RunWriter;
use std::path::{Path, PathBuf};

pub fn store(scenario: &Scenario, runs: &Path) -> PathBuf {
    let manifest = &scenario.manifest;
    let mut writer =
        RunWriter::create(runs, &manifest.label, manifest.clock_start.realtime_ns).unwrap();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        writer.stall(stall).unwrap();
        writer.attribution(attribution).unwrap();
    }
    for row in &scenario.intervals {
        let mut lengths = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        lengths
            .record_n(row.max.0.max(1), row.count.max(1))
            .unwrap();
        writer.interval(row).unwrap();
        writer
            .interval_histogram(&manifest.probe.kind, row.cpu, row.start, row.end, &lengths)
            .unwrap();
    }
    writer.finish(manifest.clone()).unwrap()
}
