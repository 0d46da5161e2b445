//! Settings side by side: from stored runs to text.

mod load;
pub(crate) mod text;
pub(crate) mod words;

pub use load::{CompareError, load_compared, load_compared_with, load_of_cpus};
pub use text::render;
pub use words::{because, change, figure_name};
