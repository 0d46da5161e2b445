//! Judges the conditions of `--save-if` while a recording runs.
//!
//! The rows of each stretch of time (a second by default) are summed up like a run of that length, and the conditions
//! are those of the gates. Shares are of the stretch's time on all CPUs. What is below the threshold counts as no wait.

use super::triggers::Asked;
use hdrhistogram::Histogram;
use jitterscope_analyze::SummaryBuilder;
use jitterscope_analyze::gate::{
    Condition, GateReason, GateResult, GateValue, GateVerdict, Limit, Quantity, Watched, evaluate,
};
use jitterscope_model::{
    AskedBy, AttributedStall, ClockReading, CpuId, Delivery, Nanos, ProbeKind, ProbeResult, Row,
    RunFacts, RunManifest, Sink, SinkError, Ticks,
};
use jitterscope_platform::clock;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Stalls that one stretch may have before it is judged early: bounds the memory.
const MOST: usize = 1 << 16;
/// The longest stall that the histogram tells apart.
const LONGEST: u64 = 1 << 44;

/// Why a condition cannot be decided while a recording runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotDecidable {
    #[error(
        "'{0}' is about the wake-ups of 'record wakeup', and watch has no such probe: use max or wait.pN"
    )]
    Late(String),
    #[error(
        "'{0}' is about the messages of 'record pipeline'; let the application say it: --socket PATH"
    )]
    Message(String),
    #[error("'{0}' compares two runs: only diff decides it")]
    Compares(String),
    #[error("'{0}' rests on counts that a probe states at its end: use stolen or max")]
    AtTheEnd(String),
    #[error(
        "'{0}' rests on the accounts of threads, which are complete at their end: use stolen, max or culprit(NAME)"
    )]
    Accounts(String),
    #[error(
        "'{0}' is about a spinning probe, and these CPUs are watched without one: use max, stolen or culprit(NAME), or measure with --probe spin"
    )]
    NeedsProbe(String),
    #[error(
        "'{condition}' is about waits below {threshold}, which are not recorded one by one: raise it, or lower --threshold"
    )]
    BelowThreshold { condition: String, threshold: Nanos },
}

/// Checks that a condition can be decided by a watch of this kind.
///
/// # Errors
/// It cannot.
pub fn decidable(
    condition: &Condition,
    kind: ProbeKind,
    threshold: Option<Nanos>,
) -> Result<(), NotDecidable> {
    let text = || condition.to_string();
    let spins = kind == ProbeKind::Spin;
    match &condition.quantity {
        Quantity::Late(_) => Err(NotDecidable::Late(text())),
        Quantity::Message(_) => Err(NotDecidable::Message(text())),
        Quantity::Worse(_) => Err(NotDecidable::Compares(text())),
        Quantity::Coverage => Err(NotDecidable::AtTheEnd(text())),
        Quantity::Lost | Quantity::Blocked(_) => Err(NotDecidable::Accounts(text())),
        Quantity::Wait(_) if !spins => Err(NotDecidable::NeedsProbe(text())),
        Quantity::Wait(_) => match (condition.limit, threshold) {
            (Some((_, Limit::Time(limit))), Some(threshold)) if limit < threshold => {
                Err(NotDecidable::BelowThreshold {
                    condition: text(),
                    threshold,
                })
            }
            _ => Ok(()),
        },
        Quantity::Hypervisor
        | Quantity::Firmware
        | Quantity::Unexplained
        | Quantity::Unresolved
            if !spins =>
        {
            Err(NotDecidable::NeedsProbe(text()))
        }
        Quantity::Stall(_)
        | Quantity::Max
        | Quantity::Stolen
        | Quantity::Stalls
        | Quantity::Unexplained
        | Quantity::Unresolved
        | Quantity::Hypervisor
        | Quantity::Firmware
        | Quantity::Culprit(_) => Ok(()),
    }
}

/// What a judge has to say.
pub(super) enum Judged {
    /// A condition is met.
    Met(Asked),
    /// A condition could not be decided, for the first time.
    Undecided(Box<GateResult>),
}

/// Judges stretches of rows, as an output of the recording.
pub(super) struct Judge {
    rules: Rules,
    /// The conditions by time, as of this number of changes.
    stretches: Vec<Stretch>,
    changes: Option<u64>,
    /// What is known of the recording, once it has begun.
    manifest: Arc<OnceLock<RunManifest>>,
    tell: Sender<Judged>,
    /// The conditions that were once undecided.
    undecided: Vec<String>,
}

