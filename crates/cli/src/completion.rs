//! Completion: what a shell asks this program for, and the script that makes it ask.

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use jitterscope_platform::{Machine, Topology};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Where a shell says that it asks, so that no other program's variable is taken for it.
const VARIABLE: &str = "JITTERSCOPE_COMPLETE";
const PROGRAM: &str = "jitterscope";
/// Runs offered, the newest ones.
const MOST_RUNS: usize = 100;

/// The shells that there is a script for.
pub fn shells() -> Vec<&'static str> {
    Shells::builtins().names().collect()
}

/// Answers the shell that asks, if one does, and ends the process then.
pub fn answer() {
    clap_complete::CompleteEnv::with_factory(crate::args::Cli::command).var(VARIABLE).complete();
}

/// The script that makes a shell ask.
///
/// # Errors
/// There is none for this shell.
pub fn script(shell: &str) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell).with_context(|| format!("there is no script for {shell}"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Ids and labels of the stored runs, the newest first, and `latest`.
pub fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        // The folder of the environment: what else stands on the line is not told here.
        let named = std::env::var_os("JITTERSCOPE_RUNS").map(PathBuf::from);
        let dir = named.map_or_else(crate::places::default_runs, Ok);
        let stored = dir.ok().and_then(|dir| jitterscope_store::list(&dir).ok()).unwrap_or_default().0;
        let mut labels = BTreeSet::new();
        let mut found = vec![CompletionCandidate::new("latest").help(Some("the newest run".into()))];
        // A shell takes what it is offered for a part of its command: a run that came from elsewhere may call
        // itself anything.
        let whole = |word: &str| jitterscope_store::check_label(word).is_ok();
        let heads =
            stored.iter().rev().map(|run| &run.head).filter(|head| whole(&head.id) && whole(&head.label));
        for head in heads.take(MOST_RUNS) {
            let cpus = format!("{}, {} on CPU {}", head.label, head.probe.kind, head.figures.cpus);
            found.push(CompletionCandidate::new(&head.id).help(Some(cpus.into())));
            if labels.insert(&head.label) {
                found.push(CompletionCandidate::new(&head.label).help(Some("all runs of this label".into())));
            }
        }
        found
    })
}

/// Lists of CPUs that can be measured here.
pub fn cpus() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let topology = Topology::read(&Machine::host());
        let mut found: Vec<CompletionCandidate> =
            topology.online.iter().map(|cpu| CompletionCandidate::new(cpu.to_string())).collect();
        found.push(CompletionCandidate::new("all").help(Some(format!("CPUs {}", topology.online).into())));
        if !topology.isolated.is_empty() {
            let help = format!("CPUs {}", topology.isolated);
            found.push(CompletionCandidate::new("isolated").help(Some(help.into())));
        }
        found
    })
}
