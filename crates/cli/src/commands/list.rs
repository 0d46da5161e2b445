//! `list`: the stored runs.

use crate::excerpt::{Document, ExcerptArgs, SinceArgs};
use crate::exit::Exit;
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use clap::Args;
use jitterscope_view::list;

/// Arguments of `list`.
#[derive(Args, Debug)]
#[command(mut_arg("top", |arg| {
    arg.help("--json: the newest N runs, newest first; 'left_out' has the cursor of the next ones")
}))]
pub struct ListArgs {
    #[command(flatten)]
    pub redact: Redact,
    #[command(flatten)]
    pub since: SinceArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub excerpt: ExcerptArgs,
}

/// Runs `list`.
///
/// # Errors
/// The folder of runs cannot be read, or stdout is closed.
pub fn run(args: &ListArgs, places: &Places) -> anyhow::Result<Exit> {
    let (mut runs, problems) = jitterscope_store::list(&places.runs()?)?;
    if let Some(since) = args.since.of_runs()? {
        runs.retain(|run| run.head.started_realtime_ns >= since);
    }
    let (mut runs, problems) = if args.redact.on {
        list::redacted(&runs, &problems)
    } else {
        (runs, problems)
    };
    if args.json {
        // The first of a part are those that are wanted first.
        if args.excerpt.is_part() {
            runs.reverse();
        }
        let list = list::json(&runs, &problems);
        args.excerpt.print(Document::List, &list)?;
    } else {
        output::result(&list::render(&runs, &problems, output::style()))?;
    }
    Ok(Exit::Ok)
}
