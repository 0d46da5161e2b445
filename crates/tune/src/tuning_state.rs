//! The knobs of a machine by value, stored with a run: the setting of each, the audit's result, and what was applied.

use crate::audit::{AuditEntry, audit};
use crate::catalogue;
use crate::examine::KnobState;
use crate::finding::Finding;
use crate::goal::Goal;
use crate::knob::{Mechanism, Place, Scope, Setting};
use crate::knob_reason::KnobReason;
use crate::settings::{self, Reading as FileReading};
use crate::state_dir::StateDir;
use crate::status::{NowIs, Status, status};
use crate::value::ValueKind;
use crate::wanted::Wanted;
use jitterscope_model::{
    AppliedChange, AppliedTuning, ChangeNow, CpuId, CpuSet, KnobFinding, KnobSetting, KnobVerdict,
    Reading, SettingValue, TuningApply, TuningState,
};
use jitterscope_platform::Machine;

/// Limit on stored values of one knob. Equal values are stored once.
const MOST_VALUES: usize = 64;
const MOST_CHANGES: usize = 1024;
/// Maximum text length of one value or finding, bytes.
const LONGEST: usize = 512;

/// Puts findings into words. A run stores words for everything that is not a file's value, as runs always did, so that
/// it compares with runs of other versions.
#[derive(Clone, Copy, Debug)]
pub struct FindingWords {
    pub found: fn(&Finding) -> String,
    pub wanted: fn(&Wanted) -> String,
    pub reason: fn(&KnobReason) -> String,
}

/// Reads every knob for the CPUs of `goal`, and what `tune` has in force according to the journal in `dir`. Changes
/// nothing.
#[must_use]
pub fn tuning_state(
    machine: &Machine,
    goal: &Goal,
    dir: &StateDir,
    words: &FindingWords,
) -> TuningState {
    let found = audit(machine, goal, None);
    let state_of = |id: &str| found.knobs.iter().find(|entry| entry.id == id);
    let settings = catalogue::all()
        .map(|knob| match knob.mechanism {
            Mechanism::Files(files) => of_files(machine, goal, knob.id, files),
            _ => in_words(knob.id, state_of(knob.id), words),
        })
        .collect();
    TuningState {
        cpus: goal.isolated.clone(),
        settings,
        findings: found
            .knobs
            .iter()
            .map(|entry| finding(entry, words))
            .collect(),
        competitors: found
            .competitors
            .into_iter()
            .map(|competitor| competitor.name)
            .collect(),
        applied: match status(machine, dir) {
            Ok(status) if status.active => Reading::Value(applied(status)),
            Ok(_) => Reading::Absent,
            Err(error) => Reading::refused(cut(&error.to_string())),
        },
    }
}

/// Every file of a knob on all CPUs: the setting does not depend on which CPUs are measured.
fn of_files(machine: &Machine, goal: &Goal, knob: &str, settings: &[Setting]) -> KnobSetting {
    let mut kept = KnobSetting {
        knob: knob.to_owned(),
        ..KnobSetting::default()
    };
    for setting in settings {
        let place = match setting.place {
            Place::PerCpu(pattern, _) => Place::PerCpu(pattern, Scope::All),
            other => other,
        };
        for reading in settings::read(machine, goal, &Setting { place, ..*setting }) {
            add(&mut kept, place, &reading);
        }
    }
    kept
}

fn add(kept: &mut KnobSetting, place: Place, reading: &FileReading) {
    let (path, cpu) = match place {
        Place::PerCpu(pattern, _) => own_cpu(pattern, &reading.path),
        // Interrupt numbers and device names differ even between equal machines.
        Place::Files(pattern) if pattern.contains('*') => (pattern.to_owned(), None),
        Place::Files(_) => (reading.path.clone(), None),
    };
    let value = match &reading.current {
        Ok(text) => Reading::Value(spelled(reading.kind, text)),
        Err(error) if error.is_denied() => Reading::Denied,
        Err(error) if error.is_absent() => Reading::Absent,
        Err(error) => Reading::refused(error.source.to_string()),
    };
    let in_force = reading
        .in_force
        .as_ref()
        .map(|text| spelled(reading.kind, text));
    let in_force = in_force.filter(|force| Some(force) != value.value());
    let same = |known: &&mut SettingValue| {
        known.path == path
            && known.value == value
            && known.in_force == in_force
            && known.cpus.is_some() == cpu.is_some()
    };
    let full = kept.values.len() >= MOST_VALUES;
    match kept.values.iter_mut().find(same) {
        Some(known) => {
            known.files += 1;
            if let (Some(cpus), Some(cpu)) = (&mut known.cpus, cpu) {
                cpus.insert(cpu);
            }
        }
        None if full => kept.omitted += 1,
        None => {
            let cpus = cpu.map(|cpu| CpuSet::from_iter([cpu]));
            kept.values.push(SettingValue {
                path,
                cpus,
                files: 1,
                value,
                in_force,
            });
        }
    }
}

