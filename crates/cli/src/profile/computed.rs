//! Profiles of regular work: the name states the period, and the limits follow from it.
//!
//! Audio leaves half of a buffer for the work. A servo loses a twentieth of its period at most. Stalls are listed from
//! a fraction of the limit on.

use crate::units::duration;

/// The sample rates, by the word in a name.
const RATES: [(&str, u64); 5] = [
    ("44.1k", 44_100),
    ("48k", 48_000),
    ("88.2k", 88_200),
    ("96k", 96_000),
    ("192k", 192_000),
];
const FRAMES: std::ops::RangeInclusive<u64> = 16..=4096;
/// The periods of a servo that the wake-up probe can keep, nanoseconds.
const PERIODS: std::ops::RangeInclusive<u64> = 50_000..=1_000_000_000;
/// The servos that completion offers.
const SERVOS: [&str; 8] = [
    "100hz", "250hz", "500hz", "1khz", "2khz", "4khz", "8khz", "10khz",
];

/// The forms of the names, with what they mean.
pub const FORMS: [(&str, &str); 2] = [
    (
        "audio-RATE-FRAMES",
        "44.1k, 48k, 88.2k, 96k or 192k, in buffers of 16 to 4096 frames: half a buffer",
    ),
    (
        "servo-RATE",
        "servo-1khz, servo-500hz or servo-250us, 50us to 1s: a twentieth of the period",
    ),
];

/// Names that people are likely to mean.
pub fn usual() -> impl Iterator<Item = String> {
    let frames = (4..=12).map(|power| 1u64 << power);
    let audio = RATES.iter().flat_map(move |(rate, _)| {
        let named = move |frames| format!("audio-{rate}-{frames}");
        frames.clone().map(named)
    });
    audio.chain(SERVOS.iter().map(|rate| format!("servo-{rate}")))
}

/// The file of the profile that this name states; `None` for another name.
///
/// # Errors
/// The name has one of the forms, and a value of it does not exist.
pub fn file(name: &str) -> Option<Result<String, String>> {
    if let Some(rest) = name.strip_prefix("audio-") {
        return Some(audio(rest));
    }
    name.strip_prefix("servo-").map(servo)
}

fn audio(rest: &str) -> Result<String, String> {
    let rates = RATES.map(|(name, _)| name).join(", ");
    let (name, frames) = rest.split_once('-').unwrap_or((rest, ""));
    let rate = RATES.iter().find(|(known, _)| *known == name);
    let (_, rate) = rate.ok_or(format!("the rate '{name}' is none of {rates}"))?;
    let count: Option<u64> = frames.parse().ok();
    let count = count.filter(|count| FRAMES.contains(count)).ok_or(format!(
        "'{frames}' is no number of frames from {} to {}",
        FRAMES.start(),
        FRAMES.end()
    ))?;
    let period = count * 1_000_000_000 / rate;
    let limit = period / 2 / 10_000 * 10_000;
    let khz = name.trim_end_matches('k');
    let title = format!("audio at {khz} kHz with buffers of {count} frames");
    Ok(text(&title, period, limit, one_digit(limit / 5)))
}

fn servo(rate: &str) -> Result<String, String> {
    let wrong = || {
        format!(
            "'{rate}' is no frequency or period of 50us to 1s: write servo-1khz, servo-500hz or servo-250us"
        )
    };
    let (period, title) = match frequency(rate) {
        Some((hz, words)) => ((1e9 / hz).round() as u64, format!("a servo at {words}")),
        None => {
            let period = duration(rate).map_err(|_| wrong())?;
            (period.0, format!("a servo with a period of {rate}"))
        }
    };
    if !PERIODS.contains(&period) {
        return Err(wrong());
    }
    let limit = period / 20 / 1_000 * 1_000;
    Ok(text(&title, period, limit, one_digit(limit * 2 / 5)))
}

/// The frequency of `1khz` or `500hz` in hertz, and in words.
fn frequency(text: &str) -> Option<(f64, String)> {
    let (number, unit, factor) = match text.strip_suffix("khz") {
        Some(number) => (number, "kHz", 1e3),
        None => (text.strip_suffix("hz")?, "Hz", 1.0),
    };
    let plain = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let hz = number.parse::<f64>().ok().filter(|_| plain)? * factor;
    (hz > 0.0).then(|| (hz, format!("{number} {unit}")))
}

/// Rounded to one significant digit.
fn one_digit(ns: u64) -> u64 {
    let unit = 10u64.pow(ns.max(1).ilog10());
    (ns + unit / 2) / unit * unit
}

/// The shortest exact form of a time.
fn exact(ns: u64) -> String {
    let units = [(1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let fits = units.into_iter().find(|(unit, _)| ns.is_multiple_of(*unit));
    let (unit, name) = fits.unwrap_or((1, "ns"));
    format!("{}{name}", ns / unit)
}

fn text(title: &str, period: u64, limit: u64, threshold: u64) -> String {
    let [period, limit, threshold] = [period, limit, threshold].map(exact);
    format!(
        "version = 1\ntitle = \"{title}\"\nlimit = \"{limit}\"\nprobe = \"wakeup\"\n\n[record]\n\
         period = \"{period}\"\nthreshold = \"{threshold}\"\nduration = \"60s\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_the_name() {
        for (name, limit, period, threshold) in [
            ("audio-48k-64", "660us", "1333333ns", "100us"),
            ("audio-48k-256", "2660us", "5333333ns", "500us"),
            ("audio-44.1k-441", "5ms", "10ms", "1ms"),
            ("audio-192k-16", "40us", "83333ns", "8us"),
            ("servo-1khz", "50us", "1ms", "20us"),
            ("servo-4khz", "12us", "250us", "5us"),
            ("servo-250us", "12us", "250us", "5us"),
            ("servo-20khz", "2us", "50us", "800ns"),
        ] {
            let text = file(name).unwrap().unwrap();
            for (key, value) in [
                ("limit", limit),
                ("period", period),
                ("threshold", threshold),
            ] {
                let line = format!("\n{key} = \"{value}\"\n");
                assert!(text.contains(&line), "{name}: {text}");
            }
        }
        assert!(file("trading").is_none());
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        for (name, says) in [
            ("audio-47k-64", "the rate '47k' is none of 44.1k, 48k"),
            ("audio-48k-8", "'8' is no number of frames from 16 to 4096"),
            ("audio-48k", "'' is no number of frames"),
            ("servo-30khz", "'30khz' is no frequency"),
            ("servo-0hz", "'0hz' is no frequency"),
            ("servo-1e3hz", "'1e3hz' is no frequency"),
            ("servo-2s", "'2s' is no frequency"),
            ("servo-", "'' is no frequency"),
        ] {
            let error = file(name).unwrap().unwrap_err();
            assert!(error.starts_with(says), "{name}: {error}");
        }
    }
}
