//! What is too little to be worth a change.

use crate::run_culprits::RunCulprits;
use jitterscope_model::Nanos;

/// What is under one part in this many of the stolen time,
pub const OF_STOLEN: u32 = 100;
/// and under one part in this many of the measured time, is too little.
pub const OF_MEASURED: u32 = 10_000;

impl RunCulprits {
    /// The time that all culprits took.
    #[must_use]
    pub fn stolen(&self) -> Nanos {
        self.culprits.iter().map(|c| c.total_ns).sum()
    }

    /// Whether it does not matter that culprits took `total`: it is under both.
    #[must_use]
    pub fn is_negligible(&self, total: Nanos) -> bool {
        let total = u128::from(total.0);
        total * u128::from(OF_STOLEN) < u128::from(self.stolen().0)
            && total * u128::from(OF_MEASURED) < u128::from(self.measured_ns.0)
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
        assert!(busy.is_negligible(Nanos(6_670)));
        assert!(!busy.is_negligible(Nanos(40_000_000)));
        // A hundredth of what was stolen, though little of the whole.
        assert!(!measured(&[6_670, 600_000]).is_negligible(Nanos(6_670)));
        // A ten-thousandth of the whole, though little of what was stolen.
        assert!(!measured(&[1_000_000, 400_000_000]).is_negligible(Nanos(1_000_000)));
        assert!(!measured(&[]).is_negligible(Nanos(0)));
    }
}
