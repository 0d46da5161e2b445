//! The table: the results of each kind, with n next to each percentage.

use super::judge::{Judged, Verdict};
use super::kinds::Trial;

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

/// Prints each fault that is not right to stderr, and the table to stdout.
pub fn print(judged: &[(&Trial, Vec<Judged>)]) {
    for (trial, of) in judged {
        for one in of.iter().filter(|one| one.verdict != Verdict::Right) {
            eprintln!(
                "{trial}: {:?} ({}): {}",
                one.verdict, one.confidence, one.why
            );
        }
    }
    println!("| kind | probe | n | right | withheld | wrong | right where confidence is high |");
    println!("|---|---|---|---|---|---|---|");
    for (trial, of) in judged {
        println!("{}", Tally::of(of).row(trial.kind, trial.probe.as_str()));
    }
    let all = Tally::of(judged.iter().flat_map(|(_, of)| of));
    println!("{}", all.row("**all**", ""));
}
