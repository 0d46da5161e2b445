//! The sums of one hour while it goes on: for each group of CPUs its culprits, its histograms and its longest stalls.

use jitterscope_model::{
    Attribution, CpuId, CpuSet, Culprit, MetCulprits, NamedGroup, Nanos, Part, PutInOrder,
    exponential_bucket,
};
use jitterscope_store::rollup::{
    GroupHour, OTHERS, RollupBucket, RollupCulprit, RollupPart, RollupStall, STALLS_KEY,
    key_of_kind, kind_of_key,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many culprits a group names, the largest; the others of a kind share one row.
pub(super) const MOST_CULPRITS: usize = 64;
/// How many names of a group are counted apart until the hour is written: bounds the memory, however often threads
/// rename themselves.
pub(super) const MOST_COUNTED: usize = 4096;
/// How many stalls a group shows in full, the longest.
const MOST_STALLS: usize = 8;
/// How many parts of such a stall, the longest.
const MOST_PARTS: usize = 32;

/// A culprit's key: kind, name and owner.
type Key = (String, String, Option<String>);

/// The sums of a group of CPUs.
#[derive(Debug, Default)]
pub(super) struct HourOfGroup {
    /// Its counts; its lists are empty.
    counts: GroupHour,
    culprits: Vec<RollupCulprit>,
    index: BTreeMap<Key, usize>,
    /// The row of a shared culprit.
    met: MetCulprits<usize>,
    /// By kind of culprit, or [`STALLS_KEY`], and bucket.
    buckets: BTreeMap<String, BTreeMap<i32, u64>>,
    /// The longest first.
    longest: Vec<RollupStall>,
}

impl HourOfGroup {
    pub(super) fn new(cpus: CpuSet) -> HourOfGroup {
        HourOfGroup {
            counts: GroupHour {
                cpus,
                ..GroupHour::default()
            },
            ..HourOfGroup::default()
        }
    }

    /// Continues an hour that was stored.
    pub(super) fn of(mut stored: GroupHour) -> HourOfGroup {
        let culprits = std::mem::take(&mut stored.culprits);
        let mut hour = HourOfGroup {
            longest: std::mem::take(&mut stored.longest),
            ..HourOfGroup::default()
        };
        for of in std::mem::take(&mut stored.buckets) {
            let key = kind_of_key(&of.key).unwrap_or(&of.key);
            let buckets = hour.buckets.entry(key.to_owned()).or_default();
            *buckets.entry(of.bucket).or_default() += of.count;
        }
        for of in culprits {
            let at = hour.row((of.kind.clone(), of.name.clone(), of.owner.clone()));
            add(&mut hour.culprits[at], of.count, of.time_ns, of.longest_ns);
        }
        hour.counts = stored;
        hour
    }

    pub(super) fn cpus(&self) -> &CpuSet {
        &self.counts.cpus
    }

    pub(super) fn measured(&mut self, time: Nanos) {
        let sum = &mut self.counts.measured_ns;
        *sum = sum.saturating_add(time.0);
    }

    pub(super) fn lost(&mut self, records: u64) {
        self.counts.lost = self.counts.lost.saturating_add(records);
    }

    /// Adds a stall that began at this time, nanoseconds since the epoch.
    pub(super) fn stall(
        &mut self,
        cpu: CpuId,
        start_ns: impl FnOnce() -> u64,
        length: Nanos,
        attribution: Option<&Attribution>,
    ) {
        let counts = &mut self.counts;
        counts.stalls += 1;
        counts.stalled_ns = counts.stalled_ns.saturating_add(length.0);
        counts.longest_ns = counts.longest_ns.max(length.0);
        count(&mut self.buckets, STALLS_KEY, length);
        let parts = attribution.map_or(&[][..], |of| &of.parts);
        for part in parts {
            self.part(&part.culprit, part.net);
        }
        let at = self.longest.partition_point(|of| of.length_ns >= length.0);
        if at < MOST_STALLS {
            self.longest.truncate(MOST_STALLS - 1);
            let stall = RollupStall {
                cpu: cpu.0,
                start_ns: start_ns(),
                length_ns: length.0,
                parts: longest_parts(parts),
            };
            self.longest.insert(at, stall);
        }
    }

    fn part(&mut self, culprit: &Arc<Culprit>, time: Nanos) {
        let at = match self.met.get(culprit) {
            Some(at) => *at,
            None => {
                let at = self.row(key(culprit));
                *self.met.of(culprit, |_| at)
            }
        };
        let row = &mut self.culprits[at];
        add(row, 1, time.0, time.0);
        count(&mut self.buckets, &row.kind, time);
    }

    /// The row of a culprit; that of the others of its kind if there are too many.
    fn row(&mut self, mut key: Key) -> usize {
        if let Some(at) = self.index.get(&key) {
            return *at;
        }
        if self.culprits.len() >= MOST_COUNTED {
            key = (key.0, OTHERS.to_owned(), None);
            if let Some(at) = self.index.get(&key) {
                return *at;
            }
        }
        let (kind, name, owner) = key.clone();
        self.culprits.push(RollupCulprit {
            kind,
            name,
            owner,
            ..RollupCulprit::default()
        });
        self.index.insert(key, self.culprits.len() - 1);
        self.culprits.len() - 1
    }

    /// The sums so far: the largest culprits, then the others by kind.
    pub(super) fn sums(&self) -> GroupHour {
        let mut culprits = self.culprits.clone();
        culprits.order_by_key(|of| (of.name == OTHERS, Reverse(of.time_ns)));
        let mut others: BTreeMap<String, RollupCulprit> = BTreeMap::new();
        let named = culprits.iter().take_while(|of| of.name != OTHERS).count();
        for of in culprits.split_off(named.min(MOST_CULPRITS)) {
            let row = others
                .entry(of.kind.clone())
                .or_insert_with(|| RollupCulprit {
                    kind: of.kind.clone(),
                    name: OTHERS.to_owned(),
                    ..RollupCulprit::default()
                });
            add(row, of.count, of.time_ns, of.longest_ns);
        }
        culprits.extend(others.into_values());
        let buckets = self.buckets.iter().flat_map(|(key, buckets)| {
            let key = match &**key {
                STALLS_KEY => STALLS_KEY.to_owned(),
                kind => key_of_kind(kind),
            };
            buckets.iter().map(move |(bucket, count)| RollupBucket {
                key: key.clone(),
                bucket: *bucket,
                count: *count,
            })
        });
        GroupHour {
            culprits,
            buckets: buckets.collect(),
            longest: self.longest.clone(),
            ..self.counts.clone()
        }
    }
}

fn key(culprit: &Culprit) -> Key {
    let subject = &culprit.subject;
    let kind = subject.kind_word().to_owned();
    (kind, subject.name().into_owned(), owner(culprit))
}

/// What a culprit belongs to, if known.
fn owner(culprit: &Culprit) -> Option<String> {
    let group = culprit.subject.task()?.group()?;
    NamedGroup::of(group).map(|group| group.to_string())
}

fn add(row: &mut RollupCulprit, count: u64, time_ns: u64, longest_ns: u64) {
    row.count = row.count.saturating_add(count);
    row.time_ns = row.time_ns.saturating_add(time_ns);
    row.longest_ns = row.longest_ns.max(longest_ns);
}

fn count(buckets: &mut BTreeMap<String, BTreeMap<i32, u64>>, key: &str, duration: Nanos) {
    let bucket = exponential_bucket(duration);
    let of = match buckets.get_mut(key) {
        Some(of) => of,
        None => buckets.entry(key.to_owned()).or_default(),
    };
    *of.entry(bucket).or_default() += 1;
}

fn longest_parts(parts: &[Part]) -> Vec<RollupPart> {
    let mut by_time: Vec<&Part> = parts.iter().collect();
    by_time.order_by_key(|part| Reverse(part.net));
    let kept = by_time.iter().take(MOST_PARTS).map(|part| {
        let (kind, name, owner) = key(&part.culprit);
        RollupPart {
            kind,
            name,
            owner,
            phase: part.phase.as_ref().map(|phase| phase.as_str().to_owned()),
            time_ns: part.net.0,
        }
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Evidence, Owner, StallId, Subject, Task};

    fn thread(comm: &str, cgroup: &str) -> Subject {
        Subject::Thread(Task {
            comm: comm.into(),
            owner: Some(Owner {
                cgroup: Some(cgroup.into()),
                ..Owner::default()
            }),
            ..Task::default()
        })
    }

    /// Adds a stall of one part for each of these.
    fn stall(hour: &mut HourOfGroup, parts: &[(Subject, u64)]) {
        let attribution = Attribution {
            stall: StallId(1),
            parts: parts
                .iter()
                .map(|(subject, net)| {
                    Part::inside(subject.clone(), Nanos(*net), Evidence::LostRecords)
                })
                .collect(),
        };
        let length = parts.iter().map(|(_, net)| net).sum();
        hour.stall(CpuId(2), || 77, Nanos(length), Some(&attribution));
    }

    #[test]
    fn an_hour_names_its_largest_culprits_and_adds_up_the_others() {
        let mut hour = HourOfGroup::new("2-3".parse().unwrap());
        for n in 0..1000 {
            stall(&mut hour, &[(thread(&format!("t{n}"), "/a"), 10)]);
        }
        // However late it comes.
        stall(
            &mut hour,
            &[(thread("t999", "/a"), 5), (Subject::Softirq(3), 2)],
        );
        hour.measured(Nanos(11));
        hour.lost(4);
        let sums = hour.sums();
        assert_eq!(sums.culprits.len(), MOST_CULPRITS + 2);
        assert_eq!(sums.culprits[0].name, "t999");
        assert_eq!(sums.culprits[0].owner.as_deref(), Some("cgroup:/a"));
        let (count, longest) = (sums.culprits[0].count, sums.culprits[0].longest_ns);
        assert_eq!((count, longest, sums.culprits[0].time_ns), (2, 10, 15));
        let all: u64 = sums.culprits.iter().map(|row| row.time_ns).sum();
        assert_eq!((all, sums.stalled_ns), (10_007, 10_007), "no time is lost");
        assert_eq!((sums.stalls, sums.measured_ns, sums.lost), (1001, 11, 4));
        // Of an hour that goes on after a restart, the small culprits stay together.
        assert_eq!(HourOfGroup::of(sums.clone()).sums(), sums);
    }

    #[test]
    fn the_same_name_in_another_unit_is_another_culprit() {
        let mut hour = HourOfGroup::default();
        for (cgroup, time) in [
            ("/system.slice/a.service", 3),
            ("/system.slice/b.service", 4),
        ] {
            stall(&mut hour, &[(thread("java", cgroup), time)]);
        }
        let owners: Vec<_> = hour
            .sums()
            .culprits
            .into_iter()
            .map(|of| of.owner)
            .collect();
        assert_eq!(
            owners,
            [Some("unit:b.service".into()), Some("unit:a.service".into())]
        );
    }

    #[test]
    fn names_beyond_the_bound_are_added_up_without_being_kept() {
        let mut hour = HourOfGroup::default();
        for n in 0..3 * MOST_COUNTED {
            stall(&mut hour, &[(thread(&format!("t{n}"), "/"), 1)]);
        }
        assert_eq!(hour.culprits.len(), MOST_COUNTED + 1);
        let sums = hour.sums();
        assert_eq!(sums.culprits.len(), MOST_CULPRITS + 1);
        let all: u64 = sums.culprits.iter().map(|row| row.time_ns).sum();
        assert_eq!(all, 3 * MOST_COUNTED as u64);
    }

    #[test]
    fn the_longest_stalls_are_kept_in_full_and_every_length_is_in_a_bucket() {
        let mut hour = HourOfGroup::default();
        for n in 1..=100 {
            stall(
                &mut hour,
                &[(Subject::Softirq(1), 1), (thread("t", "/"), n)],
            );
        }
        let sums = hour.sums();
        let lengths: Vec<u64> = sums.longest.iter().map(|of| of.length_ns).collect();
        assert_eq!(lengths, (94..=101).rev().collect::<Vec<_>>());
        assert_eq!(sums.longest[0].parts[0].name, "t");
        assert_eq!((sums.longest[0].cpu, sums.longest[0].start_ns), (2, 77));
        let of = |key: &str| -> u64 {
            let of_key = sums.buckets.iter().filter(|of| of.key == key);
            of_key.map(|of| of.count).sum()
        };
        assert_eq!(of(STALLS_KEY), 100);
        assert_eq!((of("part:softirq"), of("part:thread")), (100, 100));
    }
}
