//! Checks JSON against `docs/schema`.

use serde_json::Value;
use std::path::Path;

pub fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Panics with all that is wrong unless the value conforms to the document's schema.
pub fn conforms(document: &str, value: &Value) {
    let validator = jsonschema::validator_for(&schema(document)).unwrap();
    let wrong: Vec<String> = validator
        .iter_errors(value)
        .map(|error| format!("{document}{}: {error:.2000}", error.instance_path()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
