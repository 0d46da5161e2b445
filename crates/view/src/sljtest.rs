//! SLJ Test's screen: the histogram on its side, statistics, advice.

use jitterscope_analyze::sljtest::{DeltaBins, average_and_deviation};
use jitterscope_model::{ProbeResult, TickRate, Ticks};
use std::fmt::Write;

/// Columns before the graph.
const BEFORE_GRAPH: usize = 53;

/// The options of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SljSettings {
    pub bins: usize,
    /// The knee, ticks.
    pub knee: u64,
    /// The expected minimum, ticks.
    pub min: u64,
    /// Whether to show sums of deltas instead of counts.
    pub sum: bool,
    /// The width of the screen, columns.
    pub width: usize,
}

/// Why options are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SljError {
    #[error(
        "-k {knee} must be greater than -m {min}: the knee lies above the minimum expected value"
    )]
    Knee { knee: u64, min: u64 },
    /// There are fewer ticks than linear bins.
    #[error(
        "-k {knee} less -m {min} must be at least half of -b {bins}: {half} bins below the knee need a tick each"
    )]
    Crowded {
        knee: u64,
        min: u64,
        bins: usize,
        half: usize,
    },
    /// The number of bins is odd or unreasonable.
    #[error("-b {0} is out of range: an even number from 2 to 200")]
    Bins(usize),
    /// The width is too small or too large.
    #[error("-w {0} is out of range: 54 to 120")]
    Width(usize),
}

impl SljSettings {
    /// Checks that the options make a histogram.
    ///
    /// # Errors
    /// They do not.
    pub fn check(self) -> Result<(), SljError> {
        let SljSettings {
            bins,
            knee,
            min,
            width,
            ..
        } = self;
        if !(2..=200).contains(&bins) || bins % 2 != 0 {
            return Err(SljError::Bins(bins));
        }
        if !(54..=120).contains(&width) {
            return Err(SljError::Width(width));
        }
        if knee <= min {
            return Err(SljError::Knee { knee, min });
        }
        if knee - min < bins as u64 / 2 {
            return Err(SljError::Crowded {
                knee,
                min,
                bins,
                half: bins / 2,
            });
        }
        Ok(())
    }
}

/// The fill level of the outlier buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierBuffer {
    pub seen: u64,
    pub size: u64,
    /// Whether a lower knee would keep more outliers.
    pub knee_decides: bool,
}

/// The screen of one CPU: with SLJ Test's default settings 28 lines of at most 80 columns.
#[must_use]
pub fn render(
    settings: SljSettings,
    bins: &DeltaBins,
    result: &ProbeResult,
    rate: TickRate,
    outliers: Option<OutlierBuffer>,
) -> String {
    let amounts: Vec<u128> = if settings.sum {
        bins.sums.clone()
    } else {
        bins.counts.iter().map(|n| u128::from(*n)).collect()
    };
    let total: u128 = amounts.iter().sum();
    let what = if settings.sum { "Sum" } else { "Count" };
    let mut screen =
        format!("Time    Ticks    {what:<5}        Percent    Cumulative  Graph ln({what}-e)\n");
    let largest = amounts.iter().copied().max().unwrap_or(0);
    let mut cumulative = 0;
    for (bin, amount) in amounts.iter().enumerate() {
        cumulative += amount;
        let (time, ticks) = match bins.upper.get(bin) {
            Some(upper) => (time(upper.0 as f64, rate), upper.0.to_string()),
            None => ("Infini".into(), "Infinite".into()),
        };
        let row = format!(
            "{time:>6}  {ticks:<8} {amount:<12} {:7.4}%   {:8.4}%   ",
            percent(*amount, total),
            percent(cumulative, total)
        );
        // Large numbers push the graph to the right; the line keeps its width.
        let room = settings.width.saturating_sub(row.len().max(BEFORE_GRAPH));
        let stars = "*".repeat(stars(*amount, largest, room));
        screen.push_str(format!("{row}{stars}").trim_end());
        screen.push('\n');
        if bin + 1 == bins.lower_half() {
            screen.push('\n');
        }
    }
    let advice = recommendations(settings, bins, result, outliers);
    // Two lines are reserved for advice, so that the height is constant.
    screen.push_str(&"\n".repeat(2usize.saturating_sub(advice.len())));
    statistics(&mut screen, result, rate);
    for line in advice {
        screen.push_str(&line);
        screen.push('\n');
    }
    screen
}

fn percent(part: u128, whole: u128) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 * 100.0 / whole as f64
    }
}

