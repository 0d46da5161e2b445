//! The target aarch64, for which everything is linted. Nothing of it is run.

use crate::consent::Consent;
use crate::packages::{self, CROSS_COMPILER};
use crate::rust_std;
use crate::skipped::Skipped;

pub const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Whether the compilers have the target, or can be installed. Notes what is missing.
pub fn available(consent: Consent, skipped: &mut Skipped) -> bool {
    let installed = rust_std::install(TARGET, consent)
        .and_then(|()| packages::install(&CROSS_COMPILER, consent));
    if let Err(missing) = &installed {
        skipped.note(format!("whether it compiles for {TARGET}: {missing}"));
    }
    installed.is_ok()
}

/// Describes what would be installed.
pub fn wanted() -> Vec<String> {
    rust_std::wanted(TARGET)
}
