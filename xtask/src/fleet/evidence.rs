//! The same questions to three engines.

use crate::fleet::generate::{self, GenerateArgs};
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engines, and pandas in the version that Spark supports.
const ENGINES: [&str; 4] = [
    "duckdb==2.0.1",
    "chdb==4.4.0",
    "pyspark==4.3.0",
    "pyarrow==26.0.1",
];
const DAYS: u64 = 3;
const SEED: u64 = 1;

#[derive(clap::Args)]
pub struct EvidenceArgs {
    /// How many hosts the fleets have
    #[arg(long, value_delimiter = ',', default_value = "200,2000")]
    pub hosts: Vec<u64>,
    /// Where the fleets are or come, some gigabytes [default: target/fleet]
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

pub fn run(args: &EvidenceArgs) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask is in the repository")?;
    let dir = args
        .dir
        .clone()
        .unwrap_or_else(|| root.join("target/fleet"));
    fs::create_dir_all(&dir)?;
    let python =
        jitterscope_testing::python(&dir, &ENGINES).context("the engines cannot be installed")?;
    let mut fleets = Vec::new();
    for hosts in &args.hosts {
        let fleet = dir.join(format!("hosts-{hosts}"));
        // Written last.
        if !fleet.join("planted.json").is_file() {
            if fleet.exists() {
                fs::remove_dir_all(&fleet)?;
            }
            eprintln!("writing a fleet of {hosts} hosts");
            fs::create_dir_all(&fleet)?;
            generate::run(&GenerateArgs {
                hosts: *hosts,
                days: DAYS,
                seed: SEED,
                dir: fleet.clone(),
            })?;
        }
        fleets.push(fleet);
    }
    let done = Command::new(python.join("bin/python"))
        .arg(root.join("xtask/fleet/evidence.py"))
        .arg(root.join("crates/fleet/src/sql"))
        .arg(root.join("docs/fleet-evidence.md"))
        .args(&fleets)
        .current_dir(&dir)
        .status()
        .context("python cannot be started")?;
    ensure!(done.success(), "the engines do not agree, or one failed");
    Ok(())
}
