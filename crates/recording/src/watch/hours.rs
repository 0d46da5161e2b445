//! Hourly sums of a watch: who took how much, for longer than the history lasts.

use jitterscope_model::{
    Attribution, Delivery, PutInOrder, Row, RunFacts, RunManifest, Sink, SinkError,
};
use jitterscope_platform::HeldDir;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The folder of the sums, in that of the history: one file per hour.
pub(super) const HOURS: &str = "hours";
const PARTIAL: &str = ".partial";
/// How many hours are kept: 31 days.
const MOST_HOURS: usize = 31 * 24;
/// How many culprits an hour names, the largest; the others of a kind share one row.
const MOST_CULPRITS: usize = 64;
/// How many names are counted apart until the hour is written: bounds the memory, however often threads rename
/// themselves.
const MOST_COUNTED: usize = 4096;
/// How many culprits of an hour a status has: an answer must fit into the buffer of a socket.
const IN_STATUS: usize = 8;
/// The name of the others' row.
const OTHERS: &str = "(others)";
/// How often the current hour is written.
const EVERY: Duration = Duration::from_secs(60);
/// The largest accepted file, bytes.
const LARGEST: u64 = 1 << 20;

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

/// Adds up the rows of the current hour.
#[derive(Debug, Default)]
struct Hour {
    stalls: u64,
    stalled_ns: u64,
    longest_ns: u64,
    measured_ns: u64,
    /// By kind and name; and how many names there are.
    culprits: BTreeMap<String, BTreeMap<String, u64>>,
    named: usize,
}

impl Hour {
    fn add(&mut self, length_ns: u64, attribution: Option<&Attribution>) {
        self.stalls += 1;
        self.stalled_ns = self.stalled_ns.saturating_add(length_ns);
        self.longest_ns = self.longest_ns.max(length_ns);
        for part in attribution.iter().flat_map(|of| &of.parts) {
            let subject = &part.culprit.subject;
            self.take(subject.kind_word(), &subject.name(), part.net.0);
        }
    }

    fn take(&mut self, kind: &str, name: &str, time_ns: u64) {
        // Names are copied only when they come for the first time.
        if let Some(sum) = self.culprits.get_mut(kind).and_then(|of| of.get_mut(name)) {
            *sum = sum.saturating_add(time_ns);
            return;
        }
        let is_full = self.named >= MOST_COUNTED || name == OTHERS;
        self.named += usize::from(!is_full);
        let name = if is_full { OTHERS } else { name };
        let names = self.culprits.entry(kind.to_owned()).or_default();
        let sum = names.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(time_ns);
    }

    fn sums(&self, hour: u64) -> HourSums {
        let named = |(kind, names): (&String, &BTreeMap<String, u64>)| {
            let kind = kind.clone();
            let rows = names.iter().map(move |(name, time_ns)| HourCulprit {
                kind: kind.clone(),
                name: name.clone(),
                time_ns: *time_ns,
            });
            rows.collect::<Vec<_>>()
        };
        let mut culprits: Vec<HourCulprit> = self.culprits.iter().flat_map(named).collect();
        // The rows of the others come after all names.
        culprits.order_by_key(|of| (of.name == OTHERS, std::cmp::Reverse(of.time_ns)));
        let mut others: BTreeMap<String, u64> = BTreeMap::new();
        for (at, of) in culprits.iter().enumerate() {
            if at >= MOST_CULPRITS || of.name == OTHERS {
                let sum = others.entry(of.kind.clone()).or_default();
                *sum = sum.saturating_add(of.time_ns);
            }
        }
        culprits.truncate(MOST_CULPRITS);
        culprits.retain(|of| of.name != OTHERS);
        culprits.extend(others.into_iter().map(|(kind, time_ns)| HourCulprit {
            kind,
            name: OTHERS.to_owned(),
            time_ns,
        }));
        HourSums {
            hour,
            stalls: self.stalls,
            stalled_ns: self.stalled_ns,
            longest_ns: self.longest_ns,
            measured_ns: self.measured_ns,
            culprits,
        }
    }

    fn of(sums: HourSums) -> Hour {
        let mut hour = Hour {
            stalls: sums.stalls,
            stalled_ns: sums.stalled_ns,
            longest_ns: sums.longest_ns,
            measured_ns: sums.measured_ns,
            ..Hour::default()
        };
        for of in sums.culprits {
            hour.take(&of.kind, &of.name, of.time_ns);
        }
        hour
    }
}

/// The sums as an output of a recording.
pub(super) struct HourlySums {
    path: PathBuf,
    folder: Option<HeldDir>,
    rate: Option<jitterscope_model::TickRate>,
    hour: u64,
    sums: Hour,
    written: Instant,
    changed: bool,
}

impl HourlySums {
    /// Sums below the folder of a history.
    pub(super) fn new(history: &std::path::Path) -> HourlySums {
        HourlySums {
            path: history.join(HOURS),
            folder: None,
            rate: None,
            hour: 0,
            sums: Hour::default(),
            written: Instant::now(),
            changed: false,
        }
    }