/// The conditions, which may change while they are judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Arc<Mutex<RuleSet>>);

#[derive(Debug, Default)]
struct RuleSet {
    changes: u64,
    conditions: Vec<Watched>,
    over: Nanos,
}

impl Rules {
    /// Judges these conditions from now on; those without a time of their own over `over`.
    pub(super) fn set(&self, conditions: Vec<Watched>, over: Nanos) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = RuleSet {
            changes: held.changes + 1,
            conditions,
            over,
        };
    }

    /// The conditions by time, if they are not those of this number of changes.
    fn if_changed(&self, known: Option<u64>) -> Option<(u64, Vec<Stretch>)> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known == Some(held.changes) {
            return None;
        }
        let mut stretches: Vec<Stretch> = Vec::new();
        for watched in &held.conditions {
            let over = watched.over.unwrap_or(held.over);
            let known = stretches.iter_mut().find(|of| of.over == over);
            match known {
                Some(stretch) => stretch.conditions.push(watched.clone()),
                None => stretches.push(Stretch {
                    over,
                    conditions: vec![watched.clone()],
                    from: Ticks(0),
                    stalls: Vec::new(),
                }),
            }
        }
        Some((held.changes, stretches))
    }
}

/// The rows of a stretch of time so far, and what is judged on them.
struct Stretch {
    over: Nanos,
    conditions: Vec<Watched>,
    from: Ticks,
    stalls: Vec<AttributedStall>,
}

impl Judge {
    pub(super) fn new(
        rules: Rules,
        manifest: Arc<OnceLock<RunManifest>>,
        tell: Sender<Judged>,
    ) -> Judge {
        Judge {
            rules,
            stretches: Vec::new(),
            changes: None,
            manifest,
            tell,
            undecided: Vec::new(),
        }
    }

    /// Judges what has been gathered, where enough time has passed.
    fn judge(&mut self) {
        let mut stretches = std::mem::take(&mut self.stretches);
        for stretch in &mut stretches {
            self.judge_stretch(stretch);
        }
        self.stretches = stretches;
    }

    /// Takes over other conditions.
    fn look_at_rules(&mut self) {
        if let Some((changes, stretches)) = self.rules.if_changed(self.changes) {
            self.changes = Some(changes);
            self.stretches = stretches;
        }
    }

    fn judge_stretch(&mut self, stretch: &mut Stretch) {
        let held = Arc::clone(&self.manifest);
        let Some(manifest) = held.get() else {
            return;
        };
        let rate = manifest.rate;
        let to = clock::now(manifest.clock);
        if stretch.from == Ticks(0) {
            stretch.from = to;
            return;
        }
        let is_full = stretch.stalls.len() >= MOST;
        if !is_full && rate.nanos(to.since(stretch.from)) < stretch.over {
            return;
        }
        let from = std::mem::replace(&mut stretch.from, to);
        let stalls = std::mem::take(&mut stretch.stalls);
        let conditions: Vec<Condition> = stretch
            .conditions
            .iter()
            .map(|of| of.condition.clone())
            .collect();
        let mut results = judged(&conditions, manifest, (from, to), &stalls);
        // As the user wrote them.
        for (result, watched) in results.iter_mut().zip(&stretch.conditions) {
            result.condition = watched.to_string();
        }
        self.tell_undecided(&results);
        // The worst stall is the moment, if there is one.
        let worst = stalls
            .iter()
            .map(|(stall, _)| stall)
            .max_by_key(|stall| stall.length());
        let (begin, end) = worst.map_or((from, to), |stall| (stall.start, stall.end));
        let met: Vec<String> = results
            .iter()
            .filter(|result| result.verdict == GateVerdict::Exceeded)
            .map(in_words)
            .collect();
        if met.is_empty() {
            return;
        }
        // Nobody listens any more at the end.
        let _ = self.tell.send(Judged::Met(Asked {
            by: AskedBy::Condition,
            text: met.join(", "),
            from: begin.min(from),
            to: end.max(from),
            realtime_ns: clock::read_all(manifest.clock).realtime_of(begin, rate),
        }));
    }

