//! All claims in one table that fits the narrowest terminal.

use super::claim::{Claim, Verdict};
use std::fmt::Write;

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Column widths: the row, the claim, the measurement, the target. The verdict has the rest.
const COLUMNS: [usize; 4] = [9, 31, 16, 12];
const INDENT: usize = 10;

/// The result of a row.
pub(super) struct Ended {
    pub(super) row: String,
    /// The claims, or why there are none.
    pub(super) claims: Result<Vec<Claim>, String>,
}

impl Ended {
    /// Whether it failed, or one of its claims does not hold.
    pub(super) fn is_missed(&self) -> bool {
        self.claims.as_ref().map_or(true, |claims| {
            claims.iter().any(|one| one.verdict == Verdict::Missed)
        })
    }
}

/// The table, with a newline after each line.
pub(super) fn table(rows: &[Ended]) -> String {
    let mut out = String::new();
    line(&mut out, ["row", "claim", "measured", "reach", ""]);
    for Ended { row, claims } in rows {
        match claims {
            Err(why) => {
                line(&mut out, [row, "", "", "", "FAILED"]);
                remark(&mut out, why);
            }
            Ok(claims) if claims.is_empty() => {
                line(&mut out, [row, "nothing is claimed", "", "", ""])
            }
            Ok(claims) => {
                for (
                    n,
                    Claim {
                        what,
                        measured,
                        target,
                        verdict,
                    },
                ) in claims.iter().enumerate()
                {
                    let name = if n == 0 { row.as_str() } else { "" };
                    line(&mut out, [name, what, measured, target, verdict.word()]);
                    if let Some(said) = verdict.remark() {
                        remark(&mut out, &said);
                    }
                }
            }
        }
    }
    out
}

/// One row of cells, in as many lines as the longest needs; numbers are right-aligned.
fn line(out: &mut String, cells: [&str; 5]) {
    let rest = WIDTH - COLUMNS.iter().map(|width| width + 1).sum::<usize>();
    let widths = [COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3], rest];
    let folded: Vec<Vec<String>> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| fold(cell, width))
        .collect();
    for n in 0..folded.iter().map(Vec::len).max().unwrap_or(0) {
        let mut one = String::new();
        for (column, (lines, width)) in folded.iter().zip(widths).enumerate() {
            let text = lines.get(n).map_or("", String::as_str);
            // Writing to a string never fails.
            let _ = match column {
                2 | 3 => write!(one, "{text:>width$} "),
                _ => write!(one, "{text:<width$} "),
            };
        }
        out.push_str(one.trim_end());
        out.push('\n');
    }
}

fn remark(out: &mut String, said: &str) {
    for text in said.lines().flat_map(|text| fold(text, WIDTH - INDENT)) {
        out.push_str(&" ".repeat(INDENT));
        out.push_str(&text);
        out.push('\n');
    }
}

/// Wraps text at `width` columns between words; breaks longer words.
fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = String::new();
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let used = last.chars().count();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(std::mem::take(&mut last));
        }
        while word.len() > width {
            lines.push(word.drain(..width).collect());
        }
        if !last.is_empty() {
            last.push(' ');
        }
        last.extend(word);
    }
    if !last.is_empty() {
        lines.push(last);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn claim(what: &str, measured: &str, verdict: Verdict) -> Claim {
        Claim {
            what: what.into(),
            measured: measured.into(),
            target: "<= 1.08".into(),
            verdict,
        }
    }

    #[test]
    fn a_row_that_failed_leaves_the_others_in_the_table() {
        let noise = Verdict::Noise {
            for_about: Duration::from_secs(240),
        };
        let rows = [
            Ended {
                row: "drain".into(),
                claims: Err("kernel events are not available".into()),
            },
            Ended {
                row: "observer".into(),
                claims: Ok(vec![
                    claim(
                        "stolen time with tracing, to that without any",
                        "1.162",
                        noise,
                    ),
                    claim("short", "0.998 [0.990, 1.003]", Verdict::Holds),
                ]),
            },
        ];
        let text = table(&rows);
        assert!(
            text.lines()
                .all(|line| line.chars().count() <= WIDTH && line == line.trim_end()),
            "{text}"
        );
        assert_eq!(
            text.lines().skip(1).collect::<Vec<_>>(),
            [
                "drain                                                                   FAILED",
                "          kernel events are not available",
                "observer  stolen time with tracing, to               1.162      <= 1.08 NOISE",
                "          that without any",
                "          the machine's own noise hides it; about 4 minutes would show it",
                "          short                              0.998 [0.990,      <= 1.08",
                "                                                    1.003]",
            ]
        );
        assert!(
            rows[0].is_missed() && !rows[1].is_missed(),
            "a failed row is no success, noise no failure"
        );
    }

    #[test]
    fn a_claim_that_is_missed_makes_its_row_missed() {
        let of = |verdict| {
            Ended {
                row: "x".into(),
                claims: Ok(vec![claim("y", "2", verdict)]),
            }
            .is_missed()
        };
        assert!(of(Verdict::Missed));
        assert!(!of(Verdict::Holds) && !of(Verdict::Skipped("no perf".into())));
    }

    #[test]
    fn words_longer_than_a_line_are_broken() {
        assert_eq!(fold("ab abcdefgh c", 4), ["ab", "abcd", "efgh", "c"]);
        assert_eq!(fold("", 4), Vec::<String>::new());
    }
}
