//! Hourly sums of a watch: who took how much, for longer than the history lasts. They are also the spool from which
//! `jitterscope-fleet upload` sends an hour that is over.

use super::hour::HourOfGroup;
use super::rollup_host::Described;
use jitterscope_model::{CpuId, Nanos};
use jitterscope_model::{Delivery, PutInOrder, Row, RunFacts, RunManifest, Sink, SinkError};
use jitterscope_platform::HeldDir;
use jitterscope_store::rollup::{
    HOURS, HostHour, HourFile, OTHERS, RollupHost, hours_in, read_hour,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PARTIAL: &str = ".partial";
/// How many hours are kept: 31 days.
const MOST_HOURS: usize = 31 * 24;
/// How many culprits of an hour a status has: an answer must fit into the buffer of a socket.
const IN_STATUS: usize = 8;
/// How often the current hour is written.
const EVERY: Duration = Duration::from_secs(60);
/// Files of one hour and boot.
const MOST_FILES: u32 = 1000;

/// The sums of one hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HourSums {
    /// The hour, counted from the epoch.
    pub hour: u64,
    /// Stalls, and their time in nanoseconds.
    pub stalls: u64,
    pub stalled_ns: u64,
    /// The longest stall, nanoseconds; 0 without stalls.
    pub longest_ns: u64,
    /// The measured time, summed over CPUs, nanoseconds.
    pub measured_ns: u64,
    /// The largest culprits, whatever owns them.
    pub culprits: Vec<HourCulprit>,
}

/// The time that one culprit took in an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HourCulprit {
    pub kind: String,
    pub name: String,
    /// Nanoseconds.
    pub time_ns: u64,
}

/// Counts of a watch's hours that other threads see.
#[derive(Clone, Debug, Default)]
pub(super) struct HourCounts {
    /// Kernel records that the watch has lost.
    pub(super) lost: Arc<AtomicU64>,
    /// Hours that were removed before they were sent.
    pub(super) dropped: Arc<AtomicU64>,
}

/// The sums as an output of a recording.
pub(super) struct HourlySums {
    path: PathBuf,
    folder: Option<HeldDir>,
    facts: Option<RunFacts>,
    host: RollupHost,
    groups: Vec<HourOfGroup>,
    counts: HourCounts,
    /// Lost records that an hour has counted.
    lost: u64,
    /// The file of the current hour.
    file: HourFile,
    written: Instant,
    changed: bool,
}

impl HourlySums {
    /// Sums below the folder of a history.
    pub(super) fn new(history: &Path, machine: Described, counts: HourCounts) -> HourlySums {
        let groups = machine.groups.into_iter().map(HourOfGroup::new);
        HourlySums {
            path: history.join(HOURS),
            folder: None,
            facts: None,
            file: HourFile::new(0, &machine.host.boot),
            host: machine.host,
            groups: groups.collect(),
            counts,
            lost: 0,
            written: Instant::now(),
            changed: false,
        }
    }

    fn group(&mut self, cpu: CpuId) -> Option<&mut HourOfGroup> {
        let mut groups = self.groups.iter_mut();
        groups.find(|group| group.cpus().contains(cpu))
    }

    fn write(&mut self) -> Result<(), SinkError> {
        self.written = Instant::now();
        let lost = self.counts.lost.load(Ordering::Relaxed);
        let more = lost.saturating_sub(self.lost);
        if let Some(first) = self.groups.first_mut().filter(|_| more > 0) {
            first.lost(more);
            self.lost = lost;
            self.changed = true;
        }
        let Some(folder) = self.folder.as_ref().filter(|_| self.changed) else {
            return Ok(());
        };
        self.changed = false;
        let hour = HostHour {
            host: self.host.clone(),
            hour: self.file.hour,
            clock_ahead_s: None,
            groups: self.groups.iter().map(HourOfGroup::sums).collect(),
        };
        let text = serde_json::to_vec(&hour).map_err(SinkError::new)?;
        let _ = folder.remove_file(PARTIAL);
        let mut file = folder.create_new(PARTIAL).map_err(SinkError::new)?;
        // Without room on the disk, the next write has the same sums and more.
        if file.write_all(&text).is_ok() {
            folder
                .rename(PARTIAL, self.file.name())
                .map_err(SinkError::new)?;
        }
        Ok(())
    }

