use std::fs::File;

/// Waits until no other test records or changes the machine, those of other test binaries included; lasts
/// until the file is dropped.
///
/// # Panics
/// When the temporary folder cannot be written.
pub fn turn() -> File {
    let path = std::env::temp_dir().join("jitterscope-live-tests.lock");
    let file = File::create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file.lock()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    file
}

/// Whether the tests run as root; says that the calling test is skipped when not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: this test needs root");
    }
    root
}
