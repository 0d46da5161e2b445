//! The verdict of a profile: whether the CPUs of a run do what one kind of work needs.

use crate::RunSummary;
use crate::gate::{
    Condition, GateResult, GateValue, GateVerdict, Limit, Operator, Quantity, evaluate,
};
use jitterscope_model::{
    Attribution, CulpritSums, KeyLevel, Nanos, ProfileLimit, PutInOrder, RunManifest, Stall,
    StallId, Subject,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The number of separate culprits of stalls above a limit.
const MOST: usize = 256;

/// Whether the CPUs keep the limits of the recording's profile.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileVerdict {
    #[serde(flatten)]
    pub limit: ProfileLimit,
    /// Of `worst_case.longest_ns` and the limit, as `--fail-above` decides it; and of the taken share, if that has a
    /// limit.
    pub verdict: GateVerdict,
    /// Stalls above the limit.
    pub above: u64,
    /// Whether there may be more of them: stalls had no record, or the run has records only from a threshold above the
    /// limit on.
    pub above_is_least: bool,
    /// What took most of these stalls, the most frequent first; empty if the run names no culprits.
    pub culprits: Vec<ProfileCulprit>,
    /// 100 if both limits are kept; otherwise 100 divided by the factor by which the worse of the two, the longest
    /// stall and the taken share, exceeds its limit. Null without a limit of the share, and if a value is not known.
    pub score: Option<f64>,
    /// The time that the host took from the measured CPUs, in the kernel's steps of 10 ms; null if it was not counted.
    pub host_ns: Option<Nanos>,
    /// The verdict in a sentence.
    // `view` fills it in.
    pub text: String,
    /// The outcome of each limit.
    #[serde(skip)]
    pub results: Vec<GateResult>,
}

/// What took the largest part of stalls above a limit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProfileCulprit {
    #[serde(flatten)]
    pub subject: Subject,
    /// The number of these stalls.
    pub count: u64,
}

/// The limits as conditions.
fn conditions(limit: &ProfileLimit) -> Vec<Condition> {
    let above = |quantity, limit| Condition {
        quantity,
        limit: Some((Operator::Above, limit)),
    };
    let taken = limit
        .taken_ppm
        .map(|ppm| Limit::Percent(f64::from(ppm) / 1e4));
    std::iter::once(above(Quantity::Max, Limit::Time(limit.limit_ns)))
        .chain(taken.map(|share| above(Quantity::Stolen, share)))
        .collect()
}

/// Counts the stalls above a profile's limit, by what took most of each.
#[derive(Debug)]
pub(crate) struct ProfileFold<'m> {
    manifest: &'m RunManifest,
    limit: Nanos,
    above: u64,
    /// The last stall, if it was above the limit: its attribution follows it.
    last: Option<StallId>,
    culprits: CulpritSums<(), u64>,
}

impl<'m> ProfileFold<'m> {
    /// `None` if the run has no stall above its profile's limit: then it needs no rows.
    pub(crate) fn new(manifest: &'m RunManifest) -> Option<ProfileFold<'m>> {
        let limit = manifest.profile.as_ref()?.limit_ns;
        let of = manifest.results.iter();
        let probed = of.filter(|result| Some(result.cpu) != manifest.idle_control());
        let probed = probed.map(|of| manifest.rate.nanos(jitterscope_model::Ticks(of.max_ticks)));
        let watched = manifest.passive.iter().map(|cpu| cpu.longest_ns);
        let longest = probed.chain(watched).max()?;
        (longest > limit).then(|| ProfileFold {
            manifest,
            limit,
            above: 0,
            last: None,
            culprits: CulpritSums::new(KeyLevel::Program, MOST),
        })
    }

    pub(crate) fn stall(&mut self, stall: &Stall) {
        let counts = self.manifest.idle_control() != Some(stall.cpu)
            && self.manifest.rate.nanos(stall.length()) > self.limit;
        self.above += u64::from(counts);
        self.last = counts.then_some(stall.id);
    }

    pub(crate) fn attribution(&mut self, attribution: &Attribution) {
        if self.last.take() != Some(attribution.stall) {
            return;
        }
        if let Some(largest) = attribution.parts.iter().max_by_key(|part| part.net) {
            let at = self.culprits.position_of((), &largest.culprit);
            *self.culprits.at(at) += 1;
        }
    }

    fn finish(self) -> (u64, Vec<ProfileCulprit>) {
        let rows = self.culprits.into_rows().into_iter();
        let mut culprits: Vec<ProfileCulprit> = rows
            .map(|row| ProfileCulprit {
                subject: row.subject,
                count: row.value,
            })
            .collect();
        culprits.order_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| a.subject.cmp(&b.subject))
        });
        (self.above, culprits)
    }
}

/// The verdict on a run whose other facts are known.
pub(crate) fn judge(
    limit: &ProfileLimit,
    fold: Option<ProfileFold<'_>>,
    run: &RunSummary,
) -> ProfileVerdict {
    let results = evaluate(&conditions(limit), run);
    let (counted, culprits) = fold.map_or_else(Default::default, ProfileFold::finish);
    let is_above = results[0].verdict == GateVerdict::Exceeded;
    ProfileVerdict {
        limit: limit.clone(),
        verdict: GateResult::worst(&results),
        // The exact maximum counts even if it has no row.
        above: counted.max(u64::from(is_above)),
        above_is_least: is_above
            && (run.trust.dropped_records > 0
                || run.probe.threshold_ns > limit.limit_ns
                || counted == 0),
        culprits,
        score: score(limit, &results),
        host_ns: run.host_ns(),
        text: String::new(),
        results,
    }
}

fn score(limit: &ProfileLimit, results: &[GateResult]) -> Option<f64> {
    let taken_limit = f64::from(limit.taken_ppm?) / 1e6;
    let [longest, taken] = results else {
        return None;
    };
    let (Some(GateValue::Longest(longest)), Some(GateValue::Share(taken))) =
        (&longest.value, &taken.value)
    else {
        return None;
    };
    let times = |value: f64, limit: f64| value / limit.max(1e-9);
    let longest = times(longest.longest_ns.0 as f64, limit.limit_ns.0 as f64);
    Some(100.0 / longest.max(times(*taken, taken_limit)).max(1.0))
}