    /// Begins another hour, and removes the oldest.
    fn next_hour(&mut self, hour: u64) -> Result<(), SinkError> {
        self.write()?;
        self.file = HourFile::new(hour, &self.host.boot);
        for group in &mut self.groups {
            *group = HourOfGroup::new(group.cpus().clone());
        }
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        // A sent hour comes again after the clock was set back: its rows are in the store and stay as they are.
        while self.file.number < MOST_FILES && folder.has(self.file.clone().sent().name()) {
            self.file.number += 1;
        }
        let stored = read_hour(folder, &self.file).ok().flatten();
        for of in stored.into_iter().flat_map(|stored| stored.groups) {
            let group = self
                .groups
                .iter_mut()
                .find(|group| *group.cpus() == of.cpus);
            if let Some(group) = group {
                *group = HourOfGroup::of(of);
            }
        }
        let old = hours_in(folder).unwrap_or_default();
        for file in old.into_iter().rev().skip(MOST_HOURS) {
            if folder.remove_file(file.name()).is_ok() && !file.is_sent {
                self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

impl Sink for HourlySums {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.host.probe.clone_from(&facts.probe);
        self.facts = Some(facts.clone());
        self.lost = self.counts.lost.load(Ordering::Relaxed);
        self.folder = Some(HeldDir::trusted_or_made(&self.path).map_err(SinkError::new)?);
        self.next_hour(this_hour())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        let Some(facts) = self.facts.take() else {
            return Ok(());
        };
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => {
                    let length = facts.rate.nanos(stall.length());
                    let start_ns = || facts.epoch_ns(stall.start);
                    if let Some(group) = self.group(stall.cpu) {
                        group.stall(stall.cpu, start_ns, length, *attribution);
                    }
                }
                Row::Interval(row, _) => {
                    let measured = facts.rate.nanos(row.end.since(row.start));
                    if let Some(group) = self.group(row.cpu) {
                        group.measured(measured);
                    }
                }
                _ => continue,
            }
            self.changed = true;
        }
        self.facts = Some(facts);
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        let hour = this_hour();
        if hour != self.file.hour {
            self.next_hour(hour)?;
        } else if self.written.elapsed() >= EVERY {
            self.write()?;
        }
        Ok(0)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        self.write()?;
        Ok(Delivery::of(0))
    }
}

/// The newest hours of a history with their largest culprits, the newest last.
pub(super) fn newest(history: &Path, hours: usize) -> Vec<HourSums> {
    let Ok(folder) = HeldDir::open(&history.join(HOURS)) else {
        return Vec::new();
    };
    let mut found: BTreeMap<u64, HourSums> = BTreeMap::new();
    for file in hours_in(&folder).unwrap_or_default().iter().rev() {
        if found.len() == hours && !found.contains_key(&file.hour) {
            break;
        }
        if let Ok(Some(stored)) = read_hour(&folder, file) {
            found.entry(file.hour).or_default().add(stored);
        }
    }
    found.into_values().map(HourSums::shortened).collect()
}

impl HourSums {
    /// Adds the hour of a boot.
    fn add(&mut self, stored: HostHour) {
        self.hour = stored.hour;
        for group in stored.groups {
            self.stalls = self.stalls.saturating_add(group.stalls);
            self.stalled_ns = self.stalled_ns.saturating_add(group.stalled_ns);
            self.longest_ns = self.longest_ns.max(group.longest_ns);
            self.measured_ns = self.measured_ns.saturating_add(group.measured_ns);
            self.culprits
                .extend(group.culprits.into_iter().map(|of| HourCulprit {
                    kind: of.kind,
                    name: of.name,
                    time_ns: of.time_ns,
                }));
        }
    }

    /// With each culprit once, and the largest only.
    fn shortened(mut self) -> HourSums {
        let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
        for of in std::mem::take(&mut self.culprits) {
            *sums.entry((of.kind, of.name)).or_default() += of.time_ns;
        }
        let culprit = |((kind, name), time_ns)| HourCulprit {
            kind,
            name,
            time_ns,
        };
        self.culprits = sums.into_iter().map(culprit).collect();
        self.culprits
            .order_by_key(|of| (of.name == OTHERS, Reverse(Nanos(of.time_ns))));
        self.culprits.truncate(IN_STATUS);
        self
    }
}

fn this_hour() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 3600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{IntervalRow, Stall, StallId, ThreadRef, Ticks};

    fn watch(folder: &Path, counts: &HourCounts) -> HourlySums {
        let machine = Described {
            host: RollupHost {
                boot: "abcdef0123".into(),
                ..RollupHost::default()
            },
            groups: vec!["1".parse().unwrap(), "2-3".parse().unwrap()],
        };
        HourlySums::new(folder, machine, counts.clone())
    }

