//! The user's own DuckDB.

use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// Why DuckDB has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NoDuckdb {
    #[error("duckdb is not on the path: pip install duckdb-cli, or see https://duckdb.org/install")]
    Missing,
    #[error("duckdb cannot be started: {0}")]
    Start(std::io::Error),
    #[error("duckdb failed: {0}")]
    Failed(String),
    #[error("duckdb's answer cannot be read: {0}")]
    Answer(String),
}

/// A DuckDB that runs.
pub(super) struct Duckdb(());

impl Duckdb {
    pub(super) fn find() -> Result<Duckdb, NoDuckdb> {
        let mut version = command();
        version.arg("-version").stdout(Stdio::null());
        match version.status() {
            Ok(_) => Ok(Duckdb(())),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(NoDuckdb::Missing),
            Err(error) => Err(NoDuckdb::Start(error)),
        }
    }

    /// The rows of a query.
    pub(super) fn rows<R: DeserializeOwned>(
        &self,
        views: &str,
        query: &str,
    ) -> Result<Vec<R>, NoDuckdb> {
        let mut duckdb = command();
        // The user's settings for the terminal would change what is printed.
        duckdb.args(["-init", "/dev/null", "-json", "-cmd", views, "-c", query]);
        let output = duckdb.output().map_err(NoDuckdb::Start)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said: String = said
                .chars()
                .filter(|letter| !letter.is_control() || *letter == '\n')
                .take(1000)
                .collect();
            return Err(NoDuckdb::Failed(said.trim().to_owned()));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        // Without rows it prints nothing, or a list with nothing in it.
        let text = match text.trim() {
            "" | "[{]" => "[]",
            rows => rows,
        };
        serde_json::from_str(text).map_err(|error| NoDuckdb::Answer(error.to_string()))
    }
}

fn command() -> Command {
    let mut command = Command::new("duckdb");
    command.stdin(Stdio::null());
    command
}
