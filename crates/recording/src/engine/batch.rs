//! Collects rows and hands them to a sink in batches.

use hdrhistogram::Histogram;
use jitterscope_model::{AttributedStall, Attribution, IntervalRow, Row, Sink, SinkError, Stall};

/// Maximum number of waiting stalls.
const MOST: usize = 1024;

/// Stalls of a turn that were not handed over yet.
#[derive(Default)]
pub(crate) struct Batch {
    stalls: Vec<AttributedStall>,
}

impl Batch {
    pub(crate) fn stall(
        &mut self,
        sink: &mut dyn Sink,
        stall: Stall,
        attribution: Option<Attribution>,
    ) -> Result<(), SinkError> {
        self.stalls.push((stall, attribution));
        if self.stalls.len() >= MOST {
            self.flush(sink)
        } else {
            Ok(())
        }
    }

    /// Adds an interval after its stalls.
    pub(crate) fn interval(
        &mut self,
        sink: &mut dyn Sink,
        row: &IntervalRow,
        lengths: &Histogram<u64>,
    ) -> Result<(), SinkError> {
        self.flush(sink)?;
        sink.rows(&[Row::Interval(row, lengths)])
    }

    /// Hands over what is waiting.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        if self.stalls.is_empty() {
            Ok(())
        } else {
            sink.stalls(&mut self.stalls)
        }
    }
}
