//! Histories that killed watches left.

use super::cut::{CutError, Destination, Window, cut};
use super::history::{HISTORIES, History, Noted, PENDING};
use jitterscope_platform::{AccessError, HeldDir, Machine, Owner, boot_id, owner_of};
use jitterscope_store::{RunReader, StoreError, list_own, partials, size_on_disk};
use std::path::{Path, PathBuf};

/// The history of a killed watch. The next watch of the same CPUs goes on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftHistory {
    pub path: PathBuf,
    /// Sections, the one that was being written included, and their size in bytes.
    pub sections: usize,
    pub bytes: u64,
    /// Whether a moment was about to be saved.
    pub is_to_save: bool,
}

/// What became of such a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedHistory {
    pub left: LeftHistory,
    /// The run of the moment that was about to be saved, if there was one; or why the history stays.
    pub saved: Result<Option<PathBuf>, String>,
}

/// The histories of killed watches of this user; changes nothing.
///
/// # Errors
/// Another user may change the folder or one of its parents, or it cannot be read.
pub fn left_histories(runs: &Path) -> Result<Vec<LeftHistory>, StoreError> {
    let path = runs.join(HISTORIES);
    let folder = match HeldDir::trusted(&path) {
        Ok(folder) => folder,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        // It is another user's: no watch of ours wrote there.
        Err(AccessError::Changeable { .. }) => return Ok(Vec::new()),
        Err(source) => return Err(StoreError::Folder { path, source }),
    };
    let entries = folder.entries().map_err(|source| StoreError::Folder {
        path: path.clone(),
        source,
    })?;
    let mut found = Vec::new();
    for entry in entries.into_iter().filter(|entry| entry.is_dir) {
        let path = path.join(&entry.name);
        // A living watch holds it.
        let Owner::Gone(_lock) = owner_of(&path) else {
            continue;
        };
        let mut sections: Vec<PathBuf> = list_own(&path)?.into_iter().map(|of| of.path).collect();
        sections.extend(partials(&path)?.into_iter().map(|of| of.path));
        let is_to_save = HeldDir::trusted(&path).is_ok_and(|folder| folder.has(PENDING));
        if sections.is_empty() && !is_to_save {
            continue;
        }
        let sizes = sections.iter().map(|section| size_on_disk(section));
        found.push(LeftHistory {
            bytes: sizes.fold(0, u64::saturating_add),
            sections: sections.len(),
            is_to_save,
            path,
        });
    }
    Ok(found)
}

/// Saves what killed watches were about to save, and removes their histories; hourly sums stay.
///
/// # Errors
/// As [`left_histories`].
pub fn end_left_histories(machine: &Machine, runs: &Path) -> Result<Vec<EndedHistory>, StoreError> {
    let ended = left_histories(runs)?.into_iter().map(|left| EndedHistory {
        saved: end(machine, runs, &left),
        left,
    });
    Ok(ended.collect())
}

fn end(machine: &Machine, runs: &Path, left: &LeftHistory) -> Result<Option<PathBuf>, String> {
    let name = left.path.file_name().unwrap_or_default();
    let boot = boot_id(machine);
    let opened = History::open(runs, &name.to_string_lossy(), &boot);
    let (mut history, found) = opened.map_err(|error| error.to_string())?;
    if !found.failed.is_empty() {
        return Err(found.failed.join("; "));
    }
    let saved = match found.pending {
        None => None,
        Some(noted) => match save_noted(&history, runs, &noted) {
            // There is nothing left to try again with.
            Err(CutError::Nothing | CutError::NoRow) => None,
            saved => Some(saved.map_err(|error| error.to_string())?),
        },
    };
    history.forget_note();
    history.clear();
    Ok(saved)
}

/// Saves what a killed watch was about to save.
pub(super) fn save_noted(
    history: &History,
    runs: &Path,
    noted: &Noted,
) -> Result<PathBuf, CutError> {
    let pending = &noted.pending;
    // It may have been killed just after it had saved it.
    let is_it = |run: &Path| {
        let reader = RunReader::open(run).ok();
        let moment = reader.and_then(|reader| reader.into_manifest().moment);
        moment.is_some_and(|moment| moment.realtime_ns == pending.moment.realtime_ns)
    };
    let own = list_own(runs)?.into_iter().rev();
    let mut of_label = own.filter(|run| run.head.label == noted.label);
    if let Some(run) = of_label.find(|run| is_it(&run.path)) {
        return Ok(run.path);
    }
    let window = Window {
        from: pending.from,
        to: pending.to,
    };
    let first = history.chain.first().ok_or(CutError::Nothing)?;
    let rate = RunReader::open(&first.path)?.manifest().rate;
    cut(
        &history.chain.of(window, rate),
        window,
        Destination {
            workshop: &history.workshop(),
            runs,
            label: &noted.label,
        },
        &pending.moment,
    )
}
