//! `fleet`: rollups of many machines, by a program of its own.
//!
//! The measuring program, which root runs, has no client of an object store in it.

use crate::exit::{Exit, UsageError};
use anyhow::Context;
use clap::Args;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The program's name; it lies beside this one.
const PROGRAM: &str = "jitterscope-fleet";

/// Arguments of `fleet`.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
#[command(after_help = "\
Runs jitterscope-fleet, which lies beside jitterscope: schema, report, compact, upload. 'jitterscope fleet --help' \
lists them.

  jitterscope fleet report s3://bucket/jitter --html fleet.html
  jitterscope fleet compact s3://bucket/jitter
  jitterscope fleet schema s3://bucket/jitter --dialect clickhouse")]
pub struct FleetArgs {
    /// What to ask, and of which fleet
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    arguments: Vec<OsString>,
}

/// Becomes that program.
///
/// # Errors
/// It is missing, or cannot be started.
pub fn run(args: &FleetArgs) -> anyhow::Result<Exit> {
    let program = program()?;
    let error = Command::new(&program).args(&args.arguments).exec();
    Err(error).with_context(|| program.display().to_string())
}

/// The program beside this one. Root may run this: no other place is searched.
///
/// # Errors
/// There is none.
pub fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this program's place is not known")?;
    let program = own.with_file_name(PROGRAM);
    match std::fs::metadata(&program) {
        Ok(of) if of.is_file() => Ok(program),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| program.display().to_string())
        }
        _ => Err(UsageError(format!(
            "there is no {}: the packages and archives have it; from source, cargo build --release -p {PROGRAM}",
            program.display()
        ))
        .into()),
    }
}
