//! The fields that `--fields` names, held against the forms of the documents.

use super::Document;
use crate::exit::UsageError;
use jitterscope_model::visible;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The forms of the documents, one to a line: its name, then its fields, each with the forms of its values: `name=form|form`.
/// A field `*` stands for any name. A test writes it, from the schemas.
pub const KNOWN: &str = include_str!("fields.txt");

/// The forms: for each field the forms of its values.
type Forms<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a str>>>;

/// Fields within fields.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(BTreeMap<String, Fields>);

fn known() -> Forms<'static> {
    let form = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let field = |word: &'static str| match word.split_once('=') {
            Some((field, forms)) => (field, forms.split('|').collect()),
            None => (word, Vec::new()),
        };
        (name, words.map(field).collect())
    };
    KNOWN.lines().map(form).collect()
}

impl Fields {
    /// The fields of a document that these paths name: `a`, `a.b`. A field is whole if any path ends at it.
    ///
    /// # Errors
    /// No such document has one of them.
    pub(super) fn named(document: Document, paths: &[String]) -> Result<Fields, UsageError> {
        let forms = known();
        let mut all = Fields::default();
        for path in paths {
            let path = path.trim();
            let wrong = |there: BTreeSet<&str>, at: &str| {
                let shown: Vec<&str> = there.into_iter().collect();
                let within = match at {
                    "" => format!("{} --json", document.as_str()),
                    at => at.to_owned(),
                };
                UsageError(format!(
                    "--fields {}: {within} has no such field{}; it has {}",
                    visible(path),
                    similar(path, at, &shown),
                    shown.join(", ")
                ))
            };
            let mut of: BTreeSet<&str> = [document.as_str()].into();
            let mut known_part = String::new();
            for name in path.split('.') {
                let fields: Vec<_> = of.iter().filter_map(|form| forms.get(form)).collect();
                let found = fields
                    .iter()
                    .filter_map(|of| of.get(name).or_else(|| of.get("*")));
                let found: Vec<_> = found.collect();
                if found.is_empty() {
                    let there: BTreeSet<&str> =
                        fields.iter().flat_map(|of| of.keys().copied()).collect();
                    if there.is_empty() {
                        return Err(UsageError(format!(
                            "--fields {}: {known_part} has no fields of its own",
                            visible(path)
                        )));
                    }
                    return Err(wrong(there, &known_part));
                }
                of = found.into_iter().flatten().copied().collect();
                if !known_part.is_empty() {
                    known_part.push('.');
                }
                known_part.push_str(name);
            }
            all.add(&mut path.split('.'));
        }
        Ok(all)
    }

    fn add<'a>(&mut self, path: &mut impl Iterator<Item = &'a str>) {
        let Some(name) = path.next() else {
            // The whole field.
            self.0.clear();
            self.0.insert(WHOLE.to_owned(), Fields::default());
            return;
        };
        if self.is_whole() {
            return;
        }
        self.0.entry(name.to_owned()).or_default().add(path);
    }

    fn is_whole(&self) -> bool {
        self.0.contains_key(WHOLE)
    }

    /// Removes all other fields; of a list, from each entry.
    pub(super) fn keep(&self, value: &mut Value) {
        if self.is_whole() {
            return;
        }
        match value {
            Value::Array(entries) => entries.iter_mut().for_each(|entry| self.keep(entry)),
            Value::Object(fields) => {
                fields.retain(|name, _| self.0.contains_key(name));
                for (name, field) in fields {
                    if let Some(inner) = self.0.get(name) {
                        inner.keep(field);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Marks a field that is kept whole: no field has this name.
const WHOLE: &str = "";

/// The field that was probably meant.
fn similar(path: &str, at: &str, there: &[&str]) -> String {
    let rest = path
        .strip_prefix(at)
        .unwrap_or(path)
        .trim_start_matches('.');
    let name = rest.split('.').next().unwrap_or_default();
    let far = |of: &&&str| strsim::damerau_levenshtein(of, name);
    let nearest = there.iter().min_by_key(far);
    match nearest.filter(|of| far(of) <= 2) {
        Some(meant) if !at.is_empty() => format!(" (did you mean {at}.{meant}?)"),
        Some(meant) => format!(" (did you mean {meant}?)"),
        None => String::new(),
    }
}
