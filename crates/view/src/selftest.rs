//! A selftest's report: blocks, and JSON.

use crate::json::Worded;
use crate::report::{Cell, Column, Report, Row, Table};
use crate::style::Tone;
use crate::words;
use jitterscope_model::visible;
use jitterscope_recording::selftest::{
    Instead, PASS_PERCENT, SelftestReport, SelftestRow, SelftestStep, Shortfall, SkipCause,
    SkippedKind, WrongVerdict,
};
use schemars::JsonSchema;
use serde::Serialize;

/// The largest width of a culprit's name; longer ones are cut.
const EXPECTED: usize = 27;

/// A table of the kinds, with the reasons of those that failed or were skipped, and the verdict.
#[must_use]
pub fn render(report: &SelftestReport) -> Report {
    let skipped = report.skipped.iter().map(|of| Row {
        remarks: vec![skip_cause(&of.cause)],
        ..Row::from([of.kind.as_str(), "", "-", "-", "-", "-", "skipped"].map(Cell::from))
    });
    let mut page = Report::default();
    page.table(Table {
        title: "Kinds of disturbance".into(),
        columns: ["kind", "expected culprit"]
            .map(Column::text)
            .into_iter()
            .chain(Column::numbers(["injected", "found", "named", "len err"]))
            .chain([Column::text("verdict")])
            .collect(),
        rows: report.rows.iter().map(kind).chain(skipped).collect(),
        ..Table::default()
    });
    page.heading("Verdict");
    let (tone, text) = verdict(report);
    page.sentence(tone, text);
    page
}

fn kind(row: &SelftestRow) -> Row {
    let expected = row.expected.as_ref();
    let expected = expected.map_or_else(|| "-".into(), |e| format!("{} {}", e.kind, e.name));
    let expected: String = visible(&expected).chars().take(EXPECTED).collect();
    let missed = row.out_of_reach;
    let remark = match (row.passed, missed) {
        (false, _) => Some(shortfall(row)),
        (true, 0) => None,
        (true, missed) => Some(format!(
            "{missed} more were injected while another thread ran on the CPU, where they affect nothing"
        )),
    };
    let passed = match row.passed {
        true => Cell::toned("pass", Tone::Good),
        false => Cell::toned("FAIL", Tone::Bad),
    };
    Row {
        remarks: remark.into_iter().collect(),
        ..Row::from([
            row.kind.as_str().into(),
            expected.into(),
            row.injected.to_string().into(),
            share(row.found, row.injected).into(),
            share(row.named, row.injected).into(),
            Cell::known(row.length_error.map(|e| format!("{:.1} %", e * 100.0))),
            passed,
        ])
    }
}

fn verdict(report: &SelftestReport) -> (Tone, String) {
    let ran = report.rows.len();
    let passed = report.rows.iter().filter(|row| row.passed).count();
    let skipped = match report.skipped.len() {
        0 => String::new(),
        n => format!(", {n} skipped"),
    };
    let (tone, verdict) = match (report.passed, ran) {
        (true, _) => (Tone::Good, "selftest passed"),
        (false, 0) => (Tone::Bad, "selftest failed: no kind could be run"),
        (false, _) => (Tone::Bad, "selftest failed"),
    };
    (
        tone,
        format!("{verdict}: {passed} of {ran} kinds passed{skipped}"),
    )
}

/// The progress of a selftest.
#[must_use]
pub fn step(of: SelftestStep) -> String {
    match of {
        SelftestStep::Injecting { kind, count } => format!("injecting {kind} ({count} times)"),
        SelftestStep::TryingAgain => {
            "the CPU was too busy for some kinds: trying those again".into()
        }
        SelftestStep::Scoring => "scoring".into(),
    }
}

/// A part of a whole in percent, rounded down, so that only the whole is 100 %.
fn share(part: u64, whole: u64) -> String {
    match (u128::from(part) * 1000).checked_div(u128::from(whole)) {
        Some(thousandths) => format!("{}.{} %", thousandths / 10, thousandths % 10),
        None => "-".into(),
    }
}

/// The report as data, with the sentences `reason` and `said` beside it.
#[must_use]
pub fn json(of: &SelftestReport) -> impl Serialize + JsonSchema {
    let skipped = of.skipped.iter();
    ReportWithWords {
        report: of,
        rows: of.rows.iter().map(RowWithWords::of).collect(),
        skipped: skipped.map(skipped_kind).collect(),
    }
}

