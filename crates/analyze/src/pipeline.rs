//! Summarises a pipeline run: percentiles of every kind of time, and the blame.

use crate::cpu::SUPPORT;
use crate::{Blame, BlameLevel};
use jitterscope_model::{
    MessageTimes, Nanos, PipelineConsumer, PipelineJournal, PipelineResult, PipelineRole,
    PipelineSetup, PipelineThread, RunManifest,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The reported percentiles, by name and as a share: those of the ancestor.
pub const MESSAGE_LEVELS: [(&str, f64); 7] = [
    ("50", 0.5),
    ("90", 0.9),
    ("99", 0.99),
    ("99.9", 0.999),
    ("99.99", 0.9999),
    ("99.999", 0.99999),
    ("99.9999", 0.999_999),
];

/// The measurements of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PipelineSummary {
    pub setup: PipelineSetup,
    pub threads: Vec<PipelineThread>,
    /// From the beginning of the schedule to the last reception.
    pub duration_ns: Nanos,
    pub producer: PublisherSummary,
    /// The consumers, the accumulator first.
    pub consumers: Vec<ConsumerSummary>,
    /// The journal, if there was one.
    pub journal: Option<PipelineJournal>,
    /// What delayed messages: for each consumer those above its 99th percentile and all slow ones; empty without kernel
    /// events.
    pub blame: Vec<Blame>,
}

/// Times of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TimesSummary {
    /// Messages with this time.
    pub count: u64,
    pub min_ns: Nanos,
    /// The exact mean, rounded down.
    pub mean_ns: Nanos,
    pub max_ns: Nanos,
    /// By name (`"99.9"`), to three significant digits. If no value lies above, it is the longest.
    #[schemars(extend("propertyNames" = {"pattern": r"^\d+(\.\d+)?$"}))]
    pub percentiles_ns: BTreeMap<&'static str, Nanos>,
}

/// The share of the messages in question that must have a row before their blame is shown.
const ENOUGH: f64 = 0.3;

impl PipelineSummary {
    /// What delayed a consumer's messages: those above the 99th percentile, or all slow ones if too few of the former
    /// have a row. `None` if too few of either have one, because they come too fast to be kept one by one.
    #[must_use]
    pub fn held_up(&self, role: PipelineRole) -> Option<&Blame> {
        let of = |level| {
            let mut all = self.blame.iter();
            all.find(|blame| blame.role == role && blame.level == level)
        };
        let enough =
            |blame: &&Blame| blame.split > 0 && blame.split as f64 >= ENOUGH * blame.above as f64;
        of(BlameLevel::AboveP99)
            .filter(enough)
            .or_else(|| of(BlameLevel::Slow).filter(enough))
    }
}

impl TimesSummary {
    /// The percentile of this name, one of [`MESSAGE_LEVELS`]; `None` if fewer than [`SUPPORT`] lie above it.
    #[must_use]
    pub fn supported(&self, level: &str) -> Option<Nanos> {
        let (_, share) = MESSAGE_LEVELS.iter().find(|(name, _)| *name == level)?;
        // Rounding must not cost a round number of messages its percentile.
        let above = self.count as f64 * (1.0 - share) * (1.0 + 1e-9);
        self.percentiles_ns
            .get(level)
            .copied()
            .filter(|_| above >= SUPPORT as f64)
    }
}

/// The measurements of the producer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PublisherSummary {
    /// Messages sent.
    pub sent: u64,
    /// Messages per second.
    pub per_sec: f64,
    /// Whether it sent everything.
    pub completed: bool,
    pub inter: TimesSummary,
    /// The lateness of publications.
    pub lateness: TimesSummary,
    /// The number of waits for a full ring.
    pub full_waits: u64,
    /// The total of these waits.
    pub full_waited_ns: Nanos,
    /// The longest of these waits.
    pub full_longest_ns: Nanos,
}