/// A value in one spelling: masks as lists of CPUs, choices without the alternatives.
fn spelled(kind: ValueKind, text: &str) -> String {
    cut(&kind.canonical(text).replace('\n', "; "))
}

/// A per-CPU file with `{cpu}` instead of its number, and the number.
fn own_cpu(pattern: &str, path: &str) -> (String, Option<CpuId>) {
    let split = || {
        let (before, _) = pattern.split_once("{cpu}")?;
        let rest = path.strip_prefix(before)?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let cpu = CpuId(rest.get(..digits)?.parse().ok()?);
        Some((format!("{before}{{cpu}}{}", rest.get(digits..)?), Some(cpu)))
    };
    split().unwrap_or_else(|| (path.to_owned(), None))
}

/// A knob without a file: the audit's finding in words.
fn in_words(knob: &str, entry: Option<&AuditEntry>, words: &FindingWords) -> KnobSetting {
    let value = match entry.map(|entry| (&entry.state, &entry.found)) {
        Some((KnobState::Wrong | KnobState::Fine, found)) => {
            Reading::Value(cut(&found.as_ref().map(words.found).unwrap_or_default()))
        }
        Some((KnobState::Unreadable(_), _)) => Reading::Denied,
        Some((KnobState::Unavailable(_) | KnobState::NotApplicable(_), _)) | None => {
            Reading::Absent
        }
    };
    let found = value.value().is_some();
    let values = vec![SettingValue {
        value,
        files: u64::from(found),
        ..SettingValue::default()
    }];
    KnobSetting {
        knob: knob.to_owned(),
        values,
        omitted: 0,
    }
}

fn finding(entry: &AuditEntry, words: &FindingWords) -> KnobFinding {
    let (verdict, reason) = match &entry.state {
        KnobState::Wrong => (KnobVerdict::Wrong, None),
        KnobState::Fine => (KnobVerdict::Fine, None),
        KnobState::Unavailable(why) => (KnobVerdict::Unavailable, Some(why)),
        KnobState::NotApplicable(why) => (KnobVerdict::NotApplicable, Some(why)),
        KnobState::Unreadable(why) => (KnobVerdict::Unreadable, Some(why)),
    };
    KnobFinding {
        knob: entry.id.to_owned(),
        verdict,
        reason: cut(&reason.map(words.reason).unwrap_or_default()),
        current: cut(&entry.found.as_ref().map(words.found).unwrap_or_default()),
        wanted: cut(&entry.wanted.as_ref().map(words.wanted).unwrap_or_default()),
    }
}

fn applied(status: Status) -> AppliedTuning {
    let omitted = status.changes.len().saturating_sub(MOST_CHANGES) as u64;
    let apply = |apply: crate::status::StatusApply| TuningApply {
        user: apply.who.name.as_deref().map(cut),
        command: cut(&apply.who.command),
        at_realtime_ns: apply.who.at_realtime_ns,
        isolated: apply.isolated,
        finished: apply.finished,
        before_reboot: apply.before_reboot,
    };
    let change = |change: crate::status::StatusEntry| AppliedChange {
        knob: change.knob,
        what: cut(&change.path),
        original: cut(&change.original),
        asked: cut(&change.asked),
        now: match change.standing {
            NowIs::InForce | NowIs::ChangedAgain => ChangeNow::InForce,
            NowIs::Pending { .. } => ChangeNow::Pending,
            NowIs::Original => ChangeNow::Original,
            NowIs::Drifted { .. } => ChangeNow::Drifted,
            NowIs::Gone { .. } => ChangeNow::Gone,
            // An entry that this knob cannot have made is not undone either.
            NowIs::Refused { .. } | NowIs::Forbidden { .. } => ChangeNow::Refused,
            NowIs::UndoneByReboot => ChangeNow::UndoneByReboot,
        },
        since_realtime_ns: change.since_realtime_ns,
    };
    // A change below a later one of ours is represented by that one.
    let changes = status
        .changes
        .into_iter()
        .filter(|change| change.standing != NowIs::ChangedAgain);
    AppliedTuning {
        applies: status.applies.into_iter().map(apply).collect(),
        changes: changes.take(MOST_CHANGES).map(change).collect(),
        omitted,
    }
}

