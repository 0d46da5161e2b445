//! The allowed edges between crates, compared with cargo's metadata.

use crate::shell;
use anyhow::{Context, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Crates in data flow order: each may import those before it, unless `ONLY` allows less.
const ORDER: [&str; 18] = [
    "testing",
    "model",
    "clock",
    "platform",
    "probe",
    "inject",
    "source",
    "attribute",
    "analyze",
    "store",
    "export",
    "recording",
    "tune",
    "experiment",
    "view",
    "fleet",
    "cli",
    "xtask",
];

/// Crates that may import only these.
const ONLY: [(&str, &[&str]); 12] = [
    ("testing", &[]),
    ("model", &[]),
    ("clock", &[]),
    ("platform", &["model", "clock"]),
    ("probe", &["model", "clock", "platform"]),
    ("inject", &["model", "platform"]),
    ("source", &["model", "platform"]),
    ("attribute", &["model"]),
    ("analyze", &["model", "attribute"]),
    ("tune", &["model", "platform"]),
    ("experiment", &["model", "platform", "analyze", "tune"]),
    ("fleet", &["model", "platform", "analyze", "store", "view"]),
];

/// Crates that may contain `unsafe`; all others must forbid it.
const MAY_BE_UNSAFE: [&str; 5] = ["clock", "platform", "probe", "inject", "source"];

/// The crate of the measuring loop: without dependencies and without the standard library, so that nothing that would
/// disturb the measurement is reachable from it.
const BARE: &str = "clock";

/// Why an edge is not allowed; `None` if it is.
fn objection(from: &str, to: &str) -> Option<String> {
    let rank = |name: &str| ORDER.iter().position(|n| *n == name);
    let (Some(f), Some(t)) = (rank(from), rank(to)) else {
        return Some(format!(
            "{from} -> {to}: add the new crate to xtask/src/deps.rs and ARCHITECTURE.md"
        ));
    };
    if let Some((_, allowed)) = ONLY.iter().find(|(name, _)| *name == from)
        && !allowed.contains(&to)
    {
        return Some(format!("{from} may import only {allowed:?}, not {to}"));
    }
    (t >= f).then(|| format!("{from} may not import {to}: data flows the other way"))
}

/// Fails with the list of disallowed edges.
pub fn run() -> anyhow::Result<()> {
    let metadata = shell::output(
        "cargo",
        &["metadata", "--format-version=1", "--no-deps", "--locked"],
    )?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is no JSON")?;
    let mut objections = Vec::new();
    let mut edges = 0;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = short(package["name"].as_str().unwrap_or_default());
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may have more dependencies.
            let full = dependency["name"].as_str().unwrap_or_default();
            if dependency["kind"] == "dev" {
                continue;
            }
            if name == BARE {
                objections.push(format!("{BARE} may depend on nothing, not on {full}"));
            }
            if dependency["path"].is_null() {
                continue;
            }
            edges += 1;
            objections.extend(objection(name, short(full)));
        }
        if name != "xtask" && !MAY_BE_UNSAFE.contains(&name) {
            objections.extend(unless_forbidden(package, name));
        }
        if name == BARE {
            objections.extend(with_std(package)?);
        }
    }
    if edges == 0 {
        bail!(
            "cargo metadata shows no edges between crates: this check would pass whatever they are"
        );
    }
    if objections.is_empty() {
        eprintln!("{edges} edges between crates, all allowed");
        return Ok(());
    }
    bail!(
        "crates import what they should not:\n  {}",
        objections.join("\n  ")
    )
}

fn unless_forbidden(package: &Value, name: &str) -> Option<String> {
    let targets = package["targets"].as_array()?;
    let root = targets
        .iter()
        .find(|t| t["kind"][0] == "lib" || t["kind"][0] == "bin")?;
    let text = std::fs::read_to_string(root["src_path"].as_str()?).ok()?;
    (!text.contains("#![forbid(unsafe_code)]"))
        .then(|| format!("{name} does not forbid unsafe code"))
}

/// Why the loop's crate could reach the standard library: it lacks `no_std`, or imports the library again.
fn with_std(package: &Value) -> anyhow::Result<Vec<String>> {
    let root = package["targets"][0]["src_path"]
        .as_str()
        .context("a crate without a source")?;
    let folder = Path::new(root)
        .parent()
        .context("a source without a folder")?;
    let mut objections = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{}", folder.display()))? {
        let path = entry?.path();
        // The folder has no subfolders; a subfolder cannot be read as text, and the check fails.
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        objections
            .extend(needs_std(&text, path == Path::new(root)).map(|why| format!("{BARE}: {why}")));
    }
    Ok(objections)
}

/// Why a source file could use the standard library or the allocator.
fn needs_std(text: &str, root: bool) -> Option<&'static str> {
    if root && !text.contains("\n#![cfg_attr(not(test), no_std)]\n") {
        return Some("its root does not do without std");
    }
    text.contains("extern crate")
        .then_some("an `extern crate` takes std or alloc back")
}

fn short(package: &str) -> &str {
    if package == "jitterscope" {
        "cli"
    } else {
        package.strip_prefix("jitterscope-").unwrap_or(package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_flows_one_way() {
        assert_eq!(objection("view", "analyze"), None);
        assert_eq!(objection("cli", "tune"), None);
        assert!(objection("analyze", "view").is_some());
        assert!(objection("analyze", "store").is_some());
        assert!(objection("attribute", "platform").is_some());
        assert!(objection("tune", "store").is_some());
        assert!(objection("probe", "source").is_some());
        assert!(objection("cli", "novelty").is_some());
        assert_eq!(objection("probe", "clock"), None);
        assert!(objection("clock", "model").is_some());
        assert!(objection("platform", "inject").is_some());
        assert!(objection("tune", "inject").is_some());
    }

    #[test]
    fn the_loops_crate_cannot_take_the_standard_library_back() {
        let root = "//! Words.\n#![cfg_attr(not(test), no_std)]\n\nmod spin;\n";
        assert_eq!(needs_std(root, true), None);
        assert!(needs_std("//! Words.\nmod spin;\n", true).is_some());
        assert!(needs_std(&format!("{root}extern crate std;\n"), true).is_some());
        assert_eq!(needs_std("use core::fmt;\n", false), None);
        assert!(needs_std("extern crate alloc;\n", false).is_some());
    }
}
