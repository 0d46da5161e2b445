//! A selftest's report as plain text, at most 80 columns wide.

use jitterscope_inject::DisturbKind;
use jitterscope_model::visible;
use jitterscope_recording::selftest::{SelftestReport, SelftestRow};
use std::fmt::Write;

const WIDTH: usize = 80;

/// Widest name of a culprit; longer ones are cut.
const EXPECTED: usize = 27;

/// A table of the kinds, the reasons of those that failed or were skipped, and the verdict.
#[must_use]
pub fn render(report: &SelftestReport) -> String {
    let mut out = String::new();
    line(&mut out, ["kind", "expected culprit", "injected", "found", "named", "len err", "verdict"]);
    for row in &report.rows {
        let expected = row.expected.as_ref().map_or_else(|| "-".into(), |e| format!("{} {}", e.kind, e.name));
        let expected: String = visible(&expected).chars().take(EXPECTED).collect();
        line(
            &mut out,
            [
                row.kind.as_str(),
                &expected,
                &row.injected.to_string(),
                &share(row.found, row.injected),
                &share(row.named, row.injected),
                &row.length_error.map_or_else(|| "-".into(), |e| format!("{:.1} %", e * 100.0)),
                if row.passed { "pass" } else { "FAIL" },
            ],
        );
    }
    for skipped in &report.skipped {
        line(&mut out, [skipped.kind.as_str(), "", "-", "-", "-", "-", "skipped"]);
    }
    notes(&mut out, report);
    out
}

fn line(out: &mut String, [kind, expected, injected, found, named, length, verdict]: [&str; 7]) {
    let text = format!(
        "{kind:<10} {expected:<EXPECTED$} {injected:>8} {found:>7} {named:>7} {length:>7} {verdict:>7}"
    );
    out.push_str(text.trim_end());
    out.push('\n');
}

/// A part of a whole in percent, rounded down, so that only all of it is 100 %.
fn share(part: u64, whole: u64) -> String {
    match (u128::from(part) * 1000).checked_div(u128::from(whole)) {
        Some(thousandths) => format!("{}.{} %", thousandths / 10, thousandths % 10),
        None => "-".into(),
    }
}

fn notes(out: &mut String, report: &SelftestReport) {
    let failed: Vec<&SelftestRow> = report.rows.iter().filter(|row| !row.passed).collect();
    let noted = report.rows.iter().any(|row| row.passed && row.out_of_reach > 0);
    if !failed.is_empty() || !report.skipped.is_empty() || noted {
        out.push('\n');
    }
    for row in &failed {
        note(out, row.kind, "failed", &row.reason);
    }
    for skipped in &report.skipped {
        note(out, skipped.kind, "skipped", &skipped.reason);
    }
    for row in report.rows.iter().filter(|row| row.passed && row.out_of_reach > 0) {
        let reason = format!(
            "{} more were made while another thread ran on the CPU, where they reach nobody",
            row.out_of_reach
        );
        note(out, row.kind, "note", &reason);
    }
    let ran = report.rows.len();
    let passed = ran - failed.len();
    let skipped = match report.skipped.len() {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    let verdict = match (report.passed, ran) {
        (true, _) => "selftest passed",
        (false, 0) => "selftest failed: no kind could be run",
        (false, _) => "selftest failed",
    };
    let _ = writeln!(out, "\n{verdict}: {passed} of {ran} kinds passed{skipped}");
}

/// One reason, wrapped, its further lines indented.
fn note(out: &mut String, kind: DisturbKind, what: &str, reason: &str) {
    let mut column = 0;
    for word in visible(&format!("{kind} {what}: {reason}")).split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_inject::Expectation;
    use jitterscope_model::CulpritKind;
    use jitterscope_recording::selftest::SkippedKind;

    fn row(kind: DisturbKind, culprit: (CulpritKind, &str), counts: [u64; 2], reason: &str) -> SelftestRow {
        let [found, named] = counts;
        SelftestRow {
            expected: Some(Expectation { kind: culprit.0, name: culprit.1.into(), sender: None }),
            injected: 100,
            found,
            named,
            length_error: (found > 0).then_some(0.02),
            passed: reason.is_empty(),
            ..SelftestRow::failed(kind, reason.into())
        }
    }

    #[test]
    fn the_text_fits_and_says_why() {
        let fifo = (CulpritKind::Thread, "js-fifo-004d");
        let instead =
            "named 60 of 100, 95 % are needed; most often instead: hypervisor late interrupt, 40 times";
        let long = (CulpritKind::Kworker, "a_function_of_a_very_long_name");
        let rows = vec![
            row(DisturbKind::Fifo, fifo, [100, 100], ""),
            row(DisturbKind::Fifo, fifo, [100, 60], instead),
            row(DisturbKind::Kworker, long, [0, 0], "found 0 of 100, 95 % are needed"),
            SelftestRow::failed(DisturbKind::Timer, "the child ended with signal 9".into()),
        ];
        let skipped = vec![SkippedKind {
            kind: DisturbKind::Writeback,
            reason: "/sys/devices/virtual/workqueue/writeback/cpumask: Permission denied (os error 13); \
                     confining writeback to one CPU needs root"
                .into(),
        }];
        let text = render(&SelftestReport::new(rows, skipped));
        let expected = "\
kind       expected culprit            injected   found   named len err verdict
fifo       thread js-fifo-004d              100 100.0 % 100.0 %   2.0 %    pass
fifo       thread js-fifo-004d              100 100.0 %  60.0 %   2.0 %    FAIL
kworker    kworker a_function_of_a_ver      100   0.0 %   0.0 %       -    FAIL
timer      -                                  0       -       -       -    FAIL
writeback                                     -       -       -       - skipped

fifo failed: named 60 of 100, 95 % are needed; most often instead: hypervisor
  late interrupt, 40 times
kworker failed: found 0 of 100, 95 % are needed
timer failed: the child ended with signal 9
writeback skipped: /sys/devices/virtual/workqueue/writeback/cpumask: Permission
  denied (os error 13); confining writeback to one CPU needs root

selftest failed: 1 of 4 kinds passed, 1 skipped
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn all_but_one_is_not_shown_as_all() {
        let row = SelftestRow {
            injected: 10_000,
            found: 9_999,
            ..SelftestRow::failed(DisturbKind::Fair, "".into())
        };
        let text = render(&SelftestReport::new(vec![row], vec![]));
        assert!(text.contains("99.9 %"), "{text}");
    }
}
