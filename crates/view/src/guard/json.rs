//! The JSON of a series. New versions only add fields.

use super::words;
use jitterscope_analyze::guard::{Headline, Iteration, Series};
use jitterscope_model::{Nanos, SCHEMA_VERSION};
use serde::Serialize;

/// A series.
#[derive(Serialize)]
pub(super) struct SeriesJson<'a> {
    schema_version: u32,
    command: &'a [String],
    label: &'a str,
    planned: usize,
    retry: usize,
    contaminated_above_fraction: f64,
    interrupted: bool,
    /// The outcome of the whole series.
    outcome: &'static str,
    headline: HeadlineJson,
    iterations: Vec<IterationJson<'a>>,
}

#[derive(Serialize)]
struct HeadlineJson {
    counted: usize,
    median_ns: Option<Nanos>,
    min_ns: Option<Nanos>,
    max_ns: Option<Nanos>,
    mean_ns: Option<Nanos>,
    stddev_ns: Option<Nanos>,
    clean: usize,
    contaminated: usize,
    unknown: usize,
    additional: usize,
    remaining: usize,
}

impl From<Headline> for HeadlineJson {
    fn from(of: Headline) -> HeadlineJson {
        HeadlineJson {
            counted: of.counted,
            median_ns: of.median,
            min_ns: of.min,
            max_ns: of.max,
            mean_ns: of.mean,
            stddev_ns: of.deviation,
            clean: of.clean,
            contaminated: of.contaminated,
            unknown: of.unknown,
            additional: of.additional,
            remaining: of.remaining,
        }
    }
}

/// An iteration, also within the file for hyperfine.
#[derive(Serialize)]
pub(super) struct IterationJson<'a> {
    iteration: usize,
    additional: bool,
    run: &'a str,
    started_realtime_ns: u64,
    time_ns: Nanos,
    exit_code: Option<u8>,
    user_ns: Nanos,
    system_ns: Nanos,
    wanted_ns: Nanos,
    waited_ns: Nanos,
    interrupted_ns: Nanos,
    waited_for_own_ns: Nanos,
    unknown_ns: Nanos,
    lost_ns: Nanos,
    lost_fraction: f64,
    contamination: &'static str,
    unsure: Vec<UnsureJson>,
    culprit: Option<CulpritJson>,
}

#[derive(Serialize)]
struct UnsureJson {
    reason: &'static str,
    text: String,
}

/// Who took most. The run has everything about everybody.
#[derive(Serialize)]
struct CulpritJson {
    kind: String,
    name: String,
    total_ns: Nanos,
    recorder: bool,
}

/// All iterations, numbered from 1.
pub(super) fn iterations(series: &Series) -> Vec<IterationJson<'_>> {
    let of_each = series.iterations.iter().enumerate();
    of_each.map(|(at, one)| iteration(at, one)).collect()
}

fn iteration(at: usize, of: &Iteration) -> IterationJson<'_> {
    let stolen = &of.stolen;
    let thief = stolen.thief.as_ref().filter(|_| !words::withheld(of));
    let unsure = of.unsure.iter().map(|unsure| UnsureJson {
        reason: unsure.as_str(),
        text: words::unsure(unsure),
    });
    IterationJson {
        iteration: at + 1,
        additional: of.made.additional,
        run: &of.run,
        started_realtime_ns: of.started_realtime_ns,
        time_ns: of.time,
        exit_code: of.made.exit_code,
        user_ns: of.made.user,
        system_ns: of.made.system,
        wanted_ns: stolen.wanted,
        waited_ns: stolen.waited,
        interrupted_ns: stolen.interrupted,
        waited_for_own_ns: stolen.own,
        unknown_ns: stolen.unknown,
        lost_ns: stolen.lost(),
        lost_fraction: stolen.share(),
        contamination: of.contamination.as_str(),
        unsure: unsure.collect(),
        culprit: thief.map(|thief| CulpritJson {
            kind: thief.subject.kind_word().to_owned(),
            name: thief.subject.name().into_owned(),
            total_ns: thief.total,
            recorder: thief.recorder,
        }),
    }
}

/// The series for programs.
#[must_use]
pub fn json(series: &Series) -> impl Serialize + '_ {
    SeriesJson {
        schema_version: SCHEMA_VERSION,
        command: &series.command,
        label: &series.label,
        planned: series.planned,
        retry: series.retry,
        contaminated_above_fraction: series.limit,
        interrupted: series.interrupted,
        outcome: series.outcome().as_str(),
        headline: series.headline().into(),
        iterations: iterations(series),
    }
}
