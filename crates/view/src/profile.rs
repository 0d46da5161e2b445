//! The verdict of a profile in one sentence: whether a CPU does what one kind of work needs.

use crate::doubts::doubts_text;
use crate::gate::gate_reason;
use crate::lines::cpus_text;
use crate::number::percent;
use crate::report::Report;
use crate::style::{Tone, tame};
use crate::text::{cpus, host_share};
use crate::words;
use crate::worst_case::{exposure, none_above};
use jitterscope_analyze::gate::{GateValue, GateVerdict};
use jitterscope_analyze::{ProfileVerdict, RunSummary};

/// The culprits that a sentence names.
const NAMED: usize = 3;

/// The verdict of the run's profile; empty without a profile.
pub(crate) fn report(summary: &RunSummary) -> Report {
    let mut report = Report::default();
    if let Some(verdict) = &summary.profile {
        let tone = match verdict.verdict {
            GateVerdict::Kept => Tone::Good,
            GateVerdict::Exceeded | GateVerdict::Undecided => Tone::Bad,
        };
        report.indented(Some(tone), 0, &sentence(summary, verdict));
    }
    report
}

/// The verdict in a sentence.
pub(crate) fn sentence(summary: &RunSummary, verdict: &ProfileVerdict) -> String {
    let cpus = cpus(summary);
    let (who, one) = (cpus_text(&cpus), cpus.len() == 1);
    let title = title(verdict);
    let (start, mut clauses) = match verdict.verdict {
        GateVerdict::Kept => (
            format!("{who} held {title}"),
            vec![longest(summary, verdict)],
        ),
        GateVerdict::Exceeded => {
            let verb = if one { "does" } else { "do" };
            (
                format!("{who} {verb} not hold {title}"),
                exceeded(summary, verdict, one),
            )
        }
        GateVerdict::Undecided => {
            let verb = if one { "holds" } else { "hold" };
            let reasons = verdict
                .results
                .iter()
                .filter_map(|result| result.why.as_ref());
            (
                format!("Whether {who} {verb} {title} cannot be decided"),
                reasons.map(gate_reason).collect(),
            )
        }
    };
    clauses.extend(taken(verdict));
    // Rounded down: only what keeps its limits has 100.
    let score = verdict.score.map(|score| (10.0 * score).floor() / 10.0);
    clauses.extend(score.map(|score| format!("score {score} of 100")));
    if verdict.limit.taken_ppm.is_some() {
        clauses.extend(host_share(summary));
    }
    format!("{start}: {}.", clauses.join("; "))
}

/// The work, and the limit if it is not that of the profile.
fn title(verdict: &ProfileVerdict) -> String {
    let (title, limit) = (tame(&verdict.limit.title), verdict.limit.limit_ns);
    match verdict.limit.replaces_ns {
        None => title,
        Some(own) => format!("{title} with the limit {limit} instead of {own}"),
    }
}

/// What a CPU did for too long.
fn away(summary: &RunSummary) -> &'static str {
    if summary.wakeup.is_some() {
        "late by"
    } else {
        "away for"
    }
}

/// The longest, below the limit.
fn longest(summary: &RunSummary, verdict: &ProfileVerdict) -> String {
    let Some(worst) = &summary.worst_case else {
        return String::new();
    };
    let bound = none_above(worst, &verdict.limit.limit_ns.to_string());
    let bound = bound.map_or_else(String::new, |bound| format!("; {bound}"));
    format!("{} {} at most{bound}", away(summary), worst.longest_ns)
}

/// How often the limit was exceeded, by how much, and which culprits took most.
fn exceeded(summary: &RunSummary, verdict: &ProfileVerdict, one: bool) -> Vec<String> {
    let limit = verdict.limit.limit_ns;
    let worst = summary.worst_case.as_ref();
    let Some(worst) = worst.filter(|worst| worst.longest_ns > limit) else {
        return vec![longest(summary, verdict)];
    };
    let often = format!(
        "{}{} in {} {} {} more than {limit}, up to {}",
        if verdict.above_is_least {
            "at least "
        } else {
            ""
        },
        times(verdict.above),
        exposure(worst),
        if one { "it was" } else { "one was" },
        away(summary),
        worst.longest_ns
    );
    vec![often, who(summary, verdict)]
}

