//! Gathering the times, in bounded memory.

use super::search::{Period, SearchSettings, find};
use jitterscope_model::{Attribution, CpuId, CulpritKind, Name, Nanos, Placement, Stall, TickRate, Ticks};
use std::collections::BTreeMap;

/// Times kept of a group: the first ones, for a period only shows in a window without holes.
const MOST_TIMES: usize = 8192;
/// Groups; what comes after them is not searched.
const MOST_GROUPS: usize = 256;

/// Whose times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeriodGroup {
    /// The CPU that stalled.
    pub cpu: CpuId,
    /// The culprit; `None` for all stalls of the CPU.
    pub culprit: Option<(CulpritKind, Name)>,
}

/// What was found for one group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPeriods {
    /// Whose.
    pub group: PeriodGroup,
    /// The most significant first; never empty.
    pub periods: Vec<Period>,
}

#[derive(Debug, Default)]
struct Times {
    starts: Vec<Ticks>,
    full: bool,
}

impl Times {
    fn push(&mut self, start: Ticks) {
        if self.starts.len() < MOST_TIMES {
            self.starts.push(start);
        } else {
            self.full = true;
        }
    }
}

/// Takes in stalls, and says which periods they have.
#[derive(Debug, Default)]
pub struct PeriodSearch {
    groups: BTreeMap<PeriodGroup, Times>,
}

impl PeriodSearch {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> PeriodSearch {
        PeriodSearch::default()
    }

    /// One stall: a time of its CPU, and of every culprit that was seen in it.
    pub fn add(&mut self, stall: &Stall, attribution: Option<&Attribution>) {
        self.push(PeriodGroup { cpu: stall.cpu, culprit: None }, stall.start);
        let mut seen: Vec<(CulpritKind, Name)> = Vec::new();
        for part in attribution.into_iter().flat_map(|attribution| &attribution.parts) {
            let culprit = (part.culprit.kind, part.culprit.name.clone());
            // The cost of a switch goes with whoever was switched to; loss is nobody; what is unresolved
            // between a culprit's events is in step with that culprit.
            let nobody = match culprit.0 {
                CulpritKind::Switch | CulpritKind::Loss => true,
                CulpritKind::Unresolved => part.placement != Placement::Whole,
                _ => false,
            };
            if !nobody && !seen.contains(&culprit) {
                seen.push(culprit);
            }
        }
        for culprit in seen {
            self.push(PeriodGroup { cpu: stall.cpu, culprit: Some(culprit) }, stall.start);
        }
    }

    fn push(&mut self, group: PeriodGroup, start: Ticks) {
        if let Some(times) = self.groups.get_mut(&group) {
            times.push(start);
        } else if self.groups.len() < MOST_GROUPS {
            self.groups.entry(group).or_default().push(start);
        }
    }

    /// The periods of a measurement from `start` to `end`. A CPU's stalls as a whole are searched only
    /// where none of them is attributed; groups without a period are left out.
    #[must_use]
    pub fn finish(self, start: Ticks, end: Ticks, rate: TickRate, false_alarm: f64) -> Vec<GroupPeriods> {
        let attributed = |cpu| self.groups.keys().any(|group| group.cpu == cpu && group.culprit.is_some());
        let searched: Vec<(&PeriodGroup, &Times)> = self
            .groups
            .iter()
            .filter(|(group, _)| group.culprit.is_some() || !attributed(group.cpu))
            .collect();
        let settings = SearchSettings { false_alarm, searches: searched.len(), ..SearchSettings::default() };
        let mut found = Vec::new();
        for (group, times) in &searched {
            let mut offsets: Vec<Nanos> =
                times.starts.iter().map(|time| rate.nanos(time.since(start))).collect();
            offsets.sort_unstable();
            // Where not all were kept, the window ends with the last one kept.
            let span = match offsets.last() {
                Some(last) if times.full => *last,
                _ => rate.nanos(end.since(start)),
            };
            let periods = find(&offsets, span, settings);
            if !periods.is_empty() {
                found.push(GroupPeriods { group: (*group).clone(), periods });
            }
        }
        found
    }
}
