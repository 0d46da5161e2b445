//! What a pipeline run says: percentiles of every kind of time, and who was late.

use crate::Blame;
use crate::cpu::SUPPORT;
use jitterscope_model::{
    MessageTimes, Nanos, PipelineConsumer, PipelineJournal, PipelineResult, PipelineRole,
    PipelineSetup, PipelineThread, RunManifest,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The percentiles that are reported, by name and as a share: those of the ancestor.
pub const MESSAGE_LEVELS: [(&str, f64); 7] = [
    ("50", 0.5),
    ("90", 0.9),
    ("99", 0.99),
    ("99.9", 0.999),
    ("99.99", 0.9999),
    ("99.999", 0.99999),
    ("99.9999", 0.999_999),
];

/// What a pipeline measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineSummary {
    /// How it was set.
    pub setup: PipelineSetup,
    /// Its threads.
    pub threads: Vec<PipelineThread>,
    /// From the beginning of the schedule to the last reception.
    pub duration_ns: Nanos,
    /// What the producer did.
    pub producer: PublisherSummary,
    /// What the consumers did, the accumulator first.
    pub consumers: Vec<ConsumerSummary>,
    /// The journal, if there was one.
    pub journal: Option<PipelineJournal>,
    /// Who held up messages: of each consumer those above its 99th percentile and all slow ones; empty
    /// without kernel events.
    pub blame: Vec<Blame>,
}

/// Times of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimesSummary {
    /// How many.
    pub count: u64,
    /// The shortest, exactly.
    pub min_ns: Nanos,
    /// The mean, exactly, rounded down.
    pub mean_ns: Nanos,
    /// The longest, exactly.
    pub max_ns: Nanos,
    /// By name (`"99.9"`), to three significant digits. However few lie above: where there are none, it is
    /// the longest.
    pub percentiles_ns: BTreeMap<&'static str, Nanos>,
}

impl TimesSummary {
    /// The percentile of this name, one of [`MESSAGE_LEVELS`]; `None` where fewer than [`SUPPORT`] lie above it.
    #[must_use]
    pub fn supported(&self, level: &str) -> Option<Nanos> {
        let (_, share) = MESSAGE_LEVELS.iter().find(|(name, _)| *name == level)?;
        // The last bits of the share must not cost a round number of messages its percentile.
        let above = self.count as f64 * (1.0 - share) * (1.0 + 1e-9);
        self.percentiles_ns
            .get(level)
            .copied()
            .filter(|_| above >= SUPPORT as f64)
    }
}

/// What the producer did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublisherSummary {
    /// Messages that count.
    pub sent: u64,
    /// Of them, in a second.
    pub per_sec: f64,
    /// Whether everything was sent.
    pub completed: bool,
    /// Time between publications.
    pub inter: TimesSummary,
    /// How late publications were.
    pub lateness: TimesSummary,
    /// How often it found the ring full.
    pub full_waits: u64,
    /// How long it waited then, in all.
    pub full_waited_ns: Nanos,
    /// The longest of these waits.
    pub full_longest_ns: Nanos,
}

/// What a consumer did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConsumerSummary {
    /// Which.
    pub role: PipelineRole,
    /// Messages that count.
    pub received: u64,
    /// Messages that did not follow their predecessor: always 0.
    pub disordered: u64,
    /// From the actual publication to the reception.
    pub transit: TimesSummary,
    /// From the intended publication to the reception.
    pub from_intended: TimesSummary,
    /// Time between receptions.
    pub inter: TimesSummary,
    /// What counted as slow, from the intended time.
    pub slow_above_ns: Nanos,
    /// Slow messages.
    pub slow: u64,
    /// Those without a row, for the queue was full.
    pub slow_dropped: u64,
    /// The percentile at which the two transits differ most, by name, and by how much: what coordinated
    /// omission would hide. `None` where they never differ by a tenth.
    pub hidden: Option<Hidden>,
}

/// What looking at the transit alone would hide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hidden {
    /// The percentile.
    pub percentile: &'static str,
    /// From the actual publication.
    pub transit_ns: Nanos,
    /// From the intended publication.
    pub from_intended_ns: Nanos,
}

/// Sums up; `None` for a run of another probe.
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
    // Of equals the lowest percentile: the last of the highest. One that tables leave out is none to speak of.
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
    fn a_percentile_that_rests_on_fewer_than_ten_is_not_told() {
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
        // Of a thousand, that percentile rests on one message, and no table tells it.
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
        // A hundred to a thousand is more than ten thousand to twenty-five thousand, though the least in time.
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
