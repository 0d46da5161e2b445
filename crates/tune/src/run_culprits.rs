//! A recording's measurements, in the form that the catalogue can answer.

use crate::answer::Effect;
use crate::knob::Knob;
use jitterscope_model::{
    Attribution, CpuSet, CulpritKey, CulpritSums, CulpritTotal, CulpritTotals,
    CulpritTotalsBuilder, EventGrain, KeyLevel, KeyedMap, Name, Nanos, PutInOrder, RunManifest,
    Subject,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One culprit over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredCulprit {
    /// The culprit: a program's threads with the same allowed CPUs are combined.
    #[serde(flatten)]
    pub subject: Subject,
    /// Its time, summed over all stalls.
    pub total_ns: Nanos,
    pub count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCulprits {
    /// The run, for display.
    pub run: String,
    /// Measured time, summed over the CPUs.
    pub measured_ns: Nanos,
    pub culprits: Vec<MeasuredCulprit>,
    /// Which culprits took part in the same stalls, as ascending indices into `culprits`, and in how many stalls: a
    /// stall of two culprits counts once for a knob that answers both.
    #[serde(skip)]
    pub together: Vec<(Vec<u32>, u64)>,
    /// The kernel events by which they were named.
    #[serde(skip)]
    pub grain: EventGrain,
    /// When the run began; `None` if it does not state that, or for runs of several boots.
    #[serde(skip)]
    pub began: Option<Beginning>,
}

/// When a run began, by the machine's own count. A process that lives in the same boot and is older had its process id
/// during the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// The kernel's id of the boot.
    pub boot_id: String,
    /// Time since the boot.
    pub since_boot: Nanos,
}

/// The possible gain of a knob, according to the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Win {
    /// The strongest effect on any of the culprits.
    pub effect: Effect,
    /// Time of the culprits that it answers: the maximum gain.
    pub total_ns: Nanos,
    /// The number of stalls with any of them, each counted once; with followed threads, of waits, messages and
    /// stretches. A lower bound if a run had too many different combinations to distinguish them.
    pub count: u64,
    /// Frequency per second of measured time, times 1000.
    pub per_second_milli: u64,
    /// The culprits, largest first: `kworker vmstat_update`.
    pub culprits: Vec<String>,
    /// Whether that is too little to be worth the change.
    pub negligible: bool,
}

impl MeasuredCulprit {
    /// Its kind and name: `kworker vmstat_update`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.subject.kind_word(), self.subject.name())
            .trim_end()
            .to_owned()
    }
}

/// Limit on distinguished culprits; the rest share a row per kind.
const MOST_CULPRITS: usize = 4096;