fn cut(text: &str) -> String {
    let end = (0..=LONGEST.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    text.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpus_own_file_is_recognised_by_its_number() {
        let pattern = "/sys/devices/system/cpu/cpu{cpu}/cpuidle/state*/disable";
        let (path, cpu) = own_cpu(
            pattern,
            "/sys/devices/system/cpu/cpu12/cpuidle/state3/disable",
        );
        assert_eq!(
            path,
            "/sys/devices/system/cpu/cpu{cpu}/cpuidle/state3/disable"
        );
        assert_eq!(cpu, Some(CpuId(12)));
        assert_eq!(own_cpu(pattern, "/elsewhere"), ("/elsewhere".into(), None));
    }

    #[test]
    fn texts_are_cut_at_a_characters_end() {
        let text = "\u{e9}".repeat(LONGEST);
        assert_eq!(cut(&text).len(), LONGEST);
        assert_eq!(cut("x\u{e9}").len(), 3);
    }

    fn reading(
        path: &str,
        current: Result<&str, std::io::ErrorKind>,
        in_force: Option<&str>,
    ) -> FileReading {
        let failed = |kind| jitterscope_platform::FileError {
            path: path.into(),
            source: std::io::Error::from(kind),
        };
        FileReading {
            path: path.into(),
            kind: ValueKind::Text,
            current: current.map(str::to_owned).map_err(failed),
            in_force: in_force.map(str::to_owned),
            op: None,
        }
    }

    #[test]
    fn files_with_the_same_value_are_one_and_too_many_values_are_counted() {
        let several = Place::Files("/sys/block/*/x");
        let mut kept = KnobSetting::default();
        for n in 0..MOST_VALUES + 3 {
            add(
                &mut kept,
                several,
                &reading(&format!("/sys/block/{n}/x"), Ok(&n.to_string()), None),
            );
        }
        assert_eq!((kept.values.len(), kept.omitted), (MOST_VALUES, 3));
        // A known value is still counted.
        add(
            &mut kept,
            several,
            &reading("/sys/block/a/x", Ok("0"), None),
        );
        assert_eq!(
            (
                kept.values[0].files,
                kept.values[0].path.as_str(),
                kept.omitted
            ),
            (2, "/sys/block/*/x", 3)
        );
        // A single file has its own path.
        let mut one = KnobSetting::default();
        add(
            &mut one,
            Place::Files("/proc/x"),
            &reading("/proc/x", Ok("1"), None),
        );
        assert_eq!(
            (one.values[0].path.as_str(), &one.values[0].cpus),
            ("/proc/x", &None)
        );
    }

    #[test]
    fn a_value_has_the_cpus_whose_file_reads_it() {
        let own = Place::PerCpu("/sys/cpu{cpu}/x", Scope::All);
        let mut kept = KnobSetting::default();
        for (cpu, value) in [(0, "1"), (1, "2"), (2, "1")] {
            add(
                &mut kept,
                own,
                &reading(&format!("/sys/cpu{cpu}/x"), Ok(value), None),
            );
        }
        // A file without a CPU number belongs to no CPU, even if its contents are the same.
        add(&mut kept, own, &reading("/sys/cpu{cpu}/x", Ok("1"), None));
        let found: Vec<_> = kept
            .values
            .iter()
            .map(|of| (of.files, of.cpus.as_ref().map(CpuSet::to_string)))
            .collect();
        assert_eq!(
            found,
            [(2, Some("0,2".into())), (1, Some("1".into())), (1, None)]
        );
    }

    #[test]
    fn missing_values_keep_their_reason_and_differing_effective_values() {
        use std::io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
        let value = |of: &FileReading| {
            let mut kept = KnobSetting::default();
            add(&mut kept, Place::Files("/x"), of);
            kept.values.remove(0)
        };
        assert_eq!(
            value(&reading("/x", Err(PermissionDenied), None)).value,
            Reading::Denied
        );
        assert_eq!(
            value(&reading("/x", Err(NotFound), None)).value,
            Reading::Absent
        );
        assert!(matches!(
            value(&reading("/x", Err(InvalidInput), None)).value,
            Reading::Unreadable(_)
        ));
        assert_eq!(value(&reading("/x", Ok("1"), Some("1"))).in_force, None);
        assert_eq!(
            value(&reading("/x", Ok("1"), Some("2")))
                .in_force
                .as_deref(),
            Some("2")
        );
        // Two values are different if what is in force differs.
        let mut kept = KnobSetting::default();
        for force in ["1", "2", "2"] {
            add(
                &mut kept,
                Place::Files("/x*"),
                &reading("/x1", Ok("1"), Some(force)),
            );
        }
        assert_eq!(
            kept.values.iter().map(|of| of.files).collect::<Vec<_>>(),
            [1, 2]
        );
    }
}
