//! Passes a stored run's rows to a sink as a recording does.

use hdrhistogram::Histogram;
use jitterscope_model::{
    Attribution, Delivery, IntervalRow, Row, RunFacts, RunManifest, Sink, SinkError, Stall,
};
use jitterscope_store::RunReader;

/// The rows of a stored run.
pub struct StoredRows {
    pub stalls: Vec<(Stall, Attribution)>,
    pub intervals: Vec<(IntervalRow, Histogram<u64>)>,
}

impl StoredRows {
    pub fn of(run: &RunReader) -> StoredRows {
        let lengths = run
            .interval_histograms()
            .unwrap()
            .map(|stored| stored.unwrap().histogram);
        StoredRows {
            stalls: super::stalls(),
            intervals: run
                .intervals()
                .unwrap()
                .map(Result::unwrap)
                .zip(lengths)
                .collect(),
        }
    }

    /// Stalls before the interval in which they ended.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let (mut rows, mut stalls) = (Vec::new(), self.stalls.iter().peekable());
        for (row, lengths) in &self.intervals {
            while let Some((stall, own)) = stalls.next_if(|(stall, _)| stall.end <= row.end) {
                rows.push(Row::Stall(stall, Some(own)));
            }
            rows.push(Row::Interval(row, lengths));
        }
        rows.extend(stalls.map(|(stall, own)| Row::Stall(stall, Some(own))));
        rows
    }
}

/// Passes all rows to a sink in batches, and checks its answers.
pub fn feed(
    sink: &mut dyn Sink,
    rows: &[Row<'_>],
    at_once: usize,
    run: &RunManifest,
) -> Result<Delivery, SinkError> {
    sink.begin(&RunFacts::of(run))?;
    let (mut taken, mut out) = (0, 0);
    for batch in rows.chunks(at_once) {
        taken += batch.iter().filter(|row| sink.takes(row)).count() as u64;
        sink.rows(batch)?;
        let now = sink.tick()?;
        assert!((out..=taken).contains(&now), "{out} {now} {taken}");
        out = now;
    }
    let delivery = sink.end(run)?;
    assert_eq!(
        (delivery.delivered, delivery.lost),
        (taken, 0),
        "what is taken is delivered"
    );
    Ok(delivery)
}
