//! Words for figures, changes and reasons.

use crate::doubts::doubts_text;
use crate::number;
use jitterscope_analyze::compare::{
    Became, Comparison, FigureKind, FigureRow, FigureUnit, Interval, Scale, SideSummary, Undecided,
    Verdict,
};
use jitterscope_model::{CpuId, CpuSet, Nanos, PipelineRole};

/// The name of a figure.
#[must_use]
pub fn figure_name(kind: FigureKind) -> String {
    let of = |role: PipelineRole| role.as_str();
    match kind {
        FigureKind::Stolen => "stolen".into(),
        FigureKind::StallsOver { over_ns } => format!("stalls >= {}", round(over_ns)),
        FigureKind::Wait { percentile } => format!("wait p{percentile}"),
        FigureKind::Stall { percentile } => format!("stall p{percentile}"),
        FigureKind::MeanLateness => "mean lateness".into(),
        FigureKind::Lateness { percentile } => format!("lateness p{percentile}"),
        FigureKind::LateOver { over_ns } => format!("late >= {}", round(over_ns)),
        FigureKind::MeanMessage { role } => format!("{} mean", of(role)),
        FigureKind::Message { role, percentile } => format!("{} p{percentile}", of(role)),
        FigureKind::SlowMessages { role } => format!("{} slow", of(role)),
        FigureKind::WallTime => "wall time".into(),
        FigureKind::Lost => "lost".into(),
        FigureKind::Waiting => "  waiting".into(),
        FigureKind::Interrupted => "  interrupted".into(),
        FigureKind::Blocked { reason } => format!("blocked: {}", reason.replace('_', " ")),
        FigureKind::Preemptions => "preemptions".into(),
        FigureKind::Migrations => "migrations".into(),
        FigureKind::Worst => "worst".into(),
    }
}

/// `10 us`: a round length.
fn round(length: Nanos) -> String {
    match length.0 {
        ns if ns % 1_000_000 == 0 => format!("{} ms", ns / 1_000_000),
        ns if ns % 1000 == 0 => format!("{} us", ns / 1000),
        ns => format!("{ns} ns"),
    }
}

/// A figure with its unit.
pub(crate) fn figure(value: Option<f64>, unit: FigureUnit) -> String {
    match (value, unit) {
        (None, _) => "-".into(),
        (Some(share), FigureUnit::Fraction) => number::percent(share),
        (Some(rate), FigureUnit::PerSec) => format!("{}/s", number::rate(rate)),
        (Some(ns), FigureUnit::Ns) => Nanos(ns.max(0.0).round() as u64).to_string(),
    }
}

/// A change: `-63.1 %` of a ratio; a difference in points or in the figure's unit.
#[must_use]
pub fn change(change: f64, scale: Scale, unit: FigureUnit) -> String {
    let sign = if change < 0.0 { "-" } else { "+" };
    let size = change.abs();
    match (scale, unit) {
        // A change that rounds to zero has no direction.
        (Scale::Ratio, _) if size < 0.0005 => "0.0 %".into(),
        (Scale::Ratio, _) if size >= 9.995 => format!("x{:.0}", change + 1.0),
        (Scale::Ratio, _) => format!("{sign}{:.1} %", size * 100.0),
        (Scale::Difference, FigureUnit::Fraction) => format!("{sign}{}", number::percent(size)),
        (Scale::Difference, FigureUnit::PerSec) => format!("{sign}{}/s", number::rate(size)),
        (Scale::Difference, FigureUnit::Ns) => format!("{sign}{}", Nanos(size.round() as u64)),
    }
}

/// The level of an interval in percent: `95`, `98.5`.
pub(crate) fn level(of: Interval) -> String {
    let level = format!("{:.1}", of.level * 100.0);
    level.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `-80..+20 %`, short enough for a column.
pub(crate) fn interval(interval: Option<Interval>, scale: Scale, unit: FigureUnit) -> String {
    let Some(Interval { low, high, .. }) = interval else {
        return "-".into();
    };
    let percent = |change: f64| match change * 100.0 {
        p if p.abs() >= 1e5 => "+++".into(),
        p if p.abs() < 9.95 => format!("{p:+.1}"),
        p => format!("{p:+.0}"),
    };
    match scale {
        Scale::Ratio => format!("{}..{} %", percent(low), percent(high)),
        Scale::Difference => {
            let bound = |bound: f64| {
                change(bound, scale, unit)
                    .replace("/s", "")
                    .replace(" %", "")
            };
            let tail = match unit {
                FigureUnit::Fraction => " %",
                FigureUnit::PerSec => "/s",
                FigureUnit::Ns => "",
            };
            format!("{}..{}{tail}", bound(low), bound(high))
        }
    }
}

/// The verdict in a word or two.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotSeen => "not seen",
    }
}

