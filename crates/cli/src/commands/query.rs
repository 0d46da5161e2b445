//! `query`: SQL on a stored run, in the user's own DuckDB.

use crate::exit::Exit;
use crate::places::Places;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use jitterscope_store::{RunReader, resolve, views};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::absolute;
use std::process::Command;

/// Arguments of `query`.
#[derive(Args, Debug)]
pub struct QueryArgs {
    /// The run: latest, an id, a label, a folder
    #[arg(add = crate::completion::runs())]
    pub run: String,
    /// Statements about the views stalls, attributions, culprits and intervals [default: DuckDB asks for them]
    pub sql: Option<String>,
    /// How to print rows
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
}

/// How DuckDB prints rows; all of them, unlike its own default.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Format {
    Table,
    Csv,
    Json,
    Markdown,
}

impl Format {
    fn option(self) -> &'static str {
        match self {
            Format::Table => "-box",
            Format::Csv => "-csv",
            Format::Json => "-json",
            Format::Markdown => "-markdown",
        }
    }
}

/// Becomes `duckdb` with the run's views.
///
/// # Errors
/// The run does not exist, or `duckdb` is not on the path.
pub fn run(args: &QueryArgs, places: &Places) -> anyhow::Result<Exit> {
    let run = RunReader::open(&resolve(&places.runs()?, &args.run)?)?;
    let folder = absolute(run.path())?;
    let folder = folder
        .to_str()
        .with_context(|| format!("{} is no UTF-8: DuckDB cannot open it", folder.display()))?;
    let mut duckdb = Command::new("duckdb");
    duckdb.arg(args.format.option());
    if args.sql.is_some() {
        // The user's settings for the terminal would change what is printed.
        duckdb.args(["-init", "/dev/null"]);
    }
    let variable = format!("set variable run = '{}';", folder.replace('\'', "''"));
    // Not the run's own file: somebody else may have made the run, and DuckDB's files can start programs.
    duckdb.args(["-cmd", &variable, "-cmd", &views()]);
    if let Some(sql) = &args.sql {
        duckdb.args(["-c", sql]);
    }
    let error = duckdb.exec();
    if error.kind() == ErrorKind::NotFound {
        bail!(
            "duckdb is not on the path: pip install duckdb-cli, or see https://duckdb.org/install"
        );
    }
    Err(error).context("duckdb cannot be started")
}