impl RunCulprits {
    /// What a run measured, by program. `attributions` are the run's rows, by which stalls are counted. With followed
    /// threads, time is not exclusive: each thread counts a culprit's time as its own loss.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn gather<E, R: Iterator<Item = Result<Attribution, E>>>(
        manifest: &RunManifest,
        attributions: impl FnOnce() -> Result<R, E>,
    ) -> Result<RunCulprits, E> {
        let mut totals = CulpritTotalsBuilder::default();
        for attribution in attributions()? {
            totals.add(&attribution?);
        }
        Ok(RunCulprits::of(manifest, totals.finish()))
    }

    /// The same from the known totals of a run's rows.
    #[must_use]
    pub fn of(manifest: &RunManifest, totals: CulpritTotals) -> RunCulprits {
        let mut sums: CulpritSums<Option<Name>, (Nanos, u64)> =
            CulpritSums::new(KeyLevel::Program, MOST_CULPRITS);
        let timed = manifest.threads.is_empty();
        let mut places = Vec::with_capacity(totals.culprits.len());
        for CulpritTotal {
            subject,
            total_ns,
            count,
        } in &totals.culprits
        {
            let place = sums.position(subject.allowed(), subject);
            let sum = sums.at(place);
            sum.0 += if timed { *total_ns } else { Nanos::ZERO };
            sum.1 = sum.1.saturating_add(*count);
            places.push(u32::try_from(place).unwrap_or(u32::MAX));
        }
        for ran in manifest
            .threads
            .iter()
            .flat_map(|thread| &thread.ran_instead)
        {
            sums.of(ran.subject.allowed(), &ran.subject).0 += ran.total_ns;
        }
        let culprits = sums.into_rows().into_iter().map(|row| MeasuredCulprit {
            subject: row.subject,
            total_ns: row.value.0,
            count: row.value.1,
        });
        RunCulprits {
            run: format!("{} ({})", manifest.id, manifest.label),
            measured_ns: manifest.measured_time(),
            culprits: culprits.collect(),
            together: moved(totals.together, &places),
            grain: manifest.probe.event_grain.clone(),
            began: manifest
                .host
                .boot_id
                .clone()
                .zip(manifest.clock_start.boottime_ns)
                .map(|(boot_id, at)| Beginning {
                    boot_id,
                    since_boot: Nanos(at),
                }),
        }
    }

    /// Combines two runs: adds up each culprit's time and stalls.
    #[must_use]
    pub fn and(mut self, other: RunCulprits) -> RunCulprits {
        let key = |of: &MeasuredCulprit| {
            let key = CulpritKey::of(&of.subject, KeyLevel::Program);
            (of.subject.allowed(), key)
        };
        let mut known: KeyedMap<(Option<Name>, CulpritKey), u32> =
            self.culprits.iter().map(key).zip(0u32..).collect();
        let mut places = Vec::with_capacity(other.culprits.len());
        for culprit in other.culprits {
            let next = u32::try_from(self.culprits.len()).unwrap_or(u32::MAX);
            let here = *known.entry(key(&culprit)).or_insert(next);
            match self.culprits.get_mut(here as usize) {
                Some(same) => {
                    same.total_ns += culprit.total_ns;
                    same.count = same.count.saturating_add(culprit.count);
                }
                None => self.culprits.push(culprit),
            }
            places.push(here);
        }
        let mut sets: HashMap<Vec<u32>, u64> = self.together.into_iter().collect();
        for (set, stalls) in moved(other.together, &places) {
            let sum: &mut u64 = sets.entry(set).or_default();
            *sum = sum.saturating_add(stalls);
        }
        self.together = sets.into_iter().collect();
        self.together.put_in_order();
        self.measured_ns += other.measured_ns;
        self.began = self.began.zip(other.began).and_then(|(one, other)| {
            let same = one.boot_id == other.boot_id;
            same.then(|| std::cmp::min_by_key(one, other, |began| began.since_boot))
        });
        if self.grain == EventGrain::All {
            self.grain = other.grain;
        }
        self.run = format!("{}, {}", self.run, other.run);
        self
    }

    /// Number of stalls with any of these culprits, by index, each counted once.
    fn stalls_of(&self, places: &[u32]) -> u64 {
        let mut answered = vec![false; self.culprits.len()];
        for place in places {
            if let Some(answered) = answered.get_mut(*place as usize) {
                *answered = true;
            }
        }
        let any = |set: &[u32]| {
            set.iter()
                .any(|place| answered.get(*place as usize) == Some(&true))
        };
        let together = self.together.iter().filter(|(set, _)| any(set));
        let together = together.fold(0u64, |sum, (_, stalls)| sum.saturating_add(*stalls));
        // Without rows, only the number of stalls of each culprit is known.
        let each = places
            .iter()
            .filter_map(|place| self.culprits.get(*place as usize))
            .map(|c| c.count);
        together.max(each.max().unwrap_or(0))
    }

    /// The effect of a knob on one of them. Without function events, a timer interrupt may be the tick or any other
    /// timer.
    fn effect(&self, knob: &Knob, of: &Subject, cpus: &CpuSet) -> Option<Effect> {
        let unnamed =
            matches!(of, Subject::Timer { function: None, .. }) && self.grain != EventGrain::All;
        let effect = knob.answers(of, cpus)?;
        Some(if unnamed { Effect::Perhaps } else { effect })
    }

    /// The possible gain of `knob` on the CPUs to isolate; `None` if it answers nothing that was measured.
    #[must_use]
    pub fn win(&self, knob: &Knob, cpus: &CpuSet) -> Option<Win> {
        self.win_of(knob, cpus, |_| true)
    }

    /// The gain for some of the culprits.
    pub(crate) fn win_of(
        &self,
        knob: &Knob,
        cpus: &CpuSet,
        counts: impl Fn(&MeasuredCulprit) -> bool,
    ) -> Option<Win> {
        let mut answered: Vec<(&MeasuredCulprit, Effect, u32)> = (self.culprits.iter().zip(0u32..))
            .filter(|(culprit, _)| counts(culprit))
            .filter_map(|(c, place)| Some((c, self.effect(knob, &c.subject, cpus)?, place)))
            .collect();
        let effect = answered.iter().map(|(_, e, _)| *e).min()?;
        // A knob that certainly removes one culprit gets no credit for another that it only may cause.
        if effect != Effect::Perhaps {
            answered.retain(|(_, e, _)| *e != Effect::Perhaps);
        }
        answered.order_by_key(|(c, ..)| std::cmp::Reverse(c.total_ns));
        let total_ns: Nanos = answered.iter().map(|(c, ..)| c.total_ns).sum();
        let places: Vec<u32> = answered.iter().map(|(.., place)| *place).collect();
        let count = self.stalls_of(&places);
        let per_second_milli = match self.measured_ns.0 {
            0 => 0,
            ns => u64::try_from(u128::from(count) * 1_000_000_000_000 / u128::from(ns))
                .unwrap_or(u64::MAX),
        };
        let mut culprits: Vec<String> = Vec::new();
        for (c, ..) in &answered {
            let name = c.label();
            if !culprits.contains(&name) {
                culprits.push(name);
            }
        }
        Some(Win {
            effect,
            total_ns,
            count,
            per_second_milli,
            culprits,
            negligible: self.is_negligible(total_ns, knob.how()),
        })
    }
}

