//! Hashes the source that sums a run up, so that stored sums name the code that made them.

use std::error::Error;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut code = DefaultHasher::new();
    println!("cargo::rerun-if-changed=build.rs");
    // The model defines the types of the values that are summed. In a packaged crate it is elsewhere, and exactly of
    // this version.
    for folder in ["src", "../model/src"] {
        println!("cargo::rerun-if-changed={folder}");
        let path = root.join(folder);
        if path.is_dir() {
            take_in(&path, &mut code)?;
        } else {
            code.write(env::var("CARGO_PKG_VERSION")?.as_bytes());
        }
    }
    println!(
        "cargo::rustc-env=JITTERSCOPE_SUMMARY_CODE={:016x}",
        code.finish()
    );
    Ok(())
}

/// All files below a folder, sorted.
fn take_in(folder: &Path, code: &mut DefaultHasher) -> io::Result<()> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            take_in(&path, code)?;
        } else {
            code.write(&fs::read(&path)?);
        }
    }
    Ok(())
}
