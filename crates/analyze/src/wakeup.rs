//! The lateness of wake-ups, as data.

use crate::FineNanos;
use crate::counts::{Counts, Ppm};
use crate::cpu::{OF_TIME, SUPPORT, share};
use crate::culprit_row::CulpritRow;
use crate::percentiles::Percentiles;
use jitterscope_model::{CpuId, Nanos, Part, Phase, PutInOrder, RunManifest, WakeupResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The measurements of the wake-up probe.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakeupSummary {
    /// The time between deadlines; null in runs that do not state it.
    pub period_ns: Option<Nanos>,
    /// Whether the CPUs were kept out of deep idle states; null in runs that do not state it.
    pub hold_latency: Option<bool>,
    /// One entry for each CPU, in order; including the idle control.
    pub cpus: Vec<WakeupCpu>,
    /// All CPUs together except the idle control.
    pub total: Lateness,
    /// The phases of the late wake-ups, by total, without the idle control. Empty without attribution.
    pub phases: Vec<PhaseRow>,
    /// The measured CPUs compared with an idle one; null if none was measured for comparison.
    pub idle_control: Option<IdleControl>,
}

/// The lateness of one CPU's sleeper.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WakeupCpu {
    pub cpu: CpuId,
    /// Whether the CPU was measured only for comparison.
    pub idle_control: bool,
    #[serde(flatten)]
    pub lateness: Lateness,
}

/// The lateness of wake-ups. *Plain* counts each wake-up, like cyclictest. *Corrected* adds each missed deadline, late
/// by the rest of the outage, like jHiccup: a caller due at each deadline would have waited that long (coordinated
/// omission).
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Lateness {
    /// The number of wake-ups; null if the recorder was killed.
    pub wakeups: Option<u64>,
    /// The number of missed deadlines; null likewise.
    pub missed: Option<u64>,
    /// Wake-ups at or above the threshold.
    pub late: u64,
    /// The smallest; null if there was no wake-up, like the following fields.
    pub min_ns: Option<Nanos>,
    pub mean_ns: Option<FineNanos>,
    pub max_ns: Option<Nanos>,
    /// Plain percentiles; null where fewer than ten lie above.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub percentiles_ns: Percentiles,
    /// The corrected mean, to three digits like its histogram.
    pub corrected_mean_ns: Option<FineNanos>,
    /// Corrected percentiles; null where fewer than ten lie above.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub corrected_percentiles_ns: Percentiles,
}

/// A phase of the lateness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRow {
    /// `late timer`, `idle exit`, `interrupt`, `higher priority`, `run-queue wait`, `dispatch`; for time without such a
    /// verdict, `lost records` or `no verdict`.
    pub phase: Phase,
    /// The number of late wake-ups with this phase.
    pub count: u64,
    pub total_ns: Nanos,
    /// The share of the lateness of all late wake-ups.
    pub share: f64,
    /// The smallest part of a late wake-up.
    pub min_ns: Nanos,
    /// The mean part of the late wake-ups with this phase.
    pub mean_ns: Nanos,
    pub max_ns: Nanos,
}

/// The measured CPUs compared with an idle one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IdleControl {
    /// The idle CPU.
    pub cpu: CpuId,
    /// The mean lateness of the measured CPUs over the control's; null if either measured nothing.
    pub mean_ratio: Option<f64>,
    /// The ratio of the 99th percentiles; null if either has none.
    pub p99_ratio: Option<f64>,
    /// The ratio of the maxima.
    pub max_ratio: Option<f64>,
    /// The phases of the control's own lateness.
    pub phases: Vec<PhaseRow>,
    /// The culprits of the control's lateness, explained or not; the run's `attribution` leaves its stalls out.
    pub culprits: Vec<CulpritRow>,
}

/// The summary; `None` for runs of other probes. `phases` are of the measured CPUs and of the control.
pub(crate) fn summarize(
    manifest: &RunManifest,
    phases: [Vec<PhaseRow>; 2],
    control_culprits: Vec<CulpritRow>,
) -> Option<WakeupSummary> {
    if manifest.wakeups.is_empty() {
        return None;
    }
    let control = manifest.idle_control();
    let conditions = manifest.probe.wakeup.as_ref();
    let measured: Vec<&WakeupResult> = manifest
        .wakeups
        .iter()
        .filter(|w| Some(w.cpu) != control)
        .collect();
    let lateness = |of: &[&WakeupResult]| lateness(of, manifest.is_from_rows());
    let total = lateness(&measured);
    let [phases, control_phases] = phases;
    let idle_control = control.and_then(|cpu| {
        let own = lateness(&[manifest.wakeups.iter().find(|w| w.cpu == cpu)?]);
        let p99 = |of: &Lateness| of.percentiles_ns.get("99").copied().flatten();
        let fine = |ns: Nanos| FineNanos(ns.0 as f64);
        Some(IdleControl {
            cpu,
            mean_ratio: ratio(total.mean_ns, own.mean_ns),
            p99_ratio: ratio(p99(&total), p99(&own)),
            max_ratio: ratio(total.max_ns.map(fine), own.max_ns.map(fine)),
            phases: control_phases,
            culprits: control_culprits,
        })
    });
    Some(WakeupSummary {
        period_ns: conditions.map(|conditions| conditions.period_ns),
        hold_latency: conditions.map(|conditions| conditions.hold_latency),
        cpus: manifest
            .wakeups
            .iter()
            .map(|one| WakeupCpu {
                cpu: one.cpu,
                idle_control: Some(one.cpu) == control,
                lateness: lateness(&[one]),
            })
            .collect(),
        total,
        phases,
        idle_control,
    })
}

