//! The command line.

use crate::schema::Dialect;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Rollups of many machines: sends them, merges them, and reports on them.
#[derive(Parser, Debug)]
#[command(name = "jitterscope-fleet", bin_name = "jitterscope fleet", version)]
#[command(after_help = "\
URL is where the rollups are: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or file:///FOLDER. \
Credentials come from the environment, as the store's own tools find them.

Exit codes: 0 ok, 1 failed, 2 wrong arguments, 4 something required is not available.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Print the views of the rollups for an engine
    Schema {
        /// Where the rollups are, as the engine names it
        url: String,
        /// The engine
        #[arg(long, value_enum, default_value = "duckdb")]
        dialect: Dialect,
    },
    /// Say which hosts lose more than their twins, which culprits are new, and which kernels and tunings matter; needs
    /// duckdb
    Report {
        /// Where the rollups are
        url: String,
        /// The first day, UTC [default: six days before the last]
        #[arg(long, value_name = "DAY", value_parser = day)]
        from: Option<String>,
        /// The last day, UTC [default: yesterday]
        #[arg(long, value_name = "DAY", value_parser = day)]
        to: Option<String>,
        /// Only this cluster
        #[arg(long, value_name = "NAME")]
        cluster: Option<String>,
        /// Print JSON
        #[arg(long, conflicts_with_all = ["html", "markdown"])]
        json: bool,
        /// Write a page to this file
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        html: Option<PathBuf>,
        /// Print Markdown
        #[arg(long)]
        markdown: bool,
    },
    /// Merge the files of each day that is over; safe beside agents, readers and other compactions
    Compact {
        /// Where the rollups are
        url: String,
        /// Merge days before this one, UTC [default: yesterday]
        #[arg(long, value_name = "DAY", value_parser = day)]
        until: Option<String>,
        /// How long the hosts' files stay after they are merged
        #[arg(long, default_value = "1h", value_name = "TIME", value_parser = time)]
        grace: Duration,
    },
    /// Send the hours of a watch that are over; 'watch --upload' and 'agent' run this
    Upload {
        /// Where the rollups go
        url: String,
        /// The folder of the watch: .watch/cpus-LIST below the folder of runs
        #[arg(long, value_name = "FOLDER")]
        watch: PathBuf,
        /// The cluster of this host
        #[arg(long, default_value = "default", value_name = "NAME")]
        cluster: String,
        /// Send the runs that the watch saved to this folder, too
        #[arg(long, value_name = "FOLDER")]
        runs: Option<PathBuf>,
        /// How often to look
        #[arg(long, default_value = "1m", value_name = "TIME", value_parser = time)]
        every: Duration,
        /// Send what waits, and end
        #[arg(long)]
        once: bool,
        /// Print a line of JSON after each look, and end with stdin
        #[arg(long, hide = true)]
        child: bool,
    },
}

fn day(text: &str) -> Result<String, String> {
    let date: jiff::civil::Date = text
        .parse()
        .map_err(|_| "write a day such as 2026-11-28".to_owned())?;
    Ok(date.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| "write a number and a unit (s, m, h, d), for example 90s or 1h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn days_are_dates() {
        assert_eq!(day("2026-11-28"), Ok("2026-11-28".into()));
        for wrong in ["", "yesterday", "2026-13-01", "2026-11-28' or 1=1"] {
            assert!(day(wrong).is_err(), "{wrong}");
        }
    }
}
