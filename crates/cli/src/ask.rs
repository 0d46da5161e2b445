//! Questions on the terminal.

use crate::exit::UsageError;
use crate::output;
use std::io::{BufRead, IsTerminal};

/// Asks on the terminal; true for yes.
///
/// # Errors
/// There is no terminal.
pub fn ask(question: &str) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(UsageError("nobody is there to be asked: say --yes".into()).into());
    }
    output::talk(format!("{question} [y/N]"));
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
