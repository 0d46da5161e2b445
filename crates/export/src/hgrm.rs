//! `hgrm`: the percentile table that HdrHistogram's plotters read, of all stalls, values in ns.

use crate::error::ExportError;
use crate::facts::RunFacts;
use crate::output::Output;
use crate::{Delivery, Exporter};
use hdrhistogram::Histogram;
use jitterscope_model::{Attribution, CpuId, IntervalRow, ProbeResult, Stall};
use std::fmt::Write;

/// Steps per halving of the distance to 100 %, as HdrHistogram's own tools have it.
const STEPS: u32 = 5;

/// Writes one file.
pub(crate) struct Hgrm {
    output: Output,
    cpu: Option<CpuId>,
    all: Option<Histogram<u64>>,
}

impl Hgrm {
    /// Of one CPU, or of all.
    pub(crate) fn new(output: Output, cpu: Option<CpuId>) -> Hgrm {
        Hgrm { output, cpu, all: None }
    }
}

impl Exporter for Hgrm {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), ExportError> {
        self.output.begin()
    }

    fn stall(&mut self, _stall: &Stall, _attribution: Option<&Attribution>) -> Result<(), ExportError> {
        Ok(())
    }

    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) -> Result<(), ExportError> {
        if self.cpu.is_some_and(|cpu| cpu != row.cpu) {
            return Ok(());
        }
        match &mut self.all {
            Some(all) => all.add(lengths).map_err(|e| ExportError::Histogram(e.to_string()))?,
            None => self.all = Some(lengths.clone()),
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _results: &[ProbeResult]) -> Result<Delivery, ExportError> {
        let (text, rows) = match &self.all {
            Some(all) => (table(all), all.len()),
            None => (String::new(), 0),
        };
        self.output.write(text)?;
        self.output.finish()?;
        Ok(Delivery::of(rows))
    }
}

/// The table of a histogram.
fn table(histogram: &Histogram<u64>) -> String {
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut total = 0;
    for step in histogram.iter_quantiles(STEPS) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to() as f64, step.quantile_iterated_to());
        let row = if quantile < 1.0 {
            let inverse = 1.0 / (1.0 - quantile);
            writeln!(text, "{value:12.3} {quantile:2.12} {total:10} {inverse:14.2}")
        } else {
            writeln!(text, "{value:12.3} {quantile:2.12} {total:10}")
        };
        debug_assert!(row.is_ok(), "a String takes everything");
    }
    let buckets = (64 - histogram.high().leading_zeros()).saturating_sub(11) + 1;
    text.push_str(&format!(
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]\n#[Buckets = {buckets:12}, SubBuckets     = {:12}]\n",
        histogram.mean(),
        histogram.stdev(),
        histogram.max() as f64,
        histogram.len(),
        2048,
    ));
    text
}