/// The change of a culprit.
pub(crate) fn became(became: Became) -> &'static str {
    match became {
        Became::Appeared => "appeared",
        Became::Grew => "grew",
        Became::Shrank => "shrank",
        Became::Vanished => "vanished",
        Became::Stayed => "as before",
        Became::NotSeen => "not seen",
    }
}

/// The observed difference of a total with its exposure, and then what the statistics say about it.
pub(crate) fn headline(
    row: &FigureRow,
    names: &[String; 2],
    sides: [&SideSummary; 2],
    run: Nanos,
) -> Option<[String; 2]> {
    let c = row.comparison.as_ref()?;
    let (first, second) = (c.first?, c.second?);
    let exposure = [0, 1].map(|at: usize| {
        let (side, rests_on) = (sides[at], c.runs[at]);
        match side.runs.len() {
            // Decided at an earlier look.
            runs if rests_on < runs => format!("the first {rests_on} of {runs} runs"),
            1 => format!("one run of {}", number::span(side.measured_ns)),
            runs => format!("{runs} runs, {} in all", number::span(side.measured_ns)),
        }
    });
    let factor = (second / first).max(first / second);
    let times = match factor.is_finite() && factor >= 2.0 {
        true => format!(", a factor of {}", number::rate(factor)),
        false => String::new(),
    };
    let shown = c.change.map_or_else(String::new, |of| {
        format!(" ({}{times})", change(of, c.scale, row.unit))
    });
    let observed = format!(
        "{}: {} in {}, {} in {}{shown}; {} is {}, {} is {}.",
        figure_name(row.kind).trim(),
        figure(Some(first), row.unit),
        names[0],
        figure(Some(second), row.unit),
        names[1],
        names[0],
        exposure[0],
        names[1],
        exposure[1],
    );
    let at = |of: Option<Interval>| {
        let level = of.map_or_else(String::new, level);
        format!("{level} % interval {}", interval(of, c.scale, row.unit))
    };
    let power = match (c.detectable, c.noise_floor) {
        (Some(of), Some(noise)) => format!(
            " Such runs find a change of {} four times in five; two samples of one setting differ by up to {}.",
            change(of, c.scale, row.unit).trim_start_matches('+'),
            change(noise, c.scale, row.unit).trim_start_matches('+')
        ),
        _ => String::new(),
    };
    let margin = change(c.margin, c.scale, row.unit);
    let margin = margin.trim_start_matches('+');
    let said = match c.verdict {
        Verdict::Better | Verdict::Worse => format!(
            "{}: {}, p = {}.",
            verdict(c.verdict),
            at(c.interval),
            probability(c.probability.unwrap_or(1.0))
        ),
        Verdict::Equivalent => format!(
            "equivalent: {}, within the margin of {margin}.",
            at(c.equivalence_interval)
        ),
        Verdict::NotSeen => "not seen in either.".into(),
        Verdict::Inconclusive => {
            format!("no verdict: {}.", because(c, run).unwrap_or_default())
        }
    };
    Some([observed, format!("{said}{power}")])
}

/// What the percentiles that too few values lie above are worth, and what would support them; `None` without any.
/// `run`: the length of a run.
pub(crate) fn next_to_maximum(rows: &[FigureRow], run: Nanos) -> Option<String> {
    let needs: Vec<String> = rows
        .iter()
        .filter_map(|row| Some(supported_from(row.kind, row.supported_from_ns?, run)))
        .collect();
    (!needs.is_empty()).then(|| {
        format!(
            "next to the maximum: fewer than ten values of a run lie above it, so its verdict is about runs of this \
             length alone. {}",
            needs.join("; ")
        )
    })
}

/// The recordings that support a percentile: `wait p99.9 takes runs of 52 s, or 6 of these taken together`.
pub(crate) fn supported_from(kind: FigureKind, from: Nanos, run: Nanos) -> String {
    let together = from.0.div_ceil(run.0.max(1));
    format!(
        "{} takes runs of {}, or {together} of these taken together",
        figure_name(kind).trim(),
        number::span(from)
    )
}

