//! JSON for programs: the summary, with words beside its data.

use crate::profile;
use crate::sources::source_words;
use crate::warnings::warning;
use crate::words::row_explanation;
use jitterscope_analyze::{PipelineSummary, RunSummary, SourceSummary, TimesSummary};
use schemars::JsonSchema;
use serde::Serialize;

// A fact, and words beside its data. In the schema it has the description of the fact.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}{W}")]
pub(crate) struct Worded<'a, T, W> {
    #[serde(flatten)]
    pub(crate) fact: &'a T,
    #[serde(flatten)]
    pub(crate) words: W,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Why {
    /// The reason in words.
    pub(crate) why: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PerhapsWhy {
    /// The reason in words; absent if there is nothing to explain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

impl<'a, T> Worded<'a, T, Why> {
    pub(crate) fn why(fact: &'a T, why: impl Into<String>) -> Worded<'a, T, Why> {
        let words = Why { why: why.into() };
        Worded { fact, words }
    }
}

impl<'a, T> Worded<'a, T, PerhapsWhy> {
    pub(crate) fn perhaps(fact: &'a T, why: Option<String>) -> Worded<'a, T, PerhapsWhy> {
        let words = PerhapsWhy { why };
        Worded { fact, words }
    }
}

/// One run, indented, with a newline at its end. Each warning has its sentences as `text`, each culprit its
/// `explanation`. Percentiles of a pipeline that too few messages support are left out, as everywhere.
///
/// # Errors
/// None in practice: JSON can represent all map keys of the summary.
pub fn render(summary: &RunSummary) -> Result<String, serde_json::Error> {
    let verdict = summary.profile.as_ref();
    let verdict = verdict.map(|verdict| profile::sentence(summary, verdict));
    let mut summary = summary.clone();
    if let (Some(profile), Some(text)) = (&mut summary.profile, verdict) {
        profile.text = text;
    }
    for said in &mut summary.warnings {
        said.text = warning(&said.warning);
    }
    let attribution = summary.attribution.iter_mut();
    let culprits =
        attribution.flat_map(|of| of.culprits.iter_mut().chain(&mut of.unexplained.classes));
    let control = summary
        .wakeup
        .iter_mut()
        .flat_map(|wakeup| &mut wakeup.idle_control);
    for row in culprits.chain(control.flat_map(|control| &mut control.culprits)) {
        row.explanation = row_explanation(row);
    }
    summary.sources = summary.sources.into_iter().map(with_words).collect();
    if let Some(pipeline) = &mut summary.pipeline {
        leave_out_unsupported(pipeline);
    }
    let mut text = serde_json::to_string_pretty(&summary)?;
    text.push('\n');
    Ok(text)
}

/// A source with words beside its data.
#[must_use]
pub fn with_words(source: SourceSummary) -> SourceSummary {
    SourceSummary {
        words: source_words(&source.problems, &source.losses),
        ..source
    }
}

fn leave_out_unsupported(pipeline: &mut PipelineSummary) {
    let producer = [
        &mut pipeline.producer.inter,
        &mut pipeline.producer.lateness,
    ];
    let consumers = pipeline.consumers.iter_mut();
    let of_consumers =
        consumers.flat_map(|of| [&mut of.transit, &mut of.from_intended, &mut of.inter]);
    for times in producer.into_iter().chain(of_consumers) {
        supported_only(times);
    }
}

fn supported_only(times: &mut TimesSummary) {
    let known = times.clone();
    times
        .percentiles_ns
        .retain(|level, _| known.supported(level).is_some());
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::MESSAGE_LEVELS;
    use jitterscope_model::Nanos;

    #[test]
    fn a_percentile_that_too_few_support_is_not_in_it() {
        for (count, last) in [(19, None), (1_000, Some("99")), (100_000, Some("99.99"))] {
            let percentiles_ns = MESSAGE_LEVELS
                .iter()
                .map(|(name, _)| (*name, Nanos(1)))
                .collect();
            let mut times = TimesSummary {
                count,
                percentiles_ns,
                ..TimesSummary::default()
            };
            supported_only(&mut times);
            assert_eq!(
                times
                    .percentiles_ns
                    .keys()
                    .max_by_key(|level| level.len())
                    .copied(),
                last,
                "{count}"
            );
        }
    }
}
