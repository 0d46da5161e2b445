//! The value of a quantity in a run, and its reliability.

use super::condition::{Percentile, Quantity};
use super::doubts::{doubts, nothing_withheld, proven};
use super::owner::OwnerPattern;
use super::pattern::{is_meant, matches};
use super::reason::{Counted, GateReason, InsteadOfSpinning};
use crate::RunSummary;
use crate::cpu::{OF_TIME, SUPPORT};
use crate::percentiles::Percentiles;
use jitterscope_model::{BlockReason, CulpritKind, Nanos, PassiveCpu, Subject, Verdict};

/// A value, and why it may be another.
pub(super) struct Measured {
    pub(super) value: f64,
    /// Why the true value may be another, if it may.
    pub(super) doubt: Option<GateReason>,
    /// The bounds of the true value, with everything that may be missing.
    pub(super) at_least: f64,
    pub(super) at_most: f64,
}

pub(super) type Answer = Result<Measured, GateReason>;

/// No probe spun, and no other quantity replaces it.
const NO_PROBE_SPUN: GateReason = GateReason::NoProbeSpun(InsteadOfSpinning::Nothing);

fn whole(value: f64) -> Answer {
    least(value, None)
}

/// A value without an upper bound.
fn least(value: f64, doubt: Option<GateReason>) -> Answer {
    let at_most = if doubt.is_some() {
        f64::INFINITY
    } else {
        value
    };
    Ok(Measured {
        value,
        doubt,
        at_least: value,
        at_most,
    })
}

/// The wait of a random instant that the longest stall alone supports. Whoever sees one stall can expect at least 0.025
/// of them in as much time (97.5 %, Poisson): that share of the stall's time is the least that lies above the wait.
fn supported_by_longest(longest: Nanos, measured: Nanos, above: f64) -> f64 {
    /// -ln(0.975).
    const FEWEST_EXPECTED: f64 = 0.025_317_8;
    longest.0 as f64 - measured.0 as f64 * above / FEWEST_EXPECTED
}

/// Refuses a name that only threads have which are reported by their process: their share of it is unknown.
fn goes_by_its_process(pattern: &str, run: &RunSummary) -> Result<(), GateReason> {
    let rows = run.attribution.iter().flat_map(|attribution| {
        attribution
            .culprits
            .iter()
            .chain(&attribution.unexplained.classes)
    });
    // Accounts of followed threads and watched CPUs have the threads' own names.
    let mut rows = rows.filter(|row| {
        run.threads.is_empty() && run.passive.is_empty() && !is_meant(pattern, &row.subject)
    });
    match rows.find_map(|row| {
        Some((
            row,
            row.thread_names
                .iter()
                .find(|name| matches(pattern, name))?,
        ))
    }) {
        None => Ok(()),
        Some((row, name)) => Err(GateReason::GoesByProcess {
            thread: name.to_string(),
            program: row.subject.name().to_string(),
        }),
    }
}

