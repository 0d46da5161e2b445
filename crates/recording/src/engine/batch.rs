//! Rows on their way to a sink, some at a time.

use hdrhistogram::Histogram;
use jitterscope_model::{Attribution, IntervalRow, Row, Sink, SinkError, Stall};

/// Stalls that wait at most.
const MOST: usize = 1024;

/// The stalls of a turn that were not handed over yet.
#[derive(Default)]
pub(crate) struct Batch {
    stalls: Vec<(Stall, Option<Attribution>)>,
}

impl Batch {
    /// One more stall.
    pub(crate) fn stall(
        &mut self,
        sink: &mut dyn Sink,
        stall: Stall,
        attribution: Option<Attribution>,
    ) -> Result<(), SinkError> {
        self.stalls.push((stall, attribution));
        if self.stalls.len() >= MOST { self.flush(sink) } else { Ok(()) }
    }

    /// An interval, behind its stalls.
    pub(crate) fn interval(
        &mut self,
        sink: &mut dyn Sink,
        row: &IntervalRow,
        lengths: &Histogram<u64>,
    ) -> Result<(), SinkError> {
        self.hand_over(sink, Some(Row::Interval(row, lengths)))
    }

    /// Hands over what waits.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), SinkError> {
        if self.stalls.is_empty() { Ok(()) } else { self.hand_over(sink, None) }
    }

    fn hand_over(&mut self, sink: &mut dyn Sink, last: Option<Row<'_>>) -> Result<(), SinkError> {
        let stalls = self.stalls.iter().map(|(stall, own)| Row::Stall(stall, own.as_ref()));
        let rows: Vec<Row<'_>> = stalls.chain(last).collect();
        sink.rows(&rows)?;
        self.stalls.clear();
        Ok(())
    }
}
