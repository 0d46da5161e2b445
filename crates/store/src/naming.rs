//! Names of run folders: `<utc>-<label>-<id>`.

use crate::error::StoreError;
use crate::runs::LATEST;

const LONGEST_LABEL: usize = 64;

/// Checks that a label can be part of a folder name.
///
/// # Errors
/// The label is empty, too long, `latest`, or has a character outside `A-Za-z0-9_.-`.
pub fn check_label(label: &str) -> Result<(), StoreError> {
    let refuse = |bad: String| {
        Err(StoreError::Label {
            label: label.to_owned(),
            bad,
        })
    };
    if label.is_empty() {
        return refuse("nothing in it".into());
    }
    if label.len() > LONGEST_LABEL {
        return refuse(format!("{} characters", label.len()));
    }
    if label == LATEST {
        return refuse("a meaning of its own: the newest run".into());
    }
    // The name would be a hidden file, or look like an option to another command.
    if let Some(first @ ('.' | '-')) = label.chars().next() {
        return refuse(format!("{first:?} first"));
    }
    match label
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')))
    {
        Some(bad) => refuse(format!("{bad:?}")),
        None => Ok(()),
    }
}

/// A short id that is unique enough among one machine's runs: six base-36 digits mixed from the time, the process and a
/// counter.
pub(crate) fn short_id(realtime_ns: u64) -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    digits(spread(seed(
        realtime_ns,
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed),
    )))
}

/// A number that differs wherever one of the three inputs does.
fn seed(realtime_ns: u64, process: u32, count: u64) -> u64 {
    realtime_ns ^ u64::from(process).rotate_left(40) ^ count.rotate_left(20)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): spreads every input bit over the output.
fn spread(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The six lowest base-36 digits of a number, the lowest first.
fn digits(mut number: u64) -> String {
    (0..6)
        .map(|_| {
            let digit = (number % 36) as u8;
            number /= 36;
            char::from(if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            })
        })
        .collect()
}

/// A time since the epoch as `20261121T004214Z`.
pub(crate) fn compact_utc(realtime_ns: u64) -> String {
    let seconds = i64::try_from(realtime_ns / 1_000_000_000).unwrap_or(0);
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y%m%dT%H%M%SZ").to_string(),
        Err(_) => format!("{seconds}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_leave_the_folder_are_refused() {
        for good in ["BASELINE", "perf-governor", "a.b_c", &"x".repeat(64)] {
            assert!(check_label(good).is_ok(), "{good}");
        }
        for bad in ["", "..", "-rf", "a/b", "a b", "\u{e9}", &"x".repeat(65)] {
            assert!(check_label(bad).is_err(), "{bad}");
        }
        assert!(check_label("a/b").unwrap_err().to_string().contains("'/'"));
    }

    #[test]
    fn ids_differ_and_times_sort() {
        assert_ne!(short_id(1), short_id(1));
        assert_eq!(short_id(1).len(), 6);
        assert_eq!(compact_utc(1_795_213_189_826_000_000), "20261120T221949Z");
    }

    #[test]
    fn a_seed_differs_with_each_of_time_process_and_count() {
        for others in [0, u64::MAX] {
            let of = |time, process, count| seed(time, process, count);
            let process = others as u32;
            let base = of(others, process, others);
            for bit in 0..64 {
                assert_ne!(
                    of(others ^ (1 << bit), process, others),
                    base,
                    "bit {bit} of the time"
                );
                assert_ne!(
                    of(others, process, others ^ (1 << bit)),
                    base,
                    "bit {bit} of the count"
                );
            }
            for bit in 0..32 {
                assert_ne!(
                    of(others, process ^ (1 << bit), others),
                    base,
                    "bit {bit} of the process"
                );
            }
        }
    }

    #[test]
    fn bits_are_spread_as_splitmix64_does() {
        // The generator's first outputs for the seed 1234567. It adds the same constant before each.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        for (n, expected) in (1..).zip(expected) {
            assert_eq!(
                spread(
                    0x9e37_79b9_7f4a_7c15_u64
                        .wrapping_mul(n)
                        .wrapping_add(1_234_567)
                ),
                expected
            );
        }
    }

    #[test]
    fn digits_are_of_base_36_with_the_lowest_first() {
        for (number, text) in [
            (0, "000000"),
            (9, "900000"),
            (10, "a00000"),
            (35, "z00000"),
            (36, "010000"),
            (36 * 36 * 11 + 36 * 5 + 35, "z5b000"),
            (36_u64.pow(6) - 1, "zzzzzz"),
            (36_u64.pow(6), "000000"),
        ] {
            assert_eq!(digits(number), text, "{number}");
        }
    }

    #[test]
    fn an_id_may_have_any_digit_and_any_small_letter() {
        let ids: String = (0..2_000).map(short_id).collect();
        for digit in ('0'..='9').chain('a'..='z') {
            // Each digit is expected once in 36. So few by chance are next to impossible.
            assert!(ids.matches(digit).count() > 150, "{digit}");
        }
        assert!(
            ids.chars()
                .all(|c| c.is_ascii_digit() || c.is_ascii_lowercase())
        );
    }

    #[test]
    fn ids_of_runs_a_nanosecond_apart_are_spread_over_all_places() {
        const IDS: u64 = 36_000;
        let ids: Vec<String> = (0..IDS)
            .map(|n| short_id(1_795_213_189_826_000_000 + n))
            .collect();
        for place in 0..6 {
            let mut counts = [0u64; 128];
            ids.iter()
                .for_each(|id| counts[usize::from(id.as_bytes()[place])] += 1);
            let used: Vec<u64> = counts.into_iter().filter(|count| *count > 0).collect();
            assert_eq!(used.len(), 36, "place {place}");
            // The expectation is a thousand each, with a margin of five standard deviations.
            assert!(
                used.iter().all(|count| count.abs_diff(1_000) < 160),
                "place {place}: {used:?}"
            );
        }
        // 0.3 equal pairs are expected among so many ids.
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert!(ids.len() - different.len() < 8);
    }
}
