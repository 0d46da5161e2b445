//! A schema that allows what is printed and nothing else.

use serde_json::{Map, Value, json};

const IN_PLACE: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// `derived`, with each object closed. A field is null only if its type says so and it is always there: an optional
/// field that is null is left out.
pub(super) fn strict(mut derived: Value) -> Value {
    let defs = derived["$defs"].as_object().cloned().unwrap_or_default();
    close(&mut derived, &defs, true);
    derived
}

/// `whole`: whether the schema describes a whole value, not a part of an object that other schemas describe, too.
fn close(schema: &mut Value, defs: &Map<String, Value>, whole: bool) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if fields.contains_key("properties") || !whole {
        inline(fields, defs);
    }
    never_null_if_optional(fields);
    // What a reader of old files assumes.
    fields.remove("default");
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = of_json(text);
    }
    for name in ["properties", "$defs"] {
        for (_, inner) in fields
            .get_mut(name)
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            close(inner, defs, true);
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(name) {
            close(inner, defs, true);
        }
    }
    for inner in fields
        .get_mut("prefixItems")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        close(inner, defs, true);
    }
    let alone = !fields.contains_key("properties");
    for name in IN_PLACE {
        if let Some(branches) = fields.get_mut(name).and_then(Value::as_array_mut) {
            newer_only(branches, defs);
            for branch in branches {
                close(branch, defs, whole && alone);
            }
        }
    }
    let in_place = IN_PLACE.iter().any(|name| fields.contains_key(*name));
    if whole && in_place && !alone {
        fields.insert("unevaluatedProperties".into(), false.into());
    } else if whole && fields.get("type") == Some(&json!("object")) {
        fields.entry("additionalProperties").or_insert(false.into());
    }
}

/// A doc comment in the words of JSON: without line breaks, links to code and Rust's name of null.
fn of_json(text: &str) -> String {
    let mut plain = text
        .replace('\n', " ")
        .replace("`None`", "null")
        .replace("[`", "`");
    while let Some(at) = plain.find("`](") {
        let end = plain[at..]
            .find(')')
            .map_or(plain.len(), |length| at + length + 1);
        plain.replace_range(at + 1..end, "");
    }
    plain.replace("`]", "`")
}

/// Replaces a reference to a part of an object by that part, because the definition describes a whole object.
fn inline(fields: &mut Map<String, Value>, defs: &Map<String, Value>) {
    while let Some(target) = target(fields, defs) {
        fields.remove("$ref");
        for (name, value) in target {
            match (fields.get_mut(name), value) {
                (Some(Value::Object(own)), Value::Object(more)) => own.extend(more.clone()),
                (Some(Value::Array(own)), Value::Array(more)) => own.extend(more.iter().cloned()),
                (Some(_), _) => {}
                (None, _) => drop(fields.insert(name.clone(), value.clone())),
            }
        }
    }
}

fn target<'a>(
    fields: &Map<String, Value>,
    defs: &'a Map<String, Value>,
) -> Option<&'a Map<String, Value>> {
    let name = fields.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
    defs.get(name)?.as_object()
}

fn never_null_if_optional(fields: &mut Map<String, Value>) {
    let required = fields.get("required").cloned().unwrap_or_default();
    let required = |name: &str| {
        required
            .as_array()
            .is_some_and(|all| all.iter().any(|of| of == name))
    };
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    for (_, field) in properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| !required(name))
    {
        for name in ["type", "anyOf"] {
            let Some(kinds) = field.get_mut(name).and_then(Value::as_array_mut) else {
                continue;
            };
            kinds.retain(|kind| kind != "null" && *kind != json!({"type": "null"}));
            if let [one] = &mut kinds[..] {
                let one = one.take();
                let field = field.as_object_mut().expect("it has fields");
                match one {
                    Value::Object(of) => {
                        field.remove(name);
                        for (name, value) in of {
                            field.entry(name).or_insert(value);
                        }
                    }
                    kind => drop(field.insert(name.into(), kind)),
                }
            }
        }
    }
}

/// The variant that keeps what a newer version wrote is open, so it must have an id, and none that this version knows.
fn newer_only(branches: &mut [Value], defs: &Map<String, Value>) {
    let mut known = Vec::new();
    for branch in branches.iter() {
        ids(branch, defs, &mut known);
    }
    for branch in branches {
        let Some(open) = branch.as_object_mut() else {
            continue;
        };
        if target(open, defs).is_some_and(is_open) {
            inline(open, defs);
        }
        if is_open(open) {
            open.insert("required".into(), json!(["id"]));
            let properties = open.entry("properties").or_insert(json!({}));
            properties["id"] = json!({"type": "string", "not": {"enum": known}});
        }
    }
}

fn is_open(fields: &Map<String, Value>) -> bool {
    fields.get("additionalProperties") == Some(&Value::Bool(true))
}

fn ids(branch: &Value, defs: &Map<String, Value>, known: &mut Vec<Value>) {
    let Some(fields) = branch.as_object() else {
        return;
    };
    let fields = target(fields, defs)
        .filter(|_| !fields.contains_key("properties"))
        .unwrap_or(fields);
    known.extend(
        fields
            .get("properties")
            .and_then(|of| of["id"].get("const"))
            .cloned(),
    );
    for name in IN_PLACE {
        for inner in fields
            .get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            ids(inner, defs, known);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::JsonSchema;
    use serde::Serialize;

    /// Links to [`Inner`](crate::documents), `None` and
    /// a line break.
    #[derive(Serialize, JsonSchema)]
    struct Outer {
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u64>,
        null: Option<u64>,
        #[serde(flatten)]
        kind: Kind,
        inner: Inner,
    }

    #[derive(Serialize, JsonSchema)]
    struct Inner {
        count: u64,
    }

    #[expect(dead_code, reason = "only their form counts")]
    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "id", rename_all = "snake_case")]
    enum Kind {
        Plain,
        Nested(Inner),
        #[serde(untagged)]
        Newer(Map<String, Value>),
    }

    #[test]
    fn what_is_never_printed_does_not_conform() {
        let schema = strict(crate::documents::derived::<Outer>());
        assert_eq!(
            schema["description"],
            "Links to `Inner`, null and a line break."
        );
        for (text, conforms) in [
            (
                r#"{"id": "plain", "null": null, "inner": {"count": 1}}"#,
                true,
            ),
            (
                r#"{"id": "plain", "null": 1, "left_out": 1, "inner": {"count": 1}}"#,
                true,
            ),
            (
                r#"{"id": "nested", "count": 1, "null": 1, "inner": {"count": 1}}"#,
                true,
            ),
            (
                r#"{"id": "newer", "other": 1, "null": 1, "inner": {"count": 1}}"#,
                true,
            ),
            (
                r#"{"id": "plain", "other": 1, "null": 1, "inner": {"count": 1}}"#,
                false,
            ),
            (
                r#"{"id": "plain", "null": 1, "left_out": null, "inner": {"count": 1}}"#,
                false,
            ),
            (
                r#"{"id": "plain", "null": 1, "inner": {"count": 1, "other": 1}}"#,
                false,
            ),
            (
                r#"{"id": "nested", "null": 1, "inner": {"count": 1}}"#,
                false,
            ),
            (r#"{"id": "plain", "null": 1, "inner": {}}"#, false),
            (r#"{"null": 1, "inner": {"count": 1}}"#, false),
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(jsonschema::is_valid(&schema, &value), conforms, "{text}");
        }
    }
}
