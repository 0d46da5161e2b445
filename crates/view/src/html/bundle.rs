//! The script of pages, built from `web/` by `cargo xtask web`. It is committed, so that every build has it; the tests
//! rebuild and compare it. Links bring it into this crate, because a packaged crate holds nothing outside its folder.

pub(super) const SCRIPT: &str = include_str!("bundle.js");
pub(super) const STYLE: &str = include_str!("bundle.css");
