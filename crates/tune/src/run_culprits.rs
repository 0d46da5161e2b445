//! What a recording measured, as far as the catalogue can answer it.

use crate::answer::Effect;
use crate::catalogue;
use crate::knob::Knob;
use jitterscope_model::{
    Attribution, CulpritKey, CulpritSums, CulpritTotal, CulpritTotals, CulpritTotalsBuilder,
    EventGrain, KeyLevel, KeyedMap, Nanos, RunManifest, Subject,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One culprit of a run, over the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredCulprit {
    /// What: a program's threads together.
    #[serde(flatten)]
    pub subject: Subject,
    /// Time that it took, summed over all stalls.
    pub total_ns: Nanos,
    /// In how many stalls.
    pub count: u64,
}

/// What a run measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCulprits {
    /// The run, for display.
    pub run: String,
    /// Measured time, summed over the CPUs.
    pub measured_ns: Nanos,
    /// Its culprits.
    pub culprits: Vec<MeasuredCulprit>,
    /// Which culprits took part in the same stalls, by their places in `culprits` in ascending order, and in how many
    /// stalls: a stall of two counts once for a knob that answers both.
    #[serde(skip)]
    pub together: Vec<(Vec<u32>, u64)>,
    /// Which kernel events they were named by.
    #[serde(skip)]
    pub grain: EventGrain,
}

/// What a knob could win back of what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Win {
    /// The strongest effect on any of the culprits.
    pub effect: Effect,
    /// Time of the culprits that it answers: the most it can win back.
    pub total_ns: Nanos,
    /// The stalls in which any of them took part, each once: waits, messages and stretches where threads were
    /// followed. At least, where those of a run were too many different to be told apart.
    pub count: u64,
    /// How often in a second of measured time, times 1000.
    pub per_second_milli: u64,
    /// The culprits, largest first: `kworker vmstat_update`.
    pub culprits: Vec<String>,
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

/// Culprits told apart; the rest share a row a kind.
const MOST_CULPRITS: usize = 4096;

impl RunCulprits {
    /// What a run measured, by program. `attributions` are the run's rows, and stalls are counted by them. Of
    /// threads that were followed the time is not: messages that queue up behind one stall share its time, so that
    /// what ran instead of them is counted once a thread, as what each of them lost.
    ///
    /// # Errors
    /// Those of the rows.
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

    /// The same where the totals of a run's rows are known.
    #[must_use]
    pub fn of(manifest: &RunManifest, totals: CulpritTotals) -> RunCulprits {
        let mut sums: CulpritSums<(), (Nanos, u64)> =
            CulpritSums::new(KeyLevel::Program, MOST_CULPRITS);
        let timed = manifest.threads.is_empty();
        let mut places = Vec::with_capacity(totals.culprits.len());
        for CulpritTotal {
            subject,
            total_ns,
            count,
        } in &totals.culprits
        {
            let place = sums.position((), subject);
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
            sums.of((), &ran.subject).0 += ran.total_ns;
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
        }
    }

    /// What both runs measured: each culprit's time and stalls added up.
    #[must_use]
    pub fn and(mut self, other: RunCulprits) -> RunCulprits {
        let key = |of: &MeasuredCulprit| CulpritKey::of(&of.subject, KeyLevel::Program);
        let mut known: KeyedMap<CulpritKey, u32> =
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
        self.together.sort_unstable();
        self.measured_ns += other.measured_ns;
        if self.grain == EventGrain::All {
            self.grain = other.grain;
        }
        self.run = format!("{}, {}", self.run, other.run);
        self
    }

