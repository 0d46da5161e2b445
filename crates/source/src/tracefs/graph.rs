//! Traces the inside of kernel functions with the tracer `function_graph`, in an instance of its own.
//!
//! The instance is ours, but the choice of functions is in `set_graph_function`, a single file for the whole kernel. So
//! this requires that no other process has written to that file, and empties it at the end. The instance itself marks
//! the file as ours: the removal of a leftover instance with this role first empties the file.

use super::graph_functions::{FUNCTIONS, ROLE, forget_functions};
use super::instance::Instance;
use super::pipe::{CpuLoss, Drained};
use super::side::Side;
use super::{TraceError, Tracefs};
use crate::context::{FormatText, TraceContext};
use jitterscope_model::{
    ClockKind, CpuId, CpuSet, SourceLoss, SourceProblem, SourceReport, SourceStatus,
};

/// The kernel's name of the tracer.
const TRACER: &str = "function_graph";
/// The list of functions that can be traced.
const AVAILABLE: &str = "available_filter_functions";
/// The tracer's events; later kernels write the second one where they also record the caller.
const EVENTS: [&str; 3] = ["funcgraph_entry", "fgraph_retaddr_entry", "funcgraph_exit"];
/// The functions where the kernel begins work on behalf of others: work items, softirqs, interrupts of devices, of the
/// local timer and of other CPUs. Not every kernel has all of them.
const BEGINNINGS: [&str; 9] = [
    "process_one_work",
    "handle_softirqs",
    "__do_softirq",
    "__common_interrupt",
    "__sysvec_apic_timer_interrupt",
    "__sysvec_call_function_single",
    "__sysvec_call_function",
    "__sysvec_reschedule_ipi",
    "__sysvec_irq_work",
];
/// The word for all of [`BEGINNINGS`].
const CULPRIT: &str = "culprit";

/// What to trace, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// CPUs whose functions are traced.
    pub measured: CpuSet,
    /// The probe's clock, which the records use, too.
    pub clock: ClockKind,
    /// Buffer of each measured CPU, KiB. A call takes about 70 bytes.
    pub buffer_kb_per_cpu: u64,
    /// Functions of the kernel, or `culprit` for those where it begins work on behalf of others.
    pub functions: Vec<String>,
}

/// Resolves the requested functions: `culprit` becomes the functions where this kernel begins work on behalf of others.
///
/// # Errors
/// The kernel has no such tracer; it has no such function, or inlined it.
pub fn graph_functions(tracefs: &Tracefs, asked: &[String]) -> Result<Vec<String>, TraceError> {
    // A locked-down kernel may refuse the list. It also has no tracer then, which is the better message.
    if !offers(
        &tracefs
            .machine()
            .read(format!("{}/available_tracers", tracefs.root()))?,
    ) {
        return Err(TraceError::NoGraph);
    }
    let text = tracefs
        .machine()
        .read(format!("{}/{AVAILABLE}", tracefs.root()))?;
    // A module's functions are followed by the module's name.
    let known: std::collections::HashSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let mut functions: Vec<String> = Vec::new();
    for name in asked {
        if name == CULPRIT {
            functions.extend(
                BEGINNINGS
                    .iter()
                    .filter(|name| known.contains(*name))
                    .map(|n| (*n).to_owned()),
            );
        } else if known.contains(name.as_str()) {
            functions.push(name.clone());
        } else {
            return Err(TraceError::NoFunction { name: name.clone() });
        }
    }
    functions.dedup();
    if functions.is_empty() {
        return Err(TraceError::NoFunction {
            name: CULPRIT.to_owned(),
        });
    }
    Ok(functions)
}

/// Checks whether functions can be traced, without making or setting anything.
///
/// # Errors
/// The kernel has no such tracer, has it for one user only, or another process uses it.
pub fn graph_support(tracefs: &Tracefs) -> Result<(), TraceError> {
    if !offers(
        &tracefs
            .machine()
            .read(format!("{}/available_tracers", tracefs.root()))?,
    ) {
        return Err(TraceError::NoGraph);
    }
    let release = tracefs
        .machine()
        .read("/proc/sys/kernel/osrelease")
        .unwrap_or_default();
    // A distributor may have backported it to an older kernel: only trying shows that.
    if version(&release).is_some_and(|version| version < FIRST_IN_INSTANCES) {
        return Err(TraceError::GraphForOne);
    }
    is_free(tracefs)
}

/// The first release in which several users can have the tracer at once.
const FIRST_IN_INSTANCES: (u32, u32) = (6, 11);

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn offers(tracers: &str) -> bool {
    tracers.split_whitespace().any(|tracer| tracer == TRACER)
}

/// Checks that no process has chosen functions.
fn is_free(tracefs: &Tracefs) -> Result<(), TraceError> {
    let text = tracefs
        .machine()
        .read(format!("{}/{FUNCTIONS}", tracefs.root()))?;
    // If none is chosen, the kernel says so in a line that looks like a comment.
    let chosen: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if chosen.is_empty() {
        Ok(())
    } else {
        Err(TraceError::GraphTaken {
            functions: chosen.join(", "),
        })
    }
}

/// A running function trace. Dropping it ends the trace.
#[derive(Debug)]
pub struct CallGraph {
    side: Side,
    tracefs: Tracefs,
    settings: GraphSettings,
    buffer: Vec<u8>,
}

