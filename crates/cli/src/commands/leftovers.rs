//! Finds, reports and cleans up what killed jitterscope processes left on the machine. A failure of one step does not
//! stop the others.

use super::experiment_undo::undo;
use crate::output;
use crate::places::Places;
use jitterscope_experiment::{Note, Notes};
use jitterscope_inject::{self as inject, Leftover, LeftoverState};
use jitterscope_platform::Machine;
use jitterscope_recording::watch::{EndedHistory, LeftHistory, end_left_histories, left_histories};
use jitterscope_recording::{Ended, TakingDown};
use jitterscope_source::Tracefs;
use jitterscope_store::Partial;
use jitterscope_tune::{DEFAULT_STATE_DIR, StateDir};
use jitterscope_view::size_text;
use std::path::{Path, PathBuf};

/// The finished and the failed clean-ups, a phrase each.
#[derive(Debug, Default)]
pub struct PutRight {
    pub done: Vec<String>,
    /// The failed ones, with the reason.
    pub failed: Vec<String>,
}

/// What needs a clean-up, and what could not be checked, a phrase each; changes nothing. `state`: the folder of the
/// journal.
pub fn look(machine: &Machine, places: &Places, state: &Path) -> PutRight {
    let mut found = PutRight::default();
    match Notes::left(state).and_then(|left| left.map_or(Ok(None), |notes| notes.read())) {
        Ok(note) => found.done.extend(note.iter().map(of_experiment)),
        Err(error) => found.failed.push(format!(
            "what a killed experiment changed is not known: {error}"
        )),
    }
    if let Ok(tracefs) = Tracefs::open(machine) {
        found
            .done
            .extend(tracefs.leftovers().iter().map(|l| instance(&l.name)));
    }
    match places
        .runs()
        .and_then(|runs| Ok(jitterscope_store::partials(&runs)?))
    {
        Ok(partials) => found.done.extend(partials.iter().map(unfinished)),
        Err(error) => found
            .failed
            .push(format!("unfinished runs cannot be looked for: {error:#}")),
    }
    match places.runs().and_then(|runs| Ok(left_histories(&runs)?)) {
        Ok(left) => found.done.extend(left.iter().map(history)),
        Err(error) => found.failed.push(format!(
            "histories of killed watches cannot be looked for: {error:#}"
        )),
    }
    found.settings(inject::leftovers(machine).map_err(|e| e.to_string()));
    found.done.extend(
        inject::leftover_groups(machine)
            .iter()
            .map(|group| of_group(group)),
    );
    found
}

/// Cleans up after killed jitterscope processes.
pub fn clean(machine: &Machine, places: &Places, state: &Path) -> PutRight {
    let mut put_right = PutRight::default();
    // First everything that affects the machine's behaviour.
    put_right.experiment(state);
    put_right.settings(inject::restore_leftovers(machine).map_err(|e| e.to_string()));
    put_right.groups(machine);
    if let Ok(tracefs) = Tracefs::open(machine) {
        let (gone, kept) = tracefs.clean_leftovers();
        put_right
            .done
            .extend(gone.iter().map(|l| instance(&l.name)));
        let failed = kept
            .iter()
            .map(|(l, error)| format!("{} cannot be removed: {error}", instance(&l.name)));
        put_right.failed.extend(failed);
    }
    put_right.partials(places);
    put_right
}

/// Before a recording: restores settings, finishes the runs of killed recorders and reports both. A failure is reported and does not
/// stop the recording. The recorder removes tracing instances itself.
pub fn put_right_at_start(places: &Places) {
    let mut put_right = PutRight::default();
    let machine = Machine::host();
    put_right.experiment(&usual_state());
    put_right.settings(inject::restore_leftovers(&machine).map_err(|e| e.to_string()));
    put_right.groups(&machine);
    // The recording reports an unfit folder of runs itself.
    let any = places
        .runs()
        .ok()
        .and_then(|runs| jitterscope_store::partials(&runs).ok());
    if any.is_some_and(|partials| !partials.is_empty()) {
        put_right.partials(places);
    }
    for what in &put_right.done {
        output::talk(format_args!("put right what a killed process left: {what}"));
    }
    for what in &put_right.failed {
        output::talk(format_args!(
            "left over, and not put right: {what} (try: jitterscope doctor --clean)"
        ));
    }
}

/// After a recording: reports what could not be removed. The run is complete anyway.
pub fn tell_left_behind(taken_down: TakingDown) {
    for (name, why) in taken_down.wait() {
        output::talk(format_args!(
            "{} could not be removed: {why} (try: jitterscope doctor --clean)",
            instance(&name)
        ));
    }
}

/// The default folder of the journal.
pub fn usual_state() -> PathBuf {
    std::env::var_os("JITTERSCOPE_STATE").map_or_else(|| DEFAULT_STATE_DIR.into(), PathBuf::from)
}

