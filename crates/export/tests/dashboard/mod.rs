//! The Grafana dashboard, and the queries in it.

use serde_json::Value;

pub fn whole() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/grafana/jitterscope.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The links of the panels' fields: title and URL.
#[allow(dead_code, reason = "each test uses its part")]
pub fn links(dashboard: &Value) -> Vec<(&str, &str)> {
    let panels = dashboard["panels"].as_array().unwrap();
    let lists = panels.iter().flat_map(|panel| {
        let config = &panel["fieldConfig"];
        let overrides = config["overrides"].as_array().into_iter().flatten();
        let properties = overrides.flat_map(|of| of["properties"].as_array().into_iter().flatten());
        let linking = properties.filter(|property| property["id"] == "links");
        linking
            .map(|property| &property["value"])
            .chain([&config["defaults"]["links"]])
    });
    let links = lists.flat_map(|links| links.as_array().into_iter().flatten());
    links
        .map(|link| {
            (
                link["title"].as_str().unwrap(),
                link["url"].as_str().unwrap(),
            )
        })
        .collect()
}

/// The queries of all panels and variables.
pub fn queries() -> Vec<String> {
    let dashboard = whole();
    let targets = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|p| p["targets"].as_array().unwrap());
    let variables = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|v| v["type"] == "query");
    let queries: Vec<String> = targets
        .chain(variables)
        .map(|holder| holder["query"].as_str().unwrap().to_owned())
        .collect();
    assert!(queries.len() >= 9, "{queries:?}");
    queries
}
