//! The history of a watch: a chain of closed sections, each an ordinary run, within limits of age and size.

use super::cut::Window;
use super::triggers::Pending;
use crate::killed::{Ended, finish_killed};
use jitterscope_model::{CpuSet, Nanos, RunManifest, TickRate, Ticks};
use jitterscope_platform::{AccessError, HeldDir, OwnerLock};
use jitterscope_store::{RunReader, StoreError, list_own, remove, size_on_disk};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of all histories, below the folder of runs. Its name is hidden, so no list of runs shows it.
pub(super) const HISTORIES: &str = ".watch";
/// The moment that is to be saved, so that the next start saves it if this process is killed.
pub(super) const PENDING: &str = "pending.json";
const PENDING_PARTIAL: &str = ".pending.json";
/// The folder in which a run is made out of sections.
const WORKSHOP: &str = "saving";
/// The boot of the history: the measuring clock starts anew with each.
const BOOT: &str = "boot";
/// When the moments of the last day were saved, nanoseconds since the epoch: the daily cap outlives the process.
const DAILY: &str = "daily.json";
const DAILY_PARTIAL: &str = ".daily.json";
/// How many of these are kept: the file stays below [`LARGEST`].
const MOST_DAILY: usize = 3000;
/// How the name of a section begins while it is written.
const PARTIAL: &str = ".partial-";
/// The largest accepted file of these, bytes.
const LARGEST: u64 = 64 << 10;
/// Free space below which history is dropped, bytes: above what a section needs to begin, and what makes a recording
/// give up its trace.
const FREE: u64 = 128 << 20;
/// Rows of a section may be of stalls that began this much before it.
const LATE: Nanos = Nanos(1_000_000_000);

/// A closed section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) path: PathBuf,
    pub(super) from: Ticks,
    pub(super) to: Ticks,
    pub(super) bytes: u64,
    /// Whose recorder made it: numbers and ids of stalls begin anew with each.
    pub(super) recorder: Option<i32>,
}

/// The limits of the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) keep: Ticks,
    pub(super) bytes: u64,
}

/// The closed sections, oldest first.
#[derive(Debug, Default)]
pub(super) struct Chain(VecDeque<Section>);

impl Chain {
    pub(super) fn push(&mut self, section: Section) {
        self.0.push_back(section);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0
            .iter()
            .map(|section| section.bytes)
            .fold(0, u64::saturating_add)
    }

    pub(super) fn first(&self) -> Option<&Section> {
        self.0.front()
    }

    /// Takes out the oldest sections until the rest is within its bounds, with `open` more bytes in the section that is
    /// being written. Keeps what a pending save needs.
    pub(super) fn drop_old(
        &mut self,
        now: Ticks,
        bounds: Bounds,
        open: u64,
        pending: Option<Window>,
    ) -> Vec<Section> {
        let mut dropped = Vec::new();
        let mut bytes = self.bytes().saturating_add(open);
        while let Some(oldest) = self.0.front() {
            let is_old = now.since(oldest.to) > bounds.keep;
            let is_needed = pending.is_some_and(|window| oldest.to >= window.from);
            if is_needed || !(is_old || bytes > bounds.bytes) {
                break;
            }
            bytes = bytes.saturating_sub(oldest.bytes);
            dropped.extend(self.0.pop_front());
        }
        dropped
    }

    /// Takes out the oldest section, unless a pending save needs it.
    pub(super) fn drop_oldest(&mut self, pending: Option<Window>) -> Option<Section> {
        let needed = |oldest: &Section| pending.is_some_and(|window| oldest.to >= window.from);
        match self.0.front() {
            Some(oldest) if !needed(oldest) => self.0.pop_front(),
            _ => None,
        }
    }

    /// The sections with anything of a window, oldest first, all of one recorder: of the one that has the end of the
    /// window, or the last part of it.
    pub(super) fn of(&self, window: Window, rate: TickRate) -> Vec<PathBuf> {
        let late = rate.ticks(LATE);
        let meets = |of: &&Section| of.from <= window.to + late && window.from <= of.to;
        let recorder = self.0.iter().rev().find(meets).map(|last| last.recorder);
        self.0
            .iter()
            .filter(meets)
            .filter(|section| Some(section.recorder) == recorder)
            .map(|section| section.path.clone())
            .collect()
    }
}

/// What an earlier watch of the same CPUs left.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// What a killed one was about to save.
    pub(super) pending: Option<Noted>,
    /// When moments were saved lately, nanoseconds since the epoch.
    pub(super) daily: Vec<u64>,
    /// What could not be put right, a phrase each.
    pub(super) failed: Vec<String>,
    /// Whether the machine was started anew since: then the history ends with the pending save.
    pub(super) earlier_boot: bool,
}

/// What is to be saved, and the label of its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) label: String,
    pub(super) pending: Pending,
}

