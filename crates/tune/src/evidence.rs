//! What a recording measured, as far as the catalogue can answer it.

use crate::answer::Effect;
use crate::catalogue;
use crate::knob::Knob;
use jitterscope_model::{Attribution, CulpritSums, KeyLevel, Nanos, RunManifest, StallId, Subject};
use serde::{Deserialize, Serialize};

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
pub struct RunEvidence {
    /// The run, for display.
    pub run: String,
    /// Measured time, summed over the CPUs.
    pub measured_ns: Nanos,
    /// Its culprits.
    pub culprits: Vec<MeasuredCulprit>,
}

/// What a knob could win back of what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Win {
    /// The strongest effect on any of the culprits.
    pub effect: Effect,
    /// Time of the culprits that it answers: the most it can win back.
    pub total_ns: Nanos,
    /// How often they caused a stall: the stalls of each, added up.
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
        format!("{} {}", self.subject.kind_word(), self.subject.name()).trim_end().to_owned()
    }
}

/// Culprits told apart; the rest share a row a kind.
const MOST_CULPRITS: usize = 4096;

#[derive(Default)]
struct Sum {
    total: Nanos,
    count: u64,
    /// The stall that was counted last: a culprit may have several parts of one.
    last: Option<StallId>,
}

impl RunEvidence {
    /// What a run measured, by program. `attributions` are the run's rows; they are asked for only where they
    /// tell: messages that queue up behind one stall share its time, so that what ran in the stead of threads
    /// that were followed is counted once a thread, as what each of them lost.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn gather<E, R: Iterator<Item = Result<Attribution, E>>>(
        manifest: &RunManifest,
        attributions: impl FnOnce() -> Result<R, E>,
    ) -> Result<RunEvidence, E> {
        let mut sums: CulpritSums<(), Sum> = CulpritSums::new(KeyLevel::Program, MOST_CULPRITS);
        if manifest.threads.is_empty() {
            for attribution in attributions()? {
                let Attribution { stall, parts } = attribution?;
                for part in parts {
                    let sum = sums.of((), &part.culprit.subject);
                    sum.total += part.net;
                    sum.count += u64::from(sum.last.replace(stall) != Some(stall));
                }
            }
        }
        for ran in manifest.threads.iter().flat_map(|thread| &thread.ran_instead) {
            let sum = sums.of((), &ran.subject);
            sum.total += ran.total_ns;
            sum.count += ran.count;
        }
        let culprits = sums.into_rows().into_iter().map(|row| MeasuredCulprit {
            subject: row.subject,
            total_ns: row.value.total,
            count: row.value.count,
        });
        Ok(RunEvidence {
            run: format!("{} ({})", manifest.id, manifest.label),
            measured_ns: manifest.measured_time(),
            culprits: culprits.collect(),
        })
    }

    /// What `knob` could win back; `None` when nothing that was measured is its business.
    #[must_use]
    pub fn win(&self, knob: &Knob) -> Option<Win> {
        let mut answered: Vec<(&MeasuredCulprit, Effect)> =
            self.culprits.iter().filter_map(|c| Some((c, knob.answers(&c.subject)?))).collect();
        let effect = answered.iter().map(|(_, e)| *e).min()?;
        // A knob that surely removes one thing is not credited with another that it only perhaps caused.
        if effect != Effect::Perhaps {
            answered.retain(|(_, e)| *e != Effect::Perhaps);
        }
        answered.sort_by_key(|(c, _)| std::cmp::Reverse(c.total_ns));
        let total_ns: Nanos = answered.iter().map(|(c, _)| c.total_ns).sum();
        let count: u64 = answered.iter().map(|(c, _)| c.count).fold(0, u64::saturating_add);
        let per_second_milli = match self.measured_ns.0 {
            0 => 0,
            ns => u64::try_from(u128::from(count) * 1_000_000_000_000 / u128::from(ns)).unwrap_or(u64::MAX),
        };
        let mut culprits: Vec<String> = Vec::new();
        for (c, _) in &answered {
            let name = c.label();
            if !culprits.contains(&name) {
                culprits.push(name);
            }
        }
        Some(Win { effect, total_ns, count, per_second_milli, culprits })
    }

    /// Culprits that no knob answers.
    #[must_use]
    pub fn unanswered(&self) -> Vec<&MeasuredCulprit> {
        self.culprits.iter().filter(|c| catalogue::all().all(|k| k.answers(&c.subject).is_none())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Verdict, Work};

    fn culprit(subject: Subject, ns: u64, count: u64) -> MeasuredCulprit {
        MeasuredCulprit { subject, total_ns: Nanos(ns), count }
    }

    #[test]
    fn a_win_is_the_sum_of_what_the_knob_answers() {
        let work = Work { function: Some("vmstat_update".into()), ..Work::default() };
        let tick = Subject::Timer { function: Some("tick_nohz_handler".into()), source: None };
        let evidence = RunEvidence {
            run: "r".into(),
            measured_ns: Nanos(10_000_000_000),
            culprits: vec![
                culprit(Subject::Work(work), 50_000, 10),
                culprit(tick, 900_000, 2500),
                culprit(Subject::verdict(Verdict::OutsideThisKernel), 7_000_000, 100),
                culprit(Subject::verdict(Verdict::TraceDataLost), 1, 1),
            ],
        };
        let win = evidence.win(catalogue::find("vmstat").unwrap()).unwrap();
        assert_eq!((win.total_ns, win.count, win.per_second_milli), (Nanos(50_000), 10, 1000));
        assert_eq!(win.effect, Effect::Removes);
        assert_eq!(win.culprits, ["kworker vmstat_update"]);
        assert!(evidence.win(catalogue::find("ksm").unwrap()).is_none());
        // Exclusion is no proof: it is marked as such.
        assert_eq!(evidence.win(catalogue::find("governor").unwrap()).unwrap().effect, Effect::Perhaps);
        assert_eq!(evidence.unanswered().len(), 1);
    }
}