    /// Stalls in which any of these took part, by their places: each once.
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
        // Evidence that was not gathered from rows knows no more than how many each has.
        let each = places
            .iter()
            .filter_map(|place| self.culprits.get(*place as usize))
            .map(|c| c.count);
        together.max(each.max().unwrap_or(0))
    }

    /// What a knob does to one of them. A timer interrupt is the tick's or any other's where its functions were not
    /// asked for.
    fn effect(&self, knob: &Knob, of: &Subject) -> Option<Effect> {
        let unnamed =
            matches!(of, Subject::Timer { function: None, .. }) && self.grain != EventGrain::All;
        let effect = knob.answers(of)?;
        Some(if unnamed { Effect::Perhaps } else { effect })
    }

    /// What `knob` could win back; `None` when nothing that was measured is its business.
    #[must_use]
    pub fn win(&self, knob: &Knob) -> Option<Win> {
        let mut answered: Vec<(&MeasuredCulprit, Effect, u32)> = (self.culprits.iter().zip(0u32..))
            .filter_map(|(c, place)| Some((c, self.effect(knob, &c.subject)?, place)))
            .collect();
        let effect = answered.iter().map(|(_, e, _)| *e).min()?;
        // A knob that surely removes one thing is not credited with another that it only perhaps caused.
        if effect != Effect::Perhaps {
            answered.retain(|(_, e, _)| *e != Effect::Perhaps);
        }
        answered.sort_by_key(|(c, ..)| std::cmp::Reverse(c.total_ns));
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
        })
    }

    /// Culprits that no knob answers.
    #[must_use]
    pub fn unanswered(&self) -> Vec<&MeasuredCulprit> {
        self.culprits
            .iter()
            .filter(|c| catalogue::all().all(|k| k.answers(&c.subject).is_none()))
            .collect()
    }
}

/// Sets of culprits by the places that these have now, of which a list has one for each place of before.
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
    use jitterscope_model::{StallSets, TimerSource, Verdict, Work};

    fn culprit(subject: Subject, ns: u64, count: u64) -> MeasuredCulprit {
        MeasuredCulprit {
            subject,
            total_ns: Nanos(ns),
            count,
        }
    }

    #[test]
    fn a_timer_interrupt_is_perhaps_the_tick_where_its_functions_were_not_asked_for() {
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
                .win(catalogue::find("nohz-full").unwrap())
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
        let win = measured.win(catalogue::find("vmstat").unwrap()).unwrap();
        assert_eq!(
            (win.total_ns, win.count, win.per_second_milli),
            (Nanos(50_000), 10, 1000)
        );
        assert_eq!(win.effect, Effect::Removes);
        assert_eq!(win.culprits, ["kworker vmstat_update"]);
        assert!(measured.win(catalogue::find("ksm").unwrap()).is_none());
        // Exclusion is no proof: it is marked as such.
        assert_eq!(
            measured
                .win(catalogue::find("governor").unwrap())
                .unwrap()
                .effect,
            Effect::Perhaps
        );
        assert_eq!(measured.unanswered().len(), 1);
    }

    #[test]
    fn a_stall_of_several_culprits_counts_once_for_the_knob_that_answers_them() {
        let knob = catalogue::all()
            .find(|knob| {
                ["a", "b"]
                    .iter()
                    .all(|name| knob.answers(&thread(name)).is_some())
            })
            .unwrap();
        // Three stalls: one of both, in several parts; one of each.
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
        assert_eq!(measured.win(knob).map(|win| win.count), Some(3));
        // What knows no more than each one's says no more than that holds.
        measured.together.clear();
        assert_eq!(measured.win(knob).map(|win| win.count), Some(2));
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
    fn a_knob_that_surely_removes_something_is_not_credited_with_what_it_perhaps_caused() {
        let governor = catalogue::find("governor").unwrap();
        let win = |culprits: &[MeasuredCulprit]| {
            let measured = RunCulprits {
                culprits: culprits.to_vec(),
                ..RunCulprits::default()
            };
            measured
                .win(governor)
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
            .find(|knob| knob.answers(&thread("a")).is_some())
            .unwrap();
        let culprits = [("a", 1), ("b", 3), ("a", 2)]
            .map(|(name, ns)| culprit(thread(name), ns, 1))
            .into();
        let win = RunCulprits {
            culprits,
            ..RunCulprits::default()
        }
        .win(knob)
        .unwrap();
        assert_eq!(
            (win.culprits, win.per_second_milli),
            (vec!["thread b".into(), "thread a".into()], 0)
        );
        // A culprit without a name is called by its kind alone.
        assert_eq!(culprit(thread(""), 1, 1).label(), "thread");
    }

    fn thread(name: &str) -> Subject {
        Subject::Thread(jitterscope_model::Task {
            comm: name.into(),
            ..jitterscope_model::Task::default()
        })
    }
}