/// One star for each step of ln(amount - e), with the largest bin filling the room; at least one for a non-empty bin.
fn stars(amount: u128, largest: u128, room: usize) -> usize {
    if amount == 0 || room == 0 {
        return 0;
    }
    let height = |n: u128| (n as f64 - std::f64::consts::E).max(1.0).ln();
    let top = height(largest);
    let scaled = if top > 0.0 {
        (room as f64 * height(amount) / top).round() as usize
    } else {
        room
    };
    scaled.clamp(1, room)
}

fn statistics(screen: &mut String, result: &ProbeResult, rate: TickRate) {
    let runtime = result.end.since(result.start).0;
    let (mean, deviation) = average_and_deviation(result);
    let measured = time(result.sum_ticks as f64, rate);
    let numbers = [
        result.min_ticks as f64,
        mean,
        deviation,
        result.max_ticks as f64,
    ];
    let ticks = numbers.map(|n| format!("{n:.0}"));
    let times = numbers.map(|n| time(n, rate).trim().to_owned());
    let ok = writeln!(
        screen,
        "Timing was measured for {}, {:.2}% of runtime\n\
         CPU speed measured  : {:.2} MHz over {} iterations\n\
         Min / Average / Std Dev / Max : {} ticks\n\
         Min / Average / Std Dev / Max : {}",
        measured.trim(),
        percent(result.sum_ticks.into(), runtime.into()),
        rate.hz as f64 / 1e6,
        result.samples,
        ticks.join(" / "),
        times.join(" / "),
    );
    debug_assert!(ok.is_ok(), "a String takes everything");
}

/// The advice below the statistics: a better minimum, a better knee.
pub(crate) fn recommendations(
    settings: SljSettings,
    bins: &DeltaBins,
    result: &ProbeResult,
    outliers: Option<OutlierBuffer>,
) -> Vec<String> {
    let mut advice = Vec::new();
    let wanted_min = result.min_ticks * 8 / 10;
    if result.samples > 0 && (result.min_ticks < settings.min || settings.min < wanted_min) {
        advice.push(format!("Recommend min setting of {wanted_min} ticks"));
    }
    let of = |amounts: &[u128]| {
        percent(
            amounts[..bins.lower_half()].iter().sum(),
            amounts.iter().sum::<u128>(),
        )
    };
    let counts: Vec<u128> = bins.counts.iter().map(|n| u128::from(*n)).collect();
    let below = if settings.sum {
        of(&bins.sums)
    } else {
        of(&counts)
    };
    let wrapped = outliers.is_some_and(|o| o.seen > o.size);
    let roomy = outliers.is_some_and(|o| o.knee_decides && o.seen.saturating_mul(4) < o.size);
    let direction = if below < 90.0 || wrapped {
        Some("increasing")
    } else if below > 99.0 || roomy {
        Some("decreasing")
    } else {
        None
    };
    if let Some(direction) = direction.filter(|_| result.samples > 0) {
        advice.push(format!(
            "Recommend {direction} knee setting from {} ticks",
            settings.knee
        ));
    }
    advice
}

/// A length in three significant digits, right-aligned: ` 12ns`, `16.7us`; `Infini` beyond 1000 s.
fn time(ticks: f64, rate: TickRate) -> String {
    let nanos = ticks * 1e9 / rate.hz.max(1) as f64;
    if nanos >= 1e12 {
        return "Infini".into();
    }
    let (value, unit) = [(1e9, "s"), (1e6, "ms"), (1e3, "us")]
        .into_iter()
        // 999.7 would print as 1000.
        .find(|(size, _)| nanos >= size * 0.9995)
        .map_or((nanos, "ns"), |(size, unit)| (nanos / size, unit));
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    let mut digits = format!("{value:.decimals$}");
    if digits.contains('.') {
        digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len());
    }
    format!("{digits:>4}{unit}")
}

/// The outlier file: milliseconds since the start, and microseconds, sorted by time.
#[must_use]
pub fn outlier_file(outliers: &[(Ticks, Ticks)], start: Ticks, rate: TickRate) -> String {
    let mut sorted = outliers.to_vec();
    sorted.sort_unstable();
    let mut text = String::new();
    for (at, length) in sorted {
        let since = rate.nanos(at.since(start)).0 as f64 / 1e6;
        let micros = length.0 as f64 * 1e6 / rate.hz.max(1) as f64;
        let ok = writeln!(text, "{since:.6}, {micros:.6}");
        debug_assert!(ok.is_ok(), "a String takes everything");
    }
    text
}

#[cfg(test)]
#[path = "sljtest_tests.rs"]
mod tests;
