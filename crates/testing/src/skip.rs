use std::env;
use std::fs::File;
use std::io::Write;

/// Names the file in which `cargo xtask test` collects the reasons: the standard harness hides the output of passed
/// tests.
pub const SKIPS: &str = "JITTERSCOPE_TEST_SKIPS";

/// Reports that the calling test, or a part of it, is skipped, and why.
///
/// # Panics
/// If the file named by [`SKIPS`] cannot be written.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread");
    eprintln!("SKIPPED: {why}");
    let Some(path) = env::var_os(SKIPS) else {
        return;
    };
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    // A single write, so that lines of several binaries do not mix.
    let line = format!("{package} {test}: {}\n", why.replace('\n', " "));
    let mut file = File::options()
        .append(true)
        .open(&path)
        .expect("the file that JITTERSCOPE_TEST_SKIPS names");
    file.write_all(line.as_bytes())
        .expect("the file that JITTERSCOPE_TEST_SKIPS names");
}
