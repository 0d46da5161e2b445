//! Sentences about iterations, for all forms.

use crate::doubts::doubts_text;
use crate::lines::counted;
use crate::number::{count, percent};
use crate::words;
use jitterscope_analyze::guard::{
    Contamination, Headline, Iteration, QuietWait, Series, Thief, Unsure,
};
use jitterscope_model::{Nanos, visible};

/// How the times are to be used: they contain the cost of following.
pub(super) const COST: &str =
    "Times include the cost of following (docs/price.md): compare only guard's.";

/// The command as a person would write it.
pub(super) fn command(series: &Series) -> String {
    visible(&series.command.join(" ")).into_owned()
}

/// Number, median and range of the times.
pub(super) fn times(series: &Series, headline: &Headline) -> String {
    let of = counted(series.iterations.len(), "iteration");
    let (Some(median), Some(min), Some(max)) = (headline.median, headline.min, headline.max) else {
        return format!("{of}, and none ran to its end: there is no time.");
    };
    let mut text = format!("{of}: median {median}, from {min} to {max}.");
    if headline.counted < series.iterations.len() {
        text += " The last one was ended early and has no time.";
    }
    text
}

/// How many iterations were disturbed, and what counts as disturbed.
pub(super) fn disturbed(series: &Series, headline: &Headline) -> String {
    let of = format!(
        "{} of the time in which its threads wanted a CPU",
        percent(series.limit)
    );
    let are = |n: usize| match n {
        1 => "1 is".to_owned(),
        n => format!("{n} are"),
    };
    let mut text = match (headline.contaminated, headline.unknown) {
        _ if series.iterations.is_empty() => String::new(),
        (0, 0) => format!("None is contaminated: others took at most {of}."),
        (0, unknown) => format!(
            "{} clean. Of {unknown} it is unknown whether others took more than {of}.",
            are(headline.clean)
        ),
        (n, 0) => format!("{} contaminated: others took more than {of}.", are(n)),
        (n, unknown) => format!(
            "{} contaminated: others took more than {of}. Of {unknown} it is unknown.",
            are(n)
        ),
    };
    if headline.additional > 0 {
        text += &format!(
            " {} made in place of contaminated ones (+); the times count all.",
            match headline.additional {
                1 => "1 was".into(),
                n => format!("{n} were"),
            }
        );
    }
    text
}

/// Why the series has fewer iterations than planned, if it does.
pub(super) fn ended(series: &Series) -> Option<String> {
    let last = series.iterations.last();
    if let Some(code) = last
        .filter(|one| one.failed())
        .and_then(|one| one.made.exit_code)
    {
        return Some(format!(
            "The command failed with exit code {code}, which ended the series; its last time is that of the failure."
        ));
    }
    series.interrupted.then(|| {
        format!(
            "The series was ended early: {} were planned.",
            series.planned
        )
    })
}

/// A look that did not find the CPUs quiet.
fn busy(look: &QuietWait) -> String {
    let share = percent(look.busy_fraction);
    format!(
        "CPU {} was busy for {share} of half a second",
        look.busiest_cpu.0
    )
}

/// Why an iteration does not begin yet.
#[must_use]
pub fn waiting(look: &QuietWait, limit: Nanos) -> String {
    format!("{}: waiting for quiet, {limit} at most", busy(look))
}

/// How long it waited for quiet, and how often in vain, if it was to wait.
pub(super) fn waits(series: &Series) -> Option<String> {
    let waits = || series.iterations.iter().filter_map(|one| one.made.wait);
    let total: Nanos = waits().map(|wait| wait.waited).sum();
    let vain = waits().filter(|wait| !wait.quiet);
    let most = vain
        .clone()
        .max_by(|a, b| a.busy_fraction.total_cmp(&b.busy_fraction));
    let began = match most {
        None => "all began on quiet CPUs".into(),
        Some(most) => format!(
            "{} (!) began in spite of busy CPUs: {}",
            vain.count(),
            busy(&most)
        ),
    };
    waits().next()?;
    Some(format!(
        "It waited {total} for quiet before {}; {began}.",
        counted(waits().count(), "iteration")
    ))
}

/// The time in which the command's own threads waited for one another, if there is any.
pub(super) fn own(series: &Series) -> Option<String> {
    let own: Nanos = series.iterations.iter().map(|one| one.stolen.own).sum();
    (own > Nanos::ZERO).then(|| {
        format!("Its threads also waited {own} for one another; that is the command's own and not lost time.")
    })
}

/// The culprit that took most: `1.30 ms thread rx`.
fn thief(thief: &Thief) -> String {
    format!("{} {}", thief.total, thief_name(thief))
}

/// Who took most, without the time.
fn thief_name(thief: &Thief) -> String {
    match thief.recorder {
        true => "this recording".into(),
        false => words::kind_and_name(&thief.subject),
    }
}

