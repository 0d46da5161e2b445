//! The rules of a comparison.

use super::design::Design;
use super::margin::Margin;

/// The alpha of each family.
pub const ALPHA: f64 = 0.05;

/// The rules fixed before the data are seen.
#[derive(Clone, Copy, Debug)]
pub struct DiffRules {
    /// The relation between the runs; `None`: as the times of their recordings show.
    pub design: Option<Design>,
    /// The alpha of each family.
    pub alpha: f64,
    /// The share of a figure that counts as no difference.
    pub margin: f64,
}

impl Default for DiffRules {
    fn default() -> DiffRules {
        DiffRules {
            design: None,
            alpha: ALPHA,
            margin: Margin::RELATIVE,
        }
    }
}
