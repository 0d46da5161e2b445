//! The Grafana dashboard, and the queries in it.

use serde_json::Value;

/// All queries: of its panels and of its variables.
pub fn queries() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/jitterscope.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let targets =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|p| p["targets"].as_array().unwrap());
    let variables =
        dashboard["templating"]["list"].as_array().unwrap().iter().filter(|v| v["type"] == "query");
    let queries: Vec<String> =
        targets.chain(variables).map(|holder| holder["query"].as_str().unwrap().to_owned()).collect();
    assert!(queries.len() >= 9, "{queries:?}");
    queries
}
