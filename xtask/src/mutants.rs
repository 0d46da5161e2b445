//! Mutation testing: how tight the tests are. Not in CI: it takes hours.

use crate::{shell, tools};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;

/// Whose verdicts must not change unnoticed.
const CRATES: [&str; 4] = ["attribute", "analyze", "tune", "store"];
/// Share of the viable mutants that tests must catch, in hundredths.
const LEAST: u64 = 90;

/// Arguments of `mutants`.
#[derive(Args)]
pub struct MutantsArgs {
    /// The crate, without `jitterscope-`; attribute, analyze, tune and store when left out
    name: Option<String>,
    /// Only files that this glob matches, from the root of the workspace
    #[arg(long)]
    file: Option<String>,
    /// Only mutants whose name this regular expression matches
    #[arg(long)]
    re: Option<String>,
}

/// Runs them, crate by crate; fails where a tenth or more is not caught. What is left out, and why, is in
/// `.cargo/mutants.toml`.
pub fn run(args: &MutantsArgs) -> anyhow::Result<()> {
    tools::MUTANTS.get()?;
    let crates: Vec<&str> = args.name.as_deref().map_or_else(|| CRATES.to_vec(), |name| vec![name]);
    let mut too_few = Vec::new();
    for name in crates {
        let (caught, missed) = one(name, args)?;
        let viable = caught + missed;
        if viable == 0 {
            bail!("no mutant of {name} could be built: look into target/mutants/{name}/mutants.out");
        }
        println!("{name}: {caught} of {viable} viable mutants caught, {:.1} %", percent(caught, viable));
        if caught * 100 < viable * LEAST {
            too_few.push(name);
        }
    }
    if !too_few.is_empty() {
        bail!("fewer than {LEAST} % caught: {}; the survivors are listed above", too_few.join(", "));
    }
    Ok(())
}

/// Caught and missed mutants of a crate. Its survivors are printed.
fn one(name: &str, args: &MutantsArgs) -> anyhow::Result<(u64, u64)> {
    let package = format!("jitterscope-{name}");
    let output = shell::root().join("target/mutants").join(name);
    std::fs::create_dir_all(&output).with_context(|| format!("{} cannot be made", output.display()))?;
    let mut command = shell::command("cargo", &["mutants", "--no-shuffle", "--jobs", "1", "-p", &package]);
    command.env("PATH", tools::path()?).arg("--output").arg(&output);
    for (flag, value) in [("--file", &args.file), ("--re", &args.re)] {
        if let Some(value) = value {
            command.arg(flag).arg(value);
        }
    }
    // It ends with 2 where mutants survive, with 3 where one ran too long: the outcomes say more.
    let status = command.status().context("cargo mutants cannot be started")?;
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        bail!("cargo mutants failed ({status})");
    }
    let outcomes = std::fs::read(output.join("mutants.out/outcomes.json")).context("it left no outcomes")?;
    let outcomes: Value = serde_json::from_slice(&outcomes).context("its outcomes are no JSON")?;
    let count = |field: &str| outcomes[field].as_u64().with_context(|| format!("no number '{field}'"));
    Ok((count("caught")? + count("timeout")?, count("missed")?))
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}