/// The folder of a history.
#[derive(Debug)]
pub(super) struct History {
    folder: HeldDir,
    path: PathBuf,
    _owner: Option<OwnerLock>,
    pub(super) chain: Chain,
}

impl History {
    /// Opens or makes the history of a watch, and puts right what a killed one left of it.
    ///
    /// # Errors
    /// Another user may change the folder or one of its parents, or it cannot be read or made.
    pub(super) fn open(runs: &Path, name: &str, boot: &str) -> Result<(History, Left), StoreError> {
        let path = runs.join(HISTORIES).join(name);
        let folder_error = |source| StoreError::Folder {
            path: path.clone(),
            source,
        };
        let folder = HeldDir::trusted_or_made(&path).map_err(folder_error)?;
        let mut left = Left {
            pending: read(&folder, PENDING),
            daily: read(&folder, DAILY).unwrap_or_default(),
            ..Left::default()
        };
        for (partial, ended) in finish_killed(&path)? {
            if let Ended::Left(error) = ended {
                left.failed
                    .push(format!("{}: {error}", partial.path.display()));
            }
        }
        // It is made again from what was noted.
        if folder.has(WORKSHOP) {
            folder.remove_tree(WORKSHOP).map_err(folder_error)?;
        }
        let earlier: Option<String> = read(&folder, BOOT);
        left.earlier_boot = earlier.is_some_and(|earlier| earlier != boot);
        write(&folder, BOOT, ".boot", &boot).map_err(folder_error)?;
        let mut history = History {
            folder,
            _owner: OwnerLock::take(&path).ok(),
            path,
            chain: Chain::default(),
        };
        for run in list_own(&history.path)? {
            match section(&run.path) {
                Ok(section) => history.chain.push(section),
                Err(error) => left.failed.push(format!("{}: {error}", run.path.display())),
            }
        }
        Ok((history, left))
    }

    /// The folder in which a run is made.
    pub(super) fn workshop(&self) -> PathBuf {
        self.path.join(WORKSHOP)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a section that was closed.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn add(&mut self, path: &Path) -> Result<(), StoreError> {
        self.chain.push(section(path)?);
        Ok(())
    }

    /// The size of the section that is being written, bytes.
    pub(super) fn open_bytes(&self) -> u64 {
        let entries = self.folder.entries().unwrap_or_default();
        let unfinished = entries.iter().filter(|entry| {
            let name = entry.name.to_string_lossy();
            entry.is_dir && name.starts_with(PARTIAL)
        });
        unfinished
            .map(|entry| size_on_disk(&self.path.join(&entry.name)))
            .fold(0, u64::saturating_add)
    }

    /// Whether the disk has so little room that history must go.
    pub(super) fn is_space_low(&self) -> bool {
        self.folder.free_bytes().is_ok_and(|free| free < FREE)
    }

    /// Notes what is to be saved.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(super) fn note(&self, pending: &Pending, label: &str) -> Result<(), AccessError> {
        let noted = Noted {
            label: label.to_owned(),
            pending: pending.clone(),
        };
        write(&self.folder, PENDING, PENDING_PARTIAL, &noted)
    }

    /// Notes when the moments of the last day were saved, oldest first.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(super) fn note_daily(&self, saved: &[u64]) -> Result<(), AccessError> {
        let newest = &saved[saved.len().saturating_sub(MOST_DAILY)..];
        write(&self.folder, DAILY, DAILY_PARTIAL, &newest)
    }

    /// The save is over.
    pub(super) fn forget_note(&self) {
        let _ = self.folder.remove_file(PENDING);
    }

    /// Removes everything but the sums.
    pub(super) fn clear(&mut self) {
        while let Some(section) = self.chain.drop_oldest(None) {
            // The next start tries again.
            let _ = remove(&section.path);
        }
    }
}

/// The name of the history of these CPUs.
pub(super) fn name_of(cpus: &CpuSet) -> String {
    /// A file's name may have 255 bytes.
    const LONGEST: usize = 100;
    let text = cpus.to_string();
    if text.len() <= LONGEST {
        return format!("cpus-{text}");
    }
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("cpus-{}-{sum:016x}", &text[..LONGEST])
}

fn section(path: &Path) -> Result<Section, StoreError> {
    let run = RunReader::open(path)?;
    let manifest: &RunManifest = run.manifest();
    Ok(Section {
        path: path.to_path_buf(),
        from: manifest.clock_start.ticks,
        to: manifest.clock_end.ticks,
        bytes: size_on_disk(path),
        recorder: manifest.recorder_pid,
    })
}

fn read<T: for<'de> Deserialize<'de>>(folder: &HeldDir, name: &str) -> Option<T> {
    serde_json::from_slice(&folder.read(name, LARGEST).ok()?).ok()
}

