//! `jitterscope-fleet`: rollups of many machines.
#![forbid(unsafe_code)]

use anyhow::Context;
use clap::Parser;
use jitterscope_fleet::args::{Cli, Command};
use jitterscope_fleet::compact::{compact, default_until};
use jitterscope_fleet::report::{NoDuckdb, NoReport, judge_days};
use jitterscope_fleet::schema::schema;
use jitterscope_fleet::upload::Uploader;
use jitterscope_fleet::{Location, day};
use jitterscope_model::{UploadStatus, visible, visible_page};
use jitterscope_platform::{OutputPlace, name_current_thread, set_nice};
use jitterscope_view::{Style, fleet};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Exit codes, as those of `jitterscope`.
const FAILED: u8 = 1;
const UNAVAILABLE: u8 = 4;
/// The longest wait between two looks while the store fails.
const LONGEST_WAIT: Duration = Duration::from_secs(900);
const DAY_S: u64 = 24 * 3600;

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            say(&format!("{error:#}"));
            let is_missing = matches!(
                error.downcast_ref::<NoReport>(),
                Some(NoReport::Duckdb(NoDuckdb::Missing))
            );
            ExitCode::from(if is_missing { UNAVAILABLE } else { FAILED })
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Schema { url, dialect } => print(&schema(dialect, &url)?)?,
        Command::Report {
            url,
            from,
            to,
            cluster,
            json,
            html,
            markdown,
        } => {
            let to = to.unwrap_or_else(|| day(now_s().saturating_sub(DAY_S)));
            let from = from.map_or_else(|| week_before(&to), Ok)?;
            let (found, copied) =
                judge_days(&Location::open(&url)?, &from, &to, cluster.as_deref())?;
            let title = format!("Fleet {url}, {from} to {to}");
            if json {
                let text = serde_json::to_string_pretty(&found)?;
                print(&format!("{text}\n"))?;
                return Ok(ExitCode::SUCCESS);
            }
            let report = fleet::report(&title, &found);
            match markdown {
                true => print(&report.markdown(&title))?,
                false => print(&report.terminal(style()))?,
            }
            if let Some(file) = html {
                write(&file, &fleet::page(&title, &found))?;
            }
            say(&format!(
                "read {} files, {} bytes",
                copied.files, copied.bytes
            ));
        }
        Command::Compact { url, until, grace } => {
            let until = until.unwrap_or_else(|| default_until(now_s()));
            let done = compact(&Location::open(&url)?, &until, grace, now_s())?;
            for why in done.unreadable.values() {
                say(why);
            }
            print(&format!(
                "{} days: merged {} host-hours ({} rows) into {} files, removed {} files, {} cannot be read\n",
                done.days,
                done.batches,
                done.rows,
                done.written,
                done.removed,
                done.unreadable.len()
            ))?;
            if !done.unreadable.is_empty() {
                return Ok(ExitCode::from(FAILED));
            }
        }
        Command::Upload {
            url,
            watch,
            cluster,
            runs,
            every,
            once,
            child,
        } => {
            let location = Location::open(&url)?;
            let uploader = Uploader::new(location, &cluster, &watch, runs.as_deref())?;
            return upload(uploader, every, once, child);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn upload(
    mut uploader: Uploader,
    every: Duration,
    once: bool,
    child: bool,
) -> anyhow::Result<ExitCode> {
    set_nice(19);
    name_current_thread("js-upload");
    if child {
        // The agent holds the other end as long as it lives. Nothing here needs a tidy end.
        std::thread::spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    let mut wait = every;
    let mut said = None;
    loop {
        let status = uploader.turn(SystemTime::now()).clone();
        let problem = status.problem.as_ref().map(|of| of.text.clone());
        if child {
            print(&format!("{}\n", serde_json::to_string(&status)?))?;
        }
        if problem != said {
            say(&sentence(&status));
            said.clone_from(&problem);
        } else if once {
            say(&sentence(&status));
        }
        if once {
            return Ok(ExitCode::from(if problem.is_some() { FAILED } else { 0 }));
        }
        wait = match problem {
            None => every,
            Some(_) => (wait * 2).min(LONGEST_WAIT.max(every)),
        };
        // All hosts of a fleet end their hour at the same time.
        std::thread::sleep(wait.mul_f64(0.5 + fastrand::f64()));
    }
}

/// What was sent, and what holds up the rest.
fn sentence(status: &UploadStatus) -> String {
    let sent = format!(
        "sent {} hours and {} saved runs, {} bytes; {} hours wait",
        status.sent_hours, status.sent_runs, status.sent_bytes, status.waiting_hours
    );
    match &status.problem {
        Some(problem) => format!("{}: {}; {sent}", problem.kind, problem.text),
        None => sent,
    }
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn week_before(to: &str) -> anyhow::Result<String> {
    let last: jiff::civil::Date = to.parse().context("the last day")?;
    let first = last.checked_sub(jiff::Span::new().days(6));
    Ok(first.context("the last day is too early")?.to_string())
}

fn style() -> Style {
    let width = terminal_size::terminal_size_of(std::io::stdout());
    Style {
        // All that leaves is plain text.
        color: false,
        width: width.map_or(80, |(width, _)| usize::from(width.0).max(80)),
        height: 0,
        unicode: false,
        all_cpus: false,
        periods: false,
        all_records: false,
    }
}

/// Prints a result. Names in it come from other machines: nothing but text reaches the terminal.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(visible_page(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

fn say(text: &str) {
    // There is nowhere else to say it.
    let _ = writeln!(std::io::stderr(), "jitterscope-fleet: {}", visible(text));
}

fn write(file: &Path, page: &str) -> anyhow::Result<()> {
    let wrong = || file.display().to_string();
    let place = OutputPlace::find(file).with_context(wrong)?;
    let (_, mut opened) = place.open().with_context(wrong)?;
    opened.empty().with_context(wrong)?;
    opened.file.write_all(page.as_bytes()).with_context(wrong)
}