fn ratio(part: Option<FineNanos>, whole: Option<FineNanos>) -> Option<f64> {
    match (part, whole) {
        (Some(part), Some(whole)) if whole.0 > 0.0 => Some(part.0 / whole.0),
        _ => None,
    }
}

fn lateness(of: &[&WakeupResult], killed: bool) -> Lateness {
    let sum =
        |field: fn(&WakeupResult) -> u64| of.iter().map(|w| field(w)).fold(0, u64::saturating_add);
    let merged = |field: fn(&WakeupResult) -> &[(u64, u64)]| {
        of.iter().fold(Counts::default(), |all, one| {
            all.merged(&Counts::of(field(one)))
        })
    };
    let (plain, corrected) = (merged(|w| &w.plain), merged(|w| &w.corrected));
    let wakeups = sum(|w| w.wakeups);
    let woke = || of.iter().filter(|w| w.wakeups > 0);
    let latest = of
        .iter()
        .filter(|w| w.wakeups > 0 || (killed && w.stalls > 0));
    let known = |count: u64| (!killed).then_some(count);
    let mean = |sum: u128, n: u128| (n > 0).then(|| FineNanos::from_nanos(sum as f64 / n as f64));
    let total: u128 = of.iter().map(|w| u128::from(w.sum.0)).sum();
    Lateness {
        wakeups: known(wakeups),
        missed: known(sum(|w| w.missed)),
        late: sum(|w| w.stalls),
        min_ns: woke().map(|w| w.min).min(),
        mean_ns: mean(total, wakeups.into()),
        max_ns: latest.map(|w| w.max).max(),
        percentiles_ns: percentiles(&plain),
        corrected_mean_ns: mean(corrected.sum(), corrected.len()),
        corrected_percentiles_ns: percentiles(&corrected),
    }
}

fn percentiles(counts: &Counts) -> Percentiles {
    let of = |share: Ppm| {
        counts
            .supported_quantile(share, SUPPORT)
            .map(|ns| FineNanos(ns as f64))
    };
    OF_TIME
        .into_iter()
        .map(|(name, share)| (name, of(share)))
        .collect()
}

/// Sums lateness by phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseTable {
    rows: Vec<(Phase, Sums)>,
    touched: Vec<(usize, Nanos)>,
}

#[derive(Debug, Default)]
struct Sums {
    count: u64,
    total: Nanos,
    /// `None` before the first.
    min: Option<Nanos>,
    max: Nanos,
}

/// The number of separate phases: there are six, and those of newer versions; further ones count as no verdict.
const MOST_PHASES: usize = 16;

