//! Names in conditions: the culprits that they match, and probable typing errors.
//!
//! A condition whose name matches no culprit of a run is kept: nothing took time under that name. A misspelt name would
//! thus be kept forever. So a name one typing error away from a built-in word is refused, and for any other the result
//! notes that no culprit matches.

use super::condition::{Change, Condition, Quantity};
use super::owner::OwnerPattern;
use super::pattern::{is_meant, kind_and_rest, matches};
use super::reason::GateNote;
use crate::RunSummary;
use jitterscope_model::{CulpritKind, Subject, Verdict};

/// Shorter words are one letter away from too many valid names.
const LONG_ENOUGH: usize = 5;
/// The number of seen names that a note lists.
const REPORTED: usize = 3;

/// The built-in words for culprits on any machine.
fn words() -> impl Iterator<Item = &'static str> {
    let kinds = CulpritKind::ALL.into_iter().map(CulpritKind::as_str);
    kinds.chain(Verdict::ALL.iter().map(|verdict| verdict.as_str()))
}

/// The word of which a name is a typing error: one letter added, missing or changed, two swapped, or upper case.
fn slip_of(name: &str) -> Option<&'static str> {
    if name.contains('*') || words().any(|word| word == name) {
        return None;
    }
    let lower = name.to_lowercase();
    if let Some(same) = words().find(|word| word.to_lowercase() == lower) {
        return Some(same);
    }
    // Typing errors keep the first letter: `worker` is not `kworker`.
    let first = lower.chars().next();
    let long = words().filter(|word| word.len() >= LONG_ENOUGH && word.chars().next() == first);
    let mut near = long.filter(|word| strsim::osa_distance(word, &lower) <= 1);
    near.next()
}

/// Checks that a pattern is plausible as it is.
///
/// # Errors
/// It is a typing error of a built-in word; the message names that word, and the pattern for a thread with exactly this
/// name.
pub fn check_name(pattern: &str) -> Result<(), String> {
    let (kind, name) = kind_and_rest(pattern);
    if let Some(unseen) = pattern.chars().find(|c| c.is_control()) {
        return Err(format!("no culprit has {unseen:?} in its name"));
    }
    match slip_of(name).filter(|_| kind.is_none()) {
        None => Ok(()),
        Some(word) => Err(format!(
            "{name:?} is a letter away from {word:?}: write that, or {:?} where a thread is called so",
            format!("thread {name}")
        )),
    }
}

/// The note on a kept condition: no culprit matches its name.
pub(super) fn note(condition: &Condition, run: &RunSummary) -> Option<GateNote> {
    let Quantity::Culprit(pattern) = &condition.quantity else {
        return None;
    };
    match OwnerPattern::of(pattern) {
        Some(owner) => owner.note(run),
        None => not_seen(pattern, &subjects(run)),
    }
}

/// The same for a comparison.
pub(super) fn note_of_change(
    change: &Change,
    seen: Option<&[crate::compare::CulpritDiff]>,
) -> Option<GateNote> {
    let Change::Culprit(pattern) = change else {
        return None;
    };
    not_seen(
        pattern,
        &seen?.iter().map(|row| &row.subject).collect::<Vec<_>>(),
    )
}

/// The culprits of a run, largest first.
fn subjects(run: &RunSummary) -> Vec<&Subject> {
    let attributed = run.attribution.iter();
    let rows = attributed.flat_map(|of| of.culprits.iter().chain(&of.unexplained.classes));
    let of_cpus = run.passive.iter().flat_map(|cpu| &cpu.ran_instead);
    let of_threads = run.threads.iter().flat_map(|thread| &thread.ran_instead);
    rows.map(|row| &row.subject)
        .chain(of_cpus.chain(of_threads).map(|row| &row.subject))
        .collect()
}

fn not_seen(pattern: &str, seen: &[&Subject]) -> Option<GateNote> {
    if seen.iter().any(|subject| is_meant(pattern, subject)) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for subject in seen {
        let name = title(subject);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let known = CulpritKind::ALL
        .into_iter()
        .any(|kind| matches(pattern, kind.as_str()));
    let near = |name: &String| {
        let (_, wanted) = kind_and_rest(pattern);
        let bare = name.split_once(' ').map_or(name.as_str(), |(_, bare)| bare);
        let distance = strsim::osa_distance(wanted, bare).min(strsim::osa_distance(pattern, name));
        distance <= 1 + wanted.chars().count() / 4 || bare.contains(wanted) || wanted.contains(bare)
    };
    let alike: Vec<String> = names
        .iter()
        .filter(|name| near(name))
        .take(REPORTED)
        .cloned()
        .collect();
    Some(match (alike.is_empty(), names.is_empty()) {
        _ if known => GateNote::NoneSeen,
        (false, _) => GateNote::Alike(alike),
        (true, true) => GateNote::Nobody,
        (true, false) => {
            names.truncate(REPORTED);
            GateNote::Others(names)
        }
    })
}

/// Kind and name, as in reports.
fn title(subject: &Subject) -> String {
    format!("{} {}", subject.kind_word(), subject.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Task;

    #[test]
    fn a_slip_of_a_word_is_refused_and_a_name_is_not() {
        for (wrong, word) in [
            ("kwroker", "kworker"),
            ("kworkr", "kworker"),
            ("kworkers", "kworker"),
            ("Hypervisor", "hypervisor"),
            ("firmwere", "firmware"),
            ("smi", "SMI"),
            ("IRQ", "irq"),
            ("softirg", "softirq"),
            ("idle exti", "idle exit"),
        ] {
            let why = check_name(wrong).unwrap_err();
            assert!(
                why.contains(&format!("{word:?}")) && why.contains(&format!("thread {wrong}")),
                "{why}"
            );
        }
        for fine in [
            "kworker",
            "kworker*",
            "kworker/1:1",
            "irqs",
            "nmi",
            "SMI",
            "rival",
            "postgres",
            "thread kwroker",
            "kworker vmstat_update",
            "vmstat_update",
            "*",
            "worker",
            "\u{e9}t\u{e9}",
        ] {
            assert_eq!(check_name(fine), Ok(()), "{fine}");
        }
        assert!(check_name("a\nb").is_err());
    }

    #[test]
    fn an_unknown_name_lists_the_names_that_were_seen() {
        let of = |name: &str| {
            Subject::Thread(Task {
                comm: name.into(),
                ..Task::default()
            })
        };
        let (postgres, java) = (of("postgres"), of("java"));
        let seen = [&java, &postgres];
        assert_eq!(not_seen("postgres", &seen), None);
        assert_eq!(not_seen("thread postgres", &seen), None);
        assert_eq!(not_seen("kworker", &seen), Some(GateNote::NoneSeen));
        assert_eq!(
            not_seen("postgers", &seen),
            Some(GateNote::Alike(vec!["thread postgres".into()]))
        );
        let others = ["thread java".into(), "thread postgres".into()].to_vec();
        assert_eq!(not_seen("nginx", &seen), Some(GateNote::Others(others)));
        assert_eq!(not_seen("nginx", &[]), Some(GateNote::Nobody));
    }
}
