//! `docs/schema`: the form of each JSON document, derived from the types that are printed.

mod forms;
mod shown;
mod strict;

use crate::commands;
use jitterscope_view as view;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Serializer, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// The schema of a document that is a `T`.
fn is<T: JsonSchema>(title: &str) -> Value {
    let mut schema = strict::strict(derived::<T>());
    schema["title"] = title.into();
    schema
}

fn derived<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let generator = settings.into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

/// The schema of what a function makes of an `A`.
fn made_by<A: 'static, T: JsonSchema>(_: impl FnOnce(&'static A) -> T, title: &str) -> Value {
    is::<T>(title)
}

/// Each document's file name without its ending, and its schema.
fn documents() -> Vec<(&'static str, Value)> {
    vec![
        (
            "audit",
            made_by(
                view::tuning::audit_json,
                "audit --json: the settings of the machine",
            ),
        ),
        (
            "audit-expect",
            is::<view::expected::Checked>(
                "audit --expect FILE --json: where the machine deviates from a declared state",
            ),
        ),
        (
            "delivered",
            is::<commands::export::Delivered>("export --json: what became of each target"),
        ),
        (
            "diff",
            made_by(
                view::compare::diff_json,
                "diff --json: settings side by side, each against the first",
            ),
        ),
        (
            "doctor",
            is::<commands::doctor::Doctor>("doctor --json: what can be seen"),
        ),
        (
            "excerpt",
            is::<crate::excerpt::Excerpt>(
                "--top, --fields, --cursor, and answers of mcp: a part of another document",
            ),
        ),
        (
            "experiment",
            made_by(
                view::experiment::outcome_json,
                "experiment --json: what it came to",
            ),
        ),
        (
            "experiment-across-reboot",
            is::<commands::experiment_across::AcrossReboot>(
                "experiment --across-reboot --json: whether knobs of the boot line help",
            ),
        ),
        (
            "experiment-auto",
            made_by(
                view::experiment::sifted_json,
                "experiment --auto --json: candidates, and fresh pairs of what was kept",
            ),
        ),
        (
            "experiment-auto-plan",
            made_by(
                view::experiment::auto_plan_json,
                "experiment --auto --dry-run --json: what would be tried, and how long it takes",
            ),
        ),
        (
            "experiment-estimate",
            is::<jitterscope_experiment::Estimate>(
                "experiment --dry-run --json: what it would take and could find",
            ),
        ),
        (
            "export",
            is::<jitterscope_export::JsonLine>(
                "export --to json://FILE: one object a line, by its type",
            ),
        ),
        (
            "guard",
            made_by(
                view::guard::json,
                "guard --json: the iterations of a command, and which were contaminated",
            ),
        ),
        (
            "journal",
            is::<commands::journal::Journal<'_>>(
                "journal --json: the records of a pipeline's journal",
            ),
        ),
        (
            "list",
            is::<view::list::List>("list --json: the runs that there are"),
        ),
        (
            "removed",
            is::<commands::runs::Removed>(
                "runs rm --json, runs prune --json: the runs that were removed, or would be",
            ),
        ),
        (
            "report",
            is::<jitterscope_analyze::RunSummary>(
                "report --json, record --json, record pipeline --json and attach --json: a whole run",
            ),
        ),
        (
            "selftest",
            made_by(
                view::selftest::json,
                "selftest --json: what was injected and how it was found",
            ),
        ),
        (
            "sljtest",
            is::<view::sljtest_json::SljDocument>(
                "sljtest --json: bins, statistics, recommendations and periods",
            ),
        ),
        (
            "fleet-report",
            is::<jitterscope_analyze::fleet::FleetFindings>(
                "fleet report --json: worse hosts, new culprits, kernels and tunings that matter",
            ),
        ),
        (
            "stall",
            is::<commands::stall::StallAlone>("report --stall STALL --json: one stall"),
        ),
        (
            "tune-apply",
            made_by(
                view::tuning::apply_json,
                "tune apply --json: what was changed",
            ),
        ),
        (
            "tune-interrupts",
            is::<jitterscope_tune::InterruptDiff>(
                "tune interrupts --json: the interrupts that reached the CPUs in some seconds",
            ),
        ),
        (
            "tune-plan",
            made_by(
                view::tuning::plan_json,
                "tune plan --json: what would be changed",
            ),
        ),
        (
            "tune-rollback",
            made_by(
                view::tuning::rollback_json,
                "tune rollback --json: what was put back",
            ),
        ),
        (
            "tune-status",
            made_by(
                view::tuning::status_json,
                "tune status --json: what tune has applied",
            ),
        ),
        (
            "watch-status",
            is::<commands::watch_ask::Watches>("watch status --json: the running watches"),
        ),
    ]
}

fn text(schema: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    let indent = PrettyFormatter::with_indent(b" ");
    let mut serializer = Serializer::with_formatter(&mut text, indent);
    schema.serialize(&mut serializer).unwrap();
    text.push(b'\n');
    text
}

#[test]
fn the_schemas_are_those_of_the_printed_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let write = std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some();
    let mut stale = Vec::new();
    let mut known = BTreeSet::new();
    for (name, schema) in documents() {
        let path = folder.join(format!("{name}.json"));
        if write {
            std::fs::write(&path, text(&schema)).unwrap();
        } else if std::fs::read(&path).ok() != Some(text(&schema)) {
            stale.push(path.clone());
        }
        known.insert(path);
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !known.contains(&path) {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "run JITTERSCOPE_WRITE_DOCS=1 cargo test -p jitterscope documents, and remove what it does not write: {stale:?}"
    );
}

#[test]
fn the_book_names_every_schema_and_format() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let page = std::fs::read_to_string(page).unwrap();
    let schemas = documents()
        .into_iter()
        .map(|(name, _)| format!("(schema/{name}.json)"));
    let targets = jitterscope_export::FORMATS
        .iter()
        .flat_map(|of| of.schemes)
        .map(|scheme| format!("`{scheme}://"));
    let missing: Vec<String> = schemas
        .chain(targets)
        .filter(|named| !page.contains(named.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/formats.md lacks {missing:?}");
}
