//! Estimates from earlier runs: the length of a run, and its scatter.

use super::experiment_args::{ExperimentArgs, ProbeArg};
use super::experiment_probe::{PERIOD, threshold};
use super::experiment_runners::timed;
use jitterscope_analyze::compare::{ComparedRun, Side, Tail};
use jitterscope_experiment::{Known, OverheadFrom, RunOverhead};
use jitterscope_model::{ClockKind, CpuSet, Nanos, ProbeKind, RunHead};
use jitterscope_store::{RunEntry, RunReader};
use jitterscope_view::compare::load_compared;
use std::path::{Path, PathBuf};

/// The number of runs for an estimate of scatter.
const EARLIER: usize = 12;
/// The largest number of runs read to find those.
const MOST_LOADED: usize = 4 * EARLIER;

/// Runs of one experiment follow each other within this time; a change and its undoing may lie between them.
const NEXT_WITHIN: Nanos = Nanos(30_000_000_000);

/// Reads the newest runs of this kind, length and setting. `trial` finds the time of a run besides its measurement if
/// no earlier ones tell it.
pub fn earlier(
    args: &ExperimentArgs,
    runs: &Path,
    cpus: &CpuSet,
    trial: impl FnOnce() -> Option<RunOverhead>,
) -> Known {
    let all = jitterscope_store::list_own(runs).unwrap_or_default();
    let kind = match args.command.is_empty() {
        true => args.probe.kind(),
        false => ProbeKind::Attach,
    };
    let overhead = overhead(&all, kind).or_else(trial).unwrap_or_default();
    if !args.command.is_empty() {
        return Known {
            overhead,
            ..of_command(&args.command, &all)
        };
    }
    let alike = all.iter().rev().filter(|run| {
        is_of_probe(args, cpus, &run.head)
            && is_alike(args, &run.head)
            && args
                .owner
                .as_deref()
                .is_none_or(|owner| is_taken_from(owner, run))
            && args.clock.kind().is_none_or(|clock| is_read_by(clock, run))
    });
    let (totals, unsupported) = totals(alike, |run| run);
    Known {
        run: Some(args.duration),
        overhead,
        totals,
        unsupported,
    }
}

/// The median time between the measurements of two runs of the same arm that followed each other in an experiment: no
/// change lies between those.
fn overhead(all: &[RunEntry], kind: ProbeKind) -> Option<RunOverhead> {
    let is_of_arm = |run: &RunHead| run.label.ends_with("-A") || run.label.ends_with("-B");
    let between = |pair: &[RunEntry]| {
        let [first, next] = pair else { return None };
        let (first, next) = (&first.head, &next.head);
        let alike = first.label == next.label && is_of_arm(first);
        let of_kind = first.probe.kind() == Some(kind) && next.probe.kind() == Some(kind);
        let ended = first.started_realtime_ns + first.figures.duration_ns.0;
        let time = Nanos(next.started_realtime_ns.checked_sub(ended)?);
        (alike && of_kind && time < NEXT_WITHIN).then_some(time)
    };
    let pairs = all.windows(2).rev();
    let mut times: Vec<Nanos> = pairs.filter_map(between).take(EARLIER).collect();
    times.sort_unstable();
    let time = *times.get(times.len() / 2)?;
    Some(RunOverhead {
        time,
        from: OverheadFrom::EarlierRuns,
    })
}

/// The runs of the newest label with runs of this probe on these CPUs, newest first, of any length and setting.
pub fn of_probe(args: &ExperimentArgs, cpus: &CpuSet, all: &[RunEntry]) -> Vec<PathBuf> {
    let like = |run: &&RunEntry| is_of_probe(args, cpus, &run.head);
    let Some(newest) = all.iter().rev().find(like).map(|run| &run.head.label) else {
        return Vec::new();
    };
    all.iter()
        .rev()
        .filter(like)
        .filter(|run| run.head.label == *newest)
        .map(|run| run.path.clone())
        .collect()
}

fn is_of_probe(args: &ExperimentArgs, cpus: &CpuSet, run: &RunHead) -> bool {
    let anywhere = !args.probe.is_on_cpus() || cpus.is_empty();
    run.probe.kind() == Some(args.probe.kind()) && (anywhere || run.probe.cpus == *cpus)
}

