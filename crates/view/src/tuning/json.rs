//! JSON of an audit and of a plan for programs: the data, and words beside it.

use super::competitors::does;
use super::findings::{finding, wanted};
use super::plan_reasons::{
    boot_by_hand, change_reason, knob_notice, left_thread, left_threads, notice, skip_reason, stays,
};
use super::reasons::knob_reason;
use crate::json::{Why, Worded};
use jitterscope_tune::{
    Audit, AuditEntry, BootLine, Change, Competitor, KnobState, Left, LeftTogether, Op, Plan,
    Skipped, Stays,
};
use schemars::JsonSchema;
use serde::Serialize;

/// An audit. Each knob has its `reason`, `current`, `wanted` and `note` in words beside their data, each thread that
/// stays its `what` and `why`, and each competing program its `why`.
#[must_use]
pub fn audit_json(of: &Audit) -> impl Serialize + JsonSchema {
    AuditWithWords {
        audit: of,
        knobs: of.knobs.iter().map(KnobWithWords::of).collect(),
        competitors: of.competitors.iter().map(competitor).collect(),
    }
}

#[derive(Serialize, JsonSchema)]
struct AuditWithWords<'a> {
    #[serde(flatten)]
    audit: &'a Audit,
    /// Every knob, most useful first.
    knobs: Vec<KnobWithWords<'a>>,
    competitors: Vec<Worded<'a, Competitor, Why>>,
}

#[derive(Serialize, JsonSchema)]
struct KnobWithWords<'a> {
    #[serde(flatten)]
    knob: &'a AuditEntry,
    /// `cause` in words; absent without a cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// `found` in words; empty if it is unknown.
    current: String,
    /// `wants` in words; empty if nothing is wanted.
    wanted: String,
    /// `notice` in words; empty without a notice.
    note: String,
    /// What cannot be corrected.
    left: Vec<Worded<'a, Left, Staying>>,
}

impl KnobWithWords<'_> {
    fn of(knob: &AuditEntry) -> KnobWithWords<'_> {
        let reason = match &knob.state {
            KnobState::Unavailable(why)
            | KnobState::NotApplicable(why)
            | KnobState::Unreadable(why) => Some(knob_reason(why)),
            KnobState::Wrong | KnobState::Fine => None,
        };
        KnobWithWords {
            knob,
            reason,
            current: knob.found.as_ref().map(finding).unwrap_or_default(),
            wanted: knob.wanted.as_ref().map(wanted).unwrap_or_default(),
            note: knob.notice.as_ref().map(notice).unwrap_or_default(),
            left: knob
                .left
                .iter()
                .map(|left| staying(left, left_thread(left), left.because))
                .collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Staying {
    /// The threads in words.
    what: String,
    /// `because` in words.
    why: &'static str,
}

fn staying<T>(fact: &T, what: String, because: Stays) -> Worded<'_, T, Staying> {
    let why = stays(because);
    Worded {
        fact,
        words: Staying { what, why },
    }
}

fn competitor(program: &Competitor) -> Worded<'_, Competitor, Why> {
    Worded::why(program, does(program.does))
}

/// A plan. Each change and each knob without one has its `why` in words beside its data, threads that stay their `what`
/// and `why`, each competing program its `why`, and the boot line its `how`; `notes` are words alone.
#[must_use]
pub fn plan_json(of: &Plan) -> impl Serialize + JsonSchema {
    PlanWithWords {
        plan: of,
        changes: of.changes.iter().map(ChangeWithWords::of).collect(),
        skipped: of
            .skipped
            .iter()
            .map(|knob| Worded::why(knob, skip_reason(&knob.why)))
            .collect(),
        left: of
            .left
            .iter()
            .map(|left| staying(left, left_threads(left), left.because))
            .collect(),
        boot: of.boot.as_ref().map(|fact| {
            let how = boot_by_hand(&fact.by_hand);
            Worded {
                fact,
                words: HowTo { how },
            }
        }),
        notes: of.notes.iter().map(knob_notice).collect(),
        competitors: of.competitors.iter().map(competitor).collect(),
    }
}

#[derive(Serialize, JsonSchema)]
struct PlanWithWords<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    /// The changes, in order.
    changes: Vec<ChangeWithWords<'a>>,
    /// Selected knobs without a change.
    skipped: Vec<Worded<'a, Skipped, Why>>,
    /// Threads that stay on the CPUs in any case.
    left: Vec<Worded<'a, LeftTogether, Staying>>,
    /// What to add to the kernel command line; null without `--persist`, and if no parameter is needed.
    boot: Option<Worded<'a, BootLine, HowTo>>,
    /// Notices about using the result, in words.
    notes: Vec<String>,
    competitors: Vec<Worded<'a, Competitor, Why>>,
}

#[derive(Serialize, JsonSchema)]
struct HowTo {
    /// `by_hand` in words.
    how: String,
}

#[derive(Serialize, JsonSchema)]
struct ChangeWithWords<'a> {
    #[serde(flatten)]
    change: &'a Change,
    /// What is changed: a file, a folder or a thread.
    path: String,
    from: String,
    to: String,
    /// The content of a file that is made; null for other changes.
    content: Option<&'a str>,
    /// `cause` in words.
    why: String,
}

impl ChangeWithWords<'_> {
    fn of(change: &Change) -> ChangeWithWords<'_> {
        let content = match &change.op {
            Op::PutFile { to, .. } => Some(to.as_str()),
            Op::Write { .. } | Op::MakeDir { .. } | Op::Thread { .. } | Op::Blink { .. } => None,
        };
        ChangeWithWords {
            change,
            path: change.op.what(),
            from: change.op.from_text(),
            to: change.op.to_text(),
            content,
            why: change_reason(&change.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_tune::Goal;

    fn text(of: &impl Serialize) -> String {
        serde_json::to_string(of).unwrap()
    }

    #[test]
    fn the_version_stands_first_and_the_rest_as_it_is_declared() {
        let goal = Goal {
            isolated: "1".parse().unwrap(),
            housekeeping: "0".parse().unwrap(),
        };
        let audit = Audit {
            schema_version: 1,
            goal,
            run: None,
            knobs: Vec::new(),
            competitors: Vec::new(),
            remedies: Vec::new(),
        };
        assert_eq!(
            text(&audit_json(&audit)),
            r#"{"schema_version":1,"isolated":"1","housekeeping":"0","run":null,"remedies":[],"knobs":[],"competitors":[]}"#
        );
    }
}
