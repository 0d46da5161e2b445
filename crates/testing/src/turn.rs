use std::fs::File;

/// Waits until no other test, including those of other binaries, records or changes the machine; lasts until the file
/// is dropped.
///
/// # Panics
/// If the temporary folder cannot be written.
pub fn turn() -> File {
    let path = std::env::temp_dir().join("jitterscope-live-tests.lock");
    let file = File::create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file.lock()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file
}

/// Whether the tests run as root; the calling test is skipped if not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        crate::skip("it needs root");
    }
    root
}
