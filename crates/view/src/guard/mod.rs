//! The iterations of a guarded command: text, JSON, Markdown, and the formats of hyperfine and Bencher.

mod bencher;
mod hyperfine;
mod json;
mod markdown;
#[cfg(test)]
mod tests;
mod text;
mod words;

pub use bencher::bencher;
pub use hyperfine::hyperfine;
pub use json::json;
pub use markdown::markdown;
pub use text::{Next, render};
pub use words::line;
