//! The brief report: what it keeps when not everything fits on the screen.

use crate::common;

use common::{Scenario, part, source, thread};
use jitterscope_analyze::RunSummary;
use jitterscope_model::*;
use jitterscope_view::{Style, doctor, text};

/// A run of one CPU with thirty programs as culprits, each smaller than the one before.
fn many_thieves() -> RunSummary {
    let mut run = Scenario::new(&[0]);
    for n in 0..30u64 {
        let name = format!("thief{n}");
        for again in 0..4 {
            let at = n * 40_000 + again * 9_000 + 1_000;
            run.stall(0, at, vec![part(thread(&name, 12), 3_000_000 / (n + 1))]);
        }
    }
    let mut summary = run.finish().summary();
    summary.run.path = "/runs/stored".into();
    summary
}

fn followed(summary: &mut RunSummary, threads: u64) {
    summary.threads = (0..threads)
        .map(|n| ThreadAccount {
            tid: 100 + n as i32,
            comm: format!("worker{n}"),
            running_ns: Nanos(2_000_000_000),
            waiting_ns: Nanos(1_000_000_000 + n),
            unknown_ns: Nanos(500_000_000),
            longest_wait_ns: Nanos(30_000_000),
            ..ThreadAccount::default()
        })
        .collect();
    summary.probe.kind = "attach".into();
}

fn in_trouble(summary: &mut RunSummary) {
    summary.run.interrupted = true;
    summary.probe.cpus_chosen_because = Some(CpusBecause::HighestAllowed.into());
    summary.trust.lost_records = Some(40_122);
    let long = || "a reason that goes on and on, ".repeat(9);
    let warning = |path: &str| {
        let problem = SourceProblem::CountersUnreadable {
            path: path.into(),
            system: long(),
        };
        Warning::NoKernelEvents(NoKernelEvents {
            wanted: true,
            problem: Some(problem),
        })
    };
    summary.warnings = ["/one", "/other", "/third"]
        .map(|fix| warning(fix).into())
        .to_vec();
}

fn brief(summary: &RunSummary, style: Style) -> String {
    let step = text::Step {
        command: "jitterscope tune plan --run x".into(),
        purpose: "something".into(),
    };
    let next = text::Next {
        program: "jitterscope".into(),
        advice: Some(step),
        ..text::Next::default()
    };
    text::brief(summary, &next, style)
}

fn thieves(text: &str) -> usize {
    text.lines()
        .filter(|line| line.contains(" %  ") && line.contains("thread thief"))
        .count()
}

#[test]
fn the_five_biggest_have_a_row_whatever_else_there_is_to_say() {
    let quiet = many_thieves();
    let mut attached = quiet.clone();
    followed(&mut attached, 9);
    let mut lossy = quiet.clone();
    in_trouble(&mut lossy);
    let mut both = attached.clone();
    in_trouble(&mut both);
    for (what, summary) in [
        ("quiet", quiet),
        ("attached", attached),
        ("lossy", lossy),
        ("both", both),
    ] {
        let text = brief(&summary, Style::default());
        assert_eq!(thieves(&text), 5, "{what}:\n{text}");
        assert!(text.contains("25 more"), "{what}:\n{text}");
        assert!(
            text.lines().count() <= 23,
            "{what}: {} lines:\n{text}",
            text.lines().count()
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{what}:\n{text}"
        );
        assert!(
            text.contains("Trust: ") && text.contains("Next: "),
            "{what}:\n{text}"
        );
    }
}

#[test]
fn threads_have_their_rows_where_there_is_room() {
    let mut summary = many_thieves();
    followed(&mut summary, 9);
    in_trouble(&mut summary);
    let rows = |height| {
        let text = brief(
            &summary,
            Style {
                height,
                ..Style::default()
            },
        );
        text.lines()
            .filter(|line| line.starts_with("worker"))
            .count()
    };
    assert!(rows(24) < 3 && rows(50) == 3);
    // A file has the height of the smallest screen.
    assert_eq!(rows(0), rows(24));
}

#[test]
fn a_warning_uses_the_width_and_is_cut_between_words() {
    let mut summary = many_thieves();
    in_trouble(&mut summary);
    let text = brief(&summary, Style::default());
    let cut: Vec<&str> = text.lines().filter(|line| line.starts_with("! ")).collect();
    assert!(!cut.is_empty(), "{text}");
    for line in cut {
        assert!(!line.ends_with("..") || line.ends_with(" .."), "{line}");
        assert!(line.len() > 68, "{line}");
    }
    let tall = brief(
        &summary,
        Style {
            height: 60,
            ..Style::default()
        },
    );
    assert!(tall.lines().any(|line| line.starts_with("! ")), "{tall}");
}

/// An older kernel lacks some events, but still names the culprits.
#[test]
fn doctor_calls_no_kernel_blind_that_lacks_some_events() {
    let of = |status| doctor::verdict(&[source("tracefs", status, 0)]);
    let older = of(SourceStatus::Degraded);
    assert!(
        older.contains("causes named; one source is not all that there could be: tracefs."),
        "{older}"
    );
    assert!(of(SourceStatus::Denied).contains("their causes cannot be named"));
}

#[test]
fn events_that_were_not_requested_are_listed_with_losses() {
    let mut summary = many_thieves();
    let said = "not all kernel events were recorded";
    assert!(!brief(&summary, Style::default()).contains(said));
    summary.probe.event_grain = Some(EventGrain::Coarse);
    let text = brief(&summary, Style::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains(&format!("nothing was lost; {said} (--events coarse)")),
        "{text}"
    );
}
