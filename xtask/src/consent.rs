//! Whether this machine may be changed: packages and toolchain components are installed for all its users.

use std::io::{IsTerminal, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consent(bool);

impl Consent {
    /// The answer of a command line with or without `--yes`.
    pub fn given(yes: bool) -> Consent {
        Consent(yes)
    }

    /// Lists what would be installed and asks, unless `--yes` was given or the list is empty. Without a terminal
    /// nothing is installed.
    pub fn ask(yes: bool, wanted: &[String]) -> Consent {
        if yes || wanted.is_empty() {
            return Consent(yes);
        }
        eprintln!(
            "not installed on this machine, and needed by some tests:\n  {}",
            wanted.join("\n  ")
        );
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            eprintln!(
                "they are left out (--yes installs them); what needs them says that it is skipped"
            );
            return Consent(false);
        }
        eprint!("Install them? What needs them is skipped otherwise. [y/N] ");
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        Consent(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    pub fn is_given(self) -> bool {
        self.0
    }
}
