//! Checks JSON against `docs/schema`.

use serde_json::Value;
use std::path::Path;

/// Panics with all that is wrong unless the value conforms to the document's schema.
pub fn conforms(document: &str, value: &Value) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{document}.json"));
    let schema = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{document}{}: {error:.2000}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
