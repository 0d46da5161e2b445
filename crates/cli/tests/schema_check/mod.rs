//! Checks JSON against `docs/schema`.
#![allow(dead_code, reason = "each test uses its part")]

use serde_json::Value;
use std::io::Write;
use std::path::Path;

pub fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub fn type_of(value: &Value) -> &'static str {
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

/// The subset of JSON Schema that the files use. An unknown field is an error, too, so that every printed field is
/// described.
pub fn check(schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
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
            for name in schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if !fields.contains_key(name) {
                    wrong.push(format!("{at}: {name} is missing"));
                }
            }
            for (name, field) in fields {
                let described = schema["properties"]
                    .get(name)
                    .or(schema.get("additionalProperties"));
                match described {
                    Some(described) => check(described, field, &format!("{at}.{name}"), wrong),
                    None => wrong.push(format!("{at}: {name} is not described")),
                }
            }
        }
        _ => {}
    }
}

pub fn hold(schema: &Value, value: &Value, what: &str) {
    // Helps to describe a new field.
    if let Some(folder) = std::env::var_os("JITTERSCOPE_SCHEMA_OUT") {
        let line = format!("{value}\n");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(Path::new(&folder).join(what));
        return file.unwrap().write_all(line.as_bytes()).unwrap();
    }
    let mut wrong = Vec::new();
    check(schema, value, what, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
