//! `csv`: one row a stall, or one an interval.
//!
//! The series has what the jitter sampler's file has, in the same first two columns: when an interval
//! ended, and the longest stall in it.

use crate::error::ExportError;
use crate::facts::RunFacts;
use crate::output::Output;
use crate::{Delivery, Exporter};
use hdrhistogram::Histogram;
use jitterscope_model::{Attribution, IntervalRow, ProbeResult, Stall};
use std::borrow::Cow;

/// Which rows a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvRows {
    /// One a stall.
    #[default]
    Stalls,
    /// One an interval and CPU.
    Intervals,
    /// Those intervals that have a stall.
    Series,
}

impl CsvRows {
    /// The rows of this name.
    pub(crate) fn parse(name: &str) -> Option<CsvRows> {
        match name {
            "stalls" => Some(CsvRows::Stalls),
            "intervals" => Some(CsvRows::Intervals),
            "series" => Some(CsvRows::Series),
            _ => None,
        }
    }

    fn header(self) -> &'static str {
        match self {
            CsvRows::Stalls => {
                "start_ns,duration_ns,cpu,tid,comm,stall_id,start_ticks,end_ticks,explained_ns,culprit_kind,culprit,culprit_detail,culprit_ns\n"
            }
            CsvRows::Intervals | CsvRows::Series => "end_ns,max_ns,cpu,start_ns,count,stolen_ns\n",
        }
    }
}

/// Writes one file.
pub(crate) struct Csv {
    output: Output,
    rows: CsvRows,
    facts: Option<RunFacts>,
    written: u64,
}

impl Csv {
    pub(crate) fn new(output: Output, rows: CsvRows) -> Csv {
        Csv { output, rows, facts: None, written: 0 }
    }
}

impl Exporter for Csv {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), ExportError> {
        self.facts = Some(facts.clone());
        self.output.begin()?;
        self.output.write(self.rows.header())
    }

    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) -> Result<(), ExportError> {
        let (CsvRows::Stalls, Some(facts)) = (self.rows, &self.facts) else { return Ok(()) };
        let mut line = format!(
            "{},{},{},{},{},{},{},{},",
            facts.epoch_ns(stall.start),
            facts.rate.nanos(stall.length()).0,
            stall.cpu,
            stall.victim.tid,
            field(&stall.victim.comm.to_string()),
            stall.id.0,
            stall.start.0,
            stall.end.0,
        );
        let worst = attribution.and_then(|a| a.parts.iter().max_by_key(|part| part.net));
        match (attribution, worst) {
            (Some(attribution), Some(part)) => line.push_str(&format!(
                "{},{},{},{},{}\n",
                attribution.explained().0,
                part.culprit.kind,
                field(&part.culprit.name),
                field(&part.culprit.detail),
                part.net.0,
            )),
            _ => line.push_str(",,,,\n"),
        }
        self.written += 1;
        self.output.write(line)
    }

    fn interval(&mut self, row: &IntervalRow, _lengths: &Histogram<u64>) -> Result<(), ExportError> {
        let Some(facts) = &self.facts else { return Ok(()) };
        let wanted = match self.rows {
            CsvRows::Stalls => false,
            CsvRows::Intervals => true,
            CsvRows::Series => row.count > 0,
        };
        if !wanted {
            return Ok(());
        }
        let line = format!(
            "{},{},{},{},{},{}\n",
            facts.epoch_ns(row.end),
            row.max.0,
            row.cpu,
            facts.epoch_ns(row.start),
            row.count,
            row.stolen.0,
        );
        self.written += 1;
        self.output.write(line)
    }

    fn tick(&mut self) -> Result<(), ExportError> {
        self.output.flush()
    }

    fn finish(self: Box<Self>, _results: &[ProbeResult]) -> Result<Delivery, ExportError> {
        self.output.finish()?;
        Ok(Delivery::of(self.written))
    }
}

/// A field as RFC 4180 has it.
fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}
