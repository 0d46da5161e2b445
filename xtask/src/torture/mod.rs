//! What a user, another root process or an attacker may do to the program.
//!
//! Kills every command at random moments: the next start or `doctor --clean` must always restore the machine, which is
//! compared before and after each kill. Writes to the trace controls of every kind of recording at random moments: its
//! report must say so. Creates synthetic records that would fill a recorder's memory.

mod commands;
mod floods;
mod machine;
mod tampering;
mod victim;

use crate::program;
use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use commands::{Ground, KINDS, Kind, OFTEN};
use jitterscope_testing::{SplitMix64, turn};
use machine::{Snapshot, tracing};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use victim::{Blow, StrikeWith, Struck, ignored};

/// The least number of kills that hit each command of [`commands::OFTEN`] while it ran, for a run that is evidence.
const EVIDENCE: u32 = 50;
/// The number of kills of a run that is evidence.
const KILLS: u32 = 500;
/// How often a recording is made again because the moment lay outside of its measurement.
const MOST_DRAWS: u32 = 8;
/// How long others may have to wait.
const TURN: Duration = Duration::from_secs(60);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Commands are killed
    Kills,
    /// The controls of recordings' traces are written to
    Tampering,
    /// Records are made up that would fill a recorder's memory
    Floods,
}

/// Arguments of `cargo xtask torture`.
#[derive(Args)]
pub struct TortureArgs {
    /// What is done [default: kills and tampering]
    #[arg(value_enum)]
    what: Vec<What>,
    /// How many to kill
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// How many recordings to disturb: thirty are each kind in each way once
    #[arg(long, default_value_t = 30)]
    tamperings: u32,
    /// How long floods last, minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
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

/// The lock of tests that measure: no other test changes the machine meanwhile.
struct Turn {
    _held: File,
    since: Instant,
}

impl Turn {
    fn take() -> Turn {
        Turn {
            _held: turn(),
            since: Instant::now(),
        }
    }

    /// Lets others go first if it was held for long.
    fn pass_on(self) -> Turn {
        if self.since.elapsed() < TURN {
            return self;
        }
        drop(self);
        Turn::take()
    }
}

/// Runs it; fails with the list of findings.
pub fn run(args: &TortureArgs) -> anyhow::Result<()> {
    let is_wanted = |what: What| match &args.what[..] {
        [] => what != What::Floods,
        some => some.contains(&what),
    };
    if is_wanted(What::Floods) {
        floods::run(args.minutes)?;
    }
    if !is_wanted(What::Kills) && !is_wanted(What::Tampering) {
        return Ok(());
    }
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
        .flat_map(|kind| std::iter::repeat_n(kind, kind.share))
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
    eprintln!("again with --seed {seed}");
    let mut random = SplitMix64(seed);
    let ground = Ground::prepare(program)?;
    let mut findings = Vec::new();
    let mut tell = |number: u32, message: String, found: Vec<String>| {
        let mark = if found.is_empty() { "" } else { "  <- FOUND" };
        eprintln!("{number:>4} {message}{mark}");
        for what in found {
            eprintln!("     {what}");
            findings.push(format!("{number} {message}: {what}"));
        }
    };
    let mut held = Turn::take();
    let mut done = Vec::new();
    if is_wanted(What::Tampering) {
        let mut reported = 0;
        for number in 1..=args.tamperings {
            let mut inside = false;
            for _ in 0..MOST_DRAWS {
                held = held.pass_on();
                let (noticed, message, found) = tampering::one(&ground, number, &mut random)?;
                inside = noticed || !found.is_empty();
                reported += u32::from(noticed);
                tell(number, message, found);
                if inside {
                    break;
                }
            }
            if !inside {
                let message = format!("no moment of {MOST_DRAWS} lay within the measurement");
                tell(number, message.clone(), vec![message]);
            }
        }
        done.push(format!(
            "{} recordings disturbed, {reported} of them while they measured",
            args.tamperings
        ));
    }
    if is_wanted(What::Kills) {
        // The number of kills of each command, and how many of them hit it while it ran.
        let mut kills: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for number in 1..=args.kills {
            held = held.pass_on();
            // In turn, so that a hundred kills reach every command; time and signal are random.
            let kind = kinds[number as usize % kinds.len()];
            let (running, message, found) = one(&ground, kind, &mut random, args.with)?;
            tell(number, message, found);
            let counts = kills.entry(kind.name).or_default();
            *counts = (counts.0 + 1, counts.1 + u32::from(running));
        }
        for kind in KINDS.iter().filter(|kind| kind.share == OFTEN) {
            let (all, running) = kills.get(kind.name).copied().unwrap_or_default();
            if args.kills >= KILLS && args.only.is_none() && running < EVIDENCE {
                findings.push(format!(
                    "{}: {running} of {all} kills hit it while it ran, {EVIDENCE} are wanted",
                    kind.name
                ));
            }
        }
        let each: Vec<String> = kills
            .iter()
            .map(|(name, (all, running))| format!("{name} {running} of {all}"))
            .collect();
        done.push(format!(
            "{} kills (while they ran: {})",
            args.kills,
            each.join(", ")
        ));
    }
    drop(held);
    let done = done.join(", ");
    if findings.is_empty() {
        eprintln!("{done}: nothing was found");
        return Ok(());
    }
    bail!(
        "{} findings in {done} (--seed {seed}):\n  {}",
        findings.len(),
        findings.join("\n  ")
    )
}

/// One kill: whether the command still ran, what was done, and what it wrongly left behind.
fn one(
    ground: &Ground,
    kind: &Kind,
    random: &mut SplitMix64,
    with: Option<StrikeWith>,
) -> anyhow::Result<(bool, String, Vec<String>)> {
    let blow = Blow::draw(random, ground.span(kind), with);
    let before = Snapshot::take()?;
    let mut found = Vec::new();
    ground.before(kind)?;
    let Struck { running, end } = victim::strike(ground, kind, &blow, &mut found)?;
    let message = format!("{:<24} {blow} -> {end}", kind.name);
    if !blow.is_kill() {
        // A command that ran to its end leaves nothing for others to remove.
        let compared = before.tracing.differences(&tracing()?);
        found.extend(
            compared
                .into_iter()
                .map(|what| format!("before any clean-up: {what}")),
        );
    } else if random.below(3) == 0 {
        // The next start removes it as doctor does.
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
    Ok((running, message, found))
}