/// The measurements of a consumer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ConsumerSummary {
    pub role: PipelineRole,
    /// Messages received.
    pub received: u64,
    /// Messages out of order: always 0.
    pub disordered: u64,
    /// From the actual publication to the reception.
    pub transit: TimesSummary,
    /// From the intended publication to the reception.
    pub from_intended: TimesSummary,
    pub inter: TimesSummary,
    /// The threshold for slow messages, from the intended time.
    pub slow_above_ns: Nanos,
    /// Messages that took longer.
    pub slow: u64,
    /// Slow messages without a row, because the queue was full.
    pub slow_dropped: u64,
    /// The percentile at which the two transits differ most, by name, and the difference: what coordinated omission
    /// would hide. `None` if they never differ by a tenth.
    pub hidden: Option<Hidden>,
}

/// What the transit alone would hide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hidden {
    /// The percentile.
    pub percentile: &'static str,
    /// From the actual publication.
    pub transit_ns: Nanos,
    /// From the intended publication.
    pub from_intended_ns: Nanos,
}

/// The summary; `None` for a run of another probe.
pub(crate) fn summarize(manifest: &RunManifest, blame: Vec<Blame>) -> Option<PipelineSummary> {
    let result = manifest.pipeline.as_ref()?;
    let duration = manifest.rate.nanos(result.end.since(result.start));
    Some(PipelineSummary {
        setup: result.setup.clone(),
        threads: result.threads.clone(),
        duration_ns: duration,
        producer: publisher(result, duration),
        consumers: result.consumers.iter().map(consumer).collect(),
        journal: result.journal.clone(),
        blame,
    })
}

fn publisher(result: &PipelineResult, duration: Nanos) -> PublisherSummary {
    let producer = &result.producer;
    let seconds = duration.as_secs_f64();
    PublisherSummary {
        sent: producer.sent,
        per_sec: if seconds > 0.0 {
            producer.sent as f64 / seconds
        } else {
            0.0
        },
        completed: producer.completed,
        inter: times(&producer.inter),
        lateness: times(&producer.lateness),
        full_waits: producer.full_waits,
        full_waited_ns: producer.full_waited_ns,
        full_longest_ns: producer.full_longest_ns,
    }
}

fn consumer(consumer: &PipelineConsumer) -> ConsumerSummary {
    let (transit, from_intended) = (times(&consumer.transit), times(&consumer.from_intended));
    ConsumerSummary {
        role: consumer.role,
        received: consumer.received,
        disordered: consumer.disordered,
        hidden: hidden(&transit, &from_intended),
        transit,
        from_intended,
        inter: times(&consumer.inter),
        slow_above_ns: consumer.slow_above_ns,
        slow: consumer.slow,
        slow_dropped: consumer.slow_dropped,
    }
}

fn times(times: &MessageTimes) -> TimesSummary {
    TimesSummary {
        count: times.count,
        min_ns: times.min,
        mean_ns: times.mean(),
        max_ns: times.max,
        percentiles_ns: MESSAGE_LEVELS
            .iter()
            .map(|(name, q)| (*name, times.quantile(*q)))
            .collect(),
    }
}

