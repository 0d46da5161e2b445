//! `audit --write` and `audit --expect`: the declared state of a fleet's hosts.

use super::machine_tuning;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::output;
use crate::user_file;
use anyhow::Context;
use jitterscope_analyze::{MachineFact, machine_facts};
use jitterscope_export::WholeFile;
use jitterscope_model::MachineState;
use jitterscope_platform::{Machine, Topology, host_facts, machine_settings};
use jitterscope_view::expected::{DeviationState, Expected, written};
use std::path::Path;

/// Writes the state of this machine.
///
/// # Errors
/// The file cannot be written.
pub fn write(machine: &Machine, path: &Path) -> anyhow::Result<Exit> {
    let facts = facts(machine)?;
    WholeFile::open(path)
        .and_then(|file| file.write(written(&facts).as_bytes()))
        .with_context(|| format!("--write {}", path.display()))?;
    output::talk(format!(
        "wrote {}; remove the lines that may differ between hosts",
        path.display()
    ));
    Ok(Exit::Ok)
}

/// Compares this machine with a declared state. The outcome: exceeded if a setting differs or does not exist here;
/// unavailable if none differs, but some could not be read.
///
/// # Errors
/// The file cannot be read, or declares nothing.
pub fn check(machine: &Machine, path: &Path, all: bool, json: bool) -> anyhow::Result<Exit> {
    let name = path.display().to_string();
    let text = user_file::text(path).with_context(|| format!("--expect {name}"))?;
    let expected =
        Expected::parse(&text).map_err(|error| UsageError(format!("{name}: {error}")))?;
    let checked = expected.check(&name, &facts(machine)?);
    if json {
        output::json(&checked)?;
    } else {
        let report = checked.report();
        let style = output::style();
        output::result(&match all {
            true => report.terminal(style),
            false => report.screen(style),
        })?;
    }
    let count = |state| checked.count(state);
    Ok(
        match count(DeviationState::Differs) + count(DeviationState::NotHere) {
            0 if count(DeviationState::Unreadable) > 0 => Exit::Unavailable,
            0 => Exit::Ok,
            _ => Exit::Exceeded,
        },
    )
}

/// The declared state of this machine.
pub(super) fn facts(machine: &Machine) -> anyhow::Result<Vec<MachineFact>> {
    let topology = Topology::read(machine);
    let tuning = machine_tuning::of(machine, &topology.online).ok_or_else(|| {
        UnavailableError("the machine does not list its CPUs, so its state is unknown".into())
    })?;
    let state = MachineState {
        settings: machine_settings(machine, &topology, &host_facts(machine, &topology)),
        tuning: Some(tuning).into(),
    };
    Ok(machine_facts(&state))
}
