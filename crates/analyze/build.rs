//! Tells the code that sums a run up from any other: by what it is built from.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo says where this is"));
    let mut code = DefaultHasher::new();
    println!("cargo::rerun-if-changed=build.rs");
    // The types whose values it sums up are the model's.
    for folder in ["src", "../model/src"] {
        println!("cargo::rerun-if-changed={folder}");
        take_in(&root.join(folder), &mut code);
    }
    println!("cargo::rustc-env=JITTERSCOPE_SUMMARY_CODE={:016x}", code.finish());
}

/// All files below a folder, in order.
fn take_in(folder: &Path, code: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).expect("the sources can be listed");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the sources can be listed").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            take_in(&path, code);
        } else {
            code.write(&fs::read(&path).expect("the sources can be read"));
        }
    }
}
