//! `hgrm`: the percentile table of all stalls that HdrHistogram's plotters read, values in ns.

use super::Format;
use crate::address::Address;
use crate::error::{DestinationError, ExportError};
use crate::exporter::Exporter;
use crate::output::Output;
use hdrhistogram::Histogram;
use jitterscope_model::{
    CpuId, Delivery, IntervalRow, ProbeKind, Row, RunFacts, RunManifest, Sink, SinkError,
};
use std::fmt::Write;

pub(super) static FORMAT: Format = Format {
    schemes: &["hgrm"],
    usage: &[(
        "hgrm://FILE",
        "percentiles of all stalls in ns; ?cpu=N for one CPU. Of a\n\
         pipeline its accumulator's transit, ?of=TAG for another histogram",
    )],
    notes: "",
    read,
};

fn read(address: &Address<'_>) -> Result<Exporter, DestinationError> {
    let path = address.path()?;
    let (mut cpu, mut of) = (None, None);
    for (key, value) in &address.options {
        match *key {
            "cpu" => {
                cpu = Some(CpuId(
                    value.parse().map_err(|_| address.value("cpu", value))?,
                ))
            }
            "of" if !value.is_empty() => of = Some((*value).to_owned()),
            _ => return Err(address.unknown(key, "cpu=N, of=TAG")),
        }
    }
    Ok(Exporter::file(path, move |output| {
        Hgrm::new(output, cpu, of.clone())
    }))
}

/// Steps per halving of the distance to 100 %, as in HdrHistogram's own tools.
const STEPS: u32 = 5;

struct Hgrm {
    output: Output,
    cpu: Option<CpuId>,
    /// The tag of the histogram to write instead of the stalls.
    of: Option<String>,
    /// The tags of the run's whole-run histograms.
    known: Vec<String>,
    all: Option<Histogram<u64>>,
}

/// The default histogram of a pipeline.
const OF_PIPELINE: &str = "pipeline-accumulator-transit";

impl Hgrm {
    /// A table of one CPU's stalls, of all stalls, or of the histogram with a tag.
    fn new(output: Output, cpu: Option<CpuId>, of: Option<String>) -> Hgrm {
        Hgrm {
            output,
            cpu,
            of,
            known: Vec::new(),
            all: None,
        }
    }
}

impl Hgrm {
    fn interval(&mut self, row: &IntervalRow, lengths: &Histogram<u64>) -> Result<(), ExportError> {
        if self.of.is_some() || self.cpu.is_some_and(|cpu| cpu != row.cpu) {
            return Ok(());
        }
        match &mut self.all {
            Some(all) => all
                .add(lengths)
                .map_err(|e| ExportError::Histogram(e.to_string()))?,
            None => self.all = Some(lengths.clone()),
        }
        Ok(())
    }

    fn whole(&mut self, tag: &str, times: &Histogram<u64>) {
        if self.of.as_deref() == Some(tag) {
            self.all = Some(times.clone());
        }
        self.known.push(tag.to_owned());
    }
}

impl Sink for Hgrm {
    fn may_refuse(&self) -> bool {
        self.cpu.is_some()
    }

    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        if let Some(cpu) = self.cpu.filter(|cpu| !facts.cpus.contains(*cpu)) {
            let (path, cpus) = (self.output.path().to_path_buf(), facts.cpus.clone());
            return Err(ExportError::NoSuchCpu { path, cpu, cpus }.into());
        }
        if ProbeKind::from_word(&facts.probe) == Some(ProbeKind::Pipeline) && self.cpu.is_none() {
            self.of.get_or_insert(OF_PIPELINE.into());
        }
        // The tag may not exist; the existing file stays untouched until that is known.
        if self.of.is_none() {
            self.output.begin()?;
        }
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Interval(row, lengths) => self.interval(row, lengths)?,
                Row::Whole(tag, _, times) => self.whole(tag, times),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes stalls; the table is written at the end.
    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(stall, _) if self.of.is_none() && self.cpu.is_none_or(|cpu| cpu == stall.cpu))
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        if let Some(tag) = self.of.take() {
            if self.all.is_none() {
                let path = self.output.path().to_path_buf();
                let known = std::mem::take(&mut self.known);
                return Err(ExportError::NoSuchHistogram { path, tag, known }.into());
            }
            self.output.begin()?;
        }
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
pub(crate) fn table(histogram: &Histogram<u64>) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for (value, level, total) in steps(histogram) {
        let (value, quantile) = (value as f64, level / 100.0);
        let row = if quantile < 1.0 {
            let inverse = 1.0 / (1.0 - quantile);
            writeln!(
                text,
                "{value:12.3} {quantile:2.12} {total:10} {inverse:14.2}"
            )
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

/// (value, percentile, cumulative count) of each row. The library's own iterator multiplies a fraction by the count and
/// is off by one next to whole numbers; this divides, as the Java library does.
fn steps(histogram: &Histogram<u64>) -> Vec<(u64, f64, u64)> {
    let all = histogram.len();
    let (mut rows, mut level, mut total) = (Vec::new(), 0.0f64, 0);
    for bucket in histogram.iter_recorded() {
        total += bucket.count_since_last_iteration();
        let value = histogram.highest_equivalent(bucket.value_iterated_to());
        let reached = 100.0 * total as f64 / all as f64;
        while reached >= level {
            rows.push((value, level, total));
            let halvings = (100.0 / (100.0 - level)).log2().floor() + 1.0;
            level += 100.0 / (f64::from(STEPS) * halvings.exp2());
            if total == all {
                break;
            }
        }
    }
    if let Some((value, ..)) = rows.last().copied() {
        rows.push((value, 100.0, all));
    }
    rows
}
