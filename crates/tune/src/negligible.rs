//! What is too little to be worth a change.

use crate::knob::How;
use crate::run_culprits::RunCulprits;
use jitterscope_model::Nanos;

/// A total is negligible if it is below this fraction of the stolen time (1/100)
pub const OF_STOLEN: u32 = 100;
/// and below this fraction of the measured time (1/10,000).
pub const OF_MEASURED: u32 = 10_000;
/// With a change that needs a reboot, it is negligible below this fraction of the stolen time (1/20).
pub const REBOOT_FROM: u32 = 20;

impl RunCulprits {
    /// The time of all culprits.
    #[must_use]
    pub fn stolen(&self) -> Nanos {
        self.culprits.iter().map(|c| c.total_ns).sum()
    }

    /// Whether a `total` of culprits is too little for a change that is made in this way.
    #[must_use]
    pub fn is_negligible(&self, total: Nanos, how: How) -> bool {
        let under =
            |parts: u32, of: Nanos| u128::from(total.0) * u128::from(parts) < u128::from(of.0);
        let stolen = self.stolen();
        under(OF_STOLEN, stolen) && under(OF_MEASURED, self.measured_ns)
            || how == How::Reboot && under(REBOOT_FROM, stolen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_culprits::MeasuredCulprit;
    use jitterscope_model::{Subject, Work};

    fn measured(times: &[u64]) -> RunCulprits {
        let culprit = |ns: &u64| MeasuredCulprit {
            subject: Subject::Work(Work {
                function: Some("some_work".into()),
                ..Work::default()
            }),
            total_ns: Nanos(*ns),
            count: 1,
        };
        let culprits = times.iter().map(culprit).collect();
        RunCulprits {
            run: "r".into(),
            measured_ns: Nanos(10_000_000_000),
            culprits,
            ..RunCulprits::default()
        }
    }

    #[test]
    fn little_of_both_is_negligible_and_much_of_either_is_not() {
        let busy = measured(&[6_670, 40_000_000]);
        assert!(busy.is_negligible(Nanos(6_670), How::Now));
        assert!(!busy.is_negligible(Nanos(40_000_000), How::Now));
        // A hundredth of the stolen time, but little of the measured time.
        assert!(!measured(&[6_670, 600_000]).is_negligible(Nanos(6_670), How::Now));
        // A ten-thousandth of the measured time, but little of the stolen time.
        assert!(!measured(&[1_000_000, 400_000_000]).is_negligible(Nanos(1_000_000), How::Now));
        assert!(!measured(&[]).is_negligible(Nanos(0), How::Now));
    }
}
