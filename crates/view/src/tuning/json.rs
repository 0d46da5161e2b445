//! JSON of an audit and of a plan for programs: the data, and words beside it.

use super::competitors::does;
use super::findings::{finding, wanted};
use super::plan_reasons::{
    boot_by_hand, change_reason, knob_notice, left_thread, left_threads, notice, skip_reason, stays,
};
use super::reasons::knob_reason;
use crate::json::{Worded, worded};
use jitterscope_tune::{
    Audit, AuditEntry, BootLine, Change, ChangeReason, Competitor, Goal, KnobState, Left,
    LeftTogether, Op, Plan, Risk, Skipped,
};
use serde::Serialize;

/// An audit. Each knob has its `reason`, `current`, `wanted` and `note` in words beside their data, each thread that
/// stays its `what` and `why`, and each competing program its `why`.
#[must_use]
pub fn audit_json(of: &Audit) -> impl Serialize {
    AuditJson {
        audit: of,
        knobs: of.knobs.iter().map(KnobJson::of).collect(),
        competitors: of.competitors.iter().map(competitor).collect(),
    }
}

#[derive(Serialize)]
struct AuditJson<'a> {
    #[serde(flatten)]
    audit: &'a Audit,
    knobs: Vec<KnobJson<'a>>,
    competitors: Vec<Worded<'a, Competitor>>,
}

#[derive(Serialize)]
struct KnobJson<'a> {
    #[serde(flatten)]
    knob: &'a AuditEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    current: String,
    wanted: String,
    note: String,
    left: Vec<Worded<'a, Left>>,
}

impl KnobJson<'_> {
    fn of(knob: &AuditEntry) -> KnobJson<'_> {
        let reason = match &knob.state {
            KnobState::Unavailable(why)
            | KnobState::NotApplicable(why)
            | KnobState::Unreadable(why) => Some(knob_reason(why)),
            KnobState::Wrong | KnobState::Fine => None,
        };
        KnobJson {
            knob,
            reason,
            current: knob.found.as_ref().map(finding).unwrap_or_default(),
            wanted: knob.wanted.as_ref().map(wanted).unwrap_or_default(),
            note: knob.notice.as_ref().map(notice).unwrap_or_default(),
            left: knob.left.iter().map(left_alone).collect(),
        }
    }
}

fn left_alone(left: &Left) -> Worded<'_, Left> {
    let why = stays(left.because).to_owned();
    worded(left, [("what", left_thread(left)), ("why", why)])
}

fn left_in_all(left: &LeftTogether) -> Worded<'_, LeftTogether> {
    let why = stays(left.because).to_owned();
    worded(left, [("what", left_threads(left)), ("why", why)])
}

fn competitor(program: &Competitor) -> Worded<'_, Competitor> {
    worded(program, [("why", does(program.does))])
}

/// A plan. Each change and each knob without one has its `why` in words beside its data, threads that stay their `what`
/// and `why`, each competing program its `why`, and the boot line its `how`; `notes` are words alone.
#[must_use]
pub fn plan_json(of: &Plan) -> impl Serialize {
    let Plan {
        schema_version,
        goal,
        changes,
        skipped,
        left,
        boot,
        notes,
        competitors,
    } = of;
    PlanJson {
        schema_version: *schema_version,
        goal,
        changes: changes.iter().map(ChangeJson::of).collect(),
        skipped: skipped
            .iter()
            .map(|knob| worded(knob, [("why", skip_reason(&knob.why))]))
            .collect(),
        left: left.iter().map(left_in_all).collect(),
        boot: boot
            .as_ref()
            .map(|line| worded(line, [("how", boot_by_hand(&line.by_hand))])),
        notes: notes.iter().map(knob_notice).collect(),
        competitors: competitors.iter().map(competitor).collect(),
    }
}

#[derive(Serialize)]
struct PlanJson<'a> {
    schema_version: u32,
    #[serde(flatten)]
    goal: &'a Goal,
    changes: Vec<ChangeJson<'a>>,
    skipped: Vec<Worded<'a, Skipped>>,
    left: Vec<Worded<'a, LeftTogether>>,
    boot: Option<Worded<'a, BootLine>>,
    notes: Vec<String>,
    competitors: Vec<Worded<'a, Competitor>>,
}

#[derive(Serialize)]
struct ChangeJson<'a> {
    knob: &'a str,
    path: String,
    from: String,
    to: String,
    content: Option<&'a str>,
    cause: &'a ChangeReason,
    why: String,
    risk: Risk,
}

impl ChangeJson<'_> {
    fn of(of: &Change) -> ChangeJson<'_> {
        let Change {
            knob,
            op,
            why,
            risk,
        } = of;
        let content = match op {
            Op::PutFile { to, .. } => Some(to.as_str()),
            Op::Write { .. } | Op::MakeDir { .. } | Op::Thread { .. } | Op::Blink { .. } => None,
        };
        ChangeJson {
            knob,
            path: op.what(),
            from: op.from_text(),
            to: op.to_text(),
            content,
            cause: why,
            why: change_reason(why),
            risk: *risk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
