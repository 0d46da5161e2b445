//! Rust's standard library for other targets: present, or added with rustup.

use crate::consent::Consent;
use crate::shell;
use std::path::Path;
use std::process::Stdio;

/// Whether the compiler has it. Without rustup the distribution's compiler may have it; checks the folder where the
/// compiler looks.
fn is_there(target: &str) -> bool {
    let at = shell::output("rustc", &["--print", "target-libdir", "--target", target]);
    at.is_ok_and(|at| Path::new(at.trim()).is_dir())
}

/// Describes what would be installed.
pub fn wanted(target: &str) -> Vec<String> {
    if is_there(target) {
        Vec::new()
    } else {
        vec![format!("rustup target {target}")]
    }
}

/// Adds it if it is missing and that is allowed.
///
/// # Errors
/// What is missing, and how to install it.
pub fn install(target: &str, consent: Consent) -> Result<(), String> {
    if is_there(target) {
        return Ok(());
    }
    if !consent.is_given() {
        return Err(format!(
            "its standard library is not installed (--yes, or rustup target add {target})"
        ));
    }
    let added = shell::command("rustup", &["target", "add", target])
        .stdout(Stdio::null())
        .status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!(
            "no standard library for it (rustup target add {target})"
        )),
    }
}
