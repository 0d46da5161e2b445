//! `runs`: removes stored runs.

use crate::ask::ask;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::units::duration;
use clap::{Args, Subcommand};
use jitterscope_model::{Nanos, PutInOrder, SCHEMA_VERSION};
use jitterscope_store::{RunEntry, list, remove, size_on_disk};
use jitterscope_view::size_text;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Arguments of `runs`.
#[derive(Args, Debug)]
pub struct RunsArgs {
    #[command(subcommand)]
    pub what: What,
}

/// What to do with them.
#[derive(Subcommand, Debug)]
pub enum What {
    /// Remove runs
    Rm {
        /// Their ids, folders' names, or labels that only one run has; 'latest' is the newest
        #[arg(required = true, value_name = "RUN", add = crate::completion::runs())]
        wanted: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Remove all but the newest runs, or all that are older
    Prune {
        #[command(flatten)]
        which: Which,
        /// Of runs with this label only
        #[arg(long, short, value_name = "NAME", add = crate::completion::labels())]
        label: Option<String>,
        /// Remove runs of other users too, which are left alone otherwise
        #[arg(long)]
        all_users: bool,
        #[command(flatten)]
        how: How,
    },
}

/// Which of the runs; both where both are given.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub struct Which {
    /// Keep so many of the newest
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Remove only those that began longer ago: 30d, 12h
    #[arg(long, value_name = "AGE", value_parser = duration)]
    pub older: Option<Nanos>,
}

/// Whether to ask, and what to print.
#[derive(Args, Debug)]
pub struct How {
    /// Remove without asking
    #[arg(long, short)]
    pub yes: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs `runs`.
///
/// # Errors
/// A run does not exist, or cannot be removed; the others are removed.
pub fn run(args: &RunsArgs, places: &Places) -> anyhow::Result<Exit> {
    let folder = places.runs()?;
    let (stored, problems) = list(&folder)?;
    for problem in &problems {
        output::talk(format_args!(
            "left alone, for it cannot be read: {}: {}",
            problem.path.display(),
            problem.error
        ));
    }
    match &args.what {
        What::Rm { wanted, how } => remove_all(&named(&stored, wanted)?, how),
        What::Prune {
            which: Which { keep, older },
            label,
            all_users,
            how,
        } => {
            let of_others = leave_alone(&stored, *all_users);
            if !of_others.is_empty() {
                output::talk(of_others);
            }
            let stored: Vec<RunEntry> = stored
                .into_iter()
                .filter(|run| !run.linked && (*all_users || run.is_own()))
                .collect();
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_nanos());
            let now = u64::try_from(now).unwrap_or(u64::MAX);
            remove_all(&beyond(&stored, *keep, *older, label.as_deref(), now), how)
        }
    }
}

/// A text on the runs that prune leaves alone.
fn leave_alone(stored: &[RunEntry], all_users: bool) -> String {
    let others = stored.iter().filter(|run| !all_users && !run.is_own());
    let linked = stored.iter().filter(|run| run.linked);
    let [others, linked] = [others.count(), linked.count()];
    let mut reported = Vec::new();
    if others > 0 {
        reported.push(format!("{} of other users (--all-users)", counted(others)));
    }
    if linked > 0 {
        reported.push(format!("links to {} elsewhere", counted(linked)));
    }
    if reported.is_empty() {
        return String::new();
    }
    format!("left alone: {}", reported.join(", "))
}

/// Each named run once. A label or `latest` means only this user's runs.
fn named<'a>(stored: &'a [RunEntry], wanted: &[String]) -> Result<Vec<&'a RunEntry>, UsageError> {
    let mut found: Vec<&RunEntry> = Vec::new();
    for wanted in wanted {
        let own = || stored.iter().filter(|run| run.is_own());
        let newest = own().next_back().filter(|_| wanted == "latest");
        let is = |run: &&RunEntry| run.head.id == *wanted || folder_name(&run.path) == *wanted;
        let labelled: Vec<&RunEntry> = own().filter(|run| run.head.label == *wanted).collect();
        let named = newest.or_else(|| own().find(is));
        // A name that another user gave to a run must not remove a folder.
        let named = match labelled.is_empty() {
            true => named.or_else(|| stored.iter().find(is)),
            false => named,
        };
        let run = match (named, labelled.as_slice()) {
            (Some(run), _) => run,
            (None, [run]) => run,
            (None, []) => {
                return Err(UsageError(format!(
                    "no run '{wanted}' (see: jitterscope list)"
                )));
            }
            (None, several) => {
                let ids: Vec<&str> = several.iter().map(|run| run.head.id.as_str()).collect();
                let text = format!(
                    "{} runs have the label '{wanted}': name them by their ids ({}), or use runs prune --label",
                    ids.len(),
                    ids.join(", ")
                );
                return Err(UsageError(text));
            }
        };
        if !found.iter().any(|known| known.path == run.path) {
            found.push(run);
        }
    }
    Ok(found)
}

