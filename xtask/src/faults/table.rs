//! The table: the results of each kind, with n next to each percentage.

use super::judge::{Judged, Verdict};
use super::kinds::Trial;
use crate::shell;
use std::collections::BTreeSet;

/// Faults counted by result.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    right: usize,
    withheld: usize,
    wrong: usize,
    sure: usize,
    sure_and_right: usize,
}

fn share(of: usize, all: usize, without: f64) -> f64 {
    if all == 0 {
        without
    } else {
        of as f64 / all as f64
    }
}

impl Tally {
    pub fn of<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> Tally {
        judged.into_iter().fold(Tally::default(), |mut tally, one| {
            match one.verdict {
                Verdict::Right => tally.right += 1,
                Verdict::Withheld => tally.withheld += 1,
                Verdict::Wrong => tally.wrong += 1,
            }
            // A label without a name claims nothing.
            if one.confidence == "high" && one.verdict != Verdict::Withheld {
                tally.sure += 1;
                tally.sure_and_right += usize::from(one.verdict == Verdict::Right);
            }
            tally
        })
    }

    fn all(&self) -> usize {
        self.right + self.withheld + self.wrong
    }

    pub fn right_or_withheld(&self) -> f64 {
        share(self.right + self.withheld, self.all(), 0.0)
    }

    pub fn right_where_sure(&self) -> f64 {
        share(self.sure_and_right, self.sure, 1.0)
    }

    pub fn withheld(&self) -> f64 {
        share(self.withheld, self.all(), 1.0)
    }

    fn row(&self, kind: &str, probe: &str) -> String {
        let percent = |of: usize, all: usize| match all {
            0 => "- (of 0)".to_owned(),
            _ => format!("{:.1} % ({of} of {all})", 100.0 * of as f64 / all as f64),
        };
        format!(
            "| {kind} | {probe} | {} | {} | {} | {} | {} |",
            self.all(),
            percent(self.right, self.all()),
            percent(self.withheld, self.all()),
            percent(self.wrong, self.all()),
            percent(self.sure_and_right, self.sure),
        )
    }
}

/// The kinds whose injectors the author of their attribution rules had read.
const SEEN: &[&str] = &["frozen", "quota"];

/// The commit of this tree, whose program is measured, and whether other changes are in it.
pub fn commit() -> anyhow::Result<String> {
    let commit = shell::output("git", &["rev-parse", "--short", "HEAD"])?;
    let changed = shell::output("git", &["status", "--porcelain", "--untracked-files=no"])?;
    let mark = if changed.is_empty() {
        ""
    } else {
        " with other changes"
    };
    Ok(format!("{}{mark}", commit.trim()))
}

/// Prints each fault that is not right to stderr, and the table to stdout: with the commits of the programs, and with the
/// sum of all kinds and the sum without `SEEN`.
pub fn print(judged: &[(&Trial, Vec<Judged>)], commits: &BTreeSet<String>) {
    for (trial, of) in judged {
        for one in of.iter().filter(|one| one.verdict != Verdict::Right) {
            eprintln!(
                "{trial}: {:?} ({}): {}",
                one.verdict, one.confidence, one.why
            );
        }
    }
    let commits: Vec<_> = commits.iter().map(String::as_str).collect();
    println!("Commit: {}\n", commits.join("; "));
    println!("| kind | probe | n | right | withheld | wrong | right where confidence is high |");
    println!("|---|---|---|---|---|---|---|");
    for (trial, of) in judged {
        println!("{}", Tally::of(of).row(trial.kind, trial.probe.as_str()));
    }
    let all = Tally::of(judged.iter().flat_map(|(_, of)| of));
    println!("{}", all.row("**all**", ""));
    let unseen = judged
        .iter()
        .filter(|(trial, _)| !SEEN.contains(&trial.kind));
    let unseen = Tally::of(unseen.flat_map(|(_, of)| of));
    let without = format!("**all but {}**", SEEN.join(" and "));
    println!("{}", unseen.row(&without, ""));
}
