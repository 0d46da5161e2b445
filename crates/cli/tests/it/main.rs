//! The crate's integration tests, linked once.

#[path = "../../../store/tests/common/bombs.rs"]
mod bombs;
#[path = "../../../view/tests/common/mod.rs"]
mod common;
#[path = "../experiments/mod.rs"]
mod experiments;
#[path = "../hostile/runs.rs"]
mod hostile_runs;
#[path = "../live/mod.rs"]
mod live;
#[path = "../../../export/tests/perfetto_reader/mod.rs"]
mod perfetto_reader;
#[path = "../schema_check/mod.rs"]
mod schema_check;
#[path = "../stored/mod.rs"]
mod stored;
#[path = "../../../tune/tests/support/mod.rs"]
mod support;
#[path = "../../../store/tests/common/tables.rs"]
mod tables;
#[path = "../hostile/terminal.rs"]
mod terminal;

mod agent;
mod asked_events;
mod attach;
mod blocked;
mod cast;
mod clocks;
mod coarse;
mod completion;
mod diff;
mod diff_kinds;
mod disturbed;
mod doubt;
mod endings;
mod examples;
mod excerpt;
mod expected;
mod experiment;
mod experiment_gates;
mod experiment_manual;
mod experiment_plan;
mod filled_memory;
mod fronts;
mod gates;
mod graph;
mod guard;
mod handed_on;
mod hostile;
mod https;
mod import;
mod import_into;
mod import_perf;
mod killed;
mod lost;
mod marks;
mod mcp;
mod open;
mod outputs;
mod owners;
mod passive;
mod perfetto;
mod pipeline;
mod pipeline_kernel;
mod profile;
mod query;
mod readme;
mod real;
mod reattribute;
mod redact;
mod renaming;
mod rights;
mod runs;
mod safety;
mod schema;
mod screens;
mod serve;
mod shown;
mod stand_ins;
mod tampering;
mod top;
mod truth;
mod tune;
mod uploading;
mod walk;
mod watch;
mod watch_left;
mod watch_metrics;
