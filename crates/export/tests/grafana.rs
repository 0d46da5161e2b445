//! The dashboard asks for nothing that is never written. (`influxdb.rs` runs its queries.)

mod dashboard;

use jitterscope_export::influx::SCHEMA;

/// What stands in double quotes, except the names that a query gives its own columns.
fn quoted(query: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut parts = query.split('"');
    while let (Some(before), Some(name)) = (parts.next(), parts.next()) {
        if !before.trim_end().ends_with(" AS") {
            names.push(name);
        }
    }
    names
}

#[test]
fn queries_name_measurements_tags_and_fields_that_exist() {
    for query in dashboard::queries() {
        let names = quoted(&query);
        let (name, tags, fields) = SCHEMA
            .iter()
            .find(|(name, ..)| names.contains(name))
            .unwrap_or_else(|| panic!("no measurement in: {query}"));
        for known in &names {
            assert!(
                known == name || tags.contains(known) || fields.contains(known),
                "{name} has no '{known}': {query}"
            );
        }
        // A tag is compared as text, a field is what functions take.
        for tag in tags.iter() {
            assert!(!query.contains(&format!("(\"{tag}\")")), "a function of a tag: {query}");
        }
    }
}
