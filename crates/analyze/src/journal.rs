//! Summarises a pipeline's journal record by record, in constant memory.

use crate::pipeline::{MESSAGE_LEVELS, TimesSummary};
use hdrhistogram::Histogram;
use jitterscope_model::{JournalEntry, JournalError, Nanos};
use schemars::JsonSchema;
use serde::Serialize;

/// The largest value of the histograms, as in the probe: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The summary of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalSummary {
    /// The number of readable records.
    pub records: u64,
    /// The number of the first record; null without records, like the next three.
    pub first_sequence: Option<i32>,
    /// Number of the last.
    pub last_sequence: Option<i32>,
    /// Publication of the first record, nanoseconds on the measuring clock.
    pub first_published_ns: Option<i64>,
    /// Reception of the last record by the journaller, nanoseconds on the measuring clock.
    pub last_journalled_ns: Option<i64>,
    /// From publication to journal, according to the records.
    pub transit: TimesSummary,
    /// From one record to the next.
    pub inter: TimesSummary,
    /// Records that do not follow their predecessor's number.
    pub out_of_sequence: u64,
    /// Records whose stated difference is negative or not that of their two times.
    pub inconsistent: u64,
    /// The first damage, if there is any.
    pub damage: Option<JournalDamage>,
}

/// The damage that ends a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalDamage {
    /// `marker`: a record does not begin with the marker. `cut`: the last record is incomplete.
    pub kind: &'static str,
    /// The byte offset of the record.
    pub offset: u64,
    /// The same in words.
    pub why: String,
}

/// Sums records in their order.
#[derive(Debug, Default)]
pub struct JournalBuilder {
    summary: JournalSummary,
    transit: Times,
    inter: Times,
    previous: Option<JournalEntry>,
}

impl JournalBuilder {
    #[must_use]
    pub fn new() -> JournalBuilder {
        JournalBuilder::default()
    }

    /// Adds the next record, or the error in its place.
    pub fn add(&mut self, entry: &Result<JournalEntry, JournalError>) {
        match entry {
            Ok(entry) => self.entry(entry),
            Err(error) => {
                let (kind, offset) = match error {
                    JournalError::Marker { offset } => ("marker", *offset),
                    JournalError::Cut { offset, .. } => ("cut", *offset),
                };
                self.summary.damage = Some(JournalDamage {
                    kind,
                    offset,
                    why: error.to_string(),
                });
            }
        }
    }

    fn entry(&mut self, entry: &JournalEntry) {
        let summary = &mut self.summary;
        summary.records += 1;
        summary.first_sequence.get_or_insert(entry.sequence);
        summary.first_published_ns.get_or_insert(entry.published_ns);
        summary.last_sequence = Some(entry.sequence);
        summary.last_journalled_ns = Some(entry.journalled_ns);
        let apart = entry.journalled_ns.checked_sub(entry.published_ns);
        let consistent = apart == Some(entry.delta_ns) && entry.delta_ns >= 0;
        summary.inconsistent += u64::from(!consistent);
        self.transit
            .record(u64::try_from(entry.delta_ns).unwrap_or(0));
        if let Some(previous) = &self.previous {
            summary.out_of_sequence +=
                u64::from(previous.sequence.wrapping_add(1) != entry.sequence);
            let since = entry.journalled_ns.saturating_sub(previous.journalled_ns);
            self.inter.record(u64::try_from(since).unwrap_or(0));
        }
        self.previous = Some(*entry);
    }

    #[must_use]
    pub fn finish(mut self) -> JournalSummary {
        self.summary.transit = self.transit.summary();
        self.summary.inter = self.inter.summary();
        self.summary
    }
}

/// A histogram of three digits with exact extremes and mean.
#[derive(Debug, Default)]
struct Times {
    /// `None` only if the library rejects its constant bounds.
    histogram: Option<Histogram<u64>>,
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
}

impl Times {
    fn record(&mut self, nanos: u64) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(nanos);
        }
        self.min = if self.count == 0 {
            nanos
        } else {
            self.min.min(nanos)
        };
        self.max = self.max.max(nanos);
        self.sum += u128::from(nanos);
        self.count += 1;
    }

    fn summary(&self) -> TimesSummary {
        let quantile = |q| match &self.histogram {
            Some(histogram) => Nanos(histogram.value_at_quantile(q).min(self.max)),
            None => Nanos::ZERO,
        };
        TimesSummary {
            count: self.count,
            min_ns: Nanos(self.min),
            mean_ns: Nanos(
                u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX),
            ),
            max_ns: Nanos(self.max),
            percentiles_ns: MESSAGE_LEVELS
                .iter()
                .map(|(name, q)| (*name, quantile(*q)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(sequence: i32, published_ns: i64, delta_ns: i64) -> JournalEntry {
        JournalEntry {
            published_ns,
            journalled_ns: published_ns + delta_ns,
            delta_ns,
            sequence,
        }
    }

    #[test]
    fn a_journal_is_summed_up_and_its_faults_are_counted() {
        let mut builder = JournalBuilder::new();
        for entry in [
            entry(0, 1000, 100),
            entry(1, 2000, 300),
            entry(3, 3000, 200),
        ] {
            builder.add(&Ok(entry));
        }
        builder.add(&Ok(JournalEntry {
            delta_ns: 7,
            ..entry(4, 4000, 100)
        }));
        builder.add(&Err(JournalError::Cut {
            offset: 128,
            bytes: 5,
        }));
        let summary = builder.finish();
        assert_eq!(
            (
                summary.records,
                summary.out_of_sequence,
                summary.inconsistent
            ),
            (4, 1, 1)
        );
        assert_eq!(
            (
                summary.transit.count,
                summary.transit.min_ns,
                summary.transit.max_ns
            ),
            (4, Nanos(7), Nanos(300))
        );
        assert_eq!(
            (summary.inter.count, summary.inter.max_ns),
            (3, Nanos(1200))
        );
        assert_eq!(
            (summary.first_sequence, summary.last_sequence),
            (Some(0), Some(4))
        );
        let damage = summary.damage.unwrap();
        assert_eq!((damage.kind, damage.offset), ("cut", 128));
        assert_eq!(
            JournalBuilder::new().finish(),
            JournalSummary {
                transit: Times::default().summary(),
                inter: Times::default().summary(),
                ..JournalSummary::default()
            }
        );
    }

    #[test]
    fn extremes_and_mean_are_exact_whatever_came_first() {
        let mut times = Times::default();
        for (nanos, (min, mean, max)) in [
            (500, (500, 500, 500)),
            (300, (300, 400, 500)),
            (1_000_001, (300, 333_600, 1_000_001)),
            (0, (0, 250_200, 1_000_001)),
        ] {
            times.record(nanos);
            let reported = times.summary();
            assert_eq!(
                (reported.min_ns, reported.mean_ns, reported.max_ns),
                (Nanos(min), Nanos(mean), Nanos(max))
            );
        }
    }

    proptest! {
        #[test]
        fn no_record_panics(entries in proptest::collection::vec(any::<(i64, i64, i64, i32)>(), 0..20)) {
            let mut builder = JournalBuilder::new();
            for (published_ns, journalled_ns, delta_ns, sequence) in &entries {
                let (published_ns, journalled_ns) = (*published_ns, *journalled_ns);
                builder.add(&Ok(JournalEntry { published_ns, journalled_ns, delta_ns: *delta_ns, sequence: *sequence }));
            }
            prop_assert_eq!(builder.finish().records, entries.len() as u64);
        }
    }
}
