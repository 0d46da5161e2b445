//! A Python with packages, for readers and tools of others.

use crate::skip;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with its own Python and exactly these packages (`name==version`) and what they need, made below `within`
/// if it is missing. `None`, visibly, without `python3`, its `venv`, or the package index.
#[must_use]
pub fn python(within: &Path, packages: &[&str]) -> Option<PathBuf> {
    let name: String = packages.join("-").replace("==", "-");
    let folder = within.join(format!("python-{name}"));
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    // Written last: what was interrupted is made again.
    let complete = folder.join("complete");
    if complete.is_file() {
        return Some(folder);
    }
    let skipped = |why: String| {
        skip(&format!(
            "{why}; apt-get install python3-venv, and let pip reach its index"
        ));
        None
    };
    match Command::new("python3")
        .args(["-m", "venv", "--clear"])
        .arg(&folder)
        .output()
    {
        Err(_) => return skipped("there is no python3".to_owned()),
        Ok(output) if !output.status.success() => {
            return skipped("python3 has no venv".to_owned());
        }
        Ok(_) => {}
    }
    let installed = Command::new(folder.join("bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:"])
        .args(packages)
        .output();
    match installed {
        Ok(output) if output.status.success() => {
            fs::write(complete, "").unwrap();
            Some(folder)
        }
        Ok(output) => skipped(format!(
            "pip could not get {}: {}",
            packages.join(", "),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => skipped(format!("pip cannot be started: {error}")),
    }
}