impl CallGraph {
    /// Makes the instance and begins to trace `first`, on all CPUs, so that its overhead can be measured; these records
    /// are discarded. [`CallGraph::begin`] switches to the requested functions.
    ///
    /// # Errors
    /// The kernel has no such tracer, does not allow it in an instance, or another process uses it; or the kernel does
    /// not have the function. Then nothing is left behind.
    pub fn start(
        tracefs: &Tracefs,
        settings: &GraphSettings,
        first: &str,
    ) -> Result<CallGraph, TraceError> {
        is_free(tracefs)?;
        let instance = Instance::create(tracefs, ROLE)?;
        // An instance only lists the tracers that it may have.
        if !offers(&instance.read("available_tracers").unwrap_or_default()) {
            return Err(graph_support(tracefs)
                .err()
                .unwrap_or(TraceError::GraphForOne));
        }
        let everywhere = everywhere(tracefs);
        let (clock, kb) = (settings.clock, settings.buffer_kb_per_cpu);
        let side = Side::without_events(instance, clock, &settings.measured, kb)?;
        let buffer = vec![0; side.layout.page_size()];
        // From here on, dropping undoes everything.
        let mut graph = CallGraph {
            side,
            tracefs: tracefs.clone(),
            settings: settings.clone(),
            buffer,
        };
        for event in EVENTS {
            let path = format!("{}/events/ftrace/{event}/format", tracefs.root());
            if let Ok(text) = tracefs.machine().read(path) {
                let format = FormatText {
                    system: "ftrace".into(),
                    event: event.into(),
                    text,
                };
                graph.side.formats.push(format);
            }
        }
        if let Some(everywhere) = everywhere {
            graph
                .side
                .instance()
                .write("tracing_cpumask", &everywhere.to_mask())?;
        }
        graph.look_into(&[first])?;
        graph.side.instance().write("current_tracer", TRACER)?;
        graph.side.set_tracing(true)?;
        Ok(graph)
    }

    /// From now on traces the requested functions, on the measured CPUs.
    ///
    /// # Errors
    /// The kernel does not have one of the functions.
    pub fn begin(&mut self) -> Result<(), TraceError> {
        // While none is chosen, the tracer would trace all functions.
        self.side.set_tracing(false)?;
        forget_functions(&self.tracefs);
        let functions: Vec<&str> = self.settings.functions.iter().map(String::as_str).collect();
        self.look_into(&functions)?;
        self.side
            .instance()
            .write("tracing_cpumask", &self.settings.measured.to_mask())?;
        self.side.clear()?;
        self.side.open_pipes(&self.settings.measured)?;
        self.side.set_tracing(true)
    }

    fn look_into(&self, functions: &[&str]) -> Result<(), TraceError> {
        for function in functions {
            let file = format!("{}/{FUNCTIONS}", self.tracefs.root());
            let refused = |file| TraceError::Refused {
                value: (*function).to_owned(),
                file,
            };
            // The kernel treats a name as complete only if another character follows.
            self.tracefs
                .write(&file, &format!("{function}\n"))
                .map_err(refused)?;
        }
        Ok(())
    }

    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.settings.functions
    }

    /// The number of records so far, read or not, on all CPUs.
    #[must_use]
    pub fn written(&self) -> u64 {
        let everywhere =
            everywhere(&self.tracefs).unwrap_or_else(|| self.settings.measured.clone());
        let of = |cpu| {
            self.side
                .stats(cpu)
                .map_or(0, |stats| stats.entries + stats.overrun + stats.read)
        };
        everywhere.iter().map(of).sum()
    }

    /// Adds the data that decoding its pages needs.
    pub fn describe(&self, context: &mut TraceContext) {
        context.formats.extend(self.side.formats.iter().cloned());
    }

    /// As [`Recorder::drain`](super::Recorder::drain).
    ///
    /// # Errors
    /// [`TraceError::NoCpu`]: the CPU has gone offline.
    pub fn drain(
        &mut self,
        cpu: CpuId,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<Drained, TraceError> {
        let limit = self.side.buffer_pages * 2 + 2;
        let Some(pipe) = self.side.pipes.iter_mut().find(|pipe| pipe.cpu == cpu) else {
            return Ok(Drained::default());
        };
        pipe.drain(&self.side.layout, &mut self.buffer, limit, sink)
    }

    /// The CPUs whose functions are traced.
    #[must_use]
    pub fn cpus(&self) -> &CpuSet {
        &self.settings.measured
    }

    /// Ends recording; the buffers can still be drained.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn stop(&mut self) -> Result<(), TraceError> {
        self.side.set_tracing(false)
    }

    /// The number of lost records so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let of = |pipe: &super::pipe::Pipe| {
            CpuLoss {
                stats: self.side.stats(pipe.cpu),
                ..pipe.loss
            }
            .total()
        };
        self.side.pipes.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The state of this source. Call it after the last drain.
    #[must_use]
    pub fn report(&self) -> SourceReport {
        match self.lost() {
            0 => SourceReport::available(TRACER),
            lost => SourceReport {
                lost,
                ..SourceReport::limited(
                    TRACER,
                    SourceStatus::Degraded,
                    SourceProblem::CallsLost { lost },
                    SourceLoss::SomeCalls,
                )
            },
        }
    }
}

impl Drop for CallGraph {
    fn drop(&mut self) {
        // Errors cannot be reported from here; the next start finds and removes leftovers.
        let _ = self.side.set_tracing(false);
        let _ = self.side.instance().write("current_tracer", "nop");
        forget_functions(&self.tracefs);
    }
}

fn everywhere(tracefs: &Tracefs) -> Option<CpuSet> {
    tracefs
        .machine()
        .read("/sys/devices/system/cpu/online")
        .ok()?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        for (release, allowed) in [
            ("6.1.0-56-amd64\n", false),
            ("6.11.0", true),
            ("6.12.117+deb12-amd64", true),
            ("7.0-rc1", true),
        ] {
            assert_eq!(
                version(release).is_some_and(|v| v >= FIRST_IN_INSTANCES),
                allowed,
                "{release}"
            );
        }
        assert_eq!(version("unknown"), None);
    }
}