impl PhaseTable {
    /// Adds the parts of one late wake-up.
    pub(crate) fn add<'p>(&mut self, parts: impl IntoIterator<Item = (&'p Part, Nanos)>) {
        let mut touched = std::mem::take(&mut self.touched);
        for (part, net) in parts {
            let at = self.row(part.phase.as_ref().unwrap_or(&Phase::NoVerdict));
            match touched.iter_mut().find(|(row, _)| *row == at) {
                Some((_, sum)) => *sum += net,
                None => touched.push((at, net)),
            }
        }
        for (at, net) in touched.drain(..) {
            let sums = &mut self.rows[at].1;
            sums.count += 1;
            sums.total += net;
            sums.min = Some(sums.min.map_or(net, |min| min.min(net)));
            sums.max = sums.max.max(net);
        }
        self.touched = touched;
    }

    fn row(&mut self, phase: &Phase) -> usize {
        let find = |rows: &[(Phase, Sums)], phase: &Phase| {
            rows.iter().position(|(known, _)| known == phase)
        };
        if let Some(at) = find(&self.rows, phase) {
            return at;
        }
        let phase = if self.rows.len() + 1 < MOST_PHASES {
            phase
        } else {
            &Phase::NoVerdict
        };
        find(&self.rows, phase).unwrap_or_else(|| {
            self.rows.push((phase.clone(), Sums::default()));
            self.rows.len() - 1
        })
    }

    /// The rows by total, with shares of `late`.
    pub(crate) fn finish(self, late: Nanos) -> Vec<PhaseRow> {
        let mut rows: Vec<PhaseRow> = self
            .rows
            .into_iter()
            .map(|(phase, sums)| PhaseRow {
                phase,
                count: sums.count,
                total_ns: sums.total,
                share: share(sums.total.0, late.0),
                min_ns: sums.min.unwrap_or_default(),
                mean_ns: Nanos(sums.total.0 / sums.count.max(1)),
                max_ns: sums.max,
            })
            .collect();
        rows.order_by(|a, b| {
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| a.phase.cmp(&b.phase))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{Evidence, Subject, Verdict};

    #[test]
    fn lateness_is_that_of_all_wake_ups_together() {
        let one = |wakeups, sum, min, max, counts: &[(u64, u64)]| WakeupResult {
            wakeups,
            missed: 1,
            stalls: 2,
            sum: Nanos(sum),
            min: Nanos(min),
            max: Nanos(max),
            plain: counts.to_vec(),
            corrected: counts.iter().map(|(ns, count)| (2 * ns, *count)).collect(),
            ..WakeupResult::default()
        };
        let (a, b) = (
            one(100, 5_000, 10, 500, &[(50, 100)]),
            one(300, 30_000, 20, 900, &[(100, 300)]),
        );
        // A CPU without wake-ups does not affect the minimum.
        let none = one(0, 0, 0, 0, &[]);
        let all = lateness(&[&a, &b, &none], false);
        assert_eq!((all.wakeups, all.missed, all.late), (Some(400), Some(3), 6));
        assert_eq!(
            (all.min_ns, all.max_ns),
            (Some(Nanos(10)), Some(Nanos(900)))
        );
        assert_eq!(all.mean_ns, Some(FineNanos(87.5)));
        assert_eq!(all.corrected_mean_ns, Some(FineNanos(175.0)));
        let percentile = |of: &Percentiles, at: &str| of[at].map(|ns| ns.0);
        assert_eq!(percentile(&all.percentiles_ns, "50"), Some(100.0));
        assert_eq!(percentile(&all.corrected_percentiles_ns, "90"), Some(200.0));
        assert_eq!(
            percentile(&all.percentiles_ns, "99"),
            None,
            "four lie above"
        );
        let nothing = lateness(&[&none], false);
        assert_eq!(
            (nothing.min_ns, nothing.mean_ns, nothing.max_ns),
            (None, None, None)
        );
    }

    #[test]
    fn a_ratio_is_of_two_that_were_measured_and_not_to_nothing() {
        let of = |part: Option<f64>, whole: Option<f64>| {
            ratio(part.map(FineNanos), whole.map(FineNanos))
        };
        assert_eq!(of(Some(6.0), Some(4.0)), Some(1.5));
        assert_eq!(of(Some(0.0), Some(4.0)), Some(0.0));
        assert_eq!(
            [
                of(Some(6.0), Some(0.0)),
                of(None, Some(4.0)),
                of(Some(6.0), None)
            ],
            [None; 3]
        );
    }

    #[test]
    fn phases_beyond_those_that_are_told_apart_are_added_up() {
        let of = |phase: Phase| {
            Part::inside(
                Subject::verdict(Verdict::LateTimer),
                Nanos(10),
                Evidence::Nothing,
            )
            .in_phase(phase)
        };
        let mut table = PhaseTable::default();
        for n in 0..30 {
            let (known, new) = (
                of(Phase::LateTimer),
                of(Phase::from_word(&format!("of a newer version {n}"))),
            );
            table.add([(&known, Nanos(5)), (&new, Nanos(10)), (&known, Nanos(5))]);
        }
        let rows = table.finish(Nanos(600));
        assert_eq!(rows.len(), MOST_PHASES);
        assert_eq!(
            rows.iter().map(|row| row.total_ns).sum::<Nanos>(),
            Nanos(600)
        );
        let row = |phase: &Phase| rows.iter().find(|row| row.phase == *phase).unwrap();
        let first = row(&Phase::LateTimer);
        // A wake-up counts once, however many of its parts belong to a phase.
        assert_eq!(
            (first.count, first.total_ns, first.max_ns),
            (30, Nanos(300), Nanos(10))
        );
        assert_eq!((first.share, first.mean_ns), (0.5, Nanos(10)));
        assert_eq!(row(&Phase::NoVerdict).count, 30 - (MOST_PHASES as u64 - 2));
    }
}
