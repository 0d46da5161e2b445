//! Shell completion: the answers to a shell, and the script that makes it ask.

use crate::profile;
use anyhow::Context;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;
use jitterscope_model::{CpuSet, RunHead};
use jitterscope_platform::{Machine, Topology};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The variable by which a shell asks; it is specific to this program.
const VARIABLE: &str = "JITTERSCOPE_COMPLETE";
const PROGRAM: &str = "jitterscope";
/// The number of newest runs offered.
const MOST_RUNS: usize = 100;

/// The shells with a script.
pub fn shells() -> Vec<&'static str> {
    Shells::builtins().names().collect()
}

/// Answers a shell's request, if there is one, and then ends the process. `commands`: the command line to complete.
pub fn answer(commands: impl Fn() -> clap::Command) {
    clap_complete::CompleteEnv::with_factory(commands)
        .var(VARIABLE)
        .complete();
}

/// The script for a shell.
///
/// # Errors
/// There is none for this shell.
pub fn script(shell: &str) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let completer = shells
        .completer(shell)
        .with_context(|| format!("there is no script for {shell}"))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// The heads of the stored runs whose names are safe for a shell, the newest first.
fn stored() -> Vec<RunHead> {
    // The folder in the environment: options of the command line are unknown here.
    let named = std::env::var_os("JITTERSCOPE_RUNS").map(PathBuf::from);
    let dir = named.map_or_else(crate::places::default_runs, Ok);
    let stored = dir
        .ok()
        .and_then(|dir| jitterscope_store::list_own(&dir).ok())
        .unwrap_or_default();
    // A shell inserts a candidate into its command line: a run from elsewhere may have any name.
    let whole = |word: &str| jitterscope_store::check_label(word).is_ok();
    let heads = stored.into_iter().rev().map(|run| run.head);
    heads
        .filter(|head| whole(&head.id) && whole(&head.label))
        .take(MOST_RUNS)
        .collect()
}

/// Ids and labels of the stored runs, the newest first, and `latest`.
pub fn runs() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let heads = stored();
        // A word that looks like an id means the run of that id.
        let mut known: BTreeSet<&str> = heads.iter().map(|head| head.id.as_str()).collect();
        let mut found =
            vec![CompletionCandidate::new("latest").help(Some("the newest run".into()))];
        for head in &heads {
            let cpus = format!(
                "{}, {} on CPU {}",
                head.label, head.probe.kind, head.figures.cpus
            );
            found.push(CompletionCandidate::new(&head.id).help(Some(cpus.into())));
            if known.insert(&head.label) {
                found.push(
                    CompletionCandidate::new(&head.label)
                        .help(Some("all runs of this label".into())),
                );
            }
        }
        found
    })
}

/// Labels of the stored runs, the newest first.
pub fn labels() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut known = BTreeSet::new();
        let labels = stored().into_iter().map(|head| head.label);
        labels
            .filter(|label| known.insert(label.clone()))
            .map(CompletionCandidate::new)
            .collect()
    })
}

/// Lists of CPUs that can be measured; after a comma, one more CPU.
pub fn cpus() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let topology = Topology::read(&Machine::host());
        let typed = typed.to_string_lossy();
        let before = typed.rfind(',').map_or("", |comma| &typed[..=comma]);
        let taken: CpuSet = before.trim_end_matches(',').parse().unwrap_or_default();
        let free = topology.online.iter().filter(|cpu| !taken.contains(*cpu));
        let mut found: Vec<(String, Option<String>)> =
            free.map(|cpu| (format!("{before}{cpu}"), None)).collect();
        if before.is_empty() {
            found.push(("all".into(), Some(format!("CPUs {}", topology.online))));
            if !topology.isolated.is_empty() {
                found.push((
                    "isolated".into(),
                    Some(format!("CPUs {}", topology.isolated)),
                ));
            }
        }
        let begun = found
            .into_iter()
            .filter(|(word, _)| word.starts_with(typed.as_ref()));
        begun
            .map(|(word, help)| CompletionCandidate::new(word).help(help.map(Into::into)))
            .collect()
    })
}

/// Profiles by name.
pub fn profiles() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        // A shell inserts a candidate into its command line: a file may have any name.
        let names = profile::names().into_iter();
        let whole = names.filter(|name| jitterscope_store::check_label(name).is_ok());
        let list = CompletionCandidate::new(profile::LIST).help(Some("print them".into()));
        whole.map(CompletionCandidate::new).chain([list]).collect()
    })
}
