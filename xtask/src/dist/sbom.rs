//! The bill of materials in CycloneDX's form: what is linked into a program, with versions, licences and checksums.

use super::licences;
use crate::shell;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

/// The document of a version built for a target. It states no time, so the same commit gives the same bytes.
pub fn of(version: &str, target: &str) -> anyhow::Result<String> {
    let lock = fs::read_to_string(shell::root().join("Cargo.lock")).context("Cargo.lock")?;
    let sums = checksums(&lock);
    let mut components: Vec<Value> = Vec::new();
    for library in licences::libraries(target)? {
        let (name, version) = (library.name, library.version);
        let address = format!("pkg:cargo/{name}@{version}");
        let mut component = json!({
            "type": "library",
            "bom-ref": address,
            "name": name,
            "version": version,
            "purl": address,
            // Older manifests write a slash for OR.
            "licenses": [{ "expression": library.licence.replace('/', " OR ") }],
        });
        if let Some(sum) = sums.get(&(name, version)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        components.push(component);
    }
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "jitterscope",
                "name": "jitterscope",
                "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
                "properties": [{ "name": "jitterscope:target", "value": target }],
            },
        },
        "components": components,
    });
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The checksum of each library that a lock file names.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (field("name"), field("version"), field("checksum"))
        {
            found.insert((name, version), sum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_a_version_a_licence_and_a_checksum() {
        let text = of("1.2.3", "x86_64-unknown-linux-gnu").unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let components = document["components"].as_array().unwrap();
        assert!(components.len() > 50, "{}", components.len());
        for component in components {
            let licence = &component["licenses"][0]["expression"];
            assert!(
                licence.is_string() && !licence.to_string().contains('/'),
                "{component}"
            );
            let sum = component["hashes"][0]["content"].as_str();
            assert_eq!(sum.map(str::len), Some(64), "{component}");
        }
    }
}
