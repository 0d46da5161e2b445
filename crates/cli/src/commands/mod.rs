//! One file for each command: arguments, wiring, exit code.

mod advice;
pub mod agent;
mod agent_config;
mod agent_notify;
pub mod annotate;
pub mod asked_events;
pub mod attach;
pub mod audit;
mod audit_expect;
mod compare_with;
pub mod diff;
pub mod disturb;
pub mod doctor;
pub mod end_now;
pub mod experiment;
pub mod experiment_across;
pub mod experiment_args;
mod experiment_auto;
mod experiment_auto_plan;
mod experiment_earlier;
mod experiment_ending;
mod experiment_failed;
pub mod experiment_guard;
mod experiment_manual;
mod experiment_probe;
mod experiment_runner;
mod experiment_runners;
mod experiment_session;
mod experiment_trial;
mod experiment_undo;
mod experiment_watcher;
pub mod export;
pub mod fleet;
mod gate;
pub mod guard;
pub mod guard_args;
mod guard_files;
mod guard_quiet;
mod guard_results;
pub mod import;
pub mod journal;
pub mod leftovers;
pub mod list;
mod machine_threshold;
pub mod machine_tuning;
pub mod mcp;
mod measure_args;
pub mod open;
mod outputs;
mod passive;
pub mod pictures;
pub mod pipeline;
mod pipeline_args;
mod pipeline_properties;
pub mod query;
pub mod record;
mod recording_args;
mod repeat;
pub mod report;
pub mod require;
pub mod runs;
pub mod sampler;
mod scope;
pub mod selftest;
pub mod serve;
pub mod sljtest;
pub mod stall;
pub mod top;
mod top_screen;
pub mod tune;
mod uploading;
pub mod watch;
pub mod watch_args;
pub mod watch_ask;
mod watch_metrics;

use crate::exit::Exit;

/// Prints a completion script.
///
/// # Errors
/// stdout is closed.
pub fn completions(shell: &str) -> anyhow::Result<Exit> {
    crate::output::script(&crate::completion::script(shell)?)?;
    Ok(Exit::Ok)
}

/// Writes the manual pages into a folder.
///
/// # Errors
/// The folder cannot be made or written.
pub fn manual(dir: &std::path::Path) -> anyhow::Result<Exit> {
    crate::manual::write(dir)?;
    Ok(Exit::Ok)
}
