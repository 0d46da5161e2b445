//! Decides whether a label is right, wrong or withheld.
//!
//! A fault is right if each culprit that caused it is named with a length within limits and with no other sender than
//! its own. If a part of a culprit's time is missing, it is withheld if the stalls of that time report as much as
//! unresolved, lost, or the host's at low confidence; if they attribute it to another culprit, the label is wrong.

use super::kinds::{Fault, Length, Probe, Sent, Trial, Want};
use super::stored::{Part, Recording, Stall};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Right,
    Withheld,
    Wrong,
}

pub struct Judged {
    pub verdict: Verdict,
    /// Confidence of the part that names the culprit, or of what is named instead.
    pub confidence: String,
    pub why: String,
}

/// The part of a fault that a wake-up probe can miss: it sleeps until its next deadline, at most a millisecond.
const ASLEEP: u64 = 1_200_000;
/// Allowance around the culprit's own first and last moment: the switches to it and back.
const WAY: u64 = 150_000;

fn matches(want: &Want, part: &Part) -> bool {
    want.kinds.contains(&part.kind())
        && (want.names.is_empty() || want.names.iter().any(|name| name == part.name()))
        && want.tid.is_none_or(|tid| part.tid() == Some(tid))
        && want
            .group
            .as_ref()
            .is_none_or(|group| part.cgroup().ends_with(group.as_str()))
}

/// Minimum and maximum of a culprit's time in the stalls; `hit` is how much of the fault they cover.
fn limits(want: &Want, fault: &Fault, hit: u64) -> (u64, u64) {
    let whole = fault.end() - fault.begin();
    // Time outside the stalls may all have been this culprit's.
    let of_hit = |ns: u64| ns.saturating_sub(whole.saturating_sub(hit));
    match want.length {
        Length::Own { busy } => (of_hit(busy * 9 / 10), whole * 11 / 10 + WAY),
        Length::Program { busy, charged } => (of_hit(busy * 9 / 10), charged * 12 / 10 + WAY),
        Length::Charged { ns } => (of_hit(ns * 7 / 10), ns * 12 / 10 + WAY),
        Length::Within { ns } => (ns * 7 / 10, ns * 12 / 10 + WAY),
        Length::Nothing => (0, WAY),
        Length::Whole => (of_hit(whole * 7 / 10), whole * 11 / 10 + WAY),
        Length::Short => (50, whole + 100_000),
    }
}

fn describe(stalls: &[&Stall]) -> String {
    let one = |stall: &&Stall| {
        let parts: Vec<_> = stall
            .parts
            .iter()
            .map(|part| {
                let sender = part.sender().map_or(String::new(), |(tid, name)| {
                    format!(" by {tid} {:?}", name.unwrap_or("?"))
                });
                format!(
                    "{} {:?} {}{sender} {} ns {}",
                    part.kind(),
                    part.name(),
                    part.tid().map_or(String::new(), |tid| tid.to_string()),
                    part.net_ns(),
                    part.confidence()
                )
            })
            .collect();
        format!("stall {}: {}", stall.id, parts.join("; "))
    };
    stalls.iter().map(one).collect::<Vec<_>>().join(" | ")
}

/// Another fault whose time is in the same stalls, and how much of it they cover.
struct Beside<'a> {
    fault: &'a Fault,
    wants: Vec<Want>,
    hit: u64,
}

