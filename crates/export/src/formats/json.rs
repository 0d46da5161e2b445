//! `json`: one JSON object a line, so that a run of any length streams.
//!
//! `type` says what a line is: `run` (first), `stall`, `interval`, `end` (last, with each CPU's totals).

use super::Format;
use crate::error::ExportError;
use crate::exporter::Exporter;
use crate::output::Output;
use jitterscope_model::{
    Attribution, Delivery, IntervalRow, Row, RunFacts, RunManifest, SCHEMA_VERSION, Sink, SinkError, Stall,
    visible_json,
};
use serde_json::{Value, json};

/// Its row.
pub(super) static FORMAT: Format = Format {
    schemes: &["json"],
    usage: &[("json://FILE", "JSON lines: run, stalls with culprits, intervals, end")],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::file(address.path()?, Json::new))
    },
};

/// Writes one file.
struct Json {
    output: Output,
    facts: Option<RunFacts>,
    written: u64,
}

impl Json {
    fn new(output: Output) -> Json {
        Json { output, facts: None, written: 0 }
    }

    fn line(&mut self, value: &Value) -> Result<(), ExportError> {
        self.output.write(format!("{}\n", visible_json(&value.to_string())))
    }

    fn stall(&mut self, stall: &Stall, attribution: Option<&Attribution>) -> Result<(), ExportError> {
        let Some(facts) = &self.facts else { return Ok(()) };
        let mut value = json!({
            "type": "stall",
            "stall_id": stall.id,
            "cpu": stall.cpu,
            "tid": stall.victim.tid,
            "comm": stall.victim.comm.to_string(),
            "start_ns": facts.epoch_ns(stall.start),
            "start_ticks": stall.start,
            "end_ticks": stall.end,
            "duration_ns": facts.rate.nanos(stall.length()),
        });
        if let Some(attribution) = attribution {
            value["parts"] = json!(attribution.parts);
        }
        self.written += 1;
        self.line(&value)
    }

    fn interval(&mut self, row: &IntervalRow) -> Result<(), ExportError> {
        let Some(facts) = &self.facts else { return Ok(()) };
        let value = json!({
            "type": "interval",
            "cpu": row.cpu,
            "start_ns": facts.epoch_ns(row.start),
            "end_ns": facts.epoch_ns(row.end),
            "count": row.count,
            "max_ns": row.max,
            "stolen_ns": row.stolen,
        });
        self.written += 1;
        self.line(&value)
    }
}

impl Sink for Json {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.facts = Some(facts.clone());
        self.output.begin()?;
        Ok(self.line(&json!({
            "type": "run",
            "schema_version": SCHEMA_VERSION,
            "id": facts.id,
            "label": facts.label,
            "host": facts.hostname,
            "probe": facts.probe,
            "threshold_ns": facts.threshold,
            "interval_ns": facts.interval,
            "start_ns": facts.clock.realtime_ns,
            "ticks_per_second": facts.rate.hz,
        }))?)
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => self.stall(stall, *attribution)?,
                Row::Interval(row, _) => self.interval(row)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.output.flush()?;
        Ok(self.written)
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        let rate = self.facts.as_ref().map(|facts| facts.rate);
        let nanos = |ticks| rate.map(|rate| rate.nanos(jitterscope_model::Ticks(ticks)));
        let cpus: Vec<Value> = run
            .results
            .iter()
            .map(|result| {
                json!({
                    "cpu": result.cpu,
                    "samples": result.samples,
                    "measured_ns": nanos(result.sum_ticks),
                    "stalls": result.stalls,
                    "stalled_ns": nanos(result.stalled_ticks),
                    "max_ns": nanos(result.max_ticks),
                    "dropped_records": result.dropped_records,
                })
            })
            .collect();
        self.line(&json!({ "type": "end", "cpus": cpus, "doubts": run.doubts() }))?;
        self.output.finish()?;
        Ok(Delivery::of(self.written))
    }
}
