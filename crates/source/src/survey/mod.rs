//! Lists every source of evidence on this machine, available or not.
//!
//! [`survey`] only reads, and leaves the machine unchanged: it makes no instance and sets nothing, and it unmounts
//! tracefs again if it had to mount it.

mod clock;
mod kernel;
mod namespace;
mod proc_files;

pub use clock::sources;
pub use namespace::{in_namespace, problem_in_namespace};

use crate::tracefs::Tracefs;
use jitterscope_model::{ClockKind, SourceReport};
use jitterscope_platform::Machine;

/// All sources, in order of importance.
#[must_use]
pub fn survey(machine: &Machine, clock: ClockKind) -> Vec<SourceReport> {
    let tracefs = Tracefs::open(machine);
    let tracefs = tracefs.as_ref();
    let symbols = kernel::symbols(machine);
    let stacks = kernel::stacks(tracefs, &symbols);
    let mut reports = vec![
        kernel::tracefs(tracefs),
        kernel::senders(tracefs),
        kernel::trace_clock(tracefs, clock),
        symbols,
        stacks,
    ];
    reports.extend(proc_files::all(machine));
    reports.push(kernel::smi(machine));
    reports.push(kernel::function_graph(tracefs));
    reports.push(kernel::osnoise(tracefs));
    reports
        .into_iter()
        .map(|report| in_namespace(machine, report))
        .collect()
}

#[cfg(test)]
mod tests;
