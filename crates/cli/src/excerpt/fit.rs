//! A document within a number of bytes.

use super::cursor::{Cursor, PAGE};
use super::shorten::{Shortened, TEXT, escaped};
use super::{Excerpt, LeftOut, Part};
use serde_json::{Map, Value};

/// How far lists are shortened, step by step.
const LISTS: [usize; 11] = [usize::MAX, 100, 50, 30, 20, 15, 10, 6, 3, 2, 1];
/// The most fields of an object: those of our types have fewer.
const MAP: usize = 64;

/// The part with as many entries as the bytes allow, and at most `top` of each list. Where one entry of each list is too
/// much, the largest fields are left out.
pub(super) fn fitted(part: &Part, from: &Option<Cursor>, top: usize, bytes: usize) -> Excerpt {
    let shortened = |lists| {
        let mut left_out = Vec::new();
        let mut shortened = Shortened {
            lists,
            maps: MAP,
            texts: TEXT,
            left_out: &mut left_out,
        };
        let rest = match from {
            None => shortened.of(&part.whole, &mut String::new(), 0),
            Some(cursor) => cursor.page(&part.whole, &mut shortened),
        };
        Excerpt::new(part.version, rest, left_out)
    };
    let mut lengths = LISTS.into_iter().map(|lists| lists.min(top));
    let found = lengths.find_map(|lists| {
        let excerpt = shortened(lists);
        (length(&excerpt) <= bytes).then_some(excerpt)
    });
    found.unwrap_or_else(|| {
        let mut excerpt = shortened(1);
        while length(&excerpt) > bytes && drop_largest(&mut excerpt, from, bytes) {}
        excerpt
    })
}

/// Replaces the largest field by a note. `false` if there is none.
fn drop_largest(excerpt: &mut Excerpt, from: &Option<Cursor>, bytes: usize) -> bool {
    let dropped = match from {
        None => largest_of(&mut excerpt.rest, &mut String::new(), bytes),
        Some(cursor) => match excerpt.rest.get_mut(PAGE) {
            Some(page) => largest_within(page, &mut cursor.pointer.clone(), cursor.from, bytes),
            None => None,
        },
    };
    let Some(dropped) = dropped else {
        return false;
    };
    excerpt
        .left_out
        .retain(|of| !is_within(&of.at, &dropped.at));
    excerpt.left_out.push(dropped);
    true
}

/// As [`drop_largest`], of an object or of a list with one entry, whose number is `first`.
fn largest_within(
    value: &mut Value,
    at: &mut String,
    first: usize,
    bytes: usize,
) -> Option<LeftOut> {
    match value {
        Value::Object(fields) => largest_of(fields, at, bytes),
        Value::Array(entries) => {
            let [entry] = &mut entries[..] else {
                return None;
            };
            at.push_str(&format!("/{first}"));
            largest_within(entry, at, 0, bytes)
        }
        _ => None,
    }
}

fn largest_of(fields: &mut Map<String, Value>, at: &mut String, bytes: usize) -> Option<LeftOut> {
    let sizes = fields.iter().map(|(name, field)| (length(field), name));
    let (size, name) = sizes.max().map(|(size, name)| (size, name.clone()))?;
    let outer = at.len();
    at.push_str(&format!("/{}", escaped(&name)));
    // All that is asked for may be in one field.
    if size > bytes
        && let Some(dropped) = fields
            .get_mut(&name)
            .and_then(|field| largest_within(field, at, 0, bytes))
    {
        return Some(dropped);
    }
    at.truncate(outer);
    at.push_str(&format!("/{}", escaped(&name)));
    let (of, has_pages) = match fields.remove(&name)? {
        Value::Object(inner) => (inner.len(), true),
        Value::Array(inner) => (inner.len(), true),
        Value::String(text) => (text.len(), false),
        _ => (1, false),
    };
    Some(LeftOut {
        cursor: has_pages.then(|| format!("{at}@0")),
        at: at.clone(),
        shown: 0,
        of,
    })
}

fn is_within(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The bytes of a value as compact JSON inside a JSON string, as a protocol carries it.
pub(super) fn length(value: &impl serde::Serialize) -> usize {
    let Ok(text) = serde_json::to_string(value) else {
        return usize::MAX;
    };
    // A quote and a backslash are escaped; JSON has no control character outside of its own escapes.
    let escaped = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\'));
    text.len() + escaped.count()
}
