//! Comparisons of settings: from stored runs to a report.

mod conditions;
mod culprits;
mod figures;
mod json;
mod load;
mod report;
pub(crate) mod words;

pub use conditions::pool_error;
pub(crate) use conditions::{both_sides, condition, machine_value};
pub(crate) use json::DiffWithWords;
pub use json::diff_json;
pub use load::{CompareError, load_compared, load_compared_with, load_of_cpus};
pub(crate) use report::letter;
pub use report::report;
pub use words::{because, change, figure_name};
