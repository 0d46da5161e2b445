//! A file that no name leads to once it is written, and that no other user can read before.

use anyhow::Context;
use jitterscope_export::Destination;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The number of names that are tried.
const TRIES: u32 = 100;
const NAME: &str = "trace";

/// A folder of this process; dropping it removes it.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes a folder that only this user can enter.
    ///
    /// # Errors
    /// The temporary folder cannot be written to.
    pub fn make() -> anyhow::Result<Scratch> {
        let base = std::env::temp_dir();
        let mut tries = 0;
        loop {
            let path = base.join(format!("jitterscope-open-{:08x}", fastrand::u32(..)));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1;
                }
                Err(error) => {
                    let why = format!("no temporary folder can be made in {}", base.display());
                    return Err(anyhow::Error::from(error).context(why));
                }
            }
        }
    }

    /// The file in it as an export's target.
    ///
    /// # Errors
    /// The temporary folder's name is not one that a target can have.
    pub fn target(&self, scheme: &str) -> anyhow::Result<Destination> {
        let target = format!("{scheme}://{}", self.0.join(NAME).display());
        target
            .parse()
            .context("TMPDIR names a folder that no target can be in")
    }

    /// Opens the file for reading, and removes its name.
    ///
    /// # Errors
    /// It was not written.
    pub fn into_file(self) -> anyhow::Result<File> {
        let path = self.0.join(NAME);
        File::open(&path).with_context(|| path.display().to_string())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system empties its temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}
