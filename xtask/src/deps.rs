//! The allowed edges between crates, checked against what cargo sees.

use crate::shell;
use anyhow::{Context, bail};
use serde_json::Value;

/// Crates in the order in which data flows: each may import those before it, except where `ONLY` says
/// less.
const ORDER: [&str; 13] = [
    "model",
    "platform",
    "probe",
    "trace",
    "attribute",
    "analyze",
    "store",
    "export",
    "report",
    "record",
    "tune",
    "cli",
    "xtask",
];

/// Crates that may import only these.
const ONLY: [(&str, &[&str]); 6] = [
    ("model", &[]),
    ("probe", &["model", "platform"]),
    ("trace", &["model", "platform"]),
    ("attribute", &["model"]),
    ("analyze", &["model", "attribute"]),
    ("tune", &["model", "platform"]),
];

/// Crates that may contain `unsafe`; all others must forbid it.
const MAY_BE_UNSAFE: [&str; 3] = ["platform", "probe", "trace"];

/// Why an edge is not allowed; `None` when it is.
fn objection(from: &str, to: &str) -> Option<String> {
    let rank = |name: &str| ORDER.iter().position(|n| *n == name);
    let (Some(f), Some(t)) = (rank(from), rank(to)) else {
        return Some(format!("{from} -> {to}: add the new crate to xtask/src/deps.rs and ARCHITECTURE.md"));
    };
    if let Some((_, allowed)) = ONLY.iter().find(|(name, _)| *name == from)
        && !allowed.contains(&to)
    {
        return Some(format!("{from} may import only {allowed:?}, not {to}"));
    }
    (t >= f).then(|| format!("{from} may not import {to}: data flows the other way"))
}

/// Fails with the list of edges that should not be.
pub fn run() -> anyhow::Result<()> {
    let metadata = shell::output("cargo", &["metadata", "--format-version=1", "--no-deps", "--locked"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is no JSON")?;
    let mut objections = Vec::new();
    let mut edges = 0;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(package["name"].as_str().unwrap_or_default());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may look further.
            let full = dependency["name"].as_str().unwrap_or_default();
            if dependency["kind"] == "dev" || dependency["path"].is_null() {
                continue;
            }
            edges += 1;
            objections.extend(objection(name, short(full)));
        }
        if name != "xtask" && !MAY_BE_UNSAFE.contains(&name) {
            objections.extend(unless_forbidden(package, name));
        }
    }
    if edges == 0 {
        bail!("cargo metadata shows no edges between crates: this check would pass whatever they are");
    }
    if objections.is_empty() {
        eprintln!("{edges} edges between crates, all allowed");
        return Ok(());
    }
    bail!("crates import what they should not:\n  {}", objections.join("\n  "))
}

fn unless_forbidden(package: &Value, name: &str) -> Option<String> {
    let targets = package["targets"].as_array()?;
    let root = targets.iter().find(|t| t["kind"][0] == "lib" || t["kind"][0] == "bin")?;
    let text = std::fs::read_to_string(root["src_path"].as_str()?).ok()?;
    (!text.contains("#![forbid(unsafe_code)]")).then(|| format!("{name} does not forbid unsafe code"))
}

fn short(package: &str) -> &str {
    if package == "jitterscope" { "cli" } else { package.strip_prefix("jitterscope-").unwrap_or(package) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_flows_one_way() {
        assert_eq!(objection("report", "analyze"), None);
        assert_eq!(objection("cli", "tune"), None);
        assert!(objection("analyze", "report").is_some());
        assert!(objection("analyze", "store").is_some());
        assert!(objection("attribute", "platform").is_some());
        assert!(objection("tune", "store").is_some());
        assert!(objection("probe", "trace").is_some());
        assert!(objection("cli", "novelty").is_some());
    }
}
