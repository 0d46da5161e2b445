//! `docs/culprits.md` equals the tables in the code.

use jitterscope_model::{CulpritKind, Verdict};
use jitterscope_view::culprits_chapter;
use std::path::Path;

#[test]
fn the_chapter_of_culprits_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/culprits.md");
    let wanted = culprits_chapter();
    if std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/culprits.md is not what the tables say: run JITTERSCOPE_WRITE_DOCS=1 cargo test -p jitterscope-view culprits"
    );
}

#[test]
fn the_chapter_has_each_kind_and_each_verdict() {
    let chapter = culprits_chapter();
    for kind in CulpritKind::ALL {
        let is_there = chapter.contains(&format!("\n## {kind}\n"));
        assert_eq!(is_there, kind != CulpritKind::Unknown, "{kind}");
    }
    for verdict in Verdict::ALL {
        assert!(
            chapter.contains(&format!("| {} | ", verdict.as_str())),
            "{verdict:?}"
        );
    }
}
