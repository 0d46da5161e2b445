//! The messages: JSON-RPC 2.0, and the part of the Model Context Protocol that a server of tools needs.

use super::answers::Answers;
use super::tools;
use serde_json::{Value, json};

/// The versions whose messages about tools have this form, newest last. 2025-03-26 has batches, too, which others do
/// not have.
const VERSIONS: [&str; 3] = ["2024-11-05", "2025-06-18", "2025-11-25"];

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The answer to a line; `None` for a notification and an empty line.
pub(super) fn answer(line: &[u8], answers: &Answers) -> Option<Value> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            let why = format!("this line is no JSON: {error}");
            return Some(failed(&Value::Null, PARSE_ERROR, &why));
        }
    };
    let id = match message.get("id") {
        Some(id @ (Value::String(_) | Value::Number(_))) => id.clone(),
        None if message.get("method").is_some() => return None,
        _ => Value::Null,
    };
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        // Nothing was asked of the client, so an answer of it is an error, too.
        let why = "a message is an object with an id, a method and its params, one on a line";
        return Some(failed(&id, INVALID_REQUEST, why));
    };
    if id.is_null() {
        return Some(failed(
            &id,
            INVALID_REQUEST,
            "an id is a string or a number",
        ));
    }
    let params = message.get("params").unwrap_or(&Value::Null);
    let result = match method {
        "initialize" => Ok(greeting(params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools::described() })),
        "tools/call" => called(params, answers),
        other => {
            let shown: String = other.chars().take(64).collect();
            let why = format!("there is no method '{shown}' here: only tools are offered");
            Err((METHOD_NOT_FOUND, why))
        }
    };
    Some(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, why)) => failed(&id, code, &why),
    })
}

/// The answer to a line that is longer than what is read.
pub(super) fn too_long(most: usize) -> Value {
    let why = format!("a message has at most {most} bytes");
    failed(&Value::Null, INVALID_REQUEST, &why)
}

fn failed(id: &Value, code: i64, why: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } })
}

fn greeting(params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let spoken = VERSIONS.iter().find(|version| Some(**version) == wanted);
    json!({
        "protocolVersion": spoken.unwrap_or(&VERSIONS[VERSIONS.len() - 1]),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "jitterscope", "version": env!("CARGO_PKG_VERSION") },
        "instructions": tools::INSTRUCTIONS,
    })
}

/// The answer of a tool. What it cannot answer is for the assistant to read, so it is no error of the protocol.
fn called(params: &Value, answers: &Answers) -> Result<Value, (i64, String)> {
    let name = params
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(tool) = tools::named(name) else {
        let shown: String = name.chars().take(64).collect();
        let why = format!("there is no tool '{shown}': there are {}", tools::names());
        return Err((INVALID_PARAMS, why));
    };
    let none = json!({});
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(arguments) => arguments,
    };
    let (text, is_error) = match answers.of(tool, arguments) {
        Ok(text) => (text, false),
        Err(error) => (answers.shortened(&crate::output::error_text(&error)), true),
    };
    Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": is_error }))
}
