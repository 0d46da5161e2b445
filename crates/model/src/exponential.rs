//! Buckets of durations that grow exponentially: those of a Prometheus native histogram with schema 2, in seconds.
//!
//! Bucket `i` has the durations above `2^((i - 1) / 4)` s, up to and including `2^(i / 4)` s. Each bucket is 19 % wider than
//! the one before, and histograms of different hosts and hours add up bucket by bucket.

use crate::Nanos;

/// The schema's number in Prometheus.
pub const EXPONENTIAL_SCHEMA: i32 = 2;
/// Buckets for each doubling.
const PER_DOUBLING: f64 = 4.0;
const SECOND: f64 = 1e9;

/// The bucket of a duration. A duration of zero is in the bucket of one nanosecond.
#[must_use]
pub fn exponential_bucket(duration: Nanos) -> i32 {
    #[allow(
        clippy::cast_precision_loss,
        reason = "53 bits place it exactly enough"
    )]
    let nanos = duration.0.max(1) as f64;
    #[allow(clippy::cast_possible_truncation, reason = "between -120 and 138")]
    let near = ((nanos / SECOND).log2() * PER_DOUBLING).ceil() as i32;
    // The logarithm may be off by one in its last place, next to a bound.
    match near {
        below if nanos > bucket_end_ns(below) => below + 1,
        above if nanos <= bucket_end_ns(above - 1) => above - 1,
        exact => exact,
    }
}

/// The upper bound of a bucket, nanoseconds.
#[must_use]
pub fn bucket_end_ns(bucket: i32) -> f64 {
    (f64::from(bucket) / PER_DOUBLING).exp2() * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_two_seconds_end_their_bucket() {
        for (nanos, bucket) in [
            (1_000_000_000, 0),
            (1_000_000_001, 1),
            (2_000_000_000, 4),
            (4_000_000_000, 8),
            (500_000_000, -4),
            (250_000_000, -8),
            (0, -119),
            (1, -119),
        ] {
            assert_eq!(exponential_bucket(Nanos(nanos)), bucket, "{nanos}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_is_within_its_bucket(nanos in 1_u64..=u64::MAX) {
            let bucket = exponential_bucket(Nanos(nanos));
            #[allow(clippy::cast_precision_loss)]
            let nanos = nanos as f64;
            prop_assert!(bucket_end_ns(bucket - 1) < nanos && nanos <= bucket_end_ns(bucket));
        }
    }
}
