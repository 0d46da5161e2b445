//! The dashboard queries only what is written. (`influxdb.rs` runs its queries.)

use crate::dashboard;

use jitterscope_export::influx::SCHEMA;

/// The names in double quotes, except those that a query gives its own columns.
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
        // A tag is compared as text; functions take fields.
        for tag in tags.iter() {
            assert!(
                !query.contains(&format!("(\"{tag}\")")),
                "a function of a tag: {query}"
            );
        }
    }
}

/// A reader of a graph gets the command that shows the stall's moment.
#[test]
fn stalls_lead_back_to_the_command_that_shows_them() {
    let dashboard = dashboard::whole();
    let links: Vec<(&str, &str)> = dashboard::links(&dashboard);
    let of = |command: &str| {
        links
            .iter()
            .find(|(title, _)| title.contains(command))
            .copied()
    };
    let (title, url) = of("--stall").unwrap();
    assert_eq!(
        title,
        "jitterscope report ${__data.fields.run} --stall ${__data.fields.stall_id}"
    );
    assert_eq!(
        url,
        "${serve}/run/${__data.fields.run}#stall=${__data.fields.stall_id}"
    );
    // The columns of that panel's query.
    let query = dashboard::queries()
        .into_iter()
        .find(|query| query.contains("top("))
        .unwrap();
    assert!(
        query.contains("\"run\"") && query.contains("\"stall_id\""),
        "{query}"
    );
    assert_eq!(
        of("--at").unwrap().0,
        "jitterscope report RUN --at ${__value.time}"
    );
}