/// The level of the intervals: `95 %`, or that of the last look with those of decided totals: `98.5 % (stolen: 99 %,
/// from 8 runs of each)`. `None` without a comparison.
pub(crate) fn levels(rows: &[FigureRow]) -> Option<String> {
    let percent = |c: &Comparison| {
        let level = format!("{:.4}", 100.0 * (1.0 - c.alpha));
        format!("{} %", level.trim_end_matches('0').trim_end_matches('.'))
    };
    let compared = || {
        rows.iter()
            .filter_map(|row| Some((row, row.comparison.as_ref()?)))
    };
    // Each look has more runs than those before it.
    let (_, last) = compared().max_by_key(|(_, c)| c.runs)?;
    let earlier: Vec<String> = compared()
        .filter(|(row, c)| row.is_total && c.alpha != last.alpha)
        .map(|(row, c)| {
            let name = figure_name(row.kind);
            format!(
                "{}: {}, from {} runs of each",
                name.trim(),
                percent(c),
                c.runs[0]
            )
        })
        .collect();
    Some(match &earlier[..] {
        [] => percent(last),
        earlier => format!("{} ({})", percent(last), earlier.join("; ")),
    })
}

/// A probability with about two significant digits.
fn probability(of: f64) -> String {
    match of {
        p if p >= 0.1 => format!("{p:.2}"),
        p if p >= 0.01 => format!("{p:.3}"),
        p => format!("{p:.4}"),
    }
}

/// Why a comparison is undecided, and what would decide it; `None` if it is decided.
#[must_use]
pub fn because(comparison: &Comparison, run: Nanos) -> Option<String> {
    let why = match comparison.undecided? {
        Undecided::SingleRuns => {
            return Some(
                "one run of each: this may be variation from run to run. `record --repeat 5` shows how runs vary; \
                 `jitterscope experiment` decides"
                    .into(),
            );
        }
        Undecided::TooFewRuns { fewest } => {
            format!("no test of so few runs can come out; it takes {fewest} of each")
        }
        Undecided::Chance => "it may be chance, and it may be more than the margin".into(),
        Undecided::OneAfterTheOther => {
            return Some(
                "recorded one after the other, so a drift of the machine would look like an effect of the setting: use \
                 `jitterscope experiment`, or alternate the recordings"
                    .into(),
            );
        }
        Undecided::NotMeasured => return Some("not every run has this figure".into()),
    };
    Some(match comparison.more_runs {
        Some(1) => format!("{why}; 1 more run of {run} of each might decide"),
        Some(more) => format!("{why}; {more} more runs of {run} of each might decide"),
        None => format!("{why}; no number of runs of {run} that anybody makes would decide"),
    })
}

/// Why a side names no culprits, as a sentence; `None` if its runs pass their proof.
pub(crate) fn unproven(side: &SideSummary) -> Option<String> {
    let run = side.runs.iter().find(|run| !run.doubts.is_empty())?;
    let others = side
        .runs
        .iter()
        .filter(|other| !other.doubts.is_empty())
        .count()
        - 1;
    let more = if others == 0 {
        String::new()
    } else {
        format!(" and {others} more")
    };
    Some(format!(
        "the culprits are unknown for run {}{more}: {}",
        run.id,
        doubts_text(&run.doubts)
    ))
}

/// A warning that one CPU lost what another CPU of the same runs gained; `None` if that did not happen.
pub(crate) fn moved_elsewhere(verdicts: &[(CpuId, Verdict)]) -> Option<String> {
    let of = |wanted: Verdict| -> CpuSet {
        verdicts
            .iter()
            .filter(|(_, verdict)| *verdict == wanted)
            .map(|(cpu, _)| *cpu)
            .collect()
    };
    let (better, worse) = (of(Verdict::Better), of(Verdict::Worse));
    let cpus = |of: &CpuSet| format!("CPU{} {of}", if of.len() == 1 { "" } else { "s" });
    (!better.is_empty() && !worse.is_empty()).then(|| {
        format!(
            "! What {} gained, {} lost: work may only have moved there. That is a gain where the latter {} nothing \
             that must be on time.",
            cpus(&better),
            cpus(&worse),
            if worse.len() == 1 { "runs" } else { "run" }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_that_is_another_cpus_loss_is_reported() {
        let note = |verdicts: &[(u32, Verdict)]| {
            moved_elsewhere(
                &verdicts
                    .iter()
                    .map(|(cpu, verdict)| (CpuId(*cpu), *verdict))
                    .collect::<Vec<_>>(),
            )
        };
        let moved = note(&[
            (0, Verdict::Worse),
            (1, Verdict::Better),
            (2, Verdict::Inconclusive),
            (3, Verdict::Better),
        ]);
        assert!(
            moved
                .unwrap()
                .starts_with("! What CPUs 1,3 gained, CPU 0 lost")
        );
        assert_eq!(
            note(&[(0, Verdict::Better), (1, Verdict::Equivalent)]),
            None
        );
        assert_eq!(note(&[(0, Verdict::Worse), (1, Verdict::Worse)]), None);
    }
}
