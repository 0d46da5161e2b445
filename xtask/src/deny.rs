//! Checks licences, sources, bans and advisories of every library that is built in (`deny.toml`).

use crate::skipped::Skipped;
use crate::{shell, tools};
use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, Output};

/// Fails if a library has a disallowed licence, source or advisory. Fetches the database of advisories; if there is
/// neither a new nor an earlier copy, notes that and checks the rest.
pub fn run(skipped: &mut Skipped) -> anyhow::Result<()> {
    let deny = Deny {
        program: tools::DENY.get()?,
        config: shell::root().join("deny.toml"),
        env: Vec::new(),
    };
    let others = deny.output(&[
        "check",
        "--hide-inclusion-graph",
        "licenses",
        "bans",
        "sources",
    ])?;
    if !others.status.success() {
        bail!("cargo-deny objects:\n{}", said(&others));
    }
    match deny.advisories()? {
        Advisories::Fine => {}
        Advisories::FineAsFetchedBefore => skipped.note(
            "advisories of today: their database cannot be reached now; what was fetched before concerns no library",
        ),
        Advisories::Unknown => skipped.note(
            "advisories: their database cannot be reached and was never fetched; a library with a known hole passes",
        ),
    }
    Ok(())
}

/// cargo-deny, its rules for this workspace, and its environment.
struct Deny {
    program: PathBuf,
    config: PathBuf,
    env: Vec<(&'static str, String)>,
}

/// The result of the advisories, if they concern no library of ours.
#[derive(Debug, PartialEq, Eq)]
enum Advisories {
    Fine,
    FineAsFetchedBefore,
    Unknown,
}

impl Deny {
    /// Fails if an advisory concerns a library of ours.
    fn advisories(&self) -> anyhow::Result<Advisories> {
        let fetched = self.output(&["fetch", "db"])?.status.success();
        let offline: &[&str] = if fetched { &[] } else { &["--offline"] };
        let check = ["check", "--hide-inclusion-graph", "advisories"];
        let output = self.output(&[offline, &check].concat())?;
        let said = said(&output);
        // Its last line, once it has checked everything.
        let has_looked = said.contains("advisories ok") || said.contains("advisories FAILED");
        match (output.status.success(), has_looked) {
            (true, true) if fetched => Ok(Advisories::Fine),
            (true, true) => Ok(Advisories::FineAsFetchedBefore),
            (_, false) if !fetched => Ok(Advisories::Unknown),
            _ => bail!(
                "cargo-deny does not pass the advisories ({}):\n{said}",
                output.status
            ),
        }
    }

    fn output(&self, args: &[&str]) -> anyhow::Result<Output> {
        let mut command = Command::new(&self.program);
        command
            .current_dir(shell::root())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .args(["--log-level", "warn", "--config"])
            .arg(&self.config)
            .args(args);
        eprintln!("+ {command:?}");
        command.output().context("cargo-deny cannot be started")
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_testing::skip;
    use std::fs;
    use std::path::Path;

    /// A server that does not exist; git is configured to use a folder instead.
    const SERVER: &str = "https://advisories.invalid/db";

    /// cargo-deny with its own database that has one advisory, about all versions of a package.
    fn with_advisory_about(package: &str, dir: &Path) -> Option<Deny> {
        let Some(program) = tools::DENY.found() else {
            skip("there is no cargo-deny; cargo xtask deny installs it");
            return None;
        };
        let database = dir.join("database");
        let folder = database.join("crates").join(package);
        fs::create_dir_all(&folder).unwrap();
        let advisory = format!(
            "```toml\n[advisory]\nid = \"RUSTSEC-2099-0001\"\npackage = \"{package}\"\ndate = \"2099-01-01\"\n\n\
             [versions]\npatched = []\n```\n\n# Made up\n\nFor a test.\n"
        );
        fs::write(folder.join("RUSTSEC-2099-0001.md"), advisory).unwrap();
        let who = ["-c", "user.name=nobody", "-c", "user.email=nobody@invalid"];
        let commit = [&who[..], &["commit", "--quiet", "-m", "made up"]].concat();
        for args in [
            &["init", "--quiet", "-b", "main"][..],
            &["add", "."],
            &commit,
        ] {
            let git = Command::new("git")
                .current_dir(&database)
                .args(args)
                .status();
            assert!(git.unwrap().success());
        }
        let config = dir.join("deny.toml");
        let fetched = dir.join("fetched");
        let rules = format!("[advisories]\ndb-path = {fetched:?}\ndb-urls = [{SERVER:?}]\n");
        fs::write(&config, rules).unwrap();
        let instead = format!("url.file://{}.insteadOf", database.display());
        Some(Deny {
            program,
            config,
            env: vec![
                ("GIT_CONFIG_COUNT", "1".to_owned()),
                ("GIT_CONFIG_KEY_0", instead),
                ("GIT_CONFIG_VALUE_0", SERVER.to_owned()),
            ],
        })
    }

    #[test]
    fn an_advisory_about_a_library_of_ours_fails_the_gate() {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut deny) = with_advisory_about("libc", dir.path()) else {
            return;
        };
        for reach in ["at first", "from what was fetched before"] {
            let error = deny.advisories().unwrap_err().to_string();
            assert!(error.contains("RUSTSEC-2099-0001"), "{reach}: {error}");
            deny.env.clear();
        }
    }

    #[test]
    fn other_advisories_pass_and_an_unreachable_database_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut deny) = with_advisory_about("no-library-of-ours", dir.path()) else {
            return;
        };
        assert_eq!(deny.advisories().unwrap(), Advisories::Fine);
        deny.env.clear();
        assert_eq!(deny.advisories().unwrap(), Advisories::FineAsFetchedBefore);
        fs::remove_dir_all(dir.path().join("fetched")).unwrap();
        assert_eq!(deny.advisories().unwrap(), Advisories::Unknown);
    }
}
