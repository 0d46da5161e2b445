//! Merges the small files of a day.
//!
//! A day's objects have numbers. A compactor writes the next number, and only if nobody else has: of two at the same
//! time, one starts again from what the other wrote. The hosts' own files stay until the merged file has been there for
//! the grace period, so a reader that has listed them finds them; the views count a host-hour that is in both once. So
//! it may be killed at any moment, run twice, and run beside writers and readers.

use crate::location::{Created, Location, Object};
use crate::problem::Problem;
use crate::upload::day;
use jitterscope_model::PutInOrder;
use jitterscope_store::rollup::merge;
use serde::Serialize;
use std::collections::BTreeSet;
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    pub days: u64,
    /// Merged host-hours, their rows, and the files that were written.
    pub batches: u64,
    pub rows: u64,
    pub written: u64,
    /// Files of hosts that were removed after the grace period.
    pub removed: u64,
    /// Files that are no rollups, and stay where they are.
    pub unreadable: u64,
}

/// Compacts all days before `until` (`2026-11-28`). `told` gets the path of each file that is none.
///
/// # Errors
/// The store fails. What was merged until then stays.
pub fn compact(
    location: &Location,
    until: &str,
    grace: Duration,
    now_s: u64,
    told: &mut dyn FnMut(&str, &str),
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
                day.compact(grace, now_s, &mut done, told)?;
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

impl Day<'_> {
    fn compact(
        &self,
        grace: Duration,
        now_s: u64,
        done: &mut Compacted,
        told: &mut dyn FnMut(&str, &str),
    ) -> Result<(), Problem> {
        let raw = self.location.list(&self.raw)?;
        if raw.is_empty() {
            return Ok(());
        }
        let mut bad = BTreeSet::new();
        let mut merged = Merged::default();
        for _ in 0..MOST_TRIES {
            merged.read(self, told)?;
            let rest = raw.iter().filter(|of| {
                !bad.contains(&of.path) && !batch(of).is_some_and(|of| merged.batches.contains(of))
            });
            let next: Vec<&Object> = rest.take(MOST_SOURCES).collect();
            if next.is_empty() {
                break;
            }
            let new = match self.merge(&next, &merged.batches) {
                Ok(new) => new,
                // One of them is no file of rollups: it stays out.
                Err((path, why)) if !path.is_empty() => {
                    told(&path, &why.text);
                    done.unreadable += 1;
                    bad.insert(path);
                    continue;
                }
                Err((_, problem)) => return Err(problem),
            };
            let path = format!("{}/{:04}{END}", self.days, merged.number + 1);
            if self.location.create(&path, new.file)? == Created::New {
                done.batches += new.batches.len() as u64;
                done.rows += new.rows;
                done.written += 1;
            }
        }
        let old = |of: &&Object| {
            let at = batch(of).and_then(|of| merged.since.get(of)).copied();
            at.is_some_and(|at| {
                let age = i64::try_from(now_s).unwrap_or(i64::MAX).saturating_sub(at);
                u64::try_from(age).is_ok_and(|age| age >= grace.as_secs())
            })
        };
        for of in raw.iter().filter(old) {
            self.location.remove(&of.path)?;
            done.removed += 1;
        }
        Ok(())
    }

    /// Merges hosts' files. An error has the path of the file that is none.
    fn merge(
        &self,
        sources: &[&Object],
        known: &BTreeSet<String>,
    ) -> Result<jitterscope_store::rollup::Merged, (String, Problem)> {
        let mut files = Vec::new();
        for of in sources {
            let found = self.location.get(&of.path);
            // Another compactor may have removed it, after it was merged.
            if let Some(bytes) = found.map_err(|problem| (String::new(), problem))? {
                let file = temporary(&bytes).map_err(|problem| (String::new(), problem))?;
                files.push((file, Path::new(&of.path)));
            }
        }
        merge(files, known).map_err(|error| {
            let text = error.to_string();
            let bad = sources.iter().find(|of| text.contains(&*of.path));
            let path = bad.map_or_else(String::new, |of| of.path.clone());
            (path, Problem::local(text))
        })
    }
}

/// What a day's merged files have.
#[derive(Default)]
struct Merged {
    /// The last number.
    number: u32,
    batches: BTreeSet<String>,
    /// When a batch's file was written, seconds since the epoch.
    since: std::collections::BTreeMap<String, i64>,
}

impl Merged {
    /// Reads the files that were written since the last call.
    fn read(&mut self, day: &Day<'_>, told: &mut dyn FnMut(&str, &str)) -> Result<(), Problem> {
        let mut files = day.location.list(&day.days)?;
        files.order_by_key(|of| of.path.clone());
        for of in files {
            let stem = batch(&of).and_then(|stem| stem.parse::<u32>().ok());
            let Some(number) = stem.filter(|number| *number > self.number) else {
                continue;
            };
            self.number = number;
            let Some(bytes) = day.location.get(&of.path)? else {
                continue;
            };
            let source = vec![(temporary(&bytes)?, Path::new(&of.path))];
            match merge(source, &BTreeSet::new()) {
                Ok(has) => {
                    for name in has.batches {
                        self.since.entry(name.clone()).or_insert(of.modified_s);
                        self.batches.insert(name);
                    }
                }
                Err(error) => told(&of.path, &error.to_string()),
            }
        }
        Ok(())
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
        compact(location, "2027-01-01", grace, now_s, &mut |_, _| ()).unwrap()
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
        assert_eq!((late.batches, late.written, late.removed), (1, 1, 6));
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
        let merged = day.merge(&[&raw[0]], &BTreeSet::new()).unwrap();
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
        let mut named = Vec::new();
        let mut told = |path: &str, _: &str| named.push(path.to_owned());
        let done = compact(&fleet, "2027-01-01", GRACE, LATER, &mut told).unwrap();
        assert_eq!((done.batches, done.unreadable, done.removed), (1, 1, 1));
        assert_eq!(named, [bad.as_str()]);
        assert_eq!(fleet.list(RAW).unwrap().remove(0).path, bad);
    }

    #[test]
    fn a_day_is_due_when_it_is_over_everywhere() {
        assert_eq!(default_until(1_795_000_000), "2026-11-17");
    }
}
