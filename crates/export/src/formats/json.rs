//! `json`: one JSON object a line, so that a run of any length streams.
//!
//! `type` names the kind of a line: `run` (first), `stall`, `interval`, `end` (last, with each CPU's totals).

use super::Format;
use crate::error::ExportError;
use crate::exporter::Exporter;
use crate::line_file::RowLines;
use jitterscope_model::{
    CpuId, Doubt, Nanos, Part, Row, RunFacts, RunManifest, SCHEMA_VERSION, StallId, Ticks,
    visible_json,
};
use schemars::JsonSchema;
use serde::Serialize;

pub(super) static FORMAT: Format = Format {
    schemes: &["json"],
    usage: &[(
        "json://FILE",
        "JSON lines: run, stalls with culprits, intervals, end",
    )],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::lines(address.path()?, |_| Json))
    },
};

/// A line of the file.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JsonLine<'a> {
    Run {
        schema_version: u32,
        id: &'a str,
        label: &'a str,
        host: &'a str,
        probe: &'a str,
        threshold_ns: Nanos,
        interval_ns: Nanos,
        start_ns: u64,
        ticks_per_second: u64,
    },
    Stall {
        stall_id: StallId,
        cpu: CpuId,
        tid: i32,
        comm: String,
        start_ns: u64,
        start_ticks: Ticks,
        end_ticks: Ticks,
        duration_ns: Nanos,
        #[serde(skip_serializing_if = "Option::is_none")]
        parts: Option<&'a [Part]>,
    },
    Interval {
        cpu: CpuId,
        start_ns: u64,
        end_ns: u64,
        /// Stalls that ended in it.
        count: u64,
        max_ns: Nanos,
        stolen_ns: Nanos,
    },
    End {
        cpus: Vec<CpuTotals>,
        doubts: Vec<Doubt>,
    },
}

#[derive(Serialize, JsonSchema)]
pub struct CpuTotals {
    cpu: CpuId,
    /// Null if the recorder was killed.
    samples: Option<u64>,
    measured_ns: Nanos,
    stalls: u64,
    stalled_ns: Nanos,
    max_ns: Nanos,
    dropped_records: u64,
}

impl JsonLine<'_> {
    fn text(&self) -> Vec<u8> {
        // Serialising cannot fail: the type has no maps with non-text keys, and no value that refuses.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{}\n", visible_json(&text)).into_bytes()
    }
}

/// Makes the lines of one file.
struct Json;

impl RowLines for Json {
    fn head(&mut self, facts: &RunFacts) -> Result<Vec<u8>, ExportError> {
        Ok(JsonLine::Run {
            schema_version: SCHEMA_VERSION,
            id: &facts.id,
            label: &facts.label,
            host: &facts.hostname,
            probe: &facts.probe,
            threshold_ns: facts.threshold,
            interval_ns: facts.interval,
            start_ns: facts.clock.realtime_ns,
            ticks_per_second: facts.rate.hz,
        }
        .text())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    fn line(&mut self, facts: &RunFacts, row: &Row<'_>) -> Result<Vec<u8>, ExportError> {
        Ok(match row {
            Row::Stall(stall, attribution) => JsonLine::Stall {
                stall_id: stall.id,
                cpu: stall.cpu,
                tid: stall.victim.tid,
                comm: stall.victim.comm.to_string(),
                start_ns: facts.epoch_ns(stall.start),
                start_ticks: stall.start,
                end_ticks: stall.end,
                duration_ns: facts.rate.nanos(stall.length()),
                parts: attribution.map(|of| of.parts.as_slice()),
            }
            .text(),
            Row::Interval(row, _) => JsonLine::Interval {
                cpu: row.cpu,
                start_ns: facts.epoch_ns(row.start),
                end_ns: facts.epoch_ns(row.end),
                count: row.count,
                max_ns: row.max,
                stolen_ns: row.stolen,
            }
            .text(),
            Row::Whole(..) | Row::Page(_) | Row::Turn(_) | Row::Context(_) => Vec::new(),
        })
    }

    fn foot(&mut self, facts: &RunFacts, run: &RunManifest) -> Result<Vec<u8>, ExportError> {
        let nanos = |ticks| facts.rate.nanos(Ticks(ticks));
        let cpus = run.results.iter().map(|result| CpuTotals {
            cpu: result.cpu,
            samples: (!run.killed).then_some(result.samples),
            measured_ns: match run.killed {
                true => facts.rate.nanos(result.end.since(result.start)),
                false => nanos(result.sum_ticks),
            },
            stalls: result.stalls,
            stalled_ns: nanos(result.stalled_ticks),
            max_ns: nanos(result.max_ticks),
            dropped_records: result.dropped_records,
        });
        Ok(JsonLine::End {
            cpus: cpus.collect(),
            doubts: run.doubts(),
        }
        .text())
    }
}