fn hidden(transit: &TimesSummary, from_intended: &TimesSummary) -> Option<Hidden> {
    // Of equals the lowest percentile, the last of the highest. A percentile that tables leave out does not count.
    MESSAGE_LEVELS
        .iter()
        .rev()
        .filter_map(|(name, _)| {
            Some(Hidden {
                percentile: name,
                transit_ns: transit.supported(name)?,
                from_intended_ns: from_intended.supported(name)?,
            })
        })
        .filter(|hidden| hidden.from_intended_ns.0 > hidden.transit_ns.0 + hidden.transit_ns.0 / 10)
        .max_by(|a, b| {
            let ratio = |h: &Hidden| h.from_intended_ns.0 as f64 / h.transit_ns.0.max(1) as f64;
            ratio(a).total_cmp(&ratio(b))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(plain: &[(u64, u64)]) -> MessageTimes {
        let count = plain.iter().map(|(_, n)| n).sum();
        let sum = Nanos(plain.iter().map(|(v, n)| v * n).sum());
        let (min, max) = (Nanos(plain[0].0), Nanos(plain[plain.len() - 1].0));
        MessageTimes {
            count,
            min,
            max,
            sum,
            plain: plain.to_vec(),
        }
    }

    #[test]
    fn a_percentile_that_rests_on_fewer_than_ten_is_not_reported() {
        for (count, expected) in [
            (9, 0),
            (20, 1),
            (99, 1),
            (100, 2),
            (99_999, 4),
            (100_000, 5),
            (10_000_000, 7),
        ] {
            let summary = times(&of(&[(100, count)]));
            let known = MESSAGE_LEVELS
                .iter()
                .filter(|(name, _)| summary.supported(name).is_some())
                .count();
            assert_eq!(known, expected, "of {count}");
        }
        assert_eq!(times(&of(&[(100, 50)])).supported("12"), None);
    }

    #[test]
    fn what_coordinated_omission_hides_is_the_percentile_that_differs_most() {
        // A hundred of ten thousand waited: 10 us from the intended time, of which the transit shows 1 us.
        let result = PipelineConsumer {
            received: 10_000,
            transit: of(&[(100, 9900), (1_000, 100)]),
            from_intended: of(&[(105, 9900), (10_000, 100)]),
            ..PipelineConsumer::default()
        };
        let summary = consumer(&result);
        let expected = Hidden {
            percentile: "99.9",
            transit_ns: Nanos(1_000),
            from_intended_ns: Nanos(10_000),
        };
        assert_eq!(summary.hidden, Some(expected));
        assert_eq!(summary.transit.percentiles_ns["99"], Nanos(100));
        let honest = PipelineConsumer {
            from_intended: of(&[(105, 9900), (1_050, 100)]),
            ..result
        };
        assert_eq!(consumer(&honest).hidden, None);
        // Of a thousand, that percentile rests on one message, and no table shows it.
        let few = PipelineConsumer {
            received: 1000,
            transit: of(&[(100, 990), (1_000, 10)]),
            from_intended: of(&[(105, 990), (10_000, 10)]),
            ..honest.clone()
        };
        assert_eq!(consumer(&few).hidden, None);
        let only_one_side = PipelineConsumer {
            transit: of(&[(100, 9900), (1_000, 100)]),
            ..few
        };
        assert_eq!(consumer(&only_one_side).hidden, None);
    }

    #[test]
    fn what_is_hidden_is_the_largest_ratio_and_more_than_a_tenth() {
        let hidden = |transit: [u64; 2], intended: [u64; 2]| {
            let halves = |[low, high]: [u64; 2]| times(&of(&[(low, 5_000), (high, 5_000)]));
            hidden(&halves(transit), &halves(intended))
                .map(|of| (of.percentile, of.transit_ns.0, of.from_intended_ns.0))
        };
        // A hundred to a thousand is more than ten thousand to twenty-five thousand, although the smallest in time.
        assert_eq!(
            hidden([100, 10_000], [1_050, 25_000]),
            Some(("50", 100, 1_050))
        );
        assert_eq!(
            hidden([100, 10_000], [200, 25_000]),
            Some(("90", 10_000, 25_000))
        );
        assert_eq!(hidden([1_000, 1_000], [1_100, 1_100]), None);
        assert_eq!(
            hidden([1_000, 1_000], [1_100, 1_101]),
            Some(("90", 1_000, 1_101))
        );
        assert_eq!(hidden([0, 0], [0, 1]), Some(("90", 0, 1)));
    }

    #[test]
    fn messages_in_a_second_are_none_where_no_time_passed() {
        let producer = jitterscope_model::PublisherResult {
            sent: 300,
            ..Default::default()
        };
        let result = PipelineResult {
            producer,
            ..PipelineResult::default()
        };
        let per_sec = |ns| publisher(&result, Nanos(ns)).per_sec;
        assert_eq!(
            [0, 500_000_000, 2_000_000_000].map(per_sec),
            [0.0, 600.0, 150.0]
        );
    }
}