#[derive(Serialize, JsonSchema)]
struct ReportWithWords<'a> {
    #[serde(flatten)]
    report: &'a SelftestReport,
    rows: Vec<RowWithWords<'a>>,
    /// The kinds that were skipped.
    skipped: Vec<Worded<'a, SkippedKind, Reason>>,
}

#[derive(Serialize, JsonSchema)]
struct RowWithWords<'a> {
    #[serde(flatten)]
    row: &'a SelftestRow,
    /// Wrong reports, the most frequent first.
    wrong: Vec<Worded<'a, WrongVerdict, Said>>,
    /// Why it failed, in words; empty if it passed.
    reason: String,
}

impl RowWithWords<'_> {
    fn of(row: &SelftestRow) -> RowWithWords<'_> {
        RowWithWords {
            row,
            wrong: row.wrong.iter().map(said).collect(),
            reason: shortfall(row),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Reason {
    /// `cause` in words.
    reason: String,
}

fn skipped_kind(fact: &SkippedKind) -> Worded<'_, SkippedKind, Reason> {
    let reason = skip_cause(&fact.cause);
    Worded {
        fact,
        words: Reason { reason },
    }
}

#[derive(Serialize, JsonSchema)]
struct Said {
    /// `instead` in words.
    said: String,
}

fn said(fact: &WrongVerdict) -> Worded<'_, WrongVerdict, Said> {
    let said = instead(&fact.instead);
    Worded {
        fact,
        words: Said { said },
    }
}

/// Why a kind did not pass; empty if it did.
fn shortfall(row: &SelftestRow) -> String {
    let SelftestRow {
        injected,
        found,
        named,
        ..
    } = row;
    match &row.shortfall {
        None => String::new(),
        Some(Shortfall::NothingInjected) => "nothing was injected".into(),
        Some(Shortfall::TooBusy { out_of_reach, of }) => too_busy(*out_of_reach, *of),
        Some(Shortfall::TooFewFound) => {
            format!("found {found} of {injected}, {PASS_PERCENT} % are needed")
        }
        Some(Shortfall::TooFewNamed) => {
            let wrong_text = row.wrong.first().map_or_else(String::new, |wrong| {
                format!(
                    "; most often instead: {}, {} times",
                    instead(&wrong.instead),
                    wrong.count
                )
            });
            format!("named {named} of {injected}, {PASS_PERCENT} % are needed{wrong_text}")
        }
        Some(Shortfall::Broken { error }) => error.clone(),
    }
}

fn too_busy(out_of_reach: u64, of: u64) -> String {
    format!(
        "another thread ran on the CPU during {out_of_reach} of {of} injections: too busy to test"
    )
}

fn skip_cause(cause: &SkipCause) -> String {
    match cause {
        SkipCause::Unavailable { cause } => cause.to_string(),
        SkipCause::NotReady { error } => error.clone(),
        SkipCause::TooBusy { out_of_reach, of } => too_busy(*out_of_reach, *of),
    }
}