/// The runs that are neither among the newest `keep` nor younger than `older`; oldest first.
fn beyond<'a>(
    stored: &'a [RunEntry],
    keep: Option<usize>,
    older: Option<Nanos>,
    label: Option<&str>,
    now: u64,
) -> Vec<&'a RunEntry> {
    let of_label = |run: &&RunEntry| label.is_none_or(|label| run.head.label == label);
    let mut runs: Vec<&RunEntry> = stored.iter().filter(of_label).collect();
    runs.order_by_key(|run| run.head.started_realtime_ns);
    runs.truncate(runs.len().saturating_sub(keep.unwrap_or(0)));
    let is_older = |run: &&RunEntry| {
        older.is_none_or(|older| run.head.started_realtime_ns < now.saturating_sub(older.0))
    };
    runs.into_iter().filter(is_older).collect()
}

fn folder_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The runs that were removed, or would be.
#[derive(Serialize, JsonSchema)]
pub struct Removed {
    /// Version of this structure.
    schema_version: u32,
    runs: Vec<RemovedRun>,
}

#[derive(Serialize, JsonSchema)]
struct RemovedRun {
    id: String,
    label: String,
    /// Size of its folder on the disk.
    bytes: u64,
    /// False with `--dry-run`, and if it could not be removed.
    removed: bool,
}

fn remove_all(runs: &[&RunEntry], how: &How) -> anyhow::Result<Exit> {
    let sizes: Vec<u64> = runs.iter().map(|run| size_on_disk(&run.path)).collect();
    let as_json = |done: &[bool]| {
        let rows = runs
            .iter()
            .zip(&sizes)
            .zip(done)
            .map(|((run, bytes), removed)| RemovedRun {
                id: run.head.id.clone(),
                label: run.head.label.clone(),
                bytes: *bytes,
                removed: *removed,
            });
        Removed {
            schema_version: SCHEMA_VERSION,
            runs: rows.collect(),
        }
    };
    let all = format!(
        "{} ({})",
        counted(runs.len()),
        size_text(sizes.iter().sum())
    );
    if how.dry_run || runs.is_empty() {
        if how.json {
            output::json(&as_json(&vec![false; runs.len()]))?;
        } else if runs.is_empty() {
            output::result("no run to remove")?;
        } else {
            output::result(&format!("{}\nwould remove {all}", lines(runs, &sizes)))?;
        }
        return Ok(Exit::Ok);
    }
    if !how.yes {
        output::talk_page(&lines(runs, &sizes));
        if !ask(&format!("Remove {all}?"))? {
            output::talk("nothing was removed");
            return Ok(Exit::Failed);
        }
    }
    let mut done = Vec::new();
    for run in runs {
        let result = remove(&run.path);
        if let Err(error) = &result {
            output::talk(format_args!("{} stays: {error}", run.head.id));
        }
        done.push(result.is_ok());
    }
    let removed: u64 = sizes
        .iter()
        .zip(&done)
        .filter(|(_, done)| **done)
        .map(|(size, _)| size)
        .sum();
    if how.json {
        output::json(&as_json(&done))?;
    } else {
        let count = done.iter().filter(|done| **done).count();
        output::result(&format!(
            "removed {} ({})",
            counted(count),
            size_text(removed)
        ))?;
    }
    anyhow::ensure!(
        done.iter().all(|done| *done),
        "not every run could be removed"
    );
    Ok(Exit::Ok)
}

fn lines(runs: &[&RunEntry], sizes: &[u64]) -> String {
    let line = |(run, size): (&&RunEntry, &u64)| {
        let name = jitterscope_model::visible(&run.head.label).into_owned();
        let of = match run.is_own() {
            true => String::new(),
            false => format!("  of user {}", run.owner),
        };
        let id = jitterscope_model::visible(&run.head.id);
        format!("{:>10}  {id}  {name}{of}\n", size_text(*size))
    };
    runs.iter().zip(sizes).map(line).collect()
}