/// How many contaminated iterations the recording itself disturbed most, if there are any.
pub(super) fn disturbed_by_us(series: &Series) -> Option<String> {
    let ours = series.iterations.iter().filter(|one| {
        let thief = one.stolen.thief.as_ref();
        one.contamination == Contamination::Contaminated && thief.is_some_and(|of| of.recorder)
    });
    match ours.count() {
        0 => None,
        n => Some(format!(
            "In {n} of the contaminated ones this recording itself took most: let COMMAND do more work in an \
             iteration, or raise --contaminated-above."
        )),
    }
}

/// Who took most and how much, or why nobody is named.
pub(super) fn culprit(iteration: &Iteration) -> String {
    named(iteration, thief)
}

/// Who took most, or why nobody is named.
pub(super) fn culprit_name(iteration: &Iteration) -> String {
    named(iteration, thief_name)
}

fn named(iteration: &Iteration, words: impl Fn(&Thief) -> String) -> String {
    match (&iteration.stolen.thief, withheld(iteration)) {
        (_, true) => "withheld".into(),
        (Some(of), false) => words(of),
        (None, false) => "nobody".into(),
    }
}

/// Whether the evidence fails its own check, so that it names nobody.
pub(super) fn withheld(iteration: &Iteration) -> bool {
    let doubts = iteration.unsure.iter();
    doubts
        .filter_map(|unsure| match unsure {
            Unsure::Doubted(doubt) => Some(doubt),
            _ => None,
        })
        .any(jitterscope_model::Doubt::is_of_all)
}

/// Why the evidence of an iteration is incomplete, as a part of a sentence.
pub(super) fn unsure(of: &Unsure) -> String {
    match of {
        Unsure::Doubted(doubt) => doubts_text(&[*doubt]),
        Unsure::RecordsLost { lost: 1 } => "1 record was lost (raise --trace-buffer)".into(),
        Unsure::RecordsLost { lost } => {
            format!("{} records were lost (raise --trace-buffer)", count(*lost))
        }
        Unsure::NotFollowed { threads: 1 } => "1 thread was not followed from its beginning".into(),
        Unsure::NotFollowed { threads } => {
            format!(
                "{} threads were not followed from their beginning",
                count(*threads)
            )
        }
        Unsure::NothingFollowed => "no thread was there to be followed".into(),
        Unsure::StateUnknown { time } => format!("of {time} no record tells what its threads did"),
        Unsure::SameName { time } => format!(
            "threads with the name of one of its own ran for {time} while it waited, and no record tells whose they are"
        ),
        Unsure::Stopped { time } => format!("a signal or a tracer kept it stopped for {time}"),
        Unsure::DiskFull => "the disk was full".into(),
        Unsure::Interrupted => "it was ended early".into(),
    }
}

/// All that is incomplete, as a part of a sentence.
pub(super) fn all_unsure(iteration: &Iteration) -> String {
    let parts: Vec<String> = iteration.unsure.iter().map(unsure).collect();
    parts.join("; ")
}

/// The number of an iteration; a `+` marks an additional one.
pub(super) fn number(at: usize, iteration: &Iteration) -> String {
    let mark = if iteration.made.additional { "+" } else { " " };
    format!("{}{mark}", at + 1)
}

/// The wait for quiet before an iteration; a `!` marks a vain one.
pub(super) fn wait(iteration: &Iteration) -> String {
    let wait = iteration.made.wait;
    wait.map_or_else(String::new, |wait| {
        let mark = if wait.quiet { " " } else { "!" };
        format!("{}{mark}", wait.waited)
    })
}

/// The verdict as a word of a table.
pub(super) fn verdict(iteration: &Iteration) -> &'static str {
    match iteration.contamination {
        Contamination::Clean => "clean",
        Contamination::Contaminated => "CONTAMINATED",
        Contamination::Unknown => "unknown",
    }
}

/// The last iteration in a line, while the series goes on.
#[must_use]
pub fn line(series: &Series) -> Option<String> {
    let (at, last) = series.iterations.iter().enumerate().next_back()?;
    let lost = match last.stolen.lost() {
        Nanos::ZERO => "nothing lost".into(),
        lost => format!(
            "{lost} lost ({}), most to {}",
            percent(last.stolen.share()),
            culprit(last)
        ),
    };
    let extra = if last.made.additional {
        " (additional)"
    } else {
        ""
    };
    let wait = last.made.wait.map_or_else(String::new, |wait| {
        let end = if wait.quiet { "quiet" } else { "quiet in vain" };
        format!(", after {} for {end}", wait.waited)
    });
    Some(format!(
        "iteration {}{extra}: {}, {}, {lost}{wait}",
        at + 1,
        last.time,
        last.contamination.as_str()
    ))
}