pub(super) fn measure(quantity: &Quantity, run: &RunSummary) -> Answer {
    let total = &run.probe.total;
    match quantity {
        Quantity::Wait(percentile) => {
            let wait = percentile_of(&total.instant_percentiles_ns, *percentile, NO_PROBE_SPUN)?;
            // The number of such waits that fit into the time above the percentile.
            let above = total.waits_above(percentile.above(), wait);
            // It is at least as long as a lower percentile that is supported, and as what the longest stall proves.
            let lower = OF_TIME
                .iter()
                .take_while(|(name, _)| *name != percentile.name())
                .filter_map(|(name, _)| total.supported_wait(name));
            let alone = total.max_ns.map(|longest| {
                supported_by_longest(longest, total.measured_ns, percentile.above())
            });
            let found = supported(wait, above, Counted::Waits);
            Ok(Measured {
                at_least: lower.chain(alone).fold(found.at_least, f64::max),
                ..found
            })
        }
        Quantity::Stall(percentile) => {
            let few = GateReason::FewAbove(Counted::Stalls);
            percentile_of(&total.stall_percentiles_ns, *percentile, few).and_then(whole)
        }
        Quantity::Late(percentile) => {
            let wakeup = run.wakeup.as_ref().ok_or(GateReason::NoProbeSlept)?;
            let few = GateReason::FewAbove(Counted::WakeUps);
            percentile_of(&wakeup.total.corrected_percentiles_ns, *percentile, few).and_then(whole)
        }
        Quantity::Message(percentile) => {
            let pipeline = run.pipeline.as_ref().ok_or(GateReason::NoMessages)?;
            let times = pipeline
                .consumers
                .iter()
                .map(|consumer| &consumer.from_intended);
            let slowest = times
                .filter_map(|times| {
                    Some((times.percentiles_ns.get(percentile.name())?, times.count))
                })
                .max_by_key(|(time, _)| **time);
            let (time, count) = slowest.ok_or(GateReason::NoMessagesReceived)?;
            let above = count as f64 * percentile.above();
            Ok(supported(time.0 as f64, above, Counted::Messages))
        }
        Quantity::Max => {
            let worst = run.worst_case.as_ref().ok_or(GateReason::NothingMeasured)?;
            least(worst.longest_ns.0 as f64, doubts(quantity, run))
        }
        Quantity::Stolen => spun(run).and_then(|()| whole(total.stolen_fraction)),
        Quantity::Stalls => spun(run).and_then(|()| whole(total.stalls_per_sec)),
        Quantity::Lost => {
            let sum = |of: fn(&jitterscope_model::ThreadAccount) -> Nanos| {
                run.threads.iter().map(of).sum::<Nanos>()
            };
            let (waiting, interrupted) = (sum(|t| t.waiting_ns), sum(|t| t.interrupted_ns));
            let active = sum(|t| t.running_ns) + waiting;
            if active == Nanos::ZERO && wanted(run) > Nanos::ZERO {
                let stolen: Nanos = run.passive.iter().map(PassiveCpu::stolen_ns).sum();
                let value = stolen.0 as f64 / wanted(run).0 as f64;
                return least(value, doubts(quantity, run));
            }
            if active == Nanos::ZERO {
                return Err(GateReason::NoWork);
            }
            let value = (waiting + interrupted).0 as f64 / active.0 as f64;
            least(value, doubts(quantity, run))
        }
        Quantity::Unexplained => {
            nothing_withheld(run)?;
            let attribution = attributed(run)?;
            least(attribution.unexplained.share, doubts(quantity, run))
        }
        Quantity::Unresolved => {
            nothing_withheld(run)?;
            let attribution = attributed(run)?;
            let value = unresolved(run).0 as f64 / attribution.stalled_ns.0.max(1) as f64;
            least(value, doubts(quantity, run))
        }
        Quantity::Hypervisor => of_culprits(quantity, run, &|subject| {
            subject.kind() == CulpritKind::Hypervisor
        }),
        Quantity::Firmware => of_culprits(quantity, run, &|subject| {
            subject.kind() == CulpritKind::Firmware
        }),
        Quantity::Culprit(pattern) if let Some(owner) = OwnerPattern::of(pattern) => {
            owner.measure(quantity, run)
        }
        Quantity::Culprit(pattern) => goes_by_its_process(pattern, run)
            .and_then(|()| of_culprits(quantity, run, &|subject| is_meant(pattern, subject))),
        Quantity::Blocked(reason) => blocked(reason, run),
        Quantity::Coverage => spun(run)
            .and_then(|()| run.trust.coverage.ok_or(GateReason::RecorderKilled))
            .and_then(whole),
        Quantity::Worse(_) => Err(GateReason::OnlyDiffCompares),
    }
}

/// The share of the followed time that threads slept for a reason.
fn blocked(reason: &BlockReason, run: &RunSummary) -> Answer {
    let threads = &run.threads;
    let followed: Nanos = threads.iter().map(|thread| thread.followed_ns()).sum();
    if followed == Nanos::ZERO {
        return Err(GateReason::NobodyFollowed);
    }
    let of = |wanted: &dyn Fn(&BlockReason) -> bool| -> Nanos {
        let rows = threads.iter().flat_map(|thread| &thread.blocked_on);
        let rows = rows.filter(|row| wanted(&row.reason));
        rows.map(|row| row.blocked_ns).sum()
    };
    let share = |time: Nanos| time.0 as f64 / followed.0 as f64;
    let value = share(of(&|own| own == reason));
    let known = of(&|own| *own != BlockReason::NotRecorded);
    let slept: Nanos = threads.iter().map(|thread| thread.blocked_ns).sum();
    let unknown: Nanos = threads.iter().map(|thread| thread.unknown_ns).sum();
    // What a thread did in unknown time is not known either.
    let hidden = share(slept.saturating_sub(known) + unknown);
    let is_asked = *reason == BlockReason::NotRecorded;
    Ok(Measured {
        value,
        doubt: (hidden > 0.0 && !is_asked).then_some(GateReason::ReasonUnknown(hidden)),
        at_least: value,
        at_most: if is_asked { value } else { value + hidden },
    })
}

fn percentile_of(
    percentiles: &Percentiles,
    percentile: Percentile,
    without: GateReason,
) -> Result<f64, GateReason> {
    percentiles
        .get(percentile.name())
        .copied()
        .flatten()
        .map(|ns| ns.0)
        .ok_or(without)
}

/// A percentile, which is a mere estimate if it rests on few values.
fn supported(value: f64, above: f64, of: Counted) -> Measured {
    let needed = SUPPORT;
    let few = above < needed as f64;
    Measured {
        value,
        doubt: few.then_some(GateReason::RestsOnFew { of, above, needed }),
        at_least: if few { 0.0 } else { value },
        at_most: if few { f64::INFINITY } else { value },
    }
}

