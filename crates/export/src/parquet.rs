//! `parquet`: the store's own tables, copied as they are. Their columns are `jitterscope_store::SCHEMA`.

use crate::error::ExportError;
use jitterscope_store::{RunReader, SCHEMA};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The tables on their way to a folder. Dropped early, they leave nothing behind, nor a folder that was
/// made for them.
pub(crate) struct Tables {
    folder: PathBuf,
    /// Folders that were made, the outermost first.
    made: Vec<PathBuf>,
    /// Each table's hidden and final name.
    names: Vec<(PathBuf, PathBuf)>,
}

impl Tables {
    /// Makes the folder if it is not there, and in it a file for each table under a hidden name.
    pub(crate) fn open(folder: &Path) -> Result<Tables, ExportError> {
        let mut made: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .map(Path::to_path_buf)
            .collect();
        made.reverse();
        let hidden = |name: &str| folder.join(format!(".{name}.{}.partial", std::process::id()));
        let names = SCHEMA.iter().map(|(name, _)| (hidden(name), folder.join(name))).collect();
        let tables = Tables { folder: folder.into(), made, names };
        fs::create_dir_all(folder).map_err(|e| ExportError::file(folder, e))?;
        for (partial, _) in &tables.names {
            File::create(partial).map_err(|e| ExportError::file(folder, e))?;
        }
        Ok(tables)
    }

    /// Copies the run's tables; they get their names when all of them are whole. Returns how many.
    pub(crate) fn copy(mut self, run: &RunReader) -> Result<u64, ExportError> {
        let error = |e| ExportError::file(&self.folder, e);
        for ((partial, _), (name, _)) in self.names.iter().zip(SCHEMA) {
            fs::copy(run.path().join(name), partial).map_err(error)?;
        }
        for (partial, whole) in &self.names {
            fs::rename(partial, whole).map_err(error)?;
        }
        self.made.clear();
        Ok(std::mem::take(&mut self.names).len() as u64)
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // Nobody is left to be told; a folder in which something else appeared stays.
        for (partial, _) in &self.names {
            let _ = fs::remove_file(partial);
        }
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}
