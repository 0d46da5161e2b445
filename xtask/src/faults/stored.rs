//! A stored recording: its stalls with their parts, on the injectors' clock.

use anyhow::Context;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// A part of a stall, as `export` writes it.
pub struct Part(Value);

impl Part {
    #[cfg(test)]
    pub fn new(value: Value) -> Part {
        Part(value)
    }

    fn word(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_default()
    }

    pub fn kind(&self) -> &str {
        self.word("kind")
    }

    pub fn name(&self) -> &str {
        self.word("name")
    }

    pub fn confidence(&self) -> &str {
        self.word("confidence")
    }

    pub fn cgroup(&self) -> &str {
        self.word("cgroup")
    }

    pub fn net_ns(&self) -> u64 {
        self.0["net_ns"].as_u64().unwrap_or(0)
    }

    pub fn tid(&self) -> Option<u64> {
        self.0["tid"].as_u64()
    }

    /// The thread named as its sender: id and name.
    pub fn sender(&self) -> Option<(u64, Option<&str>)> {
        let sender = &self.0["sender"];
        let tid = sender["tid"].as_u64().filter(|tid| *tid != 0)?;
        Some((tid, sender["comm"].as_str()))
    }

    /// Whether it names no culprit: time without a verdict.
    pub fn is_withheld(&self) -> bool {
        matches!(self.kind(), "unresolved" | "loss")
            || self.kind() == "hypervisor" && self.confidence() == "low"
    }
}

pub struct Stall {
    pub id: u64,
    /// ns of `CLOCK_MONOTONIC_RAW`.
    pub begin: u64,
    pub end: u64,
    pub parts: Vec<Part>,
}

impl Stall {
    /// Its length within these times, ns.
    pub fn within(&self, begin: u64, end: u64) -> u64 {
        self.end.min(end).saturating_sub(self.begin.max(begin))
    }
}

/// A recording's stalls in time order, and its start and end.
pub struct Recording {
    pub begin: u64,
    pub end: u64,
    pub stalls: Vec<Stall>,
}

/// A reading of both clocks: ticks, and ns of `CLOCK_MONOTONIC_RAW`.
fn reading(details: &Value, key: &str) -> anyhow::Result<(u64, u64)> {
    let at = &details[key];
    at["ticks"]
        .as_u64()
        .zip(at["monotonic_raw_ns"].as_u64())
        .with_context(|| format!("the run has no {key}"))
}

impl Recording {
    /// Reads the run's details, and its rows in the format of `export --to json://`.
    pub fn read(details: &Path, rows: &Path) -> anyhow::Result<Recording> {
        let details: Value = serde_json::from_slice(&std::fs::read(details)?)?;
        let (from, to) = (
            reading(&details, "clock_start")?,
            reading(&details, "clock_end")?,
        );
        let ns = |ticks: u64| {
            let (ticks, whole) = (
                i128::from(ticks) - i128::from(from.0),
                i128::from(to.0 - from.0),
            );
            let since = ticks * i128::from(to.1 - from.1) / whole.max(1);
            u64::try_from(i128::from(from.1) + since).unwrap_or(0)
        };
        let mut stalls = Vec::new();
        for line in BufReader::new(std::fs::File::open(rows)?).lines() {
            let mut row: Value = serde_json::from_str(&line?)?;
            if row["type"] != "stall" {
                continue;
            }
            let tick = |key: &str| row[key].as_u64().context("a stall without its time");
            let (id, begin, end) = (tick("stall_id")?, tick("start_ticks")?, tick("end_ticks")?);
            let parts = match row["parts"].take() {
                Value::Array(parts) => parts.into_iter().map(Part).collect(),
                _ => Vec::new(),
            };
            stalls.push(Stall {
                id,
                begin: ns(begin),
                end: ns(end),
                parts,
            });
        }
        Ok(Recording {
            begin: from.1,
            end: to.1,
            stalls,
        })
    }
}