/// Maps sets of culprits to new indices; `places` has one for each old index.
fn moved(together: Vec<(Vec<u32>, u64)>, places: &[u32]) -> Vec<(Vec<u32>, u64)> {
    let moved = |(set, stalls): (Vec<u32>, u64)| {
        let mut set: Vec<u32> = set
            .iter()
            .filter_map(|place| places.get(*place as usize).copied())
            .collect();
        set.sort_unstable();
        (set, stalls)
    };
    together.into_iter().map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use jitterscope_model::{StallSets, TimerSource, Verdict, Work};

    fn culprit(subject: Subject, ns: u64, count: u64) -> MeasuredCulprit {
        MeasuredCulprit {
            subject,
            total_ns: Nanos(ns),
            count,
        }
    }

    #[test]
    fn a_coarse_timer_interrupt_is_perhaps_the_tick() {
        let interrupt = Subject::Timer {
            function: None,
            source: Some(TimerSource::Interrupt),
        };
        let effect = |grain| {
            let culprits = vec![culprit(interrupt.clone(), 900_000, 2500)];
            let measured = RunCulprits {
                culprits,
                grain,
                ..RunCulprits::default()
            };
            measured
                .win(catalogue::find("nohz-full").unwrap(), &CpuSet::new())
                .unwrap()
                .effect
        };
        assert_eq!(effect(EventGrain::All), Effect::Removes);
        assert_eq!(effect(EventGrain::Coarse), Effect::Perhaps);
    }

    #[test]
    fn a_win_is_the_sum_of_what_the_knob_answers() {
        let work = Work {
            function: Some("vmstat_update".into()),
            ..Work::default()
        };
        let tick = Subject::Timer {
            function: Some("tick_nohz_handler".into()),
            source: None,
        };
        let measured = RunCulprits {
            run: "r".into(),
            measured_ns: Nanos(10_000_000_000),
            culprits: vec![
                culprit(Subject::Work(work), 50_000, 10),
                culprit(tick, 900_000, 2500),
                culprit(Subject::verdict(Verdict::OutsideThisKernel), 7_000_000, 100),
                culprit(Subject::verdict(Verdict::TraceDataLost), 1, 1),
            ],
            ..RunCulprits::default()
        };
        let win = measured
            .win(catalogue::find("vmstat").unwrap(), &CpuSet::new())
            .unwrap();
        assert_eq!(
            (win.total_ns, win.count, win.per_second_milli),
            (Nanos(50_000), 10, 1000)
        );
        assert_eq!(win.effect, Effect::Removes);
        assert_eq!(win.culprits, ["kworker vmstat_update"]);
        assert!(
            measured
                .win(catalogue::find("ksm").unwrap(), &CpuSet::new())
                .is_none()
        );
        // Inferred by exclusion, which is no proof, so it is marked.
        assert_eq!(
            measured
                .win(catalogue::find("governor").unwrap(), &CpuSet::new())
                .unwrap()
                .effect,
            Effect::Perhaps
        );
    }

    #[test]
    fn a_stall_counts_once_for_the_knob_that_answers_its_culprits() {
        let knob = catalogue::all()
            .find(|knob| {
                ["a", "b"]
                    .iter()
                    .all(|name| knob.answers(&thread(name), &CpuSet::new()).is_some())
            })
            .unwrap();
        // Three stalls: one with both, in several parts; one with each.
        let mut measured = RunCulprits {
            measured_ns: Nanos(1_000_000_000),
            culprits: vec![culprit(thread("a"), 900, 2), culprit(thread("b"), 800, 2)],
            ..RunCulprits::default()
        };
        let mut sets = StallSets::default();
        for mut stall in [vec![0, 1, 0, 1, 1], vec![0], vec![1]] {
            sets.add(&mut stall);
        }
        measured.together = sets.into_rows();
        assert_eq!(
            measured.win(knob, &CpuSet::new()).map(|win| win.count),
            Some(3)
        );
        // If only the separate counts are known, the count is a lower bound.
        measured.together.clear();
        assert_eq!(
            measured.win(knob, &CpuSet::new()).map(|win| win.count),
            Some(2)
        );
    }

    #[test]
    fn two_runs_add_up_wherever_a_culprit_stands_in_each() {
        let of = |run: &str, names: &[&str], together: &[(&[u32], u64)]| RunCulprits {
            run: run.into(),
            measured_ns: Nanos(1_000),
            culprits: names
                .iter()
                .map(|name| culprit(thread(name), 100, 1))
                .collect(),
            together: together
                .iter()
                .map(|(set, stalls)| (set.to_vec(), *stalls))
                .collect(),
            grain: EventGrain::All,
            began: None,
        };
        let both = of("x", &["a", "b"], &[(&[0, 1], 1)]).and(of(
            "y",
            &["c", "b", "a"],
            &[(&[0], 1), (&[1, 2], 2)],
        ));
        assert_eq!(
            (both.run.as_str(), both.measured_ns),
            ("x, y", Nanos(2_000))
        );
        let names: Vec<_> = both
            .culprits
            .iter()
            .map(|c| (c.subject.name(), c.total_ns.0, c.count))
            .collect();
        assert_eq!(
            names,
            [
                ("a".into(), 200, 2),
                ("b".into(), 200, 2),
                ("c".into(), 100, 1)
            ]
        );
        assert_eq!(both.together, [(vec![0, 1], 3), (vec![2], 1)]);
        assert_eq!((both.stalls_of(&[0, 2]), both.stalls_of(&[1])), (4, 3));
    }

    #[test]
    fn a_sure_knob_is_not_credited_with_uncertain_culprits() {
        let governor = catalogue::find("governor").unwrap();
        let win = |culprits: &[MeasuredCulprit]| {
            let measured = RunCulprits {
                culprits: culprits.to_vec(),
                ..RunCulprits::default()
            };
            measured
                .win(governor, &CpuSet::new())
                .map(|win| (win.effect, win.total_ns, win.culprits.len()))
        };
        let sure = culprit(thread("sugov:1"), 3, 1);
        let perhaps = culprit(Subject::verdict(Verdict::OutsideThisKernel), 5, 1);
        assert_eq!(
            win(std::slice::from_ref(&sure)),
            Some((Effect::Removes, Nanos(3), 1))
        );
        assert_eq!(
            win(std::slice::from_ref(&perhaps)),
            Some((Effect::Perhaps, Nanos(5), 1))
        );
        assert_eq!(win(&[perhaps, sure]), Some((Effect::Removes, Nanos(3), 1)));
        assert_eq!(win(&[]), None);
    }

    #[test]
    fn culprits_of_one_name_are_named_once_and_the_largest_first() {
        let knob = catalogue::all()
            .find(|knob| knob.answers(&thread("a"), &CpuSet::new()).is_some())
            .unwrap();
        let culprits = [("a", 1), ("b", 3), ("a", 2)]
            .map(|(name, ns)| culprit(thread(name), ns, 1))
            .into();
        let win = RunCulprits {
            culprits,
            ..RunCulprits::default()
        }
        .win(knob, &CpuSet::new())
        .unwrap();
        assert_eq!(
            (win.culprits, win.per_second_milli),
            (vec!["thread b".into(), "thread a".into()], 0)
        );
        // A culprit without a name is labelled by its kind alone.
        assert_eq!(culprit(thread(""), 1, 1).label(), "thread");
    }

    fn thread(name: &str) -> Subject {
        Subject::Thread(jitterscope_model::Task {
            comm: name.into(),
            ..jitterscope_model::Task::default()
        })
    }
}
