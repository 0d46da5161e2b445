//! What every recording's manifest has in common.

use crate::home::Home;
use jitterscope_model::{
    ClockKind, ClockReading, EventsInGaps, HostFacts, MachineAudit, ProbeSettings, RUN_SCHEMA_VERSION,
    RunManifest, SelfNoise, StoredTrace, TickRate,
};
use jitterscope_platform as platform;

/// What is known of any recording when it has ended.
pub(crate) struct Common<'a> {
    pub(crate) label: &'a str,
    pub(crate) command_line: &'a [String],
    pub(crate) host: HostFacts,
    pub(crate) clock: ClockKind,
    pub(crate) rate: TickRate,
    /// Clocks at the start and at the end.
    pub(crate) clocks: (ClockReading, ClockReading),
    pub(crate) probe: ProbeSettings,
    pub(crate) home: &'a Home,
    pub(crate) interrupted: bool,
}

impl Common<'_> {
    /// A manifest with all that, and nothing measured yet.
    pub(crate) fn manifest(self) -> RunManifest {
        RunManifest {
            schema_version: RUN_SCHEMA_VERSION,
            tool_version: env!("CARGO_PKG_VERSION").into(),
            id: String::new(),
            label: self.label.to_owned(),
            command_line: self.command_line.to_vec(),
            host: self.host,
            clock: self.clock,
            rate: self.rate,
            clock_start: self.clocks.0,
            clock_end: self.clocks.1,
            probe: self.probe,
            results: Vec::new(),
            wakeups: Vec::new(),
            threads: Vec::new(),
            pipeline: None,
            attributed: false,
            sources: Vec::new(),
            counters: Vec::new(),
            edge_costs: Vec::new(),
            sleeping_works: Vec::new(),
            events_in_gaps: EventsInGaps::default(),
            audit: MachineAudit::new(),
            self_noise: self_noise(self.home),
            trace: StoredTrace::default(),
            interrupted: self.interrupted,
            warnings: Vec::new(),
        }
    }
}

/// What our own threads cost so far.
fn self_noise(home: &Home) -> SelfNoise {
    SelfNoise {
        helper_cpus: home.helpers.clone(),
        helper_cpu_ns: home.cpu_time(),
        peak_rss_bytes: platform::peak_rss_bytes(),
        ..SelfNoise::default()
    }
}