fn write(
    folder: &HeldDir,
    name: &str,
    partial: &str,
    value: &impl Serialize,
) -> Result<(), AccessError> {
    let path = folder.path().join(partial);
    let io = |source| AccessError::Io {
        path: path.clone(),
        source,
    };
    let text = serde_json::to_vec(value).map_err(|error| io(error.into()))?;
    let _ = folder.remove_file(partial);
    let mut file = folder.create_new(partial)?;
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(io)?;
    folder.rename(partial, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn section(n: u64, bytes: u64, recorder: i32) -> Section {
        Section {
            path: format!("s{n}").into(),
            from: Ticks(n * 10),
            to: Ticks(n * 10 + 10),
            bytes,
            recorder: Some(recorder),
        }
    }

    fn chain(sections: u64, bytes: u64) -> Chain {
        Chain((0..sections).map(|n| section(n, bytes, 1)).collect())
    }

    fn window(from: u64, to: u64) -> Window {
        Window {
            from: Ticks(from),
            to: Ticks(to),
        }
    }

    const ALL: Bounds = Bounds {
        keep: Ticks(1000),
        bytes: 1000,
    };

    #[test]
    fn the_oldest_goes_first_when_it_is_too_old_or_there_is_too_much() {
        let names =
            |dropped: Vec<Section>| -> Vec<_> { dropped.into_iter().map(|of| of.path).collect() };
        let mut chain = chain(10, 100);
        assert!(chain.drop_old(Ticks(100), ALL, 0, None).is_empty());
        assert_eq!(
            names(chain.drop_old(Ticks(100), ALL, 1, None)),
            [PathBuf::from("s0")]
        );
        let young = Bounds {
            keep: Ticks(70),
            ..ALL
        };
        assert_eq!(
            names(chain.drop_old(Ticks(100), young, 0, None)),
            [PathBuf::from("s1")]
        );
        assert_eq!((chain.len(), chain.bytes()), (8, 800));
    }

    #[test]
    fn what_a_pending_save_needs_stays() {
        let mut chain = chain(10, 1000);
        let dropped = chain.drop_old(Ticks(100), ALL, 0, Some(window(45, 60)));
        assert_eq!(dropped.len(), 4);
        assert!(chain.drop_oldest(Some(window(45, 60))).is_none());
        assert!(chain.drop_oldest(Some(window(51, 60))).is_some());
    }

    #[test]
    fn a_window_has_sections_of_one_recorder() {
        let mut chain = chain(3, 1);
        chain.push(section(3, 1, 2));
        chain.push(section(4, 1, 2));
        let rate = TickRate::NANOSECONDS;
        let names = |from, to| -> Vec<_> {
            // Sections count as longer by a second of ticks at their beginning.
            let of: Vec<_> = chain.of(window(from, to), rate);
            of.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(0, 50), ["s3", "s4"], "the last recorder's");
        assert!(names(51, 60).is_empty());
    }

    #[test]
    fn the_names_of_histories_differ_and_fit() {
        let of = |list: &str| name_of(&list.parse().unwrap());
        assert_eq!(of("2-5"), "cpus-2-5");
        let odd = |last: u32| -> String {
            let list: Vec<String> = (0..200).map(|n| (2 * n + 1).to_string()).collect();
            of(&format!("{},{last}", list.join(",")))
        };
        assert!(odd(500).len() < 140);
        assert_ne!(odd(500), odd(502));
    }

    proptest! {
        /// Whatever the sizes: what stays is within the bounds, or is needed; nothing goes that did not have to.
        #[test]
        fn the_history_stays_within_its_bounds(
            sizes in proptest::collection::vec(1u64..500, 1..40),
            open in 0u64..800,
            keep in 1u64..400,
            needed in proptest::option::of(0u64..400),
        ) {
            let mut chain = Chain::default();
            for (n, bytes) in (0..).zip(&sizes) {
                chain.push(section(n, *bytes, 1));
            }
            let now = Ticks(sizes.len() as u64 * 10);
            let bounds = Bounds { keep: Ticks(keep), bytes: 1000 };
            let pending = needed.map(|from| window(from, from + 10));
            let dropped = chain.drop_old(now, bounds, open, pending);
            prop_assert_eq!(dropped.len() + chain.len(), sizes.len());
            let is_needed = |of: &Section| pending.is_some_and(|window| of.to >= window.from);
            prop_assert!(!dropped.iter().any(is_needed));
            if let Some(first) = chain.first()
                && !is_needed(first)
            {
                prop_assert!(chain.bytes() + open <= bounds.bytes);
                prop_assert!(now.since(first.to) <= bounds.keep);
            }
            if let Some(last) = dropped.last() {
                let with_it = chain.bytes() + last.bytes + open;
                prop_assert!(with_it > bounds.bytes || now.since(last.to) > bounds.keep);
            }
        }
    }
}
