//! Merges the small files of a day.
//!
//! A day's objects have numbers. A compactor writes the next number, and only if nobody else has: of two at the same
//! time, one starts again from what the other wrote. The hosts' own files stay until the merged file has been there for
//! the grace period, so a reader that has listed them finds them; the views count a host-hour that is in both once. So
//! it may be killed at any moment, run twice, and run beside writers and readers.

use crate::location::{Created, Location, Object};
use crate::problem::{Problem, ProblemKind};
use crate::upload::day;
use jitterscope_store::StoreError;
use jitterscope_store::rollup::{Merged, batches, merge};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::time::Duration;

/// Files that one merged file takes: bounds the memory.
const MOST_SOURCES: usize = 512;
/// How long the hosts' files stay after they were merged, by default.
pub const GRACE: Duration = Duration::from_secs(3600);
/// How often another compactor may come first.
const MOST_TRIES: usize = 100;
const RAW: &str = "v1/raw";
const DAYS: &str = "v1/days";
const END: &str = ".parquet";

/// What compaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    pub days: u64,
    /// Merged host-hours, their rows, and the files that were written.
    pub batches: u64,
    pub rows: u64,
    pub written: u64,
    /// Files of hosts that were removed after the grace period.
    pub removed: u64,
    /// Files that are no rollups, and why. They stay where they are.
    pub unreadable: BTreeMap<String, String>,
}

/// Compacts all days before `until` (`2026-11-28`).
///
/// # Errors
/// The store fails. What was merged until then stays.
pub fn compact(
    location: &Location,
    until: &str,
    grace: Duration,
    now_s: u64,
) -> Result<Compacted, Problem> {
    let mut done = Compacted::default();
    for cluster in location.folders(RAW)? {
        for day_folder in location.folders(&format!("{RAW}/{cluster}"))? {
            let is_due = day_folder
                .strip_prefix("day=")
                .is_some_and(|day| day < until);
            if is_due {
                let day = Day {
                    location,
                    raw: format!("{RAW}/{cluster}/{day_folder}"),
                    days: format!("{DAYS}/{cluster}/{day_folder}"),
                };
                day.compact(grace, now_s, &mut done)?;
                done.days += 1;
            }
        }
    }
    Ok(done)
}

/// The first day that is not over for every host, a day of wrong clocks and outages included.
#[must_use]
pub fn default_until(now_s: u64) -> String {
    day(now_s.saturating_sub(24 * 3600))
}

/// A day of a cluster.
struct Day<'l> {
    location: &'l Location,
    raw: String,
    days: String,
}

/// What a day's merged files have.
#[derive(Default)]
struct Known {
    /// The last number.
    number: u32,
    /// When each host-hour was merged, seconds since the epoch.
    since: BTreeMap<String, u64>,
}

impl Known {
    fn add(&mut self, batches: BTreeSet<String>, at_s: u64) {
        for name in batches {
            self.since.entry(name).or_insert(at_s);
        }
    }
}

impl Day<'_> {
    fn compact(&self, grace: Duration, now_s: u64, done: &mut Compacted) -> Result<(), Problem> {
        let raw = self.location.list(&self.raw)?;
        if raw.is_empty() {
            return Ok(());
        }
        let mut known = Known::default();
        self.read_merged(&mut known, done)?;
        let mut came_second = 0;
        let mut rest = Self::rest(&raw, &known, done);
        while !rest.is_empty() {
            let next = rest.split_off(rest.len().saturating_sub(MOST_SOURCES));
            let new = match self.merge(&next, &known) {
                Ok(new) => new,
                Err(NotMerged::Unreadable(path, why)) => {
                    rest.extend(next.into_iter().filter(|of| of.path != path));
                    done.unreadable.insert(path, why);
                    continue;
                }
                Err(NotMerged::Store(problem)) => return Err(problem),
            };
            let path = format!("{}/{:04}{END}", self.days, known.number + 1);
            match self.location.create(&path, new.file)? {
                Created::New => {
                    done.batches += new.batches.len() as u64;
                    done.rows += new.rows;
                    done.written += 1;
                    known.number += 1;
                    known.add(new.batches, now_s);
                }
                Created::Existed if came_second == MOST_TRIES => {
                    let text = format!("{path}: other compactions always come first");
                    return Err(Problem::new(ProblemKind::Other, text));
                }
                Created::Existed => {
                    came_second += 1;
                    self.read_merged(&mut known, done)?;
                    rest = Self::rest(&raw, &known, done);
                }
            }
        }
        for of in &raw {
            let merged_at = batch(of).and_then(|name| known.since.get(name));
            if merged_at.is_some_and(|at| now_s.saturating_sub(*at) >= grace.as_secs()) {
                self.location.remove(&of.path)?;
                done.removed += 1;
            }
        }
        Ok(())
    }

    /// The hosts' files that no merged file has.
    fn rest<'r>(raw: &'r [Object], known: &Known, done: &Compacted) -> Vec<&'r Object> {
        let rest = raw.iter().filter(|of| {
            let is_merged = batch(of).is_some_and(|name| known.since.contains_key(name));
            !is_merged && !done.unreadable.contains_key(&of.path)
        });
        rest.collect()
    }

    /// Reads which host-hours are in the merged files behind the last known number.
    fn read_merged(&self, known: &mut Known, done: &mut Compacted) -> Result<(), Problem> {
        for of in self.location.list(&self.days)? {
            let number = batch(&of).and_then(|stem| stem.parse::<u32>().ok());
            let Some(number) = number.filter(|number| *number > known.number) else {
                continue;
            };
            known.number = number;
            let Some(bytes) = self.location.get(&of.path)? else {
                continue;
            };
            match batches(temporary(&bytes)?, Path::new(&of.path)) {
                Ok(found) => known.add(found, u64::try_from(of.modified_s).unwrap_or(0)),
                Err(error) => drop(done.unreadable.insert(of.path, error.to_string())),
            }
        }
        Ok(())
    }

    /// Merges hosts' files.
    fn merge(&self, sources: &[&Object], known: &Known) -> Result<Merged, NotMerged> {
        let mut files = Vec::new();
        for of in sources {
            // Another compactor may have removed it, after it was merged.
            if let Some(bytes) = self.location.get(&of.path)? {
                files.push((temporary(&bytes)?, Path::new(&of.path)));
            }
        }
        let is_known = |name: &str| known.since.contains_key(name);
        merge(files, &is_known).map_err(|error| {
            let (StoreError::Damaged { path, .. } | StoreError::Cap { path, .. }) = &error else {
                return Problem::local(error).into();
            };
            match sources.iter().find(|of| Path::new(&of.path) == path) {
                Some(of) => NotMerged::Unreadable(of.path.clone(), error.to_string()),
                None => Problem::local(error).into(),
            }
        })
    }
}

