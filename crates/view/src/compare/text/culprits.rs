//! The table of culprits.

use super::super::words::became;
use super::Page;
use crate::number;
use crate::style::{Tone, pad};
use crate::words::kind_and_name;
use jitterscope_analyze::compare::{Against, Comparison, CulpritDiff, Verdict};

/// The number of undecided culprits shown, for predicted ones and for others.
const UNDECIDED: usize = 8;
/// Columns of a culprit's name.
const CULPRIT: usize = 24;
/// Columns of a culprit's change, with a blank after the longest word.
const BECAME: usize = 10;

impl Page {
    pub(super) fn culprits(&mut self, against: &Against, names: &[String; 2]) {
        let Some(culprits) = &against.culprits else {
            if !against
                .conditions
                .iter()
                .any(|difference| difference.incomparable)
            {
                self.heading("CULPRITS");
                self.wrapped(Tone::Dim, "No culprits are named: some run has no kernel events, or its evidence fails its check.");
            }
            return;
        };
        let [a, b] = names;
        self.heading(&format!(
            "{}{:>7}{:>7}{:>9}{:>9} {}VERDICT",
            pad("CULPRIT", CULPRIT),
            format!("{a}/s"),
            format!("{b}/s"),
            format!("{a} stolen"),
            format!("{b} stolen"),
            pad("", BECAME)
        ));
        let (mut undecided, mut predicted_undecided) = (0, 0);
        let mut left_out = 0;
        for row in culprits {
            // The verdict rests on every decided prediction.
            let decided = matches!(row.verdict, Verdict::Better | Verdict::Worse)
                || row.predicted && row.verdict != Verdict::Inconclusive;
            if !decided {
                let shown = if row.predicted {
                    &mut predicted_undecided
                } else {
                    &mut undecided
                };
                *shown += 1;
                if *shown > UNDECIDED {
                    left_out += 1;
                    continue;
                }
            }
            self.culprit(row);
        }
        if left_out > 0 {
            self.wrapped(
                Tone::Dim,
                &format!("and {left_out} more, none of them better or worse (--json has them)"),
            );
        }
        let predicted = culprits.iter().any(|row| row.predicted);
        if predicted {
            self.wrapped(
                Tone::Dim,
                &format!(
                    "* predicted by the knobs that differ ({}): decided by themselves",
                    against.knobs.join(", ")
                ),
            );
        } else if !against.knobs.is_empty() {
            let text = format!(
                "knobs that differ: {}; nothing that they answer was seen",
                against.knobs.join(", ")
            );
            self.wrapped(Tone::Dim, &text);
        }
    }

    fn culprit(&mut self, row: &CulpritDiff) {
        let mark = if row.predicted { "* " } else { "  " };
        let name = kind_and_name(&row.subject);
        let rate =
            |c: &Comparison, of: fn(&Comparison) -> Option<f64>| number::rate(of(c).unwrap_or(0.0));
        let share = |of: Option<f64>| number::percent(of.unwrap_or(0.0));
        // The figure with the verdict, if only one has it.
        let of = match (
            row.verdict == row.events.verdict,
            row.verdict == row.stolen.verdict,
        ) {
            _ if row.verdict == Verdict::Inconclusive => "",
            (true, false) => ", count",
            (false, true) if row.events.verdict != Verdict::Inconclusive => ", time",
            _ => "",
        };
        let figures = [
            (rate(&row.events, |c| c.first), 7),
            (rate(&row.events, |c| c.second), 7),
            (share(row.stolen.first), 9),
            (share(row.stolen.second), 9),
        ];
        let line = format!(
            "{} {}{}{of}",
            columns(&format!("{mark}{name}"), CULPRIT, &figures),
            pad(became(row.became), BECAME),
            // The full text would not fit beside that.
            if row.verdict == Verdict::Equivalent && !of.is_empty() {
                "equiv.".to_owned()
            } else {
                self.verdict(row.verdict)
            },
        );
        self.line(&line);
    }
}

/// A name with figures to its right, each after a blank. A figure that is wider than its column takes room from the
/// name.
fn columns(name: &str, width: usize, figures: &[(String, usize)]) -> String {
    let marks: String = figures
        .iter()
        .map(|(figure, width)| format!("{:>width$}", format!(" {figure}")))
        .collect();
    let all: usize = width + figures.iter().map(|(_, width)| width).sum::<usize>();
    format!(
        "{}{marks}",
        pad(name, all.saturating_sub(marks.chars().count()))
    )
}
