//! The iterations of a guarded command: text, JSON, Markdown, and the formats of hyperfine and Bencher.

mod bencher;
mod benchmarks;
mod hyperfine;
mod json;
mod report;
#[cfg(test)]
mod tests;
mod words;

pub use bencher::bencher;
pub use hyperfine::hyperfine;
pub use json::json;
pub use report::{markdown, text};
pub use words::{line, waiting};