fn who(summary: &RunSummary, verdict: &ProfileVerdict) -> String {
    let unknown = |why: &str| format!("who is unknown: {why}");
    match summary.withheld() {
        _ if summary.attribution.is_none() => unknown("no kernel events were recorded"),
        [] if verdict.culprits.is_empty() => unknown("no stall of that length has a record"),
        [] => names(verdict),
        doubts => unknown(&doubts_text(doubts)),
    }
}

fn names(verdict: &ProfileVerdict) -> String {
    let named: Vec<(String, u64)> = verdict
        .culprits
        .iter()
        .map(|culprit| (words::name(&culprit.subject), culprit.count))
        .collect();
    if let [(name, count)] = named.as_slice()
        && *count == verdict.above
    {
        return match count {
            1 => format!("that was {name}"),
            2 => format!("both times {name}"),
            _ => format!("each time {name}"),
        };
    }
    let shown = named.iter().take(NAMED);
    let each: Vec<String> = shown
        .map(|(name, count)| format!("{} {name}", times(*count)))
        .collect();
    let rest: u64 = named.iter().skip(NAMED).map(|(_, count)| count).sum();
    match rest {
        0 => each.join(", "),
        rest => format!("{}, {} others", each.join(", "), times(rest)),
    }
}

/// The share that stalls took, if it has a limit.
fn taken(verdict: &ProfileVerdict) -> Option<String> {
    let limit = f64::from(verdict.limit.taken_ppm?) / 1e6;
    let taken = verdict
        .results
        .iter()
        .find_map(|result| match &result.value {
            Some(GateValue::Share(share)) => Some(*share),
            _ => None,
        })?;
    Some(format!(
        "stalls took {} (limit {})",
        percent(taken),
        percent(limit)
    ))
}

/// Once, twice, or how many times.
fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        n => crate::number::times(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::ProfileCulprit;
    use jitterscope_model::{Nanos, ProfileLimit, Subject, Verdict};

    fn verdict(above: u64, culprits: &[(Verdict, u64)]) -> ProfileVerdict {
        ProfileVerdict {
            limit: ProfileLimit {
                title: "a 1 kHz servo".into(),
                limit_ns: Nanos(50_000),
                replaces_ns: None,
                taken_ppm: None,
            },
            verdict: GateVerdict::Exceeded,
            above,
            above_is_least: false,
            culprits: culprits
                .iter()
                .map(|(verdict, count)| ProfileCulprit {
                    subject: Subject::verdict(*verdict),
                    count: *count,
                })
                .collect(),
            score: None,
            host_ns: None,
            text: String::new(),
            results: Vec::new(),
        }
    }

    #[test]
    fn a_culprit_of_all_of_them_is_named_for_all_of_them_only() {
        let name = |verdict| words::name(&Subject::verdict(verdict));
        let [smi, timer] = [Verdict::Smi, Verdict::LateTimer];
        for (above, culprits, says) in [
            (1, vec![(smi, 1)], format!("that was {}", name(smi))),
            (2, vec![(smi, 2)], format!("both times {}", name(smi))),
            (2, vec![(smi, 1)], format!("once {}", name(smi))),
            (7, vec![(smi, 7)], format!("each time {}", name(smi))),
            (
                3,
                vec![(smi, 2), (timer, 1)],
                format!("twice {}, once {}", name(smi), name(timer)),
            ),
        ] {
            assert_eq!(names(&verdict(above, &culprits)), says);
        }
        let many = [
            (smi, 4),
            (timer, 2),
            (Verdict::IdleExit, 1),
            (Verdict::NoVerdict, 1),
        ];
        assert!(names(&verdict(9, &many)).ends_with(", once others"));
    }

    #[test]
    fn the_users_own_limit_is_beside_that_of_the_profile() {
        let mut own = verdict(0, &[]);
        own.limit.replaces_ns = Some(Nanos(20_000));
        assert_eq!(
            title(&own),
            "a 1 kHz servo with the limit 50.0 us instead of 20.0 us"
        );
    }
}
