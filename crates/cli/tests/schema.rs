//! What is printed as JSON is what `docs/schema` says.

#[path = "../../report/tests/common/mod.rs"]
mod common;

use common::{Scenario, busy, late};
use jitterscope_store::RunWriter;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::process::Command;

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The part of JSON Schema that the files use. What a schema does not know is an error, too: a field is
/// described before it is printed.
fn check(schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    let allowed: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return,
    };
    let found = type_of(value);
    if !(allowed.contains(&found) || found == "integer" && allowed.contains(&"number")) {
        wrong.push(format!("{at}: {found} is not one of {allowed:?}"));
        return;
    }
    match value {
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{at}[{n}]"), wrong);
            }
        }
        Value::Object(fields) => {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !fields.contains_key(name) {
                    wrong.push(format!("{at}: {name} is missing"));
                }
            }
            for (name, field) in fields {
                let described = schema["properties"].get(name).or(schema.get("additionalProperties"));
                match described {
                    Some(described) => check(described, field, &format!("{at}.{name}"), wrong),
                    None => wrong.push(format!("{at}: {name} is not described")),
                }
            }
        }
        _ => {}
    }
}

fn hold(schema: &Value, value: &Value, what: &str) {
    // For whoever describes a new field.
    if let Some(folder) = std::env::var_os("JITTERSCOPE_SCHEMA_OUT") {
        let line = format!("{value}\n");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(Path::new(&folder).join(what));
        return file.unwrap().write_all(line.as_bytes()).unwrap();
    }
    let mut wrong = Vec::new();
    check(schema, value, what, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn store(scenario: &Scenario, runs: &Path) {
    let manifest = &scenario.manifest;
    let mut writer = RunWriter::create(runs, &manifest.label, manifest.clock_start.realtime_ns).unwrap();
    writer.begin(manifest.clock_start, manifest.rate).unwrap();
    for (stall, attribution) in scenario.stalls.iter().zip(&scenario.attributions) {
        writer.stall(stall).unwrap();
        writer.attribution(attribution).unwrap();
    }
    for row in &scenario.intervals {
        let mut lengths = hdrhistogram::Histogram::<u64>::new(3).unwrap();
        lengths.record_n(row.max.0.max(1), row.count.max(1)).unwrap();
        writer.interval(row).unwrap();
        writer.interval_histogram(&manifest.probe.kind, row.cpu, row.start, row.end, &lengths).unwrap();
    }
    writer.finish(manifest.clone()).unwrap();
}

fn run(args: &[&str], runs: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(["--runs", runs.to_str().unwrap()])
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn stored_runs_are_printed_as_described() {
    let dir = tempfile::tempdir().unwrap();
    let mut spin = busy(&[0, 1]);
    spin.manifest.label = "SPIN".into();
    let mut wakeup = late(&[0, 1, 3], Some(3));
    wakeup.manifest.label = "WAKEUP".into();
    store(&spin, dir.path());
    store(&wakeup, dir.path());
    for (label, level) in [("SPIN", "program"), ("SPIN", "thread"), ("SPIN", "process"), ("WAKEUP", "thread")]
    {
        let text = run(&["report", label, "--json", "--by", level], dir.path());
        hold(&schema("report"), &serde_json::from_str(&text).unwrap(), label);
    }
    let text = run(&["list", "--json"], dir.path());
    hold(&schema("list"), &serde_json::from_str(&text).unwrap(), "list");
    let text = run(&["audit", "--json", "--run", "SPIN", "--cpus", "0"], dir.path());
    hold(&schema("audit"), &serde_json::from_str(&text).unwrap(), "audit");
    let lines = schema("export");
    for label in ["SPIN", "WAKEUP"] {
        let file = dir.path().join(format!("{label}.json"));
        run(&["export", label, "-q", "--to", &format!("json://{}", file.display())], dir.path());
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            let described = &lines["lines"][value["type"].as_str().unwrap()];
            assert!(described.is_object(), "{line}");
            hold(described, &value, label);
        }
    }
}

#[test]
fn a_watched_cpu_is_printed_as_described() {
    let run_of = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/fixtures/passive");
    let run_of = run_of.to_str().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let text = run(&["report", run_of, "--json"], dir.path());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(!report["passive"].as_array().unwrap().is_empty());
    hold(&schema("report"), &report, "passive");
    let text = run(&["report", run_of, "--stall", "1", "--json"], dir.path());
    hold(&schema("stall"), &serde_json::from_str(&text).unwrap(), "stall");
}

#[test]
fn every_number_in_a_schema_says_its_unit() {
    fn walk(schema: &Value, at: &str, wrong: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let text = field["type"].to_string();
            let number = text.contains("integer") || text.contains("number");
            let suffixes = [
                "_ns",
                "_ticks",
                "_bytes",
                "_fraction",
                "_ratio",
                "_ppb",
                "_hz",
                "_khz",
                "_milli",
                "_per_sec",
                "_per_second",
            ];
            let named = suffixes.iter().any(|suffix| name.ends_with(suffix));
            if number && !named && !field["unit"].is_string() {
                wrong.push(format!("{at}.{name}"));
            }
            walk(field, &format!("{at}.{name}"), wrong);
        }
        if schema["items"].is_object() {
            walk(&schema["items"], &format!("{at}[]"), wrong);
        }
    }
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".json") else { continue };
        let schema = schema(name);
        walk(&schema, name, &mut wrong);
        for (kind, line) in schema["lines"].as_object().into_iter().flatten() {
            walk(line, &format!("{name}.{kind}"), &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_check_notices_what_is_wrong() {
    let text = r#"{"type": "object", "required": ["a_ns"], "properties": {"a_ns": {"type": "integer"}}}"#;
    let schema: Value = serde_json::from_str(text).unwrap();
    for (value, found) in
        [(r#"{"a_ns": 1}"#, 0), ("{}", 1), (r#"{"a_ns": "x"}"#, 1), (r#"{"a_ns": 1, "b": 2}"#, 1)]
    {
        let mut wrong = Vec::new();
        check(&schema, &serde_json::from_str(value).unwrap(), "x", &mut wrong);
        assert_eq!(wrong.len(), found, "{value}: {wrong:?}");
    }
}
