//! The Parquet tables as another reader, DuckDB, sees them.
//!
//! Needs `python3` with venv, and the Python package index or its cache; without them the test prints a note and
//! passes.

use crate::common;

use jitterscope_export::export_run;
use jitterscope_model::CulpritTable;
use jitterscope_store::{Column, RunReader, SCHEMA};
use jitterscope_testing::python;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const DUCKDB: &str = "duckdb==2.0.0";

/// The tables in `folder` as DuckDB reads them.
fn seen(python: &Path, folder: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables.py");
    let tables = SCHEMA.iter().map(|(name, _)| name);
    let output = Command::new(python)
        .arg(script)
        .arg(std::path::absolute(folder).unwrap())
        .args(tables)
        // Not the run's folder.
        .current_dir("/")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// DuckDB's name of a column's type, and whether the column is never null.
fn promised(column: Column) -> (&'static str, bool) {
    match column {
        Column::U64 => ("UBIGINT", true),
        Column::U32 => ("UINTEGER", true),
        Column::I32 => ("INTEGER", true),
        Column::Text => ("VARCHAR", true),
        Column::TextOrNull => ("VARCHAR", false),
        Column::I32OrNull => ("INTEGER", false),
        Column::U32OrNull => ("UINTEGER", false),
        Column::U64OrNull => ("UBIGINT", false),
    }
}

/// The rows of each table and the sums of its columns, from this project's reader.
fn own(run: &RunReader) -> BTreeMap<(&'static str, &'static str), u128> {
    let mut sums = BTreeMap::new();
    let mut add =
        |table, column, value: u64| *sums.entry((table, column)).or_insert(0) += u128::from(value);
    let mut numbers = CulpritTable::default();
    let manifest = run.manifest();
    let (rate, epoch) = (manifest.rate, |at| {
        manifest.clock_start.realtime_of(at, manifest.rate)
    });
    for stall in run.stalls().unwrap().map(Result::unwrap) {
        let mut add = |column, value| add("stalls.parquet", column, value);
        add("rows", 1);
        add("stall_id", stall.id.0);
        add("cpu", stall.cpu.0.into());
        add("tid", stall.victim.tid as u64);
        add("start_ticks", stall.start.0);
        add("end_ticks", stall.end.0);
        add("start_realtime_ns", epoch(stall.start));
        add("duration_ns", rate.nanos(stall.length()).0);
    }
    for attribution in run.attributions().unwrap().map(Result::unwrap) {
        for part in &attribution.parts {
            let (culprit, remark) = (numbers.culprit(&part.culprit), numbers.remark(part));
            if culprit.new.is_some() {
                add("culprits.parquet", "rows", 1);
                add("culprits.parquet", "culprit_id", culprit.id.0.into());
            }
            if remark.new.is_some() {
                add("remarks.parquet", "rows", 1);
                add("remarks.parquet", "remark_id", remark.id.0.into());
            }
            let mut add = |column, value| add("parts.parquet", column, value);
            add("rows", 1);
            add("stall_id", attribution.stall.0);
            add("culprit_id", culprit.id.0.into());
            add("remark_id", remark.id.0.into());
            add("net_ns", part.net.0);
            // Null if both are the same.
            if part.gross != part.net {
                add("gross_ns", part.gross.0);
            }
            // Null if it is 1.
            if part.turns != 1 {
                add("turns", part.turns.into());
            }
        }
    }
    for row in run.intervals().unwrap().map(Result::unwrap) {
        let mut add = |column, value| add("intervals.parquet", column, value);
        add("rows", 1);
        add("cpu", row.cpu.0.into());
        add("start_ticks", row.start.0);
        add("end_ticks", row.end.0);
        add("start_realtime_ns", epoch(row.start));
        add("count", row.count);
        add("max_ns", row.max.0);
        add("stolen_ns", row.stolen.0);
    }
    sums
}

fn check(seen: &Value, run: &RunReader) {
    let own = own(run);
    let mut compared = 0;
    for (table, columns) in SCHEMA {
        let there: Vec<(String, String, bool)> =
            serde_json::from_value(seen[table]["columns"].clone()).unwrap();
        let wanted: Vec<(String, String, bool)> = columns
            .iter()
            .map(|(name, column, _)| {
                let (kind, required) = promised(*column);
                ((*name).to_owned(), kind.to_owned(), required)
            })
            .collect();
        assert_eq!(there, wanted, "{table}");
        assert_eq!(
            seen[table]["rows"].as_u64().map(u128::from),
            own.get(&(table, "rows")).copied(),
            "{table}"
        );
        for (column, sum) in seen[table]["sums"].as_object().unwrap() {
            // The columns of triggers are null here: there is nothing to add.
            let theirs = sum.as_str().map(|sum| sum.parse::<u128>().unwrap());
            let ours = own
                .iter()
                .find(|((t, c), _)| *t == table && c == column)
                .map(|(_, sum)| *sum);
            assert_eq!(theirs, ours, "{table}: {column}");
            compared += usize::from(ours.is_some());
        }
    }
    assert_eq!(
        compared,
        own.len() - SCHEMA.len(),
        "each sum of ours has one of theirs"
    );
}

#[test]
fn duckdb_reads_the_tables_as_we_do() {
    let Some(python) = python(Path::new(env!("CARGO_TARGET_TMPDIR")), &[DUCKDB]) else {
        return;
    };
    let python = python.join("bin/python");
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(&dir.path().join("runs"));
    let folder = dir.path().join("tables");
    export_run(
        &run,
        &[format!("parquet://{}", folder.display()).parse().unwrap()],
    )
    .unwrap();
    for place in [folder.as_path(), run.path()] {
        let seen = seen(&python, place);
        check(&seen, &run);
        let mut by_culprit: BTreeMap<(u64, &str, String), (u64, u64, u64)> = BTreeMap::new();
        let mut by_remark: BTreeMap<(&str, &str, String), u64> = BTreeMap::new();
        for (stall, attribution) in &common::stalls() {
            for part in &attribution.parts {
                let culprit = &part.culprit;
                let name = culprit.subject.name().into_owned();
                let key = (stall.cpu.0.into(), culprit.kind().as_str(), name);
                let row = by_culprit.entry(key).or_default();
                *row = (row.0 + 1, row.1 + part.net.0, row.2 + part.gross.0);
                let evidence = part.evidence.as_str().to_owned();
                let key = (part.placement.as_str(), part.confidence.as_str(), evidence);
                *by_remark.entry(key).or_default() += 1;
            }
        }
        let expected: Vec<Value> = by_culprit
            .iter()
            .map(|((cpu, kind, name), (count, net, gross))| {
                serde_json::json!([cpu, kind, name, count, net.to_string(), gross.to_string()])
            })
            .collect();
        assert_eq!(
            seen["by_culprit"],
            Value::Array(expected),
            "the tables join by stall_id"
        );
        let expected: Vec<Value> = by_remark
            .iter()
            .map(|((placement, confidence, evidence), count)| {
                serde_json::json!([placement, confidence, evidence, count])
            })
            .collect();
        assert_eq!(seen["remarks"], Value::Array(expected));
        let rows = |table: &str| seen[table]["rows"].clone();
        let few = Value::Array(["culprits.parquet", "intervals.parquet"].map(rows).into());
        assert_eq!(seen["views"], few);
        // Every column of the tables, once.
        let mut columns: Vec<String> =
            serde_json::from_value(seen["attributions"].clone()).unwrap();
        columns.sort_unstable();
        let tables = ["parts.parquet", "culprits.parquet", "remarks.parquet"];
        let listed = SCHEMA.iter().filter(|(table, _)| tables.contains(table));
        let listed = listed.flat_map(|(_, columns)| columns.iter().map(|(name, ..)| *name));
        let listed: std::collections::BTreeSet<&str> =
            listed.filter(|name| *name != "remark_id").collect();
        assert!(columns.iter().map(String::as_str).eq(listed), "{columns:?}");
        assert_eq!(seen["victims"], serde_json::json!(["js-spin, \"x\""]));
    }
}