    /// Tells once of each condition that nobody could decide, unless there was too little to decide on.
    fn tell_undecided(&mut self, results: &[GateResult]) {
        for result in results {
            let is_quiet = matches!(
                result.why,
                None | Some(
                    GateReason::NobodyNamed
                        | GateReason::NothingMeasured
                        | GateReason::FewAbove(_)
                        | GateReason::RestsOnFew { .. }
                )
            );
            if !is_quiet && !self.undecided.contains(&result.condition) {
                self.undecided.push(result.condition.clone());
                let _ = self.tell.send(Judged::Undecided(Box::new(result.clone())));
            }
        }
    }
}

/// The outcome of each condition on the rows of a stretch.
fn judged(
    conditions: &[Condition],
    manifest: &RunManifest,
    (from, to): (Ticks, Ticks),
    stalls: &[AttributedStall],
) -> Vec<GateResult> {
    let at = |ticks| ClockReading {
        ticks,
        realtime_ns: manifest.clock_start.realtime_of(ticks, manifest.rate),
        ..manifest.clock_start
    };
    let result = |cpu| result(cpu, (from, to), stalls, manifest);
    let part = RunManifest {
        clock_start: at(from),
        clock_end: at(to),
        results: manifest.probe.cpus.iter().map(result).collect(),
        // They share their words with a probe's results, and no account of theirs is complete.
        passive: Vec::new(),
        threads: Vec::new(),
        attributed: stalls.iter().any(|(_, attribution)| attribution.is_some()),
        ..manifest.clone()
    };
    let mut builder = SummaryBuilder::new(&part);
    for (stall, attribution) in stalls {
        builder.stall(stall);
        if let Some(attribution) = attribution {
            builder.attribution(attribution);
        }
    }
    evaluate(conditions, &builder.finish())
}

/// What a probe on this CPU would have found. An instant without a stall waits one tick, which is below every threshold.
fn result(
    cpu: CpuId,
    (start, end): (Ticks, Ticks),
    stalls: &[AttributedStall],
    manifest: &RunManifest,
) -> ProbeResult {
    let mut lengths = Histogram::<u64>::new_with_bounds(1, LONGEST, 3).ok();
    let (mut count, mut stalled, mut tid) = (0, Ticks(0), 0);
    for (stall, _) in stalls.iter().filter(|(stall, _)| stall.cpu == cpu) {
        count += 1;
        stalled = stalled + stall.length();
        tid = stall.victim.tid;
        if let Some(lengths) = &mut lengths {
            lengths.saturating_record(stall.length().0);
        }
    }
    let free = end.since(start).since(stalled).0;
    let above = lengths.as_ref().map_or_else(Vec::new, |lengths| {
        let buckets = lengths.iter_recorded();
        buckets
            .map(|of| (of.value_iterated_to(), of.count_since_last_iteration()))
            .collect()
    });
    ProbeResult {
        cpu,
        tid,
        start,
        end,
        planned_end: end,
        samples: free + count,
        sum_ticks: end.since(start).0,
        sum_squares: 0,
        min_ticks: 1,
        max_ticks: lengths.as_ref().map_or(0, Histogram::max).max(1),
        threshold_ticks: manifest.rate.ticks(manifest.probe.threshold_ns).0,
        below: vec![(1, free)],
        above,
        stalls: count,
        stalled_ticks: stalled.0,
        dropped_records: 0,
        own_bookkeeping: 0,
        page_faults: 0,
        involuntary_switches: 0,
        ended_early: None,
    }
}

/// The condition with its value.
fn in_words(result: &GateResult) -> String {
    let value = match &result.value {
        Some(GateValue::Time(time)) => format!(" ({time})"),
        Some(GateValue::Longest(worst)) => format!(" ({})", worst.longest_ns),
        Some(GateValue::Share(share)) => format!(" ({:.3}%)", share * 100.0),
        Some(GateValue::PerSec(rate)) => format!(" ({rate:.1}/s)"),
        _ => String::new(),
    };
    format!("{}{value}", result.condition)
}

impl Sink for Judge {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        self.look_at_rules();
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            if let Row::Stall(stall, attribution) = row {
                let mut is_full = false;
                for stretch in &mut self.stretches {
                    stretch.stalls.push((**stall, attribution.cloned()));
                    is_full |= stretch.stalls.len() >= MOST;
                }
                if is_full {
                    self.judge();
                }
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..))
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.look_at_rules();
        self.judge();
        Ok(0)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(0))
    }
}
