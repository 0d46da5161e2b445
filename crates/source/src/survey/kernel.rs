//! Sources inside the kernel (its events, clock and names), and sources below it.

use crate::smi::{SmiCounter, virtual_machine};
use crate::symbols::Symbols;
use crate::tracefs::{
    Missing, SleepStacks, TraceError, Tracefs, clock_name, graph_support, missing_local,
    missing_senders, refused, stack_support,
};
use jitterscope_model::{ClockKind, CpuId, SourceLoss, SourceProblem, SourceReport, SourceStatus};
use jitterscope_platform::Machine;

type Found<'a> = Result<&'a Tracefs, &'a TraceError>;

/// Whether instances can be made, and which of `missing`'s events are missing.
fn events(
    name: &str,
    tracefs: Found<'_>,
    all_lost: SourceLoss,
    missing: impl Fn(&Tracefs) -> Missing,
) -> SourceReport {
    let tracefs = match tracefs {
        Ok(tracefs) => tracefs,
        Err(error) => return refused(name, all_lost, error),
    };
    if let Err(error) = tracefs.may_use_instances() {
        return refused(name, all_lost, &error);
    }
    let missing = missing(tracefs);
    if missing.events.is_empty() {
        return SourceReport::available(name);
    }
    SourceReport {
        problems: vec![SourceProblem::EventsMissing {
            events: missing.events,
        }],
        losses: missing.losses.into_iter().collect(),
        ..SourceReport::of_status(name, SourceStatus::Degraded)
    }
}

pub(super) fn tracefs(tracefs: Found<'_>) -> SourceReport {
    events("tracefs", tracefs, SourceLoss::Causes, missing_local)
}

pub(super) fn senders(tracefs: Found<'_>) -> SourceReport {
    events("senders", tracefs, SourceLoss::Senders, missing_senders)
}

pub(super) fn trace_clock(tracefs: Found<'_>, clock: ClockKind) -> SourceReport {
    let clocks = match tracefs {
        Ok(tracefs) => tracefs.clocks(),
        Err(error) => return refused("trace-clock", SourceLoss::ProbeClock, error),
    };
    let wanted = clock_name(clock);
    match clocks {
        Ok(clocks) if clocks.offered.iter().any(|clock| clock == wanted) => {
            SourceReport::available("trace-clock")
        }
        Ok(clocks) => {
            let error = TraceError::ClockRefused {
                wanted,
                got: clocks.offered.join(", "),
            };
            refused("trace-clock", SourceLoss::ProbeClock, &error)
        }
        Err(error) => refused("trace-clock", SourceLoss::ProbeClock, &error),
    }
}

pub(super) fn symbols(machine: &Machine) -> SourceReport {
    match Symbols::load(machine) {
        Ok(_) => SourceReport::available("symbols"),
        Err(error) => error.report(),
    }
}

/// Whether the stacks of sleeping threads can be recorded, and their functions named.
pub(super) fn stacks(tracefs: Found<'_>, symbols: &SourceReport) -> SourceReport {
    let supported = match tracefs {
        Ok(tracefs) => tracefs
            .may_use_instances()
            .and_then(|()| stack_support(tracefs)),
        Err(error) => return SleepStacks::refused(error),
    };
    match supported {
        Ok(()) => SleepStacks::named(symbols),
        Err(error) => SleepStacks::refused(&error),
    }
}

/// Whether kernel functions can be traced.
pub(super) fn function_graph(tracefs: Found<'_>) -> SourceReport {
    let supported = match tracefs {
        Ok(tracefs) => tracefs
            .may_use_instances()
            .and_then(|()| graph_support(tracefs)),
        Err(error) => return refused("function_graph", SourceLoss::FunctionTimes, error),
    };
    match supported {
        Ok(()) => SourceReport::available("function_graph"),
        Err(error) => refused("function_graph", SourceLoss::FunctionTimes, &error),
    }
}

/// Whether the kernel can measure noise and lateness itself, for use with other tools.
pub(super) fn osnoise(tracefs: Found<'_>) -> SourceReport {
    let tracers = match tracefs {
        Ok(tracefs) => tracefs
            .machine()
            .read(format!("{}/available_tracers", tracefs.root())),
        Err(error) => return refused("osnoise", SourceLoss::SecondOpinion, error),
    };
    match tracers {
        Ok(tracers) if tracers.split_whitespace().any(|tracer| tracer == "osnoise") => {
            SourceReport::available("osnoise")
        }
        Ok(_) => SourceReport::limited(
            "osnoise",
            SourceStatus::Absent,
            SourceProblem::NoTracer {
                tracer: "osnoise".into(),
            },
            SourceLoss::SecondOpinion,
        ),
        Err(error) => refused("osnoise", SourceLoss::SecondOpinion, &error.into()),
    }
}

pub(super) fn smi(machine: &Machine) -> SourceReport {
    let first = machine
        .list("/dev/cpu")
        .iter()
        .filter_map(|name| name.parse().ok())
        .min();
    match SmiCounter::open(machine, CpuId(first.unwrap_or(0))) {
        Ok(_) if virtual_machine(machine) => SourceReport::limited(
            "smi",
            SourceStatus::Degraded,
            SourceProblem::VirtualSmiCount,
            SourceLoss::Firmware,
        ),
        Ok(_) => SourceReport::available("smi"),
        Err(error) => error.report(virtual_machine(machine)),
    }
}