/// Checks one culprit against the stalls. A stall adds up the same culprit's time in two faults.
fn named(
    want: &Want,
    fault: &Fault,
    stalls: &[&Stall],
    hit: u64,
    beside: &[Beside],
) -> (Verdict, String, String) {
    let parts = || stalls.iter().flat_map(|stall| &stall.parts);
    let of_it: Vec<&Part> = parts().filter(|part| matches(want, part)).collect();
    let found: u64 = of_it.iter().map(|part| part.net_ns()).sum();
    let (mut least, mut most) = limits(want, fault, hit);
    for other in beside {
        for same in other.wants.iter().filter(|other| want.is_same(other)) {
            let of_other = limits(same, other.fault, other.hit);
            (least, most) = (least + of_other.0, most + of_other.1);
        }
    }
    let sum = format!("{found} ns of {least} to {most}");
    let sure_of = |part: Option<&Part>| part.map_or("none", Part::confidence).to_owned();
    let main = of_it.iter().copied().max_by_key(|part| part.net_ns());
    if matches!(want.length, Length::Nothing) {
        let verdict = if found > most {
            Verdict::Wrong
        } else {
            Verdict::Right
        };
        return (verdict, sure_of(main), sum);
    }
    if let Some(part) = main.filter(|_| found >= least && found <= most) {
        let (Sent::MayBe(tid, name) | Sent::Must(tid, name)) = &want.sender else {
            return (Verdict::Right, sure_of(main), sum);
        };
        // "A or B" is no certain name: the thread renamed itself at an unknown time.
        let either = |called: &str| called.split(" or ").any(|one| one == name) && called != name;
        let senders: Vec<_> = of_it
            .iter()
            .filter_map(|part| part.sender())
            .filter(|(by, called)| by != tid || !called.is_some_and(either))
            .collect();
        let right = |(by, called): &(u64, Option<&str>)| {
            by == tid && called.is_none_or(|called| called == name)
        };
        // Other threads may have sent at the same moment: one right sender is enough.
        let verdict = match (&want.sender, senders.iter().any(right), senders.is_empty()) {
            (_, true, _) | (Sent::MayBe(..), _, true) => Verdict::Right,
            (_, _, true) => Verdict::Withheld,
            _ => Verdict::Wrong,
        };
        return (
            verdict,
            sure_of(Some(part)),
            format!("{sum}; senders {senders:?}"),
        );
    }
    let unnamed: u64 = parts()
        .filter(|part| part.is_withheld())
        .map(Part::net_ns)
        .sum();
    if found < least && unnamed > 0 && found + unnamed >= least {
        return (
            Verdict::Withheld,
            "low".into(),
            format!("{sum}; {unnamed} ns withheld"),
        );
    }
    let instead = parts()
        .filter(|part| !part.is_withheld() && (found > most || !matches(want, part)))
        .max_by_key(|part| part.net_ns());
    (Verdict::Wrong, sure_of(instead), sum)
}

