//! `excerpt/fields.txt`: the fields of the documents that can be printed in part, from their schemas.

use crate::excerpt::{Document, KNOWN};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const IN_PLACE: [&str; 3] = ["oneOf", "anyOf", "allOf"];
const LISTED: [&str; 2] = ["items", "prefixItems"];

/// For each form its fields, and the forms of their values.
#[derive(Default)]
struct Written(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Written {
    /// Adds the fields of an object's schema to a form of this document.
    fn object(&mut self, document: &str, form: &str, schema: &Value) {
        self.0.entry(form.to_owned()).or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            self.field(document, form, name, field);
        }
        let others = &schema["additionalProperties"];
        if others.is_object() {
            self.field(document, form, "*", others);
        }
        for branch in branches(schema) {
            match target(branch) {
                Some(name) => {
                    // The fields of the branch are those of the object.
                    let inner = format!("{document}.{name}");
                    self.0
                        .entry(form.to_owned())
                        .or_default()
                        .insert(format!("&{inner}"), BTreeSet::new());
                }
                None => self.object(document, form, branch),
            }
        }
    }

    fn field(&mut self, document: &str, form: &str, name: &str, field: &Value) {
        let inline = format!("{form}.{name}");
        let mut forms = BTreeSet::new();
        self.forms(document, &inline, field, &mut forms);
        let fields = self.0.entry(form.to_owned()).or_default();
        fields.entry(name.to_owned()).or_default().extend(forms);
    }

    /// The forms of a value, whose own fields are of the form `inline`.
    fn forms(
        &mut self,
        document: &str,
        inline: &str,
        schema: &Value,
        forms: &mut BTreeSet<String>,
    ) {
        forms.extend(target(schema).map(|name| format!("{document}.{name}")));
        for name in LISTED {
            let listed = match &schema[name] {
                Value::Array(all) => all.iter().collect(),
                Value::Object(_) => vec![&schema[name]],
                _ => Vec::new(),
            };
            for entry in listed {
                self.forms(document, inline, entry, forms);
            }
        }
        for branch in branches(schema) {
            self.forms(document, inline, branch, forms);
        }
        if schema["properties"].is_object() || schema["additionalProperties"].is_object() {
            forms.insert(inline.to_owned());
            self.object(document, inline, schema);
        }
    }

    /// The lines, with the fields of branches among those of their object.
    fn lines(mut self) -> String {
        loop {
            let mut changed = false;
            let before = self.0.clone();
            for (form, fields) in &mut self.0 {
                let branches: Vec<String> = fields
                    .keys()
                    .filter_map(|name| Some(name.strip_prefix('&')?.to_owned()))
                    .collect();
                for branch in branches {
                    fields.remove(&format!("&{branch}"));
                    changed = true;
                    for (name, forms) in before.get(&branch).into_iter().flatten() {
                        if *name != format!("&{form}") {
                            fields
                                .entry(name.clone())
                                .or_default()
                                .extend(forms.clone());
                        }
                    }
                }
            }
            if !changed {
                break;
            }
        }
        // A number for each form: the names are only for writing.
        let named: BTreeMap<&str, usize> = self.0.keys().map(String::as_str).zip(0..).collect();
        let short = |form: &str| match Document::ALL.iter().any(|of| of.as_str() == form) {
            true => form.to_owned(),
            false => named
                .get(form)
                .map_or_else(String::new, ToString::to_string),
        };
        let mut text = String::new();
        for (form, fields) in &self.0 {
            text += &short(form);
            for (name, forms) in fields {
                let with_fields = forms
                    .iter()
                    .filter(|of| self.0.get(*of).is_some_and(|of| !of.is_empty()));
                let forms: Vec<String> = with_fields.map(|of| short(of)).collect();
                text += &match forms.is_empty() {
                    true => format!(" {name}"),
                    false => format!(" {name}={}", forms.join("|")),
                };
            }
            text.push('\n');
        }
        text
    }
}

fn branches(schema: &Value) -> impl Iterator<Item = &Value> {
    IN_PLACE
        .iter()
        .flat_map(|name| schema[*name].as_array().into_iter().flatten())
}

fn target(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

#[test]
fn the_fields_of_excerpts_are_those_of_the_schemas() {
    let mut written = Written::default();
    for (name, schema) in super::documents() {
        if !Document::ALL.iter().any(|of| of.as_str() == name) {
            continue;
        }
        written.object(name, name, &schema);
        for (def, inner) in schema["$defs"].as_object().into_iter().flatten() {
            written.object(name, &format!("{name}.{def}"), inner);
        }
    }
    let text = written.lines();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/excerpt/fields.txt");
    if std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    assert!(
        text == KNOWN,
        "run JITTERSCOPE_WRITE_DOCS=1 cargo test -p jitterscope documents"
    );
}
