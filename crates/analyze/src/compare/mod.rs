//! Decides whether one setting is better than another.
//!
//! The unit is the run: each gives one number for each figure, because the variation within a run says nothing about
//! the variation between runs. Two arms of runs are compared on a [`Scale`], by an [`Effect`] with its interval and by
//! a test that rearranges whole runs: flipped signs for pairs, reassigned runs for independent ones. Hypotheses that
//! share an alpha are decided together ([`family()`]). No run is ever dropped as an outlier: stalls are outliers.

mod blocks;
mod comparison;
mod conditions;
mod culprits;
mod design;
mod diff;
mod distribution;
mod effect;
mod family;
mod figure;
mod flips;
mod futility;
mod grain;
mod margin;
mod max_t;
mod needed;
mod noise;
mod poisson;
mod raised;
mod rules;
mod run;
mod sample;
mod scale;
mod sequential;
mod shuffles;
mod side;
mod tested;
mod verdict;

pub use blocks::{FEWEST_BLOCKS, TooFewBlocks, within_run};
pub use comparison::Comparison;
pub use conditions::{ConditionDifference, ConditionKind, ConditionValue};
pub use culprits::{Became, CulpritDiff};
pub use design::Design;
pub use diff::{Against, CpuRow, Diff, FigureRow, PlannedRow, RunReference, SideSummary, diff};
pub(crate) use distribution::t_quantile;
pub use effect::{Effect, Interval, distances, middle};
pub use family::{Hypothesis, family};
pub use figure::{FigureKind, FigureUnit};
pub use flips::smallest_of_flips;
pub use futility::is_futile;
pub use grain::{Basis, Grain};
pub use margin::Margin;
pub use needed::{detectable, fewest};
pub use poisson::Count;
pub use rules::{ALPHA, DiffRules};
pub(crate) use run::measured;
pub use run::{ComparedRun, ComparedRunBuilder, Tail};
pub use scale::Scale;
pub use sequential::{Look, Looks};
pub use shuffles::{Arms, smallest_of_shuffles};
pub use side::{PoolError, SettingDifference, SharedRun, Side};
pub use verdict::{Undecided, Verdict};
