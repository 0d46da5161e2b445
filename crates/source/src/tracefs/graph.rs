//! What happens inside kernel functions: the tracer `function_graph`, in an instance of its own.
//!
//! The instance is ours, but which functions are looked into stands in `set_graph_function`, which is one file for
//! the whole kernel. So nobody else may have written to it, it is emptied at the end, and the instance itself is the
//! note that we wrote to it: whoever removes a leftover of this role empties the file first.

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
/// The functions that can be.
const AVAILABLE: &str = "available_filter_functions";
/// The events that it writes; later kernels write the second where they also tell from where a function was called.
const EVENTS: [&str; 3] = ["funcgraph_entry", "fgraph_retaddr_entry", "funcgraph_exit"];
/// Where the kernel begins to work for somebody: work items, softirqs, interrupts of devices, of the local timer and
/// of other CPUs. Not every kernel has each.
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

/// What is to be looked into, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// CPUs whose functions are wanted.
    pub measured: CpuSet,
    /// The probe's clock: records are stamped with the same.
    pub clock: ClockKind,
    /// Buffer of each measured CPU, KiB. A call takes about 70 bytes.
    pub buffer_kb_per_cpu: u64,
    /// Functions of the kernel, or `culprit` for those with which it begins to work for anybody.
    pub functions: Vec<String>,
}

/// The kernel functions that are meant: `culprit` becomes those with which this kernel begins to work for somebody.
///
/// # Errors
/// The kernel has no such tracer; it has no such function, or inlined it.
pub fn graph_functions(tracefs: &Tracefs, asked: &[String]) -> Result<Vec<String>, TraceError> {
    // A kernel that is locked down may refuse the list, and then lacks the tracer, too: that is what there is to say.
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
    // A module's functions have its name behind theirs.
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

/// Whether functions can be looked into, as far as that is known without trying: nothing is made or set.
///
/// # Errors
/// The kernel has no such tracer, has it for one user only, or somebody else uses it.
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
    // Whoever made a kernel may have brought it to an older one: only trying shows that.
    if version(&release).is_some_and(|version| version < FIRST_IN_INSTANCES) {
        return Err(TraceError::GraphForOne);
    }
    is_free(tracefs)
}

/// The first release that lets several users have the tracer at once.
const FIRST_IN_INSTANCES: (u32, u32) = (6, 11);

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn offers(tracers: &str) -> bool {
    tracers.split_whitespace().any(|tracer| tracer == TRACER)
}

/// Nobody has chosen functions.
fn is_free(tracefs: &Tracefs) -> Result<(), TraceError> {
    let text = tracefs
        .machine()
        .read(format!("{}/{FUNCTIONS}", tracefs.root()))?;
    // Where there are none the kernel says so, in a line that begins like a comment.
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

/// Functions that are being looked into. Dropping it ends that.
#[derive(Debug)]
pub struct CallGraph {
    side: Side,
    tracefs: Tracefs,
    settings: GraphSettings,
    buffer: Vec<u8>,
}

impl CallGraph {
    /// Makes the instance and begins to look into `first`, on all CPUs, so that it can be measured what that takes;
    /// nothing is kept of it. [`CallGraph::begin`] turns to what was asked for.
    ///
    /// # Errors
    /// It cannot be had: the kernel has no such tracer, lets no instance have it, or somebody else uses it; a
    /// function that it does not have. Nothing is left behind then.
    pub fn start(
        tracefs: &Tracefs,
        settings: &GraphSettings,
        first: &str,
    ) -> Result<CallGraph, TraceError> {
        is_free(tracefs)?;
        let instance = Instance::create(tracefs, ROLE)?;
        // In an instance only those are listed that it may have.
        if !offers(&instance.read("available_tracers").unwrap_or_default()) {
            return Err(graph_support(tracefs)
                .err()
                .unwrap_or(TraceError::GraphForOne));
        }
        let everywhere = everywhere(tracefs);
        let (clock, kb) = (settings.clock, settings.buffer_kb_per_cpu);
        let side = Side::without_events(instance, clock, &settings.measured, kb)?;
        let buffer = vec![0; side.layout.page_size()];
        // From here on dropping undoes everything.
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

    /// From now on what was asked for is looked into, on the measured CPUs.
    ///
    /// # Errors
    /// The kernel does not have one of the functions.
    pub fn begin(&mut self) -> Result<(), TraceError> {
        // As long as none is chosen, all are looked into.
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
            // The kernel takes a name for whole when something stands behind it.
            self.tracefs
                .writer()
                .write(&file, &format!("{function}\n"))
                .map_err(refused)?;
        }
        Ok(())
    }

    /// What is looked into.
    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.settings.functions
    }

    /// Records that were written so far, read or not, on whichever CPU.
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

    /// Adds what its pages need to be decoded.
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

    /// The CPUs whose functions are looked into.
    #[must_use]
    pub fn cpus(&self) -> &CpuSet {
        &self.settings.measured
    }

    /// Ends recording; what is in the buffers can still be drained.
    ///
    /// # Errors
    /// The kernel refuses (it does not, in practice).
    pub fn stop(&mut self) -> Result<(), TraceError> {
        self.side.set_tracing(false)
    }

    /// Records that were lost so far.
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

    /// What was recorded. After the last drain.
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
        // Nothing can be reported from here; what stays behind, the next start finds and removes.
        let _ = self.side.set_tracing(false);
        let _ = self.side.instance().write("current_tracer", "nop");
        forget_functions(&self.tracefs);
    }
}

/// All CPUs that are online.
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
