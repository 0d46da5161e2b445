//! Comparisons of settings: from stored runs to text.

pub(crate) mod conditions;
mod json;
mod load;
pub(crate) mod text;
pub(crate) mod words;

pub use conditions::pool_error;
pub(crate) use json::DiffWithWords;
pub use json::diff_json;
pub use load::{CompareError, load_compared, load_compared_with, load_of_cpus};
pub use text::render;
pub use words::{because, change, figure_name};
