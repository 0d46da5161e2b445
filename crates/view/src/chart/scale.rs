//! Scales: positions of values, and marks of an axis.

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scale {
    Linear(f64, f64),
    /// From, to; both above 0.
    Log(f64, f64),
    /// Shares on the scale of nines, with this many nines: 0 %, 90 %, 99 %, 99.9 %, ...
    Nines(f64),
}

impl Scale {
    /// Whole decades around positive values; a default range if there are none.
    pub(super) fn decades(values: impl Iterator<Item = f64>) -> Scale {
        let range =
            values
                .filter(|v| *v > 0.0 && v.is_finite())
                .fold(None, |range, v| match range {
                    None => Some((v, v)),
                    Some((low, high)) => Some((f64::min(low, v), f64::max(high, v))),
                });
        let (low, high) = range.unwrap_or((1.0, 1000.0));
        let (low, high) = (low.log10().floor(), (high * 1.001).log10().ceil());
        Scale::Log(10f64.powf(low), 10f64.powf(high.max(low + 1.0)))
    }

    /// The position of a value: 0 at the beginning of the axis, 1 at its end. Values outside are clamped.
    pub(super) fn share(self, value: f64) -> f64 {
        let share = match self {
            Scale::Linear(from, to) => (value - from) / (to - from),
            Scale::Log(from, to) => (value.max(from) / from).ln() / (to / from).ln(),
            Scale::Nines(to) => value / to,
        };
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// About `most` marks.
    pub(super) fn marks(self, most: usize) -> Vec<f64> {
        let most = most.max(2);
        match self {
            Scale::Linear(from, to) => {
                let step = step((to - from) / most as f64);
                // Rounding in 0.3 / 0.1 must not cost the last mark.
                let first = (from / step - 1e-9).ceil();
                let count = ((to / step + 1e-9).floor() - first).max(0.0) as usize;
                (0..=count.min(100))
                    .map(|at| (first + at as f64) * step)
                    .collect()
            }
            Scale::Log(from, to) => {
                let (from, to) = (from.log10().round() as i32, to.log10().round() as i32);
                let every = (to - from).unsigned_abs() as usize / most + 1;
                (from..=to)
                    .step_by(every)
                    .map(|decade| 10f64.powi(decade))
                    .collect()
            }
            Scale::Nines(to) => {
                let whole = to.floor() as usize;
                let every = whole / most + 1;
                (0..=whole).step_by(every).map(|at| at as f64).collect()
            }
        }
    }
}

/// The next of 1, 2, 5, 10, ... at or above.
fn step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let decade = 10f64.powf(least.log10().floor());
    let found = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|step| step * decade >= least * 0.999_999);
    found.unwrap_or(10.0) * decade
}

/// The percentile with this many nines: `90`, `99.9`; `0` for none.
pub(super) fn nines(count: usize) -> String {
    match count {
        0 => "0".into(),
        1 => "90".into(),
        2 => "99".into(),
        n => format!("99.{}", "9".repeat(n - 2)),
    }
}

/// A power of ten as `1 ns`, `10 us`; any other length in full.
pub(crate) fn length(ns: f64) -> String {
    if ns.abs() < 1e-9 {
        return "0".into();
    }
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let text = format!("{value:.3}");
    format!(
        "{} {unit}",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_marked_at_round_values() {
        assert_eq!(
            Scale::Linear(0.0, 60.0).marks(6),
            [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
        );
        assert_eq!(Scale::Linear(0.0, 0.3).marks(4).len(), 4);
        assert_eq!(
            Scale::Log(10.0, 1e4).marks(8),
            [10.0, 100.0, 1000.0, 10_000.0]
        );
        assert_eq!(Scale::Nines(4.6).marks(9), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(Scale::Linear(0.0, 0.0).marks(5).len(), 1);
    }

    #[test]
    fn places_stay_on_the_axis() {
        let log = Scale::decades([12.0, 45_000.0].into_iter());
        assert_eq!(log, Scale::Log(10.0, 100_000.0));
        assert!((log.share(1000.0) - 0.5).abs() < 1e-12);
        for scale in [
            log,
            Scale::Linear(0.0, 0.0),
            Scale::Nines(0.0),
            Scale::decades(std::iter::empty()),
        ] {
            for value in [f64::NAN, -1.0, 0.0, 1e300, f64::INFINITY] {
                assert!(
                    (0.0..=1.0).contains(&scale.share(value)),
                    "{scale:?} {value}"
                );
            }
        }
    }

    #[test]
    fn marks_are_named() {
        assert_eq!(
            [0, 1, 2, 3, 6].map(nines),
            ["0", "90", "99", "99.9", "99.9999"]
        );
        assert_eq!(
            [1.0, 10_000.0, 2.5e6, 1e9].map(length),
            ["1 ns", "10 us", "2.5 ms", "1 s"]
        );
    }
}