/// Judges a trial's fault `at` by its recording.
pub fn judge(trial: &Trial, faults: &[Fault], at: usize, recording: &Recording) -> Judged {
    let fault = &faults[at];
    let wants = (trial.wants)(fault);
    let (begin, end) = (fault.begin(), fault.end());
    let from = recording.stalls.partition_point(|stall| stall.end < begin);
    let stalls: Vec<&Stall> = recording.stalls[from..]
        .iter()
        .take_while(|stall| stall.begin <= end)
        .collect();
    let covers = |fault: &Fault| -> u64 {
        let within = |stall: &&Stall| stall.within(fault.begin(), fault.end());
        stalls.iter().map(within).sum()
    };
    let hit = covers(fault);
    let beside: Vec<Beside> = faults
        .iter()
        .enumerate()
        .filter(|(other, fault)| *other != at && covers(fault) > 0)
        .map(|(_, fault)| Beside {
            fault,
            wants: (trial.wants)(fault),
            hit: covers(fault),
        })
        .collect();
    let short = wants.iter().all(|want| {
        matches!(
            want.length,
            Length::Short | Length::Within { .. } | Length::Nothing
        )
    });
    let asleep = if trial.probe == Probe::Wakeup {
        ASLEEP
    } else {
        0
    };
    let what = |sums: &str| {
        format!(
            "{} {sums}; {begin} + {} ns, hit {hit}: {}",
            fault.0,
            end - begin,
            describe(&stalls)
        )
    };
    if !short && hit < ((end - begin) * 9 / 10).saturating_sub(asleep) {
        return Judged {
            verdict: Verdict::Wrong,
            confidence: "none".into(),
            why: what("not in stalls"),
        };
    }
    let each: Vec<_> = wants
        .iter()
        .map(|want| named(want, fault, &stalls, hit, &beside))
        .collect();
    let rank = |verdict: Verdict| match verdict {
        Verdict::Right => 0,
        Verdict::Withheld => 1,
        Verdict::Wrong => 2,
    };
    let sums: Vec<_> = each.iter().map(|(_, _, sum)| sum.as_str()).collect();
    let sums = sums.join(", ");
    // The worst answer counts; of several right ones, the first is the main culprit's.
    let worst = each.iter().map(|(verdict, ..)| rank(*verdict)).max();
    let (verdict, confidence, _) = each
        .iter()
        .find(|(verdict, ..)| Some(rank(*verdict)) == worst)
        .cloned()
        .unwrap_or((Verdict::Wrong, "none".into(), String::new()));
    Judged {
        verdict,
        confidence,
        why: what(&sums),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::kinds;
    use serde_json::{Value, json};

    const MS: u64 = 1_000_000;

    /// A thread `hog` (7), woken by `waker` (8), that ran 2 ms, judged by these parts of its stall.
    fn verdict_of(parts: Value) -> Verdict {
        let fault = Fault(json!({
            "begin": 10 * MS, "end": 12 * MS, "busy": 2 * MS, "tid": 7, "name": "hog",
            "sender_tid": 8, "sender_name": "waker",
        }));
        let trial = kinds::trials()
            .into_iter()
            .find(|trial| trial.is_called("fifo-futex@spin"))
            .unwrap();
        let parts = parts.as_array().unwrap().iter().cloned();
        let stall = Stall {
            id: 0,
            begin: 10 * MS - 20_000,
            end: 12 * MS + 20_000,
            parts: parts.map(Part::new).collect(),
        };
        let recording = Recording {
            begin: 0,
            end: 100 * MS,
            stalls: vec![stall],
        };
        judge(&trial, &[fault], 0, &recording).verdict
    }

    fn hog(net: u64, sender: &Value) -> Value {
        json!({"kind": "thread", "name": "hog", "tid": 7, "net_ns": net, "sender": sender, "confidence": "high"})
    }

    #[test]
    fn a_culprit_with_its_length_is_right() {
        assert!(verdict_of(json!([hog(2 * MS, &Value::Null)])) == Verdict::Right);
        let waker = json!({"tid": 8, "comm": "waker"});
        assert!(verdict_of(json!([hog(2 * MS, &waker)])) == Verdict::Right);
    }

    #[test]
    fn another_sender_name_or_length_is_wrong() {
        let other = json!({"tid": 9, "comm": "bystander"});
        assert!(verdict_of(json!([hog(2 * MS, &other)])) == Verdict::Wrong);
        assert!(verdict_of(json!([hog(3 * MS, &Value::Null)])) == Verdict::Wrong);
        let bystander = json!({"kind": "thread", "name": "bystander", "tid": 9, "net_ns": MS, "confidence": "high"});
        assert!(verdict_of(json!([hog(MS, &Value::Null), bystander])) == Verdict::Wrong);
    }

    #[test]
    fn what_is_called_unresolved_is_withheld() {
        let unresolved =
            json!({"kind": "unresolved", "name": "not seen", "net_ns": MS, "confidence": "low"});
        assert!(verdict_of(json!([hog(MS, &Value::Null), unresolved])) == Verdict::Withheld);
    }

    /// A fault whose inner group throttled 40 ms, judged by these times of both groups' quotas.
    fn verdict_of_nested(inner: u64, outer: u64) -> Verdict {
        let fault = Fault(json!({
            "begin": 100 * MS, "end": 220 * MS, "held": 40 * MS,
            "group_name": "within-7", "other_name": "faults-7",
        }));
        let trial = kinds::trials()
            .into_iter()
            .find(|trial| trial.is_called("nested-quota"))
            .unwrap();
        let quota = |cgroup: &str, net: u64| {
            Part::new(
                json!({"kind": "quota", "cgroup": cgroup, "net_ns": net, "confidence": "medium"}),
            )
        };
        let stall = Stall {
            id: 0,
            begin: 110 * MS,
            end: 150 * MS,
            parts: vec![
                quota("/faults-7/within-7", inner),
                quota("/faults-7", outer),
            ],
        };
        let recording = Recording {
            begin: 0,
            end: 300 * MS,
            stalls: vec![stall],
        };
        judge(&trial, &[fault], 0, &recording).verdict
    }

    #[test]
    fn only_the_level_that_throttled_may_be_charged() {
        assert!(verdict_of_nested(38 * MS, 0) == Verdict::Right);
        assert!(verdict_of_nested(0, 38 * MS) == Verdict::Wrong);
        assert!(verdict_of_nested(38 * MS, 2 * MS) == Verdict::Wrong);
    }

    #[test]
    fn a_sure_verdict_on_the_host_is_no_excuse() {
        let host = json!({"kind": "hypervisor", "name": "CPU taken", "net_ns": 2 * MS, "confidence": "high"});
        assert!(verdict_of(json!([host])) == Verdict::Wrong);
    }
}