    fn write(&mut self) -> Result<(), SinkError> {
        self.written = Instant::now();
        let Some(folder) = self.folder.as_ref().filter(|_| self.changed) else {
            return Ok(());
        };
        self.changed = false;
        let text = serde_json::to_vec(&self.sums.sums(self.hour)).map_err(SinkError::new)?;
        let _ = folder.remove_file(PARTIAL);
        let mut file = folder.create_new(PARTIAL).map_err(SinkError::new)?;
        // Without room on the disk, the next write has the same sums and more.
        if file.write_all(&text).is_ok() {
            folder
                .rename(PARTIAL, file_of(self.hour))
                .map_err(SinkError::new)?;
        }
        Ok(())
    }

    /// Begins another hour, and removes the oldest.
    fn next_hour(&mut self, hour: u64) -> Result<(), SinkError> {
        self.write()?;
        self.hour = hour;
        self.sums = Hour::default();
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        if let Some(sums) = read_hour(folder, &file_of(hour)) {
            self.sums = Hour::of(sums);
        }
        for old in names(folder).into_iter().rev().skip(MOST_HOURS) {
            let _ = folder.remove_file(&old);
        }
        Ok(())
    }
}

impl Sink for HourlySums {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.rate = Some(facts.rate);
        self.folder = Some(HeldDir::trusted_or_made(&self.path).map_err(SinkError::new)?);
        self.next_hour(this_hour())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        let Some(rate) = self.rate else {
            return Ok(());
        };
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => {
                    self.sums.add(rate.nanos(stall.length()).0, *attribution);
                }
                Row::Interval(row, _) => {
                    let measured = rate.nanos(row.end.since(row.start)).0;
                    self.sums.measured_ns = self.sums.measured_ns.saturating_add(measured);
                }
                _ => continue,
            }
            self.changed = true;
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        let hour = this_hour();
        if hour != self.hour {
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
pub(super) fn newest(history: &std::path::Path, hours: usize) -> Vec<HourSums> {
    let Ok(folder) = HeldDir::open(&history.join(HOURS)) else {
        return Vec::new();
    };
    let mut found: Vec<HourSums> = names(&folder)
        .iter()
        .rev()
        .take(hours)
        .filter_map(|name| read_hour(&folder, name))
        .collect();
    for hour in &mut found {
        hour.culprits.truncate(IN_STATUS);
    }
    found.reverse();
    found
}

fn read_hour(folder: &HeldDir, name: &str) -> Option<HourSums> {
    serde_json::from_slice(&folder.read(name, LARGEST).ok()?).ok()
}

/// The files of hours, oldest first.
fn names(folder: &HeldDir) -> Vec<String> {
    let entries = folder.entries().unwrap_or_default();
    let mut names: Vec<String> = entries
        .into_iter()
        .filter_map(|entry| entry.name.into_string().ok())
        .filter(|name| !name.starts_with('.') && name.ends_with(".json"))
        .collect();
    names.put_in_order();
    names
}

fn file_of(hour: u64) -> String {
    format!("{hour:010}.json")
}

fn this_hour() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() / 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_names_its_largest_culprits_and_adds_up_the_others() {
        let mut hour = Hour::default();
        for n in 0..1000 {
            hour.take("thread", &format!("t{n}"), 10);
        }
        hour.take("irq", "small", 7);
        // However late it comes.
        hour.take("thread", "t999", 5);
        (hour.longest_ns, hour.measured_ns) = (9, 11);
        let sums = hour.sums(3);
        assert_eq!(sums.culprits.len(), MOST_CULPRITS + 2);
        assert_eq!(sums.culprits[0].name, "t999");
        let of = |kind: &str, name: &str| {
            let row = sums
                .culprits
                .iter()
                .find(|of| (of.kind.as_str(), of.name.as_str()) == (kind, name));
            row.map(|row| row.time_ns)
        };
        assert_eq!(of("thread", "t999"), Some(15));
        assert_eq!(of("irq", OTHERS), Some(7));
        let all: u64 = sums.culprits.iter().map(|row| row.time_ns).sum();
        assert_eq!(all, 10_012, "no time is lost");
        assert_eq!(Hour::of(sums.clone()).sums(3), sums);
    }

    #[test]
    fn names_beyond_the_bound_are_added_up_without_being_kept() {
        let mut hour = Hour::default();
        for n in 0..3 * MOST_COUNTED {
            hour.take("thread", &format!("t{n}"), 1);
        }
        assert_eq!(hour.culprits["thread"].len(), MOST_COUNTED + 1);
        let sums = hour.sums(3);
        assert_eq!(sums.culprits.len(), MOST_CULPRITS + 1);
        let all: u64 = sums.culprits.iter().map(|row| row.time_ns).sum();
        assert_eq!(all, 3 * MOST_COUNTED as u64);
    }
}
