//! The files of a folder while they are written: hidden until all of them are complete.

use crate::error::ExportError;
use crate::partial::{self, PartialFile};
use jitterscope_platform::HeldDir;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Files on their way into a folder. Dropped early, they leave neither files nor new folders.
pub(crate) struct PartialFolder {
    folder: HeldDir,
    /// The folders that this export made, the outermost first.
    made: Vec<PathBuf>,
    /// Each hidden file, and its final name.
    files: Vec<(PartialFile, String)>,
}

impl PartialFolder {
    /// Makes the folder if it is missing.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn open(folder: &Path) -> Result<PartialFolder, ExportError> {
        let mut made: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .map(Path::to_path_buf)
            .collect();
        made.reverse();
        match HeldDir::named_or_made(folder) {
            Ok(folder) => Ok(PartialFolder {
                folder,
                made,
                files: Vec::new(),
            }),
            Err(error) => {
                remove_folders(&made);
                Err(ExportError::access(folder, error))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn folder(&self) -> &HeldDir {
        &self.folder
    }

    /// Makes a hidden file. Returns its number.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(&mut self, name: &str) -> Result<usize, ExportError> {
        let file = partial::make(&self.folder, OsStr::new(name))
            .map_err(|error| ExportError::access(self.path(), error))?;
        self.files.push((file, name.to_owned()));
        Ok(self.files.len() - 1)
    }

    /// A file by its number.
    pub(crate) fn file(&mut self, number: usize) -> Option<&mut File> {
        self.files
            .get_mut(number)
            .map(|(hidden, _)| &mut hidden.file)
    }

    /// All files with their final names.
    pub(crate) fn files(&mut self) -> impl Iterator<Item = (&mut File, &str)> {
        let files = self.files.iter_mut();
        files.map(|(hidden, name)| (&mut hidden.file, name.as_str()))
    }

    /// Gives all files their names. Returns their number.
    ///
    /// # Errors
    /// One cannot be renamed.
    pub(crate) fn finish(mut self) -> Result<u64, ExportError> {
        for (hidden, name) in &self.files {
            self.folder
                .rename(&hidden.name, name)
                .map_err(|error| ExportError::access(self.folder.path(), error))?;
        }
        self.made.clear();
        Ok(std::mem::take(&mut self.files).len() as u64)
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // There is no caller left to report it to.
        for (hidden, _) in &self.files {
            let _ = self.folder.remove_file(&hidden.name);
        }
        remove_folders(&self.made);
    }
}

/// Removes the folders that are empty.
fn remove_folders(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        let _ = std::fs::remove_dir(folder);
    }
}
