//! By what rules two sides are compared.

use super::design::Design;
use super::margin::Margin;

/// The alpha of each family.
pub const ALPHA: f64 = 0.05;

/// What is fixed before the data are seen.
#[derive(Clone, Copy, Debug)]
pub struct DiffRules {
    /// How the runs belong together.
    pub design: Design,
    /// The alpha of each family.
    pub alpha: f64,
    /// The share of a figure that counts as no difference.
    pub margin: f64,
}

impl Default for DiffRules {
    fn default() -> DiffRules {
        DiffRules {
            design: Design::Unpaired,
            alpha: ALPHA,
            margin: Margin::RELATIVE,
        }
    }
}
