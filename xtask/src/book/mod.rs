//! The book: `docs/`, as mdBook shows it.

#[cfg(test)]
mod commands;
pub mod links;

use crate::{shell, tools};
use anyhow::ensure;

/// Builds the book into `target/book` (`book.toml`).
pub fn build() -> anyhow::Result<()> {
    links::check()?;
    let mdbook = tools::MDBOOK.get()?;
    let program = mdbook.to_string_lossy().into_owned();
    shell::run(&program, &["build"])?;
    let first = shell::root().join("target/book/first-run.html");
    ensure!(first.is_file(), "{} is not there", first.display());
    Ok(())
}
