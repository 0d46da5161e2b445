//! `docs/knobs.md` equals the catalogue in the code.

use jitterscope_view::tuning::chapter;
use std::path::Path;

#[test]
fn the_chapter_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/knobs.md");
    let wanted = chapter();
    if std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/knobs.md is not what the catalogue says: run JITTERSCOPE_WRITE_DOCS=1 cargo test -p jitterscope-view knobs"
    );
}
