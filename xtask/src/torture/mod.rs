//! Every command, killed at random moments: whatever a user or the kernel does to one, the next start or
//! `doctor --clean` must find the machine as it was. The machine is compared before and after each kill.

mod commands;
mod machine;
mod victim;

use crate::program;
use anyhow::{bail, ensure};
use clap::Args;
use commands::{Ground, KINDS, Kind};
use jitterscope_testing::{SplitMix64, turn};
use machine::{Snapshot, tracing};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use victim::{Blow, StrikeWith, ignored};

/// How long others may have to wait.
const TURN: Duration = Duration::from_secs(60);

/// Arguments of `cargo xtask torture`.
#[derive(Args)]
pub struct TortureArgs {
    /// How many to kill
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Repeats the choices of an earlier run; they are printed at its start
    #[arg(long)]
    seed: Option<u64>,
    /// Only commands whose name has this in it
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Strike with this signal alone [default: a mixture, half of it KILL]
    #[arg(long, value_name = "SIGNAL", value_enum, ignore_case = true)]
    with: Option<StrikeWith>,
    /// The program [default: a debug build of this workspace]
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Runs it; fails with the list of what was found.
pub fn run(args: &TortureArgs) -> anyhow::Result<()> {
    ensure!(
        rustix::process::geteuid().is_root(),
        "torture changes the machine: run it as root"
    );
    let ignored = ignored()?;
    ensure!(
        ignored.is_empty(),
        "{} is ignored here, and by all that is started from here: start torture with env --default-signal={}",
        ignored.join(" and "),
        ignored.join(",")
    );
    if let Some(program) = &args.program {
        program::take(program)?;
    }
    let program = program::get()?;
    let kinds: Vec<&Kind> = KINDS
        .iter()
        .filter(|kind| {
            args.only
                .as_ref()
                .is_none_or(|only| kind.name.contains(&**only))
        })
        .collect();
    ensure!(
        !kinds.is_empty(),
        "--only {}: no command is called so",
        args.only.as_deref().unwrap_or_default()
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let seed = args.seed.unwrap_or(now);
    eprintln!("{} kills; again with --seed {seed}", args.kills);
    let mut random = SplitMix64(seed);
    let ground = Ground::prepare(program)?;
    let mut findings = Vec::new();
    // Tests that measure take turns by the same lock: nobody else changes the machine meanwhile.
    let mut held = (turn(), Instant::now());
    for number in 1..=args.kills {
        if held.1.elapsed() > TURN {
            drop(held.0);
            held = (turn(), Instant::now());
        }
        // In turn, so that a hundred kills reach every command; when and how is left to chance.
        let kind = kinds[number as usize % kinds.len()];
        let (message, found) = one(&ground, kind, &mut random, args.with)?;
        eprintln!(
            "{number:>4} {message}{}",
            if found.is_empty() { "" } else { "  <- FOUND" }
        );
        for what in found {
            eprintln!("     {what}");
            findings.push(format!("{number} {message}: {what}"));
        }
    }
    drop(held);
    if findings.is_empty() {
        eprintln!(
            "{} kills, and the machine was as before each time",
            args.kills
        );
        return Ok(());
    }
    bail!(
        "{} findings in {} kills (--seed {seed}):\n  {}",
        findings.len(),
        args.kills,
        findings.join("\n  ")
    )
}

/// One kill: what was done, and what it left that it should not have.
fn one(
    ground: &Ground,
    kind: &Kind,
    random: &mut SplitMix64,
    with: Option<StrikeWith>,
) -> anyhow::Result<(String, Vec<String>)> {
    let blow = Blow::draw(random, ground.span(kind), with);
    let before = Snapshot::take()?;
    let mut found = Vec::new();
    ground.before(kind)?;
    let end = victim::strike(ground, kind, &blow, &mut found)?;
    let message = format!("{:<24} {blow} -> {end}", kind.name);
    if !blow.is_kill() {
        // What can run to its end leaves nothing for others to remove.
        let compared = before.tracing.differences(&tracing()?);
        found.extend(
            compared
                .into_iter()
                .map(|what| format!("before any clean-up: {what}")),
        );
    } else if random.below(3) == 0 {
        // The next start removes it as well as doctor does.
        ground.next_start()?;
        let compared = before.tracing.differences(&tracing()?);
        found.extend(
            compared
                .into_iter()
                .map(|what| format!("after the next start: {what}")),
        );
    }
    found.extend(ground.recover(Some(kind))?);
    found.extend(before.differences(&Snapshot::take()?));
    found.extend(ground.leftovers()?);
    Ok((message, found))
}
