//! One stall of a stored run as a timeline.

use crate::exit::UsageError;
use crate::redact::Redact;
use jitterscope_analyze::WorstStall;
use jitterscope_analyze::periods::Effort;
use jitterscope_model::{
    AppMark, Nanos, Part, SCHEMA_VERSION, Stall, StallId, TimelineItem, TimelineRow, Verdict,
    visible,
};
use jitterscope_recording::stall_timeline;
use jitterscope_source::Moment;
use jitterscope_store::RunReader;
use jitterscope_view::text::unproven;
use jitterscope_view::timeline::{StallKind, TimelineView};
use jitterscope_view::{load_redacted, load_stall, load_worst, utc};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::path::Path;

/// The most marks around a stall that are named.
const MOST_MARKS: usize = 3;

#[derive(Clone, Debug)]
pub enum Which {
    /// By its number within the run, as in every table, file and database.
    Id(u64),
    /// 1 is the longest; stalls that began together count once.
    Rank(usize),
    /// The longest stall at a moment.
    At(Moment),
}

/// A stall with all that is shown of it.
pub struct Seen {
    stall: WorstStall,
    pub view: TimelineView,
}

impl Seen {
    /// The stall for programs.
    pub fn document(&self) -> StallAlone<'_> {
        StallAlone {
            schema_version: SCHEMA_VERSION,
            stall: &self.stall,
            victim: &self.view.victim,
            frames: &self.view.rows,
            order_lost: self.view.order_lost,
            remarks: &self.view.remarks,
        }
    }
}

