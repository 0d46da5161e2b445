//! Gathers the times of stalls, in bounded memory.

use super::of_kind::of_kind;
use super::search::{FEWEST, Period, SearchSettings, find};
use super::spectrum::bins;
use jitterscope_model::{
    Attribution, CpuId, Culprit, CulpritKind, KeyedMap, MetCulprits, Name, Nanos, Part, Placement,
    PutInOrder, Stall, Subject, TickRate, Ticks, Verdict,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The memory and time for a search. Groups with more stolen time are searched first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The number of times kept of a group: the first ones, because a period only shows in a window without holes.
    pub times: usize,
    /// The number of groups; later ones are not searched.
    pub groups: usize,
    /// The cost of all searches together, in times examined; one costs about 40 us for each found period, plus once.
    pub cost: u64,
}

impl Effort {
    /// About half a second and 20 MiB for a run of any length: for reports whose user did not ask for periods.
    pub const BRIEF: Effort = Effort {
        times: 512,
        groups: 1024,
        cost: 10_000,
    };
    /// At most about ten seconds and 80 MiB.
    pub const THOROUGH: Effort = Effort {
        times: 8192,
        groups: 1024,
        cost: 300_000,
    };
    /// All times of the first few groups: for a measurement of a few CPUs that is still in memory.
    pub const FULL: Effort = Effort {
        times: 8192,
        groups: 256,
        cost: u64::MAX,
    };
}

/// The number of spectrum bins that cost as much as one time.
const BINS_A_TIME: u64 = 650;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeriodGroup {
    /// The stalled CPU.
    pub cpu: CpuId,
    /// The culprit; `None` for all stalls of the CPU.
    pub culprit: Option<(CulpritKind, Name)>,
}

/// Whether the search ignores a part. The cost of a switch is in step with the next thread; loss has no culprit;
/// unresolved time between a culprit's events is in step with that culprit.
fn is_nobody(part: &Part) -> bool {
    let subject = &part.culprit.subject;
    match subject.kind() {
        CulpritKind::Switch | CulpritKind::Loss => true,
        // The probe's bookkeeping follows a stall, so it has no period of its own.
        CulpritKind::Unresolved => {
            part.placement != Placement::Whole
                || subject.as_verdict() == Some(Verdict::OwnBookkeeping)
        }
        _ => false,
    }
}

/// The periods of one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPeriods {
    pub group: PeriodGroup,
    /// The most significant first; never empty.
    pub periods: Vec<Period>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The number of searched groups.
    pub searched: usize,
    /// The number of groups, at least, that had enough times but were not searched: the effort was used up.
    pub left_out: usize,
    /// Groups with a period, in order.
    pub groups: Vec<GroupPeriods>,
}

#[derive(Debug, Default)]
struct Times {
    starts: Vec<Ticks>,
    full: bool,
    /// The stolen time, which determines the order of the search.
    weight: u64,
}

impl Times {
    fn push(&mut self, start: Ticks, weight: u64, most: usize) {
        self.weight = self.weight.saturating_add(weight);
        if self.starts.len() < most {
            self.starts.push(start);
        } else {
            self.full = true;
        }
    }
}

/// The number of a culprit; `None` for all stalls of a CPU.
type Whose = Option<u32>;

/// Collects stalls and finds their periods.
#[derive(Debug)]
pub struct PeriodSearch {
    effort: Effort,
    groups: FxHashMap<(CpuId, Whose), Times>,
    /// The numbers of the culprits with a group; there are at most as many as groups.
    culprits: KeyedMap<(CulpritKind, Name), u32>,
    /// The numbers of culprits by their shared pointer.
    met: MetCulprits<u32>,
    /// The culprits of the current stall, with their stolen time.
    seen: Vec<(u32, u64)>,
    refused: bool,
}

impl PeriodSearch {
    #[must_use]
    pub fn new(effort: Effort) -> PeriodSearch {
        PeriodSearch {
            effort,
            groups: FxHashMap::default(),
            culprits: KeyedMap::default(),
            met: MetCulprits::default(),
            seen: Vec::new(),
            refused: false,
        }
    }

    /// Adds a stall: its time counts for its CPU and for each of its culprits.
    pub fn add(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        self.push((stall.cpu, None), stall.start, stall.length().0);
        let mut seen = std::mem::take(&mut self.seen);
        for part in attribution
            .into_iter()
            .flat_map(|attribution| &attribution.parts)
        {
            if is_nobody(part) {
                continue;
            }
            let Some(culprit) = self.shared_culprit(&part.culprit) else {
                self.refused = true;
                continue;
            };
            match seen.iter_mut().find(|(known, _)| *known == culprit) {
                Some((_, net)) => *net = net.saturating_add(part.net.0),
                None => seen.push((culprit, part.net.0)),
            }
        }
        for (culprit, net) in seen.drain(..) {
            self.push((stall.cpu, Some(culprit)), stall.start, net);
        }
        self.seen = seen;
    }

