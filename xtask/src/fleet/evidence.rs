//! The same questions to three engines.

use crate::dist::FLEET;
use crate::fleet::generate::{self, GenerateArgs};
use crate::program;
use anyhow::{Context, ensure};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engines, DuckDB's program for the report, and a server for S3 with its client. Spark is only published as source.
const ENGINES: [&str; 7] = [
    "--no-binary=pyspark",
    "duckdb==2.0.1",
    "duckdb-cli==1.5.6",
    "chdb==4.4.0",
    "pyspark==4.3.0",
    "moto[server]==5.2.5",
    "boto3==1.44.8",
];
const DAYS: u64 = 3;
const SEED: u64 = 1;

#[derive(clap::Args)]
pub struct EvidenceArgs {
    /// How many hosts the fleets have, the smallest first: among fewer than 200, chance hides a planted cause
    #[arg(long, value_delimiter = ',', default_value = "200,2000", value_parser = clap::value_parser!(u64).range(200..))]
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
    let run = |script: &str, args: &[&OsStr]| -> anyhow::Result<()> {
        let done = Command::new(python.join("bin/python"))
            .arg(root.join("xtask/fleet").join(script))
            .args(args)
            // No compiled scripts in the repository.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&dir)
            .status()
            .context("python cannot be started")?;
        ensure!(
            done.success(),
            "the engines do not agree, one failed, or the report does not say what was planted"
        );
        Ok(())
    };
    let program = program::get()?.with_file_name(FLEET);
    let page = root.join("docs/fleet-evidence.md");
    let sql = root.join("crates/fleet/src/sql");
    let mut results = Vec::new();
    for hosts in &args.hosts {
        let fleet = dir.join(format!("hosts-{hosts}"));
        // Written last.
        if !fleet.join("planted.json").is_file() {
            eprintln!("writing a fleet of {hosts} hosts");
            if fleet.exists() {
                fs::remove_dir_all(&fleet)?;
            }
            generate::run(&GenerateArgs {
                hosts: *hosts,
                days: DAYS,
                seed: SEED,
                dir: fleet.clone(),
            })?;
        }
        eprintln!("asking the fleet of {hosts} hosts");
        let result = dir.join(format!("hosts-{hosts}.json"));
        let more = results.is_empty().then_some(OsStr::new("more"));
        let args = [&program, &sql, &fleet, &result].map(|path| path.as_os_str());
        run(
            "evidence.py",
            &args.into_iter().chain(more).collect::<Vec<_>>(),
        )?;
        results.push(result);
    }
    let results = results.iter().map(|path| path.as_os_str());
    run(
        "page.py",
        &std::iter::once(page.as_os_str())
            .chain(results)
            .collect::<Vec<_>>(),
    )
}
