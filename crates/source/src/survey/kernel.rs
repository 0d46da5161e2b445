//! Sources inside the kernel: its events, clock and names, and what watches from below it.

use super::{absent, available};
use crate::smi::{SmiCounter, SmiError};
use crate::symbols::{Symbols, SymbolsError};
use crate::tracefs::{
    TraceError, Tracefs, clock_name, graph_support, missing_local, missing_senders, refused,
};
use jitterscope_model::{ClockKind, CpuId, SourceReport, SourceStatus};
use jitterscope_platform::Machine;
use rustix::fs::{Access, AtFlags, CWD, accessat};

const TRACEFS_LOSES: &str = "who caused a stall: stalls are counted, not attributed";
const SENDERS_LOSE: &str = "who sent an interrupt, woke a thread or queued work";
const CLOCK_LOSES: &str = "kernel events on the probe's own clock";
const GRAPH_LOSES: &str = "what takes the time inside a kernel function (record --graph)";
const OSNOISE_LOSES: &str =
    "a second opinion: the kernel's own tool for noise, to compare with (rtla osnoise)";
const SMI_LOSES: &str = "whether firmware took the time (system management interrupts)";

type Found<'a> = Result<&'a Tracefs, &'a TraceError>;

/// Whether instances can be made, and which of `missing`'s events there are.
fn events(
    name: &str,
    tracefs: Found<'_>,
    all_lost: &str,
    missing: impl Fn(&Tracefs) -> (Vec<String>, Vec<&'static str>),
) -> SourceReport {
    let tracefs = match tracefs {
        Ok(tracefs) => tracefs,
        Err(error) => return refused(name, all_lost, error),
    };
    let instances = tracefs.machine().path(format!("{}/instances", tracefs.root()));
    // By the effective capabilities: plain access(2) ignores those of an ordinary user.
    if accessat(CWD, &instances, Access::WRITE_OK, AtFlags::EACCESS).is_err() {
        return refused(name, all_lost, &TraceError::NoPermission { path: instances });
    }
    let (missing, loses) = missing(tracefs);
    if missing.is_empty() {
        return available(name);
    }
    absent(
        name,
        SourceStatus::Degraded,
        format!("this kernel lacks {}", missing.join(", ")),
        &loses.join("; "),
        "use a newer kernel, or one that has these events built in",
    )
}

pub(super) fn tracefs(tracefs: Found<'_>) -> SourceReport {
    events("tracefs", tracefs, TRACEFS_LOSES, missing_local)
}

pub(super) fn senders(tracefs: Found<'_>) -> SourceReport {
    events("senders", tracefs, SENDERS_LOSE, missing_senders)
}

pub(super) fn trace_clock(tracefs: Found<'_>, clock: ClockKind) -> SourceReport {
    let clocks = match tracefs {
        Ok(tracefs) => tracefs.clocks(),
        Err(error) => return refused("trace-clock", CLOCK_LOSES, error),
    };
    let wanted = clock_name(clock);
    match clocks {
        Ok(clocks) if clocks.offered.iter().any(|clock| clock == wanted) => available("trace-clock"),
        Ok(clocks) => {
            let error = TraceError::ClockRefused { wanted, got: clocks.offered.join(", ") };
            refused("trace-clock", CLOCK_LOSES, &error)
        }
        Err(error) => refused("trace-clock", CLOCK_LOSES, &error),
    }
}

pub(super) fn symbols(machine: &Machine) -> SourceReport {
    let loses = "names of kernel functions: timers, work and called functions stay addresses";
    match Symbols::load(machine) {
        Ok(_) => available("symbols"),
        Err(error) => {
            let (status, fix) = match &error {
                SymbolsError::Hidden { kptr_restrict } if kptr_restrict == "2" => {
                    (SourceStatus::Denied, "sysctl kernel.kptr_restrict=1 (readers then need CAP_SYSLOG)")
                }
                SymbolsError::Hidden { .. } => (SourceStatus::Denied, "run with CAP_SYSLOG"),
                SymbolsError::Read(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                    (SourceStatus::Denied, "let this user read /proc/kallsyms")
                }
                SymbolsError::Read(_) | SymbolsError::Empty => {
                    (SourceStatus::Absent, "use a kernel built with CONFIG_KALLSYMS")
                }
            };
            absent("symbols", status, error.to_string(), loses, fix)
        }
    }
}

/// Whether kernel functions can be looked into.
pub(super) fn function_graph(tracefs: Found<'_>) -> SourceReport {
    let supported = match tracefs {
        Ok(tracefs) => graph_support(tracefs),
        Err(error) => return refused("function_graph", GRAPH_LOSES, error),
    };
    match supported {
        Ok(()) => available("function_graph"),
        Err(error) => refused("function_graph", GRAPH_LOSES, &error),
    }
}

/// Whether the kernel measures noise and lateness itself, which another tool can show.
pub(super) fn osnoise(tracefs: Found<'_>) -> SourceReport {
    let tracers = match tracefs {
        Ok(tracefs) => tracefs.machine().read(format!("{}/available_tracers", tracefs.root())),
        Err(error) => return refused("osnoise", OSNOISE_LOSES, error),
    };
    match tracers {
        Ok(tracers) if tracers.split_whitespace().any(|tracer| tracer == "osnoise") => available("osnoise"),
        Ok(_) => absent(
            "osnoise",
            SourceStatus::Absent,
            "this kernel has no tracer osnoise",
            OSNOISE_LOSES,
            "use a kernel built with CONFIG_OSNOISE_TRACER",
        ),
        Err(error) => refused("osnoise", OSNOISE_LOSES, &error.into()),
    }
}

/// Whether `/proc/cpuinfo` says that this is a virtual machine.
fn is_virtual(machine: &Machine) -> bool {
    let text = machine.read("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

pub(super) fn smi(machine: &Machine) -> SourceReport {
    let first = machine.list("/dev/cpu").iter().filter_map(|name| name.parse().ok()).min();
    match SmiCounter::open(machine, CpuId(first.unwrap_or(0))) {
        Ok(_) if is_virtual(machine) => absent(
            "smi",
            SourceStatus::Degraded,
            "this is a virtual machine: its counter does not see the host's firmware",
            SMI_LOSES,
            "count on the host",
        ),
        Ok(_) => available("smi"),
        Err(error) => {
            let (status, fix) = match &error {
                _ if is_virtual(machine) => (SourceStatus::Absent, "count on the host"),
                SmiError::NoDevice(_) => (SourceStatus::Absent, "modprobe msr"),
                SmiError::Denied(_) => {
                    (SourceStatus::Denied, "run as root with CAP_SYS_RAWIO, without kernel lockdown")
                }
                SmiError::NoRegister(_) | SmiError::Read { .. } => (SourceStatus::Absent, ""),
            };
            absent("smi", status, error.to_string(), SMI_LOSES, fix)
        }
    }
}