/// Whether a run is complete, and has the length and threshold of the planned runs.
fn is_alike(args: &ExperimentArgs, run: &RunHead) -> bool {
    let near =
        |value: Nanos, wanted: Nanos, parts: u64| value.0.abs_diff(wanted.0) <= wanted.0 / parts;
    let probe = &run.probe;
    let woken = probe
        .wakeup
        .as_ref()
        .map(|of| (of.period_ns, of.hold_latency, of.idle_control));
    !run.interrupted
        && !run.killed
        && near(probe.duration_ns, args.duration, 10)
        // A pipeline's threshold is rounded to clock ticks.
        && near(probe.threshold_ns, threshold(args), 100)
        && woken == (args.probe == ProbeArg::Wakeup).then_some((PERIOD, false, None))
        && probe.fifo_priority.is_none()
}

/// Whether a run watched this owner's CPUs; only its command line says so.
fn is_taken_from(owner: &str, run: &RunEntry) -> bool {
    RunReader::open(&run.path)
        .is_ok_and(|reader| names_owner(&reader.manifest().command_line, owner))
}

fn is_read_by(clock: ClockKind, run: &RunEntry) -> bool {
    RunReader::open(&run.path).is_ok_and(|reader| reader.manifest().clock == clock)
}

fn names_owner(line: &[String], owner: &str) -> bool {
    let apart = line
        .windows(2)
        .any(|words| words[0] == "--for" && words[1] == owner);
    apart
        || line
            .iter()
            .any(|word| word.strip_prefix("--for=") == Some(owner))
}

/// The totals of the newest of these runs, and of those with its label and settings, newest first, and the percentiles
/// that the newest cannot support.
fn totals<'r>(
    runs: impl Iterator<Item = &'r RunEntry>,
    as_measured: fn(ComparedRun) -> ComparedRun,
) -> (Vec<f64>, Vec<Tail>) {
    let mut newest: Option<(&str, ComparedRun)> = None;
    let mut totals = Vec::new();
    let mut loaded = 0;
    for run in runs {
        if newest
            .as_ref()
            .is_some_and(|(label, _)| *label != run.head.label)
        {
            continue;
        }
        if totals.len() == EARLIER || loaded == MOST_LOADED {
            break;
        }
        loaded += 1;
        let Ok(this) = load_compared(&run.path, None).map(as_measured) else {
            continue;
        };
        let belongs = newest.as_ref().is_none_or(|(label, newest)| {
            Side::pool(label, vec![newest.clone(), this.clone()]).is_ok()
        });
        if belongs {
            totals.extend(this.total());
            newest.get_or_insert((&run.head.label, this));
        }
    }
    let unsupported = newest.map(|(_, run)| run.unsupported());
    (totals, unsupported.unwrap_or_default())
}

/// Complete runs of exactly this command: its duration is both the length of a run and its total.
fn of_command(command: &[String], all: &[RunEntry]) -> Known {
    let attached = all
        .iter()
        .rev()
        .filter(|run| run.head.probe.kind() == Some(ProbeKind::Attach));
    let is_of_it = |run: &&RunEntry| {
        let Ok(reader) = RunReader::open(&run.path) else {
            return false;
        };
        let line = &reader.manifest().command_line;
        let after = line
            .iter()
            .position(|word| word == "--")
            .and_then(|at| line.get(at + 1..));
        after == Some(command)
    };
    let of_it: Vec<&RunEntry> = attached
        .filter(|run| !run.head.interrupted && !run.head.killed)
        .filter(is_of_it)
        .take(EARLIER)
        .collect();
    let took = of_it
        .iter()
        .map(|run| run.head.figures.duration_ns)
        .sum::<Nanos>();
    let mean = took.0.checked_div(of_it.len() as u64);
    let (totals, unsupported) = totals(of_it.into_iter(), timed);
    Known {
        run: mean.map(Nanos),
        overhead: RunOverhead::default(),
        totals,
        unsupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watched_program_is_read_from_the_command_line() {
        let of = |line: &str| {
            let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
            names_owner(&line, "rx-thread")
        };
        assert!(
            of("jitterscope record passive --for rx-thread")
                && of("jitterscope experiment --for=rx-thread -q")
        );
        assert!(
            !of("jitterscope record passive --for tx-thread")
                && !of("jitterscope record passive rx-thread")
        );
    }
}
