//! The script of pages, built from `web/` by `cargo xtask web`. It is committed, so that every build has it; the tests
//! rebuild and compare it.

pub(super) const SCRIPT: &str = include_str!("../../../../web/dist/page.js");
pub(super) const STYLE: &str = include_str!("../../../../web/dist/page.css");
