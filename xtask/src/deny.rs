//! Licences, sources, bans and advisories of every library that is built in (`deny.toml`).

use crate::{shell, tools};
use anyhow::{Context, bail};
use std::process::Stdio;

/// Fails where a library has a licence, a source or an advisory that is not allowed. The database of
/// advisories is fetched; where it can neither be fetched nor was before, that is said and the rest is checked.
pub fn run() -> anyhow::Result<()> {
    let deny = tools::DENY.get()?;
    let deny = deny.to_str().context("the path is no UTF-8")?;
    let check = ["--log-level", "warn", "check", "--hide-inclusion-graph"];
    shell::run(
        deny,
        &[&check[..], &["licenses", "bans", "sources"]].concat(),
    )?;
    let quietly = |args: &[&str]| {
        let status = shell::command(deny, args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let fetched = quietly(&["fetch", "db"]);
    let offline: &[&str] = if fetched { &[] } else { &["--offline"] };
    let args = [offline, &check[..], &["advisories"]].concat();
    eprintln!("+ {deny} {}", args.join(" "));
    let output = shell::command(deny, &args)
        .output()
        .context("cargo-deny cannot be started")?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // Its last line, once it has looked at all.
    let has_looked = said.contains("advisories ok") || said.contains("advisories FAILED");
    if !fetched && !has_looked {
        eprintln!(
            "SKIPPED: advisories are not checked: their database is neither here nor can it be reached"
        );
        return Ok(());
    }
    if !fetched {
        eprintln!(
            "advisories: their database cannot be reached now; checked against what was fetched before"
        );
    }
    if !output.status.success() {
        bail!(
            "cargo-deny does not pass the advisories ({}):\n{said}",
            output.status
        );
    }
    Ok(())
}
