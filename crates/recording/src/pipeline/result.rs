//! The threads' results, as the run stores them.

use super::input::Input;
use super::settings::{PipelineLength, PipelineRecordSettings};
use super::threads::Joined;
use hdrhistogram::Histogram;
use jitterscope_model::{
    MessageTimes, Nanos, PipelineConsumer, PipelineJournal, PipelineResult, PipelineSetup,
    PipelineThread, PublisherResult, TickRate, Ticks,
};
use jitterscope_probe::pipeline::{ConsumerResult, Times};

/// What the warnings depend on.
pub(crate) struct Setting<'a> {
    pub(crate) settings: &'a PipelineRecordSettings,
    pub(crate) input_path: String,
    pub(crate) input_records: u64,
    pub(crate) memory_locked: bool,
    pub(crate) forced: bool,
    /// The slots of the ring, or the most messages on their way.
    pub(crate) room: usize,
}

impl<'a> Setting<'a> {
    pub(crate) fn new(settings: &'a PipelineRecordSettings, input: &Input) -> Setting<'a> {
        Setting {
            settings,
            input_path: input.path.display().to_string(),
            input_records: input.map.as_ref().len() as u64 / settings.record_length.max(1) as u64,
            memory_locked: false,
            forced: false,
            room: settings.ring,
        }
    }

    fn setup(&self, warmed_up: u64) -> PipelineSetup {
        let settings = self.settings;
        PipelineSetup {
            record_length: settings.record_length as u64,
            input: self.input_path.clone(),
            input_records: self.input_records,
            ring: self.room as u64,
            via: settings.via,
            journal: settings.writing,
            interval_ns: settings.interval,
            pacing: settings.pacing,
            messages: match settings.length {
                PipelineLength::Messages(count) => Some(count),
                PipelineLength::Time(_) => None,
            },
            warm_up_messages: warmed_up,
            pause_ns: settings.pause,
            journaller: settings.journaller,
            memory_locked: self.memory_locked,
            forced: self.forced,
        }
    }

    pub(crate) fn result(
        &self,
        joined: &Joined,
        journal: Option<PipelineJournal>,
        rate: TickRate,
    ) -> PipelineResult {
        let producer = &joined.producer;
        let threads = joined.usage.iter().map(|(role, thread, usage)| {
            let place = self.settings.places.of(*role);
            PipelineThread {
                role: *role,
                tid: thread.tid,
                comm: thread.comm.to_string(),
                cpu: place.cpu,
                fifo_priority: place.fifo_priority,
                page_faults: usage.page_faults,
                involuntary_switches: usage.involuntary_switches,
                cpu_time_ns: usage.cpu_time,
            }
        });
        PipelineResult {
            setup: self.setup(producer.warmed_up),
            threads: threads.collect(),
            start: producer.start,
            end: end_of(joined),
            producer: PublisherResult {
                sent: producer.sent,
                completed: producer.completed,
                inter: message_times(&producer.inter),
                lateness: message_times(&producer.lateness),
                full_waits: producer.full_waits,
                full_waited_ns: rate.nanos(producer.full_waited),
                full_longest_ns: rate.nanos(producer.full_longest),
            },
            consumers: joined
                .consumers
                .iter()
                .map(|consumer| consumer_result(consumer, rate))
                .collect(),
            journal,
        }
    }
}

/// The last reception, or the last publication.
pub(crate) fn end_of(joined: &Joined) -> Ticks {
    let consumers = joined
        .consumers
        .iter()
        .filter(|c| c.received > 0)
        .map(|c| c.end);
    consumers
        .chain([joined.producer.end, joined.producer.start])
        .max()
        .unwrap_or_default()
}

fn consumer_result(consumer: &ConsumerResult, rate: TickRate) -> PipelineConsumer {
    PipelineConsumer {
        role: consumer.role,
        received: consumer.received,
        disordered: consumer.disordered,
        transit: message_times(&consumer.transit),
        from_intended: message_times(&consumer.from_intended),
        inter: message_times(&consumer.inter),
        slow_above_ns: rate.nanos(consumer.slow_above),
        slow: consumer.slow,
        slow_dropped: consumer.slow_dropped,
    }
}

fn message_times(times: &Times) -> MessageTimes {
    MessageTimes {
        count: times.count(),
        min: Nanos(times.min_ns()),
        max: Nanos(times.max_ns()),
        sum: Nanos(u64::try_from(times.sum_ns()).unwrap_or(u64::MAX)),
        plain: counts(times.histogram(), times.max_ns()),
    }
}

fn counts(histogram: &Histogram<u64>, max: u64) -> Vec<(u64, u64)> {
    let highest = |value| histogram.highest_equivalent(value).min(max);
    let mut counts: Vec<(u64, u64)> = histogram
        .iter_recorded()
        .map(|bucket| {
            (
                highest(bucket.value_iterated_to()),
                bucket.count_since_last_iteration(),
            )
        })
        .collect();
    // Beyond the histogram's range the maximum is still exact.
    if let Some((value, _)) = counts.last_mut() {
        *value = max;
    }
    counts
}

/// The histograms of a run, with the names of their tags.
pub(crate) fn tagged(joined: &Joined) -> Vec<(String, &Histogram<u64>)> {
    let mut tagged = vec![
        (
            "pipeline-producer-inter".to_owned(),
            joined.producer.inter.histogram(),
        ),
        (
            "pipeline-producer-lateness".to_owned(),
            joined.producer.lateness.histogram(),
        ),
    ];
    for consumer in &joined.consumers {
        let role = consumer.role;
        tagged.push((
            format!("pipeline-{role}-transit"),
            consumer.transit.histogram(),
        ));
        tagged.push((
            format!("pipeline-{role}-from-intended"),
            consumer.from_intended.histogram(),
        ));
        tagged.push((format!("pipeline-{role}-inter"), consumer.inter.histogram()));
    }
    tagged
}