fn counted(n: usize) -> String {
    if n == 1 {
        "1 run".into()
    } else {
        format!("{n} runs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::RunHead;

    fn stored(runs: &[(&str, &str, u64)]) -> Vec<RunEntry> {
        let entry = |(id, label, day): &(&str, &str, u64)| {
            let mut head: RunHead = serde_json::from_str(HEAD).unwrap();
            head.id = (*id).into();
            head.label = (*label).into();
            head.started_realtime_ns = day * DAY;
            RunEntry {
                path: format!("/runs/{id}-folder").into(),
                head,
                owner: rustix::process::geteuid().as_raw(),
                linked: false,
            }
        };
        runs.iter().map(entry).collect()
    }

    const DAY: u64 = 86_400_000_000_000;
    const HEAD: &str = r#"{
        "schema_version": 2, "tool_version": "0.1.0", "id": "", "label": "", "hostname": "h",
        "started_realtime_ns": 0, "attributed": true, "interrupted": false, "figures": {},
        "probe": {
            "kind": "spin", "cpus": "1", "cpus_chosen_because": null, "duration_ns": 1, "warmup_ns": 1,
            "threshold_ns": 300, "interval_ns": 1, "fifo_priority": null, "wakeup": null
        }
    }"#;

    fn ids(runs: &[&RunEntry]) -> Vec<String> {
        runs.iter().map(|run| run.head.id.clone()).collect()
    }

    #[test]
    fn a_label_that_several_runs_have_names_none_of_them() {
        let stored = stored(&[("aaa", "BASE", 1), ("bbb", "BASE", 2), ("ccc", "ONE", 3)]);
        let of = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&wanted| wanted.into()).collect();
            named(&stored, &wanted)
                .map(|runs| ids(&runs))
                .map_err(|error| error.0)
        };
        assert_eq!(of(&["ONE", "ccc", "aaa-folder"]).unwrap(), ["ccc", "aaa"]);
        let refused = of(&["BASE"]).unwrap_err();
        assert!(refused.contains("aaa, bbb"), "{refused}");
        assert!(of(&["nosuch"]).unwrap_err().contains("nosuch"));
    }

    #[test]
    fn another_users_run_is_named_by_its_id_alone() {
        let mut stored = stored(&[("aaa", "BASE", 1), ("bbb", "ONE", 2), ("aaa", "BASE", 3)]);
        for stranger in [1, 2] {
            stored[stranger].owner += 1;
        }
        let of = |wanted: &str| named(&stored, &[wanted.into()]);
        let own = stored[0].path.clone();
        for wanted in ["latest", "aaa", "BASE"] {
            let found = of(wanted).unwrap();
            assert!(std::ptr::eq(found[0], &stored[0]), "{wanted}: {found:?}");
            assert_eq!(found[0].path, own);
        }
        assert_eq!(ids(&of("bbb").unwrap()), ["bbb"]);
        assert!(of("ONE").is_err());
        let reported = leave_alone(&stored, false);
        assert!(reported.contains("2 runs of other users"), "{reported}");
        stored[0].linked = true;
        let reported = leave_alone(&stored, true);
        assert!(reported.contains("links to 1 run"), "{reported}");
        assert!(!reported.contains("users"), "{reported}");
    }

    #[test]
    fn the_newest_stay_and_so_do_the_young() {
        let stored = stored(&[("a", "X", 1), ("b", "Y", 5), ("c", "X", 8), ("d", "X", 9)]);
        let of = |keep, older: Option<u64>, label| {
            ids(&beyond(
                &stored,
                keep,
                older.map(|days| Nanos(days * DAY)),
                label,
                10 * DAY,
            ))
        };
        assert_eq!(of(Some(1), None, None), ["a", "b", "c"]);
        assert_eq!(of(Some(9), None, None), [""; 0]);
        assert_eq!(of(None, Some(4), None), ["a", "b"]);
        assert_eq!(of(Some(2), Some(4), Some("X")), ["a"]);
        assert_eq!(of(Some(3), Some(4), Some("X")), [""; 0]);
    }
}