fn spun(run: &RunSummary) -> Result<(), GateReason> {
    if run.wakeup.is_some() {
        return Err(GateReason::NoProbeSpun(InsteadOfSpinning::Lateness));
    }
    if run.probe.total.measured_ns > Nanos::ZERO {
        return Ok(());
    }
    if run.passive.is_empty() && run.threads.is_empty() {
        return Err(NO_PROBE_SPUN);
    }
    Err(GateReason::NoProbeSpun(InsteadOfSpinning::Work))
}

/// The time in which the owners of watched CPUs had work.
fn wanted(run: &RunSummary) -> Nanos {
    run.passive.iter().map(PassiveCpu::wanted_ns).sum()
}

fn attributed(run: &RunSummary) -> Result<&crate::AttributionSummary, GateReason> {
    proven(run)?;
    run.attribution.as_ref().ok_or(GateReason::NobodyNamed)
}

/// The time of which culprits take a share: the measured time; for followed threads and watched CPUs, the time with
/// work.
pub(super) fn whole_time(run: &RunSummary) -> Nanos {
    if !run.passive.is_empty() {
        return wanted(run);
    }
    if !run.threads.is_empty() {
        // A stopped thread is kept from running, too.
        let wanted =
            |t: &jitterscope_model::ThreadAccount| t.running_ns + t.waiting_ns + t.stopped_ns;
        return run.threads.iter().map(wanted).sum();
    }
    match run.probe.total.measured_ns {
        Nanos::ZERO => run.run.duration_ns,
        measured => measured,
    }
}

/// The time of matching culprits, of [`whole_time`].
fn of_culprits(quantity: &Quantity, run: &RunSummary, meant: &dyn Fn(&Subject) -> bool) -> Answer {
    proven(run)?;
    let accounts = run.threads.iter().flat_map(|thread| &thread.ran_instead);
    let watched = run.passive.iter().flat_map(|cpu| &cpu.ran_instead);
    let mut taken: Nanos = accounts
        .chain(watched)
        .filter(|row| meant(&row.subject))
        .map(|row| row.total_ns)
        .sum();
    if run.passive.is_empty() && run.threads.is_empty() {
        let attribution = attributed(run)?;
        let rows = attribution
            .culprits
            .iter()
            .chain(&attribution.unexplained.classes);
        taken = rows
            .filter(|row| meant(&row.subject))
            .map(|row| row.total_ns)
            .sum();
    }
    let all = whole_time(run);
    if all == Nanos::ZERO {
        return Err(GateReason::NothingMeasured);
    }
    let share = |time: Nanos| time.0 as f64 / all.0 as f64;
    let value = share(taken);
    match doubts(quantity, run) {
        Some(doubt) => least(value, Some(doubt)),
        None if !means_host(meant) || run.run.hypervisor.is_none() => whole(value),
        None if !run.passive.is_empty() || !run.threads.is_empty() => {
            least(value, Some(GateReason::HostNotRecorded))
        }
        None => {
            let unresolved = unresolved(run);
            let doubt =
                (unresolved > Nanos::ZERO).then(|| GateReason::HostMayHaveTaken(share(unresolved)));
            Ok(Measured {
                value,
                doubt,
                at_least: value,
                at_most: value + share(unresolved),
            })
        }
    }
}

/// Whether the pattern matches the host but not all unresolved time.
fn means_host(meant: &dyn Fn(&Subject) -> bool) -> bool {
    let any = |kind: CulpritKind| {
        Verdict::ALL
            .iter()
            .any(|verdict| verdict.kind() == kind && meant(&Subject::verdict(*verdict)))
    };
    any(CulpritKind::Hypervisor) && !any(CulpritKind::Unresolved)
}

/// Stolen time that no record attributes.
fn unresolved(run: &RunSummary) -> Nanos {
    let classes = run
        .attribution
        .iter()
        .flat_map(|attribution| &attribution.unexplained.classes);
    classes
        .filter(|row| row.subject.kind() == CulpritKind::Unresolved)
        .map(|row| row.total_ns)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stalls of one length come at random. The longest of them, which is any, must not prove a wait beyond the true
    /// percentile in more than one run of forty.
    #[test]
    fn the_longest_stall_proves_too_much_in_one_run_of_forty_at_most() {
        let (length, above) = (Nanos(900_000_000), 0.001);
        for expected in [0.005, 0.02, 0.025, 0.03, 0.1, 1.0] {
            let measured = Nanos(10_000_000_000);
            // P(wait > r) = expected * (length - r) / measured, which is `above` at the percentile.
            let percentile = length.0 as f64 - above * measured.0 as f64 / expected;
            let proven = supported_by_longest(length, measured, above);
            let runs_with_a_stall = 1.0 - f64::exp(-expected);
            let wrong = if proven > percentile {
                runs_with_a_stall
            } else {
                0.0
            };
            assert!(wrong <= 0.025 + 1e-6, "{expected}: {wrong}");
        }
    }
}
