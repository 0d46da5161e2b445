//! Mutation testing: how tight the tests are. Not in CI: it takes hours, and all of it days.
//!
//! Mutated code is anybody's code: what takes CPUs offline when it is right may do anything when it is not. So it
//! is built in a copy of the sources, and where this runs as root its tests run as nobody.

use crate::{shell, tools};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whose verdicts must not change unnoticed.
const CRATES: [&str; 4] = ["attribute", "analyze", "tune", "store"];
/// Share of the viable mutants that tests must catch, in hundredths.
const LEAST: u64 = 90;
/// Two-sided 95 % of the normal distribution.
const Z: f64 = 1.959_964;
/// How the tests give up root; the number is that of nobody. Cargo splits it at the spaces.
const AS_NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --";

/// Arguments of `mutants`.
#[derive(Args)]
pub struct MutantsArgs {
    /// The crate, without `jitterscope-`; attribute, analyze, tune and store when left out
    name: Option<String>,
    /// About so many mutants of each crate: every k-th of them in the order of the sources
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    sample: Option<u64>,
    /// Which of the k samples, from 0 on; another number is another sample, with no mutant in common
    #[arg(long, default_value_t = 0, requires = "sample")]
    shard: u64,
    /// Only files that this glob matches, from the root of the workspace
    #[arg(long)]
    file: Option<String>,
    /// Only mutants whose name this regular expression matches
    #[arg(long)]
    re: Option<String>,
}

/// What became of a crate's mutants.
struct Outcome {
    caught: u64,
    /// Their names, each with its place in the sources.
    missed: Vec<String>,
}

/// Runs them, crate by crate; fails where a tenth or more is not caught. What is left out, and why, is in
/// `.cargo/mutants.toml`.
pub fn run(args: &MutantsArgs) -> anyhow::Result<()> {
    tools::MUTANTS.get()?;
    let crates: Vec<&str> = args
        .name
        .as_deref()
        .map_or_else(|| CRATES.to_vec(), |name| vec![name]);
    let folder = tools::target().join("mutants");
    let runner = if rustix::process::geteuid().is_root() {
        Some(runner(&folder)?)
    } else {
        None
    };
    let sources = folder.join("sources");
    copy_sources(&sources)?;
    let mut too_few = Vec::new();
    for name in crates {
        let here = Here {
            sources: &sources,
            folder: &folder,
            runner: runner.as_ref(),
        };
        let shard = here.shard(name, args)?;
        let Outcome { caught, missed } = here.run(name, args, shard)?;
        let viable = caught + missed.len() as u64;
        if viable == 0 {
            bail!(
                "no mutant of {name} could be built: look into {}",
                here.results(name).display()
            );
        }
        missed
            .iter()
            .for_each(|survivor| println!("not caught: {survivor}"));
        println!("{}", sentence(name, caught, viable, shard));
        if caught * 100 < viable * LEAST {
            too_few.push(name);
        }
    }
    if !too_few.is_empty() {
        bail!(
            "fewer than {LEAST} % caught: {}; the survivors are listed above",
            too_few.join(", ")
        );
    }
    Ok(())
}

/// One of so many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    number: u64,
    of: u64,
    /// Mutants of the crate.
    mutants: u64,
}

impl Shard {
    /// Of `mutants` about `sample`, as many as there are at most.
    fn of(mutants: u64, sample: u64, number: u64) -> anyhow::Result<Shard> {
        let of = mutants.div_ceil(sample.max(1)).max(1);
        if number >= of {
            bail!(
                "{mutants} mutants make {of} samples of about {sample}: --shard goes from 0 to {}",
                of - 1
            );
        }
        Ok(Shard {
            number,
            of,
            mutants,
        })
    }
}