/// Looks for the stall.
///
/// # Errors
/// The run has no such stall, or it cannot be read.
pub fn look(path: &Path, which: &Which, redact: Redact) -> anyhow::Result<Seen> {
    let run = RunReader::open(path)?;
    let (id, remark) = match which {
        Which::Id(id) => (Some(StallId(*id)), None),
        Which::Rank(_) => (None, None),
        Which::At(moment) => {
            let (id, remark) = at(&run, moment)?;
            (Some(id), remark)
        }
    };
    let (summary, stored) = match (id, which) {
        (Some(id), _) => load_stall(&run, id, redact.on)?,
        (None, Which::Rank(rank)) if redact.on => {
            (load_redacted(path, *rank, Effort::BRIEF)?.1, None)
        }
        (None, Which::Rank(rank)) => (load_worst(path, *rank)?.1, None),
        (None, _) => return Err(UsageError("no stall was named".into()).into()),
    };
    let found = match which {
        Which::Rank(rank) => summary.worst.get(rank.saturating_sub(1)),
        _ => summary.worst.first(),
    };
    let Some(worst) = found else {
        return Err(UsageError(missing(&run, which, summary.worst.len())?).into());
    };
    let stall = match stored {
        Some(stall) => stall,
        None => find(&run, worst)?,
    };
    let timeline = stall_timeline(&run, &stall);
    let order_lost = timeline.is_err();
    let (rows, problem) = match timeline {
        // The name of that verdict says it already.
        Ok(rows) if rows.is_empty() && is_of(worst, Verdict::NoEventInVm) => (rows, None),
        Ok(rows) if rows.is_empty() => (
            rows,
            Some("No kernel event was recorded inside this stall.".into()),
        ),
        Ok(rows) => (rows, None),
        // The text of an error may contain paths.
        Err(_) if redact.on => (Vec::new(), Some("The timeline cannot be made.".into())),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let together = worst.together.as_ref().map(|together| {
        format!(
            "It is the longest of stalls that began together on CPUs {}.",
            together.cpus
        )
    });
    let doubt = unproven(&summary);
    let remarks = doubt
        .into_iter()
        .chain(remark)
        .chain(together)
        .chain(around(&run, worst, redact))
        .chain(problem)
        .collect();
    let view = TimelineView {
        stall: worst.stall,
        cpu: worst.cpu,
        kind: StallKind::of_probe(&summary.probe.kind),
        victim: worst.victim.clone(),
        duration: worst.duration_ns,
        start_realtime_ns: worst.start_realtime_ns,
        start_offset: worst.start_offset_ns,
        rows: if redact.on { redacted(rows) } else { rows },
        order_lost,
        parts: worst.parts.clone(),
        remarks,
    };
    Ok(Seen {
        stall: worst.clone(),
        view,
    })
}

/// The marks of the application's logs that began before the stall and ended after it.
fn around(run: &RunReader, stall: &WorstStall, redact: Redact) -> Vec<String> {
    let from = stall.start_realtime_ns;
    let until = from.saturating_add(stall.duration_ns.0);
    let logs = run.marks().unwrap_or_default();
    let surrounds =
        |mark: &&AppMark| mark.start_realtime_ns < from && until < mark.end_realtime_ns();
    let marks = logs.iter().flat_map(|log| &log.marks).filter(surrounds);
    let sentence = |mark: &AppMark| {
        let name = match redact.on {
            true => String::new(),
            false => format!(" '{}'", visible(&mark.name)),
        };
        let earlier = Nanos(from - mark.start_realtime_ns);
        let length = mark.length_ns;
        format!("It lies within the mark{name}, which began {earlier} earlier and took {length}.")
    };
    let mut said: Vec<String> = marks.clone().take(MOST_MARKS).map(sentence).collect();
    let more = marks.count().saturating_sub(MOST_MARKS);
    if more > 0 {
        said.push(format!("It lies within {more} more marks."));
    }
    said
}

/// Whether the whole stall has this verdict.
fn is_of(stall: &WorstStall, verdict: Verdict) -> bool {
    let of = |part: &Part| part.culprit.subject.as_verdict() == Some(verdict);
    !stall.parts.is_empty() && stall.parts.iter().all(of)
}

/// Why the stall does not exist.
fn missing(run: &RunReader, which: &Which, stalls: usize) -> anyhow::Result<String> {
    Ok(match which {
        Which::Id(id) => {
            let (mut first, mut last) = (None, None);
            for stall in run.stalls()? {
                let id = stall?.id.0;
                first = Some(first.map_or(id, |first: u64| first.min(id)));
                last = Some(last.map_or(id, |last: u64| last.max(id)));
            }
            match (first, last) {
                (Some(first), Some(last)) => format!(
                    "--stall {id}: this run has no stall of that number; they go from {first} to {last} \
                     (--worst 1 is the longest)"
                ),
                _ => format!("--stall {id}: this run has no stalls"),
            }
        }
        Which::Rank(rank) => format!(
            "--worst {rank}: this run has {}, counting those that began together once",
            match stalls {
                1 => "1 stall".into(),
                n => format!("{n} stalls"),
            }
        ),
        Which::At(moment) => format!("--at {}: this run has no stalls", moment.written()),
    })
}

/// The longest stall at a moment, or the nearest one, with a remark on its distance.
fn at(run: &RunReader, moment: &Moment) -> anyhow::Result<(StallId, Option<String>)> {
    let manifest = run.manifest();
    let (first, last) = manifest
        .span()
        .unwrap_or((manifest.clock_start.ticks, manifest.clock_end.ticks));
    let (start, end) = (manifest.realtime_ns(first), manifest.realtime_ns(last));
    let Some(span) = moment.within(start, end) else {
        let text = format!(
            "--at {}: the run lasted from {} to {} UTC, and this moment, UTC or local, is not in it",
            moment.written(),
            utc(start),
            utc(end)
        );
        return Err(UsageError(text).into());
    };
    // Inside the moment the longest counts, outside it the nearest.
    let mut best: Option<(u64, Reverse<u64>, StallId, bool)> = None;
    for stall in run.stalls()? {
        let stall = stall?;
        // The stalls of the control do not affect the measured CPUs.
        if manifest.idle_control() == Some(stall.cpu) {
            continue;
        }
        let (from, to) = (
            manifest.realtime_ns(stall.start),
            manifest.realtime_ns(stall.end),
        );
        let away = from
            .saturating_sub(span.end.saturating_sub(1))
            .max(span.start.saturating_sub(to));
        let this = (away, Reverse(stall.length().0), stall.id, from >= span.end);
        if best.is_none_or(|best| (this.0, this.1) < (best.0, best.1)) {
            best = Some(this);
        }
    }
    let Some((away, _, id, later)) = best else {
        return Err(
            UsageError(format!("--at {}: this run has no stalls", moment.written())).into(),
        );
    };
    let side = if later { "after" } else { "before" };
    let remark = format!(
        "No stall lay in that moment: this one, {} {side} it, is the nearest.",
        Nanos(away)
    );
    Ok((id, (away > 0).then_some(remark)))
}

fn find(run: &RunReader, worst: &WorstStall) -> anyhow::Result<Stall> {
    match run.stall_alone(worst.stall)? {
        Some(stall) => Ok(stall),
        None => anyhow::bail!("stall {} is not in stalls.parquet", worst.stall.0),
    }
}

/// A stall with its timeline.
#[derive(Serialize, JsonSchema)]
pub struct StallAlone<'a> {
    /// Version of this structure.
    schema_version: u32,
    stall: &'a WorstStall,
    /// The stalled thread in words.
    victim: &'a str,
    /// What had the CPU, in order; empty if `order_lost`.
    frames: &'a [TimelineRow],
    /// Whether the trace of the stall is gone or unreadable: then each part is the sum of its turns.
    order_lost: bool,
    /// What the reader must know, in words.
    remarks: &'a [String],
}

/// Only the shape of a timeline: depths and times.
pub(super) fn redacted(rows: Vec<TimelineRow>) -> Vec<TimelineRow> {
    rows.into_iter()
        .map(|row| TimelineRow {
            item: TimelineItem::LeftOut,
            ..row
        })
        .collect()
}
