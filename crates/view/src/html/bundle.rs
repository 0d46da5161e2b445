//! The interactive part of pages, as `cargo xtask web` built it from `web/`; a build without it is a whole
//! program all the same.

include!(concat!(env!("OUT_DIR"), "/bundle.rs"));

/// Whether this build has it.
#[must_use]
pub fn is_interactive() -> bool {
    SCRIPT.is_some()
}
