//! Traces the calls inside kernel functions during a recording, and measures what that costs.

use crate::names::LiveNames;
use crate::price::RecordClock;
use jitterscope_attribute::NameResolver;
use jitterscope_model::{
    CallRecord, ClockKind, CpuSet, GraphPrice, RawPage, RecordCost, Row, Sink, SinkError,
    SourceProblem, SourceReport, TickRate, Ticks,
};
use jitterscope_platform::Machine;
use jitterscope_source::tracefs::graph_functions;
use jitterscope_source::{
    CallDecoder, CallGraph, ContextError, GraphSettings, Role, TraceContext, TraceError, Tracefs,
};

/// The function behind a thread's renaming of itself: tracing it shows what a record costs.
const PRICED: &str = "__set_task_comm";

/// Why functions cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// The kernel's tracer failed.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Its records cannot be read.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Its record formats are missing.
    #[error("the kernel does not say what function_graph writes (events/ftrace/funcgraph_entry)")]
    NoFormat,
}

impl GraphError {
    /// The problem as a source report states it.
    #[must_use]
    pub fn problem(&self) -> SourceProblem {
        match self {
            GraphError::Trace(error) => error.problem(),
            GraphError::Context(error) => error.problem(),
            GraphError::NoFormat => SourceProblem::EventsMissing {
                events: vec!["ftrace:funcgraph_entry".into()],
            },
        }
    }
}

/// Which functions to trace.
pub(crate) struct GraphChoice<'a> {
    pub(crate) measured: &'a CpuSet,
    pub(crate) clock: ClockKind,
    pub(crate) rate: TickRate,
    pub(crate) buffer_kib: u32,
    /// The names as the user gave them.
    pub(crate) functions: &'a [String],
}

/// Kernel functions being traced. Dropping it ends the tracing.
pub(crate) struct FunctionGraph {
    graph: CallGraph,
    decoder: CallDecoder,
    price: GraphPrice,
    from: Ticks,
    until: Ticks,
}

impl FunctionGraph {
    /// Starts tracing and measures what a record costs. Adds the tracer's formats to the recorder's `context`.
    pub(crate) fn start(
        machine: &Machine,
        tracefs: &Tracefs,
        context: &mut TraceContext,
        choice: &GraphChoice<'_>,
    ) -> Result<FunctionGraph, GraphError> {
        let settings = GraphSettings {
            measured: choice.measured.clone(),
            clock: choice.clock,
            buffer_kb_per_cpu: u64::from(choice.buffer_kib),
            functions: graph_functions(tracefs, choice.functions)?,
        };
        let priced = graph_functions(tracefs, &[PRICED.to_owned()]).is_ok();
        let first = if priced {
            PRICED
        } else {
            settings.functions.first().map_or(PRICED, String::as_str)
        };
        let mut clock = RecordClock::before(machine, choice.clock);
        let mut graph = CallGraph::start(tracefs, &settings, first)?;
        let before = graph.written();
        let recorded = clock.as_mut().and_then(|clock| clock.longer(choice.rate));
        let records = (graph.written() - before) / RecordClock::CALLS;
        graph.begin()?;
        let beside = clock.as_mut().and_then(|clock| clock.longer(choice.rate));
        graph.describe(context);
        let decoder = CallDecoder::new(context)?.ok_or(GraphError::NoFormat)?;
        let price = GraphPrice {
            functions: graph.functions().to_vec(),
            records: 0,
            lost: 0,
            record: recorded.and_then(|recorded| of_one(recorded, beside, records)),
            beside_ns: beside.map(|beside| beside.warm_ns),
        };
        Ok(FunctionGraph {
            graph,
            decoder,
            price,
            from: Ticks(u64::MAX),
            until: Ticks(u64::MAX),
        })
    }

    /// Counts records between these times.
    pub(crate) fn measure(&mut self, from: Ticks, until: Ticks) {
        (self.from, self.until, self.price.records) = (from, until, 0);
    }

    /// Keeps what was recorded so far and names its functions.
    pub(crate) fn turn(&mut self, keep: &mut dyn Sink, names: &LiveNames) -> Result<(), SinkError> {
        let mut kept = Ok(());
        for cpu in self.graph.cpus().clone().iter() {
            let (decoder, price, window) = (&self.decoder, &mut self.price, self.from..=self.until);
            let mut page = |bytes: &[u8]| {
                let range = decoder.page(cpu, bytes, |call: CallRecord| {
                    price.records += u64::from(window.contains(&call.time));
                    names.function(call.function);
                });
                if let (Ok(Some((first, last))), Ok(())) = (range, &kept) {
                    kept = keep.rows(&[Row::Page(RawPage {
                        role: Role::Graph,
                        cpu,
                        first,
                        last,
                        bytes,
                    })]);
                }
            };
            // An offline CPU calls nothing.
            let _ = self.graph.drain(cpu, &mut page);
        }
        kept
    }

    /// Stops recording; the buffers can still be drained.
    pub(crate) fn stop(&mut self) {
        // If the kernel refuses to stop it, removing the instance ends it.
        let _ = self.graph.stop();
    }

    /// The source report. Called after the last drain.
    pub(crate) fn report(&self) -> SourceReport {
        self.graph.report()
    }

    pub(crate) fn price(&self) -> GraphPrice {
        GraphPrice {
            lost: self.graph.lost(),
            ..self.price.clone()
        }
    }
}

/// Cost of one record: the extra time of a call that made `records` records, minus the extra time of any call.
fn of_one(recorded: RecordCost, beside: Option<RecordCost>, records: u64) -> Option<RecordCost> {
    let beside = beside.unwrap_or(RecordCost {
        warm_ns: Default::default(),
        cold_ns: Default::default(),
    });
    let each = |with: u64, without: u64| with.checked_sub(without)?.checked_div(records);
    let warm_ns = jitterscope_model::Nanos(each(recorded.warm_ns.0, beside.warm_ns.0)?);
    let cold_ns =
        each(recorded.cold_ns.0, beside.cold_ns.0).map_or(warm_ns, jitterscope_model::Nanos);
    (warm_ns.0 > 0).then_some(RecordCost {
        warm_ns,
        cold_ns: cold_ns.max(warm_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Nanos;

    #[test]
    fn a_record_costs_what_is_left_when_the_tracer_itself_is_taken_off() {
        let cost = |warm, cold| RecordCost {
            warm_ns: Nanos(warm),
            cold_ns: Nanos(cold),
        };
        assert_eq!(
            of_one(cost(1000, 3000), Some(cost(200, 400)), 4),
            Some(cost(200, 650))
        );
        assert_eq!(of_one(cost(1000, 900), None, 4), Some(cost(250, 250)));
        // Nothing was recorded, or the difference is lost in noise.
        assert_eq!(of_one(cost(1000, 3000), None, 0), None);
        assert_eq!(of_one(cost(100, 3000), Some(cost(200, 400)), 4), None);
    }
}
