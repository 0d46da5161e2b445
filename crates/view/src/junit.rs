//! The outcome of conditions as JUnit XML, for build servers.

use crate::gate::gate_outcome;
use chrono::{DateTime, FixedOffset};
use jitterscope_analyze::gate::{GateResult, GateVerdict};
use jitterscope_model::{Nanos, visible};
use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// What conditions are about.
#[derive(Clone, Debug)]
pub struct Tested {
    /// What was measured, for people.
    pub name: String,
    /// The machine; empty if it is not to be named.
    pub hostname: String,
    /// Start of the first measurement, nanoseconds since the epoch.
    pub started_realtime_ns: u64,
    /// How long all measurements took.
    pub took: Nanos,
}

/// What was tested, and the outcome of its conditions.
pub type Outcome = (Tested, Vec<GateResult>);

/// One suite for each of what was tested, with one case for each condition: a failure if it was exceeded, an error if it
/// is undecided.
///
/// # Errors
/// None in practice: it is written to memory.
pub fn junit(outcomes: &[Outcome]) -> Result<String, SerializeError> {
    let took = outcomes
        .iter()
        .map(|(tested, _)| tested.took)
        .sum::<Nanos>();
    let first = outcomes.first().map(|(tested, _)| tested);
    let mut report = Report::new(visible(first.map_or("", |tested| &tested.name)).as_ref());
    report.set_time(Duration::from_nanos(took.0));
    if let Some(first) = first {
        report.set_timestamp(began(first));
    }
    for (tested, results) in outcomes {
        report.add_test_suite(suite(tested, results));
    }
    report.to_string()
}

fn began(tested: &Tested) -> DateTime<FixedOffset> {
    let began = i64::try_from(tested.started_realtime_ns).unwrap_or(i64::MAX);
    DateTime::from_timestamp_nanos(began).fixed_offset()
}

fn suite(tested: &Tested, results: &[GateResult]) -> TestSuite {
    let (began, took) = (began(tested), Duration::from_nanos(tested.took.0));
    let name = visible(&tested.name);
    let mut suite = TestSuite::new(name.as_ref());
    suite.set_timestamp(began).set_time(took);
    let hostname = visible(&tested.hostname);
    suite
        .extra
        .insert("hostname".into(), hostname.as_ref().into());
    // Build servers add up the times of the cases.
    let share = took / u32::try_from(results.len()).unwrap_or(u32::MAX).max(1);
    for result in results {
        let outcome = gate_outcome(result);
        let outcome = visible(&outcome);
        let mut status = match result.verdict {
            GateVerdict::Kept => TestCaseStatus::success(),
            GateVerdict::Exceeded => TestCaseStatus::non_success(NonSuccessKind::Failure),
            GateVerdict::Undecided => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        if result.verdict != GateVerdict::Kept {
            status.set_message(outcome.as_ref());
        }
        let mut case = TestCase::new(visible(&result.condition).as_ref(), status);
        case.set_classname(name.as_ref()).set_time(share);
        case.set_timestamp(began).set_system_out(outcome.as_ref());
        suite.add_test_case(case);
    }
    suite
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::gate::{GateReason, GateValue};

    fn result(condition: &str, verdict: GateVerdict, why: Option<GateReason>) -> GateResult {
        GateResult {
            condition: condition.into(),
            verdict,
            value: Some(GateValue::Share(0.015)),
            why,
            note: None,
        }
    }

    fn tested(name: &str) -> Tested {
        Tested {
            name: name.into(),
            hostname: "host <1>".into(),
            started_realtime_ns: 1_700_000_000_000_000_000,
            took: Nanos(9_000_000_000),
        }
    }

    #[test]
    fn names_of_others_cannot_break_the_file() {
        let thread = "trace \"lost\"".into();
        let named = GateReason::GoesByProcess {
            thread,
            program: "java".into(),
        };
        let results = vec![
            result("max<1ms", GateVerdict::Kept, None),
            result("culprit(a&b)>1%", GateVerdict::Exceeded, None),
            result("wait.p50>1ms", GateVerdict::Undecided, Some(named)),
        ];
        let text = junit(&[(tested("run <\"a\"> & \u{1b}b"), results)]).unwrap();
        assert!(text.contains(r#"failures="1" errors="1""#), "{text}");
        assert!(
            text.contains("max&lt;1ms")
                && text.contains("a&amp;b")
                && text.contains("&quot;lost&quot;"),
            "{text}"
        );
        assert!(
            !text.contains('\u{1b}') && text.matches("<testcase").count() == 3,
            "{text}"
        );
    }

    #[test]
    fn suite_and_cases_have_the_time_the_moment_and_the_machine() {
        let kept = result("max>1ms", GateVerdict::Kept, None);
        let results = vec![kept.clone(), kept.clone(), kept];
        let text = junit(&[(tested("run"), results)]).unwrap();
        let attributes = |tag: &str| {
            let all = text.lines().filter(|line| line.trim().starts_with(tag));
            all.map(str::to_owned).collect::<Vec<_>>()
        };
        let began = r#"timestamp="2023-11-14T22:13:20.000+00:00""#;
        let suite = attributes("<testsuite ").remove(0);
        for wanted in [began, r#"time="9.000""#, r#"hostname="host &lt;1&gt;""#] {
            assert!(suite.contains(wanted), "{wanted}: {suite}");
        }
        let cases = attributes("<testcase");
        let are = |wanted: &str| cases.iter().all(|case| case.contains(wanted));
        assert!(
            cases.len() == 3 && are(began) && are(r#"time="3.000""#),
            "{text}"
        );
    }

    #[test]
    fn each_run_has_a_suite_and_the_report_their_time() {
        let kept = || vec![result("max>1ms", GateVerdict::Kept, None)];
        let text = junit(&[(tested("first"), kept()), (tested("second"), kept())]).unwrap();
        assert_eq!(text.matches("<testsuite ").count(), 2, "{text}");
        let whole = text
            .lines()
            .find(|line| line.starts_with("<testsuites "))
            .unwrap();
        assert!(whole.contains(r#"time="18.000""#), "{text}");
    }
}
