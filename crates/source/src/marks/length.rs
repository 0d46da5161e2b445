//! Lengths of time in texts.

use jitterscope_model::Nanos;

/// Words for units, and their nanoseconds. Longer words come first.
const UNITS: [(&str, f64); 14] = [
    ("nanoseconds", 1.0),
    ("microseconds", 1e3),
    ("milliseconds", 1e6),
    ("seconds", 1e9),
    ("msec", 1e6),
    ("usec", 1e3),
    ("secs", 1e9),
    ("sec", 1e9),
    ("ns", 1.0),
    ("us", 1e3),
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
];

/// The nanoseconds of a unit.
pub(super) fn unit(word: &str) -> Option<f64> {
    let word = word.to_lowercase();
    UNITS
        .iter()
        .find(|(known, _)| *known == word)
        .map(|(_, ns)| *ns)
}

/// A number of such units; `None` for what is no number, negative, or longer than a year.
pub(super) fn of(number: &str, unit: f64) -> Option<Nanos> {
    let ns = number.trim().parse::<f64>().ok()? * unit;
    (0.0..3.2e16).contains(&ns).then_some(Nanos(ns as u64))
}

/// The last number with a unit in a text, as in `took 3.4ms` or `Total: 1234 ns`.
pub(super) fn last(text: &str) -> Option<Nanos> {
    let mut end = text.len();
    loop {
        let at = text[..end].rfind(|c: char| c.is_ascii_digit())?;
        let after = text[at + 1..].trim_start();
        let word = after
            .find(|c: char| !c.is_alphabetic())
            .map_or(after, |length| &after[..length]);
        let number_from = text[..at]
            .rfind(|c: char| !c.is_ascii_digit() && c != '.')
            .map_or(0, |before| {
                before + text[before..].chars().next().map_or(1, char::len_utf8)
            });
        if let Some(length) = unit(word).and_then(|unit| of(&text[number_from..=at], unit)) {
            return Some(length);
        }
        end = number_from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_length_of_a_line_is_found() {
        for (text, ns) in [
            ("Pause Young (Normal) 24M->4M(256M) 3.456ms", 3_456_000),
            ("Total: 1234 ns", 1234),
            ("GET /x 200 took=12ms id=7", 12_000_000),
            ("slow: 1.5 s", 1_500_000_000),
            ("350\u{b5}s", 350_000),
            (
                "stopped: 0.0012 seconds, Stopping threads took: 0.0001 seconds",
                100_000,
            ),
        ] {
            assert_eq!(last(text), Some(Nanos(ns)), "{text}");
        }
        for text in ["", "no number", "12", "7 things", "24M->4M(256M)"] {
            assert_eq!(last(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,60}") {
            let _ = last(&text);
        }

        #[test]
        fn what_is_written_is_found(before in "[a-z =]{0,10}", ms in 0u32..1_000_000) {
            prop_assert_eq!(last(&format!("{before}{ms}ms")), Some(Nanos(u64::from(ms) * 1_000_000)));
        }
    }
}