fn of_group(group: &str) -> String {
    format!("control group {group} of a killed selftest")
}

fn of_experiment(note: &Note) -> String {
    if !note.knobs.is_empty() {
        return format!("knobs of a killed experiment: {}", note.knobs.join(", "));
    }
    format!(
        "a killed experiment's change, which '{}' undoes",
        note.revert
    )
}

impl PutRight {
    /// The change of an experiment's command whose guard was killed, too.
    pub fn experiment(&mut self, state: &Path) {
        match Notes::left(state) {
            Ok(None) => {}
            Ok(Some(notes)) => {
                match notes.undo(&mut |of| undo(&Machine::host(), &StateDir::at(state), of)) {
                    Ok(note) => self.done.extend(note.iter().map(of_experiment)),
                    Err(error) => self.failed.push(format!(
                        "an experiment's change: {error}; where it is undone by hand, remove {}",
                        Notes::place(state).display()
                    )),
                }
            }
            Err(error) => {
                self.failed.push(format!(
                    "what a killed experiment changed is not known: {error}"
                ));
            }
        }
    }

    fn groups(&mut self, machine: &Machine) {
        let (gone, kept) = inject::remove_leftover_groups(machine);
        self.done.extend(gone.iter().map(|group| of_group(group)));
        self.failed.extend(
            kept.iter()
                .map(|group| format!("{} cannot be removed", of_group(group))),
        );
    }

    fn settings(&mut self, leftovers: Result<Vec<Leftover>, String>) {
        match leftovers {
            Ok(leftovers) => {
                for leftover in &leftovers {
                    let list = match leftover.state {
                        LeftoverState::Failed(_) => &mut self.failed,
                        _ => &mut self.done,
                    };
                    list.push(setting(leftover));
                }
            }
            Err(why) => self.failed.push(format!(
                "what a killed selftest changed is not known: {why}"
            )),
        }
    }

    /// Histories of killed watches; only a person asks for that, because the next watch goes on with them.
    pub fn histories(&mut self, machine: &Machine, places: &Places) {
        let ended = places
            .runs()
            .and_then(|runs| Ok(end_left_histories(machine, &runs)?));
        match ended {
            Ok(ended) => {
                for EndedHistory { left, saved } in ended {
                    match saved {
                        Ok(None) => self.done.push(format!("{}, removed", history(&left))),
                        Ok(Some(run)) => self.done.push(format!(
                            "{}, removed; what it was about to save is {}",
                            history(&left),
                            run.display()
                        )),
                        Err(why) => self.failed.push(format!("{}: {why}", history(&left))),
                    }
                }
            }
            Err(error) => self.failed.push(format!(
                "histories of killed watches cannot be looked for: {error:#}"
            )),
        }
    }

    fn partials(&mut self, places: &Places) {
        match places
            .runs()
            .and_then(|runs| Ok(jitterscope_recording::finish_killed(&runs)?))
        {
            Ok(ended) => {
                for (partial, ended) in ended {
                    match ended {
                        Ended::Finished(run) => self.done.push(finished(&run)),
                        Ended::Removed => self.done.push(format!(
                            "{}, removed: it had no row that can be read",
                            unfinished(&partial)
                        )),
                        Ended::Left(error) => self.failed.push(format!(
                            "{} cannot be finished: {error}",
                            unfinished(&partial)
                        )),
                    }
                }
            }
            Err(error) => self
                .failed
                .push(format!("unfinished runs cannot be finished: {error:#}")),
        }
    }
}

fn history(left: &LeftHistory) -> String {
    let to_save = match left.is_to_save {
        true => ", with a moment to save",
        false => "",
    };
    format!(
        "history of a killed watch, {} in {}{to_save} (the next watch of these CPUs goes on with it)",
        size_text(left.bytes),
        left.path.display()
    )
}

fn instance(name: &str) -> String {
    format!("tracing instance {name}")
}

fn finished(run: &Path) -> String {
    format!(
        "unfinished run {}, now finished and marked killed",
        run.display()
    )
}

fn unfinished(partial: &Partial) -> String {
    format!("unfinished run {}", partial.path.display())
}

/// The change of a killed selftest, in a phrase.
fn setting(leftover: &Leftover) -> String {
    let (file, original) = (leftover.file.display(), &leftover.original);
    match &leftover.state {
        LeftoverState::Changed => {
            format!("a killed selftest's change of {file}, which was '{original}'")
        }
        LeftoverState::Restored => {
            format!("a killed selftest's change of {file}, back to '{original}'")
        }
        LeftoverState::Foreign => {
            format!(
                "the note that {file} was '{original}'; somebody has changed it since, so it was left"
            )
        }
        LeftoverState::Failed(why) => format!("a killed selftest's change of {file}: {why}"),
    }
}
