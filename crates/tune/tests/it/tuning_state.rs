//! What a run stores about the knobs, on a file tree that resembles a machine.

use crate::support;

use jitterscope_model::{AnyVersion, ChangeNow, KnobVerdict, Reading, ReadingFlaw};
use jitterscope_tune::{
    FindingWords, Goal, OnRefusal, Select, StateDir, apply, catalogue, plan, tuning_state,
};
use support::{Cgroups, FakeHands, build, folder, goal, put, who};

/// Any distinguishing text; view has the real words.
const WORDS: FindingWords = FindingWords {
    found: |of| format!("{of:?}"),
    wanted: |of| format!("{of:?}"),
    reason: |of| format!("{of:?}"),
};

#[test]
fn every_knob_of_the_catalogue_is_kept_by_value() {
    let dir = folder();
    let machine = build(&dir.path().join("root"), Cgroups::V2);
    let goal = Goal::to_audit(&machine, "3".parse().unwrap()).unwrap();
    let state = tuning_state(
        &machine,
        &goal,
        &StateDir::at(&dir.path().join("state")),
        &WORDS,
    );
    let ids: Vec<&str> = catalogue::all().map(|knob| knob.id).collect();
    assert_eq!(
        state
            .settings
            .iter()
            .map(|s| s.knob.as_str())
            .collect::<Vec<_>>(),
        ids
    );
    assert_eq!(state.findings.len(), ids.len());
    let setting = |id: &str| state.settings.iter().find(|s| s.knob == id).unwrap();
    // The file's own value, not a sentence; a governor of every CPU, not only of the measured one.
    assert_eq!(
        setting("vmstat").values[0].value,
        Reading::Value("1".into())
    );
    let governor = &setting("governor").values[0];
    assert_eq!(
        (governor.cpus.as_ref().unwrap().to_string(), governor.files),
        ("0-3".into(), 4)
    );
    assert_eq!(governor.value, Reading::Value("powersave".into()));
    let finding = |id: &str| state.findings.iter().find(|f| f.knob == id).unwrap();
    assert_eq!(finding("vmstat").verdict, KnobVerdict::Wrong);
    // A knob without a file, and the reason why one is not judged, are stored in the given words.
    assert_eq!(
        setting("nohz-full").values[0].value,
        Reading::Value(finding("nohz-full").current.clone())
    );
    assert_eq!(
        (
            finding("prefault").reason.as_str(),
            finding("prefault").current.as_str()
        ),
        ("ProgramsOwn", "")
    );
    assert_eq!(state.applied, Reading::Absent);
}

#[test]
fn what_was_applied_is_kept_with_how_it_stands() {
    let dir = folder();
    let machine = build(&dir.path().join("root"), Cgroups::V2);
    let goal = goal(&machine);
    let state_dir = StateDir::at(&dir.path().join("state"));
    let select = Select::Only(vec!["vmstat".into(), "governor".into()]);
    let plan = plan(&machine, &goal, &select, &[], true).unwrap();
    apply(
        &mut FakeHands::new(&machine),
        &state_dir,
        &plan,
        who(),
        OnRefusal::Stop,
    )
    .unwrap();
    machine.write("/proc/sys/vm/stat_interval", "7\n").unwrap();
    let state = tuning_state(&machine, &goal, &state_dir, &WORDS);
    let applied = state.applied.value().unwrap();
    assert_eq!(applied.applies.len(), 1);
    let change = applied.changes.iter().find(|c| c.knob == "vmstat").unwrap();
    assert_eq!(
        (change.original.trim(), change.now.clone()),
        ("1", ChangeNow::Drifted)
    );
    assert_eq!(change.since_realtime_ns, applied.applies[0].at_realtime_ns);
}

#[test]
fn an_unreadable_journal_is_an_error_and_not_an_absent_one() {
    let dir = folder();
    let machine = build(&dir.path().join("root"), Cgroups::V1);
    let goal = Goal::to_audit(&machine, "3".parse().unwrap()).unwrap();
    let state = dir.path().join("state");
    put(&state, "journal.jsonl", "{\"record\":\"nonsense\"}\n");
    let found = tuning_state(&machine, &goal, &StateDir::at(&state), &WORDS);
    let Reading::Unreadable(AnyVersion::Known(ReadingFlaw::System { system })) = found.applied
    else {
        panic!()
    };
    assert!(system.contains("journal"), "{system}");
}