/// Why files were not merged.
enum NotMerged {
    Store(Problem),
    /// The file at this path is no rollup.
    Unreadable(String, String),
}

impl From<Problem> for NotMerged {
    fn from(problem: Problem) -> NotMerged {
        NotMerged::Store(problem)
    }
}

/// The name of an object without its ending: of a host's file, its batch.
fn batch(of: &Object) -> Option<&str> {
    of.path.rsplit('/').next()?.strip_suffix(END)
}

fn temporary(bytes: &[u8]) -> Result<File, Problem> {
    let mut file = tempfile::tempfile().map_err(Problem::local)?;
    file.write_all(bytes).map_err(Problem::local)?;
    file.rewind().map_err(Problem::local)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upload::testing::{fleet_at, host_hour, put};

    const LATER: u64 = 4_000_000_000;

    fn run(location: &Location, grace: u64, now_s: u64) -> Compacted {
        let grace = Duration::from_secs(grace);
        compact(location, "2027-01-01", grace, now_s).unwrap()
    }

    #[test]
    fn a_day_is_merged_once_and_the_sources_stay_for_the_grace_period() {
        let dir = tempfile::tempdir().unwrap();
        let fleet = fleet_at(dir.path());
        for n in 0..5 {
            put(&fleet, &host_hour(&format!("h{n}"), 495_000));
        }
        let first = run(&fleet, 3600, 0);
        assert_eq!((first.batches, first.written, first.removed), (5, 1, 0));
        // Nothing is new.
        let again = run(&fleet, 3600, 0);
        assert_eq!((again.batches, again.written, again.removed), (0, 0, 0));
        assert_eq!(fleet.list(RAW).unwrap().len(), 5);
        // A late host.
        put(&fleet, &host_hour("late", 495_000));
        let late = run(&fleet, 3600, LATER);
        assert_eq!((late.batches, late.written, late.removed), (1, 1, 5));
        // What was merged just now stays for an hour as well.
        assert_eq!(fleet.list(RAW).unwrap().len(), 1);
        assert_eq!(run(&fleet, 3600, LATER).removed, 1);
        assert_eq!(fleet.list(RAW).unwrap().len(), 0);
        assert_eq!(fleet.list(DAYS).unwrap().len(), 2);
        // A host that sends an hour again after all: it is known, and goes.
        put(&fleet, &host_hour("late", 495_000));
        let again = run(&fleet, 3600, LATER);
        assert_eq!((again.written, again.removed), (0, 1));
    }

    #[test]
    fn of_two_compactors_one_comes_second_and_starts_again() {
        let dir = tempfile::tempdir().unwrap();
        let fleet = fleet_at(dir.path());
        put(&fleet, &host_hour("a", 495_000));
        // The other one has merged the host's file after this one listed it.
        let raw = fleet.list(RAW).unwrap();
        run(&fleet, 3600, 0);
        let folder = raw[0].path.rsplit_once('/').unwrap().0;
        let day = Day {
            location: &fleet,
            raw: folder.to_owned(),
            days: folder.replacen(RAW, DAYS, 1),
        };
        let Ok(merged) = day.merge(&[&raw[0]], &Known::default()) else {
            panic!("a good file is merged");
        };
        let path = format!("{}/0001{END}", day.days);
        assert_eq!(fleet.create(&path, merged.file).unwrap(), Created::Existed);
    }

    #[test]
    fn a_file_that_is_none_stays_and_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let fleet = fleet_at(dir.path());
        put(&fleet, &host_hour("a", 495_000));
        let path = fleet.list(RAW).unwrap().remove(0).path;
        let bad = path.replace("-a-", "-b-");
        fleet.put(&bad, b"PAR1 no table PAR1".to_vec()).unwrap();
        let done = compact(&fleet, "2027-01-01", Duration::ZERO, LATER).unwrap();
        assert_eq!((done.batches, done.removed), (1, 1));
        let named: Vec<&String> = done.unreadable.keys().collect();
        assert_eq!(named, [&bad]);
        assert_eq!(fleet.list(RAW).unwrap().remove(0).path, bad);
    }

    #[test]
    fn a_day_is_due_when_it_is_over_everywhere() {
        assert_eq!(default_until(1_795_000_000), "2026-11-17");
    }
}
