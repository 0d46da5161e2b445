//! The manifests against Kubernetes' own schemas, and against the image that they name.

use super::root::succeeded;
use crate::{shell, tools};
use anyhow::{Context, ensure};
use std::fs;
use std::process::Command;

/// The validator, with the schemas in its package.
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

pub fn run(version: &str) -> anyhow::Result<()> {
    let place = tools::target().join("tools/kubernetes");
    let program = place.join("bin/kubernetes-validate");
    if !program.is_file() {
        let venv = Command::new("python3")
            .args(["-m", "venv"])
            .arg(&place)
            .output();
        succeeded(
            &venv.context("python3 cannot be started")?,
            "python3 -m venv",
        )?;
        let pip = Command::new(place.join("bin/pip"))
            .args([
                "--quiet",
                "--disable-pip-version-check",
                "install",
                VALIDATOR,
            ])
            .output();
        succeeded(&pip.context("pip cannot be started")?, "pip install")?;
    }
    let mut checked = 0;
    for manifest in fs::read_dir(shell::root().join("packaging/kubernetes"))? {
        let manifest = manifest?.path();
        let output = Command::new(&program)
            .arg("--strict")
            .arg(&manifest)
            .output();
        succeeded(
            &output.context("the validator cannot be started")?,
            "kubernetes-validate",
        )?;
        let text = fs::read_to_string(&manifest)?;
        ensure!(
            text.contains(&format!("image: jitterscope:{version}\n")),
            "{} names another image than {version}",
            manifest.display()
        );
        checked += 1;
    }
    ensure!(checked > 0, "there are no manifests");
    println!("kubernetes: {checked} manifests follow the schemas");
    Ok(())
}