fn instead(said: &Instead) -> String {
    match said {
        Instead::NoStall => "no stall".into(),
        Instead::NoAttribution => "a stall without attribution".into(),
        Instead::NoSender => "the right culprit without its sender".into(),
        Instead::OtherSender { context, comm, tid } => {
            let thread = comm
                .as_deref()
                .map(str::to_owned)
                .or(tid.map(|tid| format!("thread {tid}")));
            format!(
                "the right culprit, sent by {}",
                words::sent_from(*context, thread.as_deref())
            )
        }
        Instead::OtherCulprit { kind, name } => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use jitterscope_inject::{DisturbKind, Expectation, Unavailable};
    use jitterscope_model::{CulpritKind, ExecutionContext};

    fn row(kind: DisturbKind, culprit: (CulpritKind, &str), counts: [u64; 2]) -> SelftestRow {
        let [found, named] = counts;
        let shortfall = match counts {
            [100, 100] => None,
            [100, _] => Some(Shortfall::TooFewNamed),
            _ => Some(Shortfall::TooFewFound),
        };
        SelftestRow {
            expected: Some(Expectation {
                kind: culprit.0,
                name: culprit.1.into(),
                sender: None,
            }),
            injected: 100,
            found,
            named,
            length_error: (found > 0).then_some(0.02),
            passed: shortfall.is_none(),
            shortfall,
            ..SelftestRow::of(kind)
        }
    }

    #[test]
    fn the_text_fits_and_says_why() {
        let fifo = (CulpritKind::Thread, "js-fifo-004d");
        let late = Instead::OtherCulprit {
            kind: CulpritKind::Hypervisor,
            name: "late interrupt".into(),
        };
        let long = (CulpritKind::Kworker, "a_function_of_a_very_long_name");
        let rows = vec![
            row(DisturbKind::Fifo, fifo, [100, 100]),
            SelftestRow {
                wrong: vec![WrongVerdict {
                    instead: late,
                    count: 40,
                }],
                ..row(DisturbKind::Fifo, fifo, [100, 60])
            },
            row(DisturbKind::Kworker, long, [0, 0]),
            SelftestRow {
                shortfall: Some(Shortfall::Broken {
                    error: "the child ended with signal 9".into(),
                }),
                ..SelftestRow::of(DisturbKind::Timer)
            },
        ];
        let skipped = vec![SkippedKind {
            kind: DisturbKind::Writeback,
            cause: SkipCause::Unavailable {
                cause: Unavailable::ControlFile {
                    path: "/sys/devices/virtual/workqueue/writeback/cpumask".into(),
                    error: "Permission denied (os error 13)".into(),
                    what: "confining writeback to one CPU".into(),
                },
            },
        }];
        let text = render(&SelftestReport::new(rows, skipped)).terminal(Style::default());
        let expected = "\
kind      expected culprit            injected   found   named len err verdict
fifo      thread js-fifo-004d              100 100.0 % 100.0 %   2.0 % pass
fifo      thread js-fifo-004d              100 100.0 %  60.0 %   2.0 % FAIL
  named 60 of 100, 95 % are needed; most often instead: hypervisor late
  interrupt, 40 times
kworker   kworker a_function_of_a_ver      100   0.0 %   0.0 %       - FAIL
  found 0 of 100, 95 % are needed
timer     -                                  0       -       -       - FAIL
  the child ended with signal 9
writeback                                    -       -       -       - skipped
  /sys/devices/virtual/workqueue/writeback/cpumask: Permission denied (os error
  13); confining writeback to one CPU needs root

VERDICT
selftest failed: 1 of 4 kinds passed, 1 skipped
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn what_was_said_instead_is_reported_in_words() {
        let sent = |context, comm: Option<&str>, tid| {
            instead(&Instead::OtherSender {
                context,
                comm: comm.map(Into::into),
                tid,
            })
        };
        let thread = ExecutionContext::Thread;
        assert_eq!(
            sent(thread, Some("chrome"), None),
            "the right culprit, sent by chrome"
        );
        assert_eq!(
            sent(thread, None, Some(78)),
            "the right culprit, sent by thread 78"
        );
        let interrupt = sent(ExecutionContext::Interrupt, None, None);
        assert_eq!(interrupt, "the right culprit, sent by an interrupt");
    }

    #[test]
    fn json_has_the_sentence_beside_what_it_is_made_of() {
        let wrong = vec![WrongVerdict {
            instead: Instead::NoStall,
            count: 10,
        }];
        let rows = vec![SelftestRow {
            wrong,
            ..row(DisturbKind::Fifo, (CulpritKind::Thread, "x"), [90, 90])
        }];
        let cause = SkipCause::TooBusy {
            out_of_reach: 90,
            of: 100,
        };
        let skipped = vec![SkippedKind {
            kind: DisturbKind::Membarrier,
            cause,
        }];
        let json = serde_json::to_value(json(&SelftestReport::new(rows, skipped))).unwrap();
        assert_eq!(json["rows"][0]["shortfall"]["id"], "too-few-found");
        assert_eq!(
            json["rows"][0]["reason"],
            "found 90 of 100, 95 % are needed"
        );
        let wrong = &json["rows"][0]["wrong"][0];
        assert_eq!(
            [&wrong["instead"]["id"], &wrong["said"]],
            ["no-stall", "no stall"]
        );
        assert_eq!(json["skipped"][0]["cause"]["out_of_reach"], 90);
        let reason = "another thread ran on the CPU during 90 of 100 injections: too busy to test";
        assert_eq!(json["skipped"][0]["reason"], reason);
    }

    #[test]
    fn all_but_one_is_not_shown_as_all() {
        let row = SelftestRow {
            injected: 10_000,
            found: 9_999,
            ..SelftestRow::of(DisturbKind::Fair)
        };
        let text = render(&SelftestReport::new(vec![row], vec![])).terminal(Style::default());
        assert!(text.contains("99.9 %"), "{text}");
    }
}
