//! `diff`: settings side by side.

use super::compare_with::{answers, sides_of, without_paths};
use super::gate::{Gates, OfRun, tested};
use super::pictures::{self, Chart};
use crate::excerpt::{Document, ExcerptArgs, SinceArgs};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{Diff, DiffRules, Side, diff};
use jitterscope_export::WholeFile;
use jitterscope_store::resolve_all;
use jitterscope_view::compare::{diff_json, report};
use jitterscope_view::gate_table;
use std::path::{Path, PathBuf};

/// Arguments of `diff`.
#[derive(Args, Debug)]
#[command(after_help = "\
A label with several runs is a sample: its runs are compared with those of the other, run by run. One run \
says nothing of how runs differ, so that its difference is shown and nothing is decided. The same holds for \
labels recorded one after the other: alternate the recordings, or use 'jitterscope experiment'.

  jitterscope diff BASELINE TUNED
  jitterscope diff BASELINE TUNED ISOLATED
  jitterscope diff latest@1 latest@3
  jitterscope diff 3f9a1c,77b0e2,9d41aa 51c02b,e8f7d3,04be19
  jitterscope diff BASELINE /media/other-host/20261121T120000Z-TUNED-abc123")]
pub struct DiffArgs {
    /// What to compare with the first of them: labels (all runs that have it), ids, 'latest', folders of
    /// runs, or several of them: a,b,c; with @CPUS behind it, of these CPUs only
    #[arg(required = true, num_args = 2.., value_name = "RUNS", add = crate::completion::runs())]
    pub sides: Vec<String>,
    /// The share of a figure that counts as no difference; of stolen shares also 0.1 points, but at most half of the
    /// first side's
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub margin: f64,
    /// Write it as one HTML file, with charts; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["chart", "json"])]
    pub html: Option<PathBuf>,
    /// Draw a chart of the newest run of each, on the same scales, into the file of --out
    #[arg(long, value_name = "KIND", requires = "out", conflicts_with = "json")]
    pub chart: Option<Chart>,
    /// Where the chart goes: FILE.svg, or FILE.png where this build has it; - is standard output, as SVG
    #[arg(long, value_name = "FILE", requires = "chart")]
    pub out: Option<PathBuf>,
    /// Also write it as Markdown, for the summary page of a build, with the outcome of each condition
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    #[command(flatten)]
    pub gates: Gates,
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

/// `10%` as a share.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .trim()
        .strip_suffix('%')
        .ok_or("must be a percentage, such as 10%")?;
    match number.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        Ok(_) => Err("must be above 0% and at most 100%".into()),
        Err(_) => Err("must be a percentage, such as 10%".into()),
    }
}

/// Runs `diff`.
///
/// # Errors
/// A run does not exist or cannot be read, or a label has runs of different settings.
pub fn run(args: &DiffArgs, places: &Places) -> anyhow::Result<Exit> {
    let runs = places.runs()?;
    let mut redactor = args.redact.on.then(Redactor::new);
    let resolve = |name: &str| resolve_all(&runs, name);
    let since = args.since.of_runs()?;
    let sides = sides_of(&resolve, since, &args.sides, &mut redactor)?;
    Side::apart(&sides).map_err(|error| UsageError(error.to_string()))?;
    let of_cpus = sides
        .iter()
        .position(|side| side.runs().iter().any(|run| run.only.is_some()));
    if let Some(at) = of_cpus.filter(|_| args.html.is_some() || args.chart.is_some()) {
        let text = format!(
            "{}: charts are of whole runs. Leave out --html and --chart, and text and --json are of these CPUs; or \
             record the CPUs in runs of their own",
            args.sides[at]
        );
        return Err(UsageError(text).into());
    }
    let rules = DiffRules {
        margin: args.margin,
        ..DiffRules::default()
    };
    let found = diff(&sides, rules, &[], &answers);
    let newest = pictures::newest(&found);
    let found = if args.redact.on {
        without_paths(found)
    } else {
        found
    };
    if let (Some(chart), Some(out)) = (args.chart, &args.out) {
        pictures::draw_runs(chart, out, &newest, &mut redactor)?;
    } else if let Some(out) = &args.html {
        let file = WholeFile::open(out)?;
        file.write(pictures::page_of_diff(&found, &newest, &mut redactor, None)?.as_bytes())?;
    } else if args.json {
        args.excerpt.print(Document::Diff, &diff_json(&found))?;
    } else {
        output::result(&report(&found).terminal(output::style()))?;
    }
    hold(args, &sides, &found)
}

/// Applies conditions about changes to each comparison, and the others to every run except those of the first side.
fn hold(args: &DiffArgs, sides: &[Side], found: &Diff) -> anyhow::Result<Exit> {
    let runs = sides[1..].iter().flat_map(Side::runs);
    let runs: Vec<OfRun<'_>> = runs
        .map(|run| {
            let of = run.only.iter().map(|cpus| format!("@{cpus}"));
            OfRun {
                name: format!("{} {}{}", run.label, run.id, of.collect::<String>()),
                path: Path::new(&run.path),
                only: run.only.as_ref(),
            }
        })
        .collect();
    let results = args.gates.of_changes(Some(found), &runs)?;
    if let Some(path) = &args.markdown {
        let mut page = gate_table(&results);
        page.append(report(found));
        // As compared: redacted if asked for.
        let names: Vec<&str> = found.sides.iter().map(|side| side.name.as_str()).collect();
        let title = names.join(" beside ");
        WholeFile::open(path)
            .and_then(|file| file.write(page.markdown(&title).as_bytes()))
            .with_context(|| format!("--markdown {}", path.display()))?;
    }
    args.gates
        .tell(&tested("jitterscope diff", Some(found)), &results)
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_margin_is_a_percentage() {
        assert_eq!(percent("10%"), Ok(0.1));
        assert_eq!(percent("2.5 %"), Ok(0.025));
        for wrong in ["10", "0%", "101%", "%", "ten%", "nan%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