    /// The number of a shared culprit. A known pointer saves the look-up by name.
    fn shared_culprit(&mut self, culprit: &Arc<Culprit>) -> Option<u32> {
        if let Some(known) = self.met.get(culprit) {
            return Some(*known);
        }
        let number = self.culprit(&culprit.subject)?;
        Some(*self.met.of(culprit, |_| number))
    }

    /// The number of a subject's culprit; `None` if it is new and no room is left.
    fn culprit(&mut self, subject: &Subject) -> Option<u32> {
        // By the name in tables: a period belongs to a program, not to one of its threads.
        let culprit = (subject.kind(), Name::from(subject.of_process().name()));
        if let Some(known) = self.culprits.get(&culprit) {
            return Some(*known);
        }
        if self.groups.len().max(self.culprits.len()) >= self.effort.groups {
            return None;
        }
        let number = self.culprits.len() as u32;
        self.culprits.insert(culprit, number);
        Some(number)
    }

    fn push(&mut self, group: (CpuId, Whose), start: Ticks, weight: u64) {
        if let Some(times) = self.groups.get_mut(&group) {
            times.push(start, weight, self.effort.times);
        } else if self.groups.len() < self.effort.groups {
            self.groups
                .entry(group)
                .or_default()
                .push(start, weight, self.effort.times);
        } else {
            self.refused = true;
        }
    }

    /// The periods of a measurement from `start` to `end`. A CPU's stalls as a whole are searched only if none of them
    /// is attributed; groups without a period are left out.
    #[must_use]
    pub fn finish(self, start: Ticks, end: Ticks, rate: TickRate, false_alarm: f64) -> Found {
        let culprits: FxHashMap<u32, (CulpritKind, Name)> = self
            .culprits
            .into_iter()
            .map(|(culprit, number)| (number, culprit))
            .collect();
        let culprit = |number: u32| culprits[&number].clone();
        let of = |(cpu, whose): (CpuId, Whose)| PeriodGroup {
            cpu,
            culprit: whose.map(culprit),
        };
        // Sorted: of groups with equal stolen time the first ones are searched.
        let groups: BTreeMap<PeriodGroup, Times> = self
            .groups
            .into_iter()
            .map(|(group, times)| (of(group), times))
            .collect();
        let attributed = |cpu| {
            groups
                .keys()
                .any(|group| group.cpu == cpu && group.culprit.is_some())
        };
        let mut worth: Vec<(&PeriodGroup, &Times)> = groups
            .iter()
            .filter(|(group, _)| group.culprit.is_some() || !attributed(group.cpu))
            .filter(|(_, times)| times.starts.len() >= FEWEST)
            .collect();
        worth.order_by_key(|(_, times)| Reverse(times.weight));
        let window = |times: &Times| {
            // If not all times were kept, the window ends with the last one kept.
            let last = times.starts.iter().max().copied().filter(|_| times.full);
            rate.nanos(last.unwrap_or(end).since(start))
        };
        let all = worth.len();
        let mut left = self.effort.cost;
        worth.retain(|(_, times)| {
            let cost =
                times.starts.len() as u64 + bins(window(times).as_secs_f64()) as u64 / BINS_A_TIME;
            let affordable = cost <= left;
            left -= if affordable { cost } else { 0 };
            affordable
        });
        worth.order_by_key(|(group, _)| *group);
        let settings = SearchSettings {
            false_alarm,
            searches: worth.len(),
            ..SearchSettings::default()
        };
        let mut found = Vec::new();
        for (group, times) in &worth {
            let mut offsets: Vec<Nanos> = times
                .starts
                .iter()
                .map(|time| rate.nanos(time.since(start)))
                .collect();
            offsets.sort_unstable();
            let mut periods = find(&offsets, window(times), settings);
            if !group
                .culprit
                .as_ref()
                .is_none_or(|(kind, _)| of_kind(*kind).of_kernel)
            {
                periods.iter_mut().for_each(|period| period.known = None);
            }
            if !periods.is_empty() {
                found.push(GroupPeriods {
                    group: (*group).clone(),
                    periods,
                });
            }
        }
        let left_out = all - worth.len() + usize::from(self.refused);
        Found {
            searched: worth.len(),
            left_out,
            groups: found,
        }
    }
}
