//! Arguments with units.

use jitterscope_model::Nanos;

/// A length of time with its unit: `10s`, `250us`, `1m30s`.
///
/// # Errors
/// No unit, an unknown one, or more than 584 years.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let bad = |why: &dyn std::fmt::Display| {
        format!(
            "{why}; write a number and a unit (ns, us, ms, s, m, h, d), for example 10s, 250us or 1m30s"
        )
    };
    if text.trim().parse::<f64>().is_ok() {
        return Err(bad(&format!("'{text}' has no unit")));
    }
    // The library's own messages are about characters and offsets.
    let parsed = humantime::parse_duration(text)
        .map_err(|_| bad(&format!("'{text}' is no length of time")))?;
    u64::try_from(parsed.as_nanos())
        .map(Nanos)
        .map_err(|_| bad(&"too long"))
}

/// A length of time that is not zero.
///
/// # Errors
/// As [`duration`], or zero.
pub fn some_duration(text: &str) -> Result<Nanos, String> {
    match duration(text)? {
        Nanos(0) => Err("must be more than zero".into()),
        some => Ok(some),
    }
}

/// Seconds without a unit, as in the old tools; otherwise as [`some_duration`].
///
/// # Errors
/// As [`some_duration`].
pub fn in_seconds(text: &str) -> Result<Nanos, String> {
    in_units_of(text, "s").and_then(|nanos| {
        if nanos == Nanos::ZERO {
            Err("must be more than zero".into())
        } else {
            Ok(nanos)
        }
    })
}

/// Milliseconds without a unit; otherwise as [`duration`].
///
/// # Errors
/// As [`duration`].
pub fn in_millis(text: &str) -> Result<Nanos, String> {
    in_units_of(text, "ms")
}

/// Nanoseconds without a unit; otherwise as [`some_duration`].
///
/// # Errors
/// As [`some_duration`].
pub fn in_nanos(text: &str) -> Result<Nanos, String> {
    in_units_of(text, "ns").and_then(|nanos| {
        if nanos == Nanos::ZERO {
            Err("must be more than zero".into())
        } else {
            Ok(nanos)
        }
    })
}

fn in_units_of(text: &str, unit: &str) -> Result<Nanos, String> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(number) if number < 0.0 => return Err(format!("'{text}' is negative")),
        Ok(_) if !plain => {
            return Err(format!(
                "'{text}' has no unit, and only whole numbers mean {unit} then; write {text}{unit}"
            ));
        }
        _ => {}
    }
    if plain {
        duration(&format!("{text}{unit}"))
    } else {
        duration(text)
    }
}

/// A whole number.
///
/// # Errors
/// Anything else, or a number that is too large.
pub fn whole(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Ok(number),
        _ if digits => Err(format!("'{text}' is too large")),
        _ => Err(format!(
            "'{text}' is not a whole number; write digits only, for example 50"
        )),
    }
}

/// A size in bytes: `64KiB`, `8MiB`, `1GiB`, `1000000`.
///
/// # Errors
/// Not a number with one of these units.
pub fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => {
            return Err(format!(
                "'{text}' is not a size; write for example 512KiB, 8MiB or 1GiB"
            ));
        }
    };
    let number: u64 = number
        .parse()
        .map_err(|_| format!("'{text}' is not a size; write for example 8MiB"))?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("'{text}' is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("10s"), Ok(Nanos(10_000_000_000)));
        assert_eq!(duration("250us"), Ok(Nanos(250_000)));
        assert_eq!(duration("300ns"), Ok(Nanos(300)));
        assert_eq!(duration("5ms"), Ok(Nanos(5_000_000)));
        assert_eq!(duration("30m"), Ok(Nanos(1_800_000_000_000)));
        assert_eq!(some_duration("1h"), Ok(Nanos(3_600_000_000_000)));
        assert_eq!(duration("30d"), duration("720h"));
        assert_eq!(
            (in_seconds("1h"), in_millis("1h")),
            (some_duration("1h"), some_duration("1h"))
        );
        for text in ["10", "1 parsec", "1hh", "h"] {
            let error = some_duration(text).unwrap_err();
            assert!(error.contains("(ns, us, ms, s, m, h, d)"), "{error}");
        }
        assert!(duration("10").unwrap_err().contains("no unit"));
        assert!(duration("1.5").unwrap_err().contains("no unit"));
        assert!(duration("10 parsecs").unwrap_err().contains("for example"));
        assert!(some_duration("0s").unwrap_err().contains("more than zero"));
    }

    #[test]
    fn the_old_tools_units_are_understood() {
        assert_eq!(in_seconds("60"), Ok(Nanos(60_000_000_000)));
        assert_eq!(in_seconds("250ms"), Ok(Nanos(250_000_000)));
        assert_eq!(in_millis("10"), Ok(Nanos(10_000_000)));
        assert_eq!(in_nanos("300"), Ok(Nanos(300)));
        assert!(in_seconds("0").is_err() && in_millis("").is_err());
        assert_eq!(in_seconds("1.5s"), Ok(Nanos(1_500_000_000)));
        assert!(in_seconds("1.5").unwrap_err().contains("1.5s"));
        assert!(in_nanos("-3").unwrap_err().contains("'-3'"));
        assert!(
            in_seconds("99999999999999999999")
                .unwrap_err()
                .contains("no length of time")
        );
    }

    #[test]
    fn whole_numbers_are_digits() {
        assert_eq!(whole("50"), Ok(50));
        for text in ["", "x", "-1", "+1", "1.5", " 1"] {
            assert!(whole(text).unwrap_err().contains("whole number"), "{text}");
        }
        assert!(
            whole("99999999999999999999")
                .unwrap_err()
                .contains("too large")
        );
    }

    #[test]
    fn sizes_take_binary_units() {
        assert_eq!(size("8MiB"), Ok(8 << 20));
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("12"), Ok(12));
        assert!(size("MiB").is_err() && size("12 XB").is_err() && size("99999999999999G").is_err());
    }
}
