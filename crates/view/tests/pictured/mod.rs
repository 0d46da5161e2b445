//! Synthetic and stored runs in drawable form.

use crate::common::Scenario;
use jitterscope_analyze::periods::Effort;
use jitterscope_store::{RunReader, RunWriter};
use jitterscope_view::{Drawn, Wanted, load_drawn};
use std::path::{Path, PathBuf};

pub const ALL: Wanted = Wanted {
    worst: 20,
    effort: Effort::BRIEF,
    stalls: 100_000,
    redact: false,
};

fn store(scenario: &Scenario, dir: &Path) -> PathBuf {
    let manifest = &scenario.manifest;
    let mut writer =
        RunWriter::create(dir, &manifest.label, manifest.clock_start.realtime_ns).unwrap();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        writer.stall(stall).unwrap();
        writer.attribution(attribution).unwrap();
    }
    for row in &scenario.intervals {
        writer.interval(row).unwrap();
    }
    writer.finish(manifest.clone()).unwrap()
}

pub fn drawn(scenario: &Scenario, wanted: Wanted) -> Drawn {
    let dir = tempfile::tempdir().unwrap();
    load_drawn(
        &RunReader::open(&store(scenario, dir.path())).unwrap(),
        wanted,
    )
    .unwrap()
}

/// A stored run of the pipeline.
pub fn pipeline() -> Drawn {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/pipeline");
    load_drawn(&RunReader::open(&fixture).unwrap(), ALL).unwrap()
}