fn sentence(name: &str, caught: u64, viable: u64, shard: Option<Shard>) -> String {
    let share = caught as f64 * 100.0 / viable as f64;
    let all = format!("{name}: {caught} of {viable} viable mutants caught, {share:.1} %");
    let Some(Shard {
        number,
        of,
        mutants,
    }) = shard
    else {
        return all;
    };
    let (low, high) = interval(caught, viable);
    format!(
        "{all} (95 % interval {:.1} to {:.1} %; sample {number} of {of} of {mutants} mutants)",
        low * 100.0,
        high * 100.0
    )
}

/// Wilson's interval of a share, 95 %: unlike that of the normal approximation it holds near 1. Every k-th mutant
/// is as good as a random one here, for no property of the sources has that period.
fn interval(part: u64, whole: u64) -> (f64, f64) {
    let (n, z2) = (whole as f64, Z * Z);
    let p = part as f64 / n;
    let scale = 1.0 + z2 / n;
    let centre = (p + z2 / (2.0 * n)) / scale;
    let half = Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt() / scale;
    ((centre - half).max(0.0), (centre + half).min(1.0))
}

/// The variable and the value that make cargo run tests as nobody.
fn runner(folder: &Path) -> anyhow::Result<(String, &'static str)> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    if tools::on_path("setpriv").is_none() {
        bail!(
            "setpriv is missing, and mutated code must not run as root: install util-linux, or run this as another user"
        );
    }
    let closed = folder.ancestors().find(|part| {
        fs::metadata(part).is_ok_and(|found| found.is_dir() && found.mode() & 0o001 == 0)
    });
    if let Some(closed) = closed {
        bail!(
            "mutated code must not run as root, and nobody else can enter {}: set CARGO_TARGET_DIR to a folder that all can enter, or run this as another user",
            closed.display()
        );
    }
    let version = shell::output("rustc", &["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say for what it builds")?;
    let host = host.to_uppercase().replace(['-', '.'], "_");
    Ok((format!("CARGO_TARGET_{host}_RUNNER"), AS_NOBODY))
}

/// Copies what git knows or would add, so that changes which are not committed are there. Everybody may read it.
fn copy_sources(to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)
            .with_context(|| format!("the old {} cannot be removed", to.display()))?;
    }
    let listed = shell::output(
        "git",
        &[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    )?;
    let root = shell::root();
    for name in listed.split_terminator('\0') {
        let (from, to) = (root.join(name), to.join(name));
        // One that was deleted and is still known to git.
        if !from.is_file() {
            continue;
        }
        let failed = || format!("{} cannot be copied to {}", from.display(), to.display());
        to.parent()
            .map_or(Ok(()), fs::create_dir_all)
            .with_context(failed)?;
        fs::copy(&from, &to).with_context(failed)?;
        let mode = fs::metadata(&to).with_context(failed)?.mode();
        fs::set_permissions(&to, Permissions::from_mode(mode | 0o444)).with_context(failed)?;
    }
    open_folders(to)
}

/// Everybody may enter and list a folder and those below.
fn open_folders(folder: &Path) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be opened to all", folder.display());
    fs::set_permissions(folder, Permissions::from_mode(0o755)).with_context(failed)?;
    for entry in fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if entry.file_type().with_context(failed)?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

/// Where all of it is.
struct Here<'a> {
    sources: &'a Path,
    folder: &'a Path,
    runner: Option<&'a (String, &'static str)>,
}