    fn stall(sums: &mut HourlySums, cpu: u32, length: u64) {
        let stall = Stall {
            id: StallId(1),
            cpu: CpuId(cpu),
            victim: ThreadRef {
                tid: 1,
                comm: jitterscope_model::Comm::new("x"),
            },
            start: Ticks(100),
            end: Ticks(100 + length),
        };
        let histogram = hdrhistogram::Histogram::new(3).unwrap();
        let row = IntervalRow {
            cpu: CpuId(cpu),
            start: Ticks(0),
            end: Ticks(1000),
            count: 1,
            max: Nanos(length),
            stolen: Nanos(length),
        };
        sums.rows(&[Row::Stall(&stall, None), Row::Interval(&row, &histogram)])
            .unwrap();
    }

    fn begin(sums: &mut HourlySums) {
        let facts = RunFacts {
            probe: "spin".into(),
            ..testing_facts()
        };
        sums.begin(&facts).unwrap();
    }

    fn testing_facts() -> RunFacts {
        RunFacts {
            id: String::new(),
            label: String::new(),
            hostname: String::new(),
            probe: String::new(),
            cpus: "1-3".parse().unwrap(),
            threshold: Nanos(1),
            interval: Nanos(1),
            rate: jitterscope_model::TickRate::NANOSECONDS,
            clock: jitterscope_model::ClockReading {
                ticks: Ticks(0),
                monotonic_raw_ns: 0,
                realtime_ns: 0,
                boottime_ns: None,
                width_ticks: 0,
            },
        }
    }

    #[test]
    fn an_hour_goes_on_after_a_restart_and_a_sent_hour_gets_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let counts = HourCounts::default();
        let one = |lost: u64| {
            let mut sums = watch(dir.path(), &counts);
            begin(&mut sums);
            stall(&mut sums, 1, 10);
            stall(&mut sums, 3, 30);
            counts.lost.fetch_add(lost, Ordering::Relaxed);
            sums.write().unwrap();
        };
        one(0);
        let folder = HeldDir::open(&dir.path().join(HOURS)).unwrap();
        let file = hours_in(&folder).unwrap().remove(0);
        let read = || read_hour(&folder, &file).unwrap().unwrap();
        let stored = read();
        assert_eq!(stored.host.probe, "spin");
        let of = |group: usize| {
            (
                stored.groups[group].stalls,
                stored.groups[group].measured_ns,
            )
        };
        assert_eq!((of(0), of(1)), ((1, 1000), (1, 1000)));
        one(5);
        let sums = newest(dir.path(), 24);
        assert_eq!(sums.len(), 1);
        assert_eq!((sums[0].stalls, sums[0].stalled_ns), (4, 80));
        assert_eq!((sums[0].longest_ns, sums[0].measured_ns), (30, 4000));
        let lost: u64 = read().groups.iter().map(|of| of.lost).sum();
        assert_eq!(lost, 5);
        // Once it is sent, more of the hour goes to another file: the clock was set back.
        folder
            .rename(file.name(), file.clone().sent().name())
            .unwrap();
        one(0);
        let names: Vec<String> = hours_in(&folder)
            .unwrap()
            .iter()
            .map(HourFile::name)
            .collect();
        assert_eq!(names.len(), 2);
        assert!(
            names.iter().any(|name| name.ends_with("-2.json")),
            "{names:?}"
        );
        // A status adds them up.
        let sums = newest(dir.path(), 24);
        assert_eq!((sums.len(), sums[0].stalls), (1, 6));
    }

    #[test]
    fn the_oldest_hours_make_room_and_those_not_sent_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let counts = HourCounts::default();
        let mut sums = watch(dir.path(), &counts);
        begin(&mut sums);
        let folder = HeldDir::open(&dir.path().join(HOURS)).unwrap();
        for hour in 0..MOST_HOURS as u64 + 3 {
            let mut file = HourFile::new(hour, "ab");
            file.is_sent = hour == 1;
            folder.create_new(file.name()).unwrap();
        }
        sums.next_hour(this_hour()).unwrap();
        assert_eq!(hours_in(&folder).unwrap().len(), MOST_HOURS);
        assert_eq!(counts.dropped.load(Ordering::Relaxed), 2);
        // A file that no watch wrote stays unread.
        assert!(newest(dir.path(), 24).is_empty());
    }
}
