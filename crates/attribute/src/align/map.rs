//! A map from one clock to another, linear from knot to knot.

use super::Rates;
use jitterscope_model::Ticks;

/// Maps times of a file to times of a probe. Times beyond the knots follow the line through the first and the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockMap {
    /// Times of the file and of the probe, both ascending; at least one.
    knots: Vec<(u64, u64)>,
    /// How far the probe's clock goes while the file's goes so far, over all knots.
    probe_ticks: u64,
    file_ticks: u64,
    rates: Rates,
}

impl ClockMap {
    /// `knots`: pairs of times, in order of the file's; those that do not ascend on both clocks are left out.
    pub(super) fn new(mut knots: Vec<(u64, u64)>, rates: Rates) -> ClockMap {
        let mut last: Option<(u64, u64)> = None;
        knots.retain(|knot| {
            let ascends = last.is_none_or(|last| last.0 < knot.0 && last.1 < knot.1);
            if ascends {
                last = Some(*knot);
            }
            ascends
        });
        let ends = knots.first().copied().zip(knots.last().copied());
        let (file_ticks, probe_ticks) = match ends {
            Some(((file, probe), (last_file, last_probe))) if last_file > file => {
                (last_file - file, last_probe.saturating_sub(probe).max(1))
            }
            _ => (rates.file.hz.max(1), rates.probe.hz.max(1)),
        };
        ClockMap {
            knots,
            probe_ticks,
            file_ticks,
            rates,
        }
    }

    /// The probe's time at this time of the file. Ascends with it.
    #[must_use]
    pub fn probe_time(&self, file: Ticks) -> Ticks {
        let after = self.knots.partition_point(|(at, _)| *at <= file.0);
        let Some((from, base)) = self.knots.get(after.saturating_sub(1)).copied() else {
            return file;
        };
        let (over, to) = match self.knots.get(after) {
            Some((next, at)) if after > 0 => (next - from, at - base),
            _ => (self.file_ticks, self.probe_ticks),
        };
        let moved = (i128::from(file.0) - i128::from(from)) * i128::from(to) / i128::from(over);
        let at = (i128::from(base) + moved).clamp(0, i128::from(u64::MAX));
        Ticks(u64::try_from(at).unwrap_or(u64::MAX))
    }

    /// How much faster the file's clock runs than stated, relative to the probe's, parts per billion.
    #[must_use]
    pub fn drift_ppb(&self) -> i64 {
        let stated = self.rates.probe.hz as f64 / self.rates.file.hz.max(1) as f64;
        let found = self.probe_ticks as f64 / self.file_ticks as f64;
        ((stated / found - 1.0) * 1e9).round() as i64
    }
}