impl Here<'_> {
    fn results(&self, name: &str) -> PathBuf {
        self.folder.join(name).join("mutants.out")
    }

    fn cargo(&self, name: &str, args: &MutantsArgs) -> anyhow::Result<Command> {
        let package = format!("jitterscope-{name}");
        let mut command = shell::command("cargo", &["mutants", "--no-shuffle", "-p", &package]);
        command
            .current_dir(self.sources)
            .env("PATH", tools::path()?);
        command.env("CARGO_TARGET_DIR", self.folder.join("build"));
        if let Some((variable, value)) = self.runner {
            command.env(variable, value);
        }
        for (flag, value) in [("--file", &args.file), ("--re", &args.re)] {
            if let Some(value) = value {
                command.arg(flag).arg(value);
            }
        }
        Ok(command)
    }

    /// The sample that was asked for; `None` for all.
    fn shard(&self, name: &str, args: &MutantsArgs) -> anyhow::Result<Option<Shard>> {
        let Some(sample) = args.sample else {
            return Ok(None);
        };
        let listed = self.cargo(name, args)?.arg("--list").output();
        let listed = listed.context("cargo mutants cannot be started")?;
        if !listed.status.success() {
            bail!(
                "cargo mutants cannot list: {}",
                String::from_utf8_lossy(&listed.stderr).trim()
            );
        }
        let mutants = listed
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count();
        Shard::of(mutants as u64, sample, args.shard).map(Some)
    }

    /// Runs the mutants of a crate.
    fn run(&self, name: &str, args: &MutantsArgs, shard: Option<Shard>) -> anyhow::Result<Outcome> {
        let output = self.folder.join(name);
        fs::create_dir_all(&output)
            .with_context(|| format!("{} cannot be made", output.display()))?;
        let mut command = self.cargo(name, args)?;
        // The copy is ours, and its own copies would be closed to all but us.
        command.arg("--in-place").arg("--output").arg(&output);
        if let Some(Shard { number, of, .. }) = shard {
            command
                .args(["--sharding", "round-robin", "--shard"])
                .arg(format!("{number}/{of}"));
        }
        // It ends with 2 where mutants survive, with 3 where one ran too long: the outcomes say more.
        let status = command
            .status()
            .context("cargo mutants cannot be started")?;
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo mutants failed ({status})");
        }
        let results = self.results(name);
        let outcomes = fs::read(results.join("outcomes.json")).context("it left no outcomes")?;
        let outcomes: Value =
            serde_json::from_slice(&outcomes).context("its outcomes are no JSON")?;
        let count = |field: &str| {
            outcomes[field]
                .as_u64()
                .with_context(|| format!("no number '{field}'"))
        };
        let missed = fs::read_to_string(results.join("missed.txt"))
            .context("it left no list of survivors")?;
        let missed: Vec<String> = missed.lines().map(str::to_owned).collect();
        if missed.len() as u64 != count("missed")? {
            bail!(
                "its list of survivors and its count of them differ: look into {}",
                results.display()
            );
        }
        // One that runs for ever is noticed, too.
        Ok(Outcome {
            caught: count("caught")? + count("timeout")?,
            missed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilsons() {
        let near = |(low, high): (f64, f64), wanted: (f64, f64)| {
            assert!(
                (low - wanted.0).abs() < 5e-4 && (high - wanted.1).abs() < 5e-4,
                "{low} {high}"
            );
        };
        // As textbooks' tables have them.
        near(interval(44, 53), (0.7078, 0.9080));
        near(interval(5, 10), (0.2366, 0.7634));
        near(interval(10, 10), (0.7225, 1.0));
        near(interval(0, 10), (0.0, 0.2775));
    }

    #[test]
    fn samples_are_about_as_large_as_asked_for_and_numbered() {
        let of = |mutants, sample, number| {
            Shard::of(mutants, sample, number)
                .ok()
                .map(|shard| shard.of)
        };
        assert_eq!(of(1761, 59, 29), Some(30));
        assert_eq!(of(1761, 59, 30), None);
        assert_eq!(
            [of(10, 10, 0), of(10, 50, 0), of(11, 10, 1)],
            [Some(1), Some(1), Some(2)]
        );
        assert_eq!(of(0, 10, 0), Some(1));
    }

    #[test]
    fn what_was_measured_is_said_with_its_sample() {
        let shard = Shard {
            number: 3,
            of: 30,
            mutants: 1761,
        };
        assert_eq!(
            sentence("attribute", 44, 53, Some(shard)),
            "attribute: 44 of 53 viable mutants caught, 83.0 % (95 % interval 70.8 to 90.8 %; sample 3 of 30 of 1761 mutants)"
        );
        assert_eq!(
            sentence("tune", 9, 10, None),
            "tune: 9 of 10 viable mutants caught, 90.0 %"
        );
    }
}
