//! `parquet`: the store's own tables, copied as they are. Their columns are `jitterscope_store::SCHEMA`.

use super::Format;
use crate::error::ExportError;
use crate::exporter::{CopyRun, Exporter};
use crate::partial::{self, PartialFile};
use jitterscope_platform::HeldDir;
use jitterscope_store::{RunReader, SCHEMA};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Its row.
pub(super) static FORMAT: Format = Format {
    schemes: &["parquet"],
    usage: &[("parquet://FOLDER", "the run's own tables")],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::folder(address.path()?, Tables::open))
    },
};

/// The tables on their way to a folder. Dropped early, they leave nothing behind, nor a folder that was
/// made for them.
struct Tables {
    folder: HeldDir,
    /// Folders that were made, the outermost first.
    made: Vec<PathBuf>,
    /// Each table's hidden file, and its final name.
    tables: Vec<(PartialFile, &'static str)>,
}

impl Tables {
    /// Makes the folder if it is not there, and in it a file for each table under a hidden name.
    fn open(folder: &Path) -> Result<Tables, ExportError> {
        let mut made: Vec<PathBuf> = folder
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
            .map(Path::to_path_buf)
            .collect();
        made.reverse();
        let failed = |error| ExportError::access(folder, error);
        let mut tables = match HeldDir::named_or_made(folder) {
            Ok(folder) => Tables {
                folder,
                made,
                tables: Vec::new(),
            },
            Err(error) => {
                remove_folders(&made);
                return Err(failed(error));
            }
        };
        for (name, _) in SCHEMA {
            let table = partial::make(&tables.folder, OsStr::new(name)).map_err(failed)?;
            tables.tables.push((table, name));
        }
        Ok(tables)
    }
}

impl CopyRun for Tables {
    /// The tables get their names when all of them are whole.
    fn copy(mut self: Box<Self>, run: &RunReader) -> Result<u64, ExportError> {
        let path = self.folder.path();
        for (PartialFile { file, .. }, name) in &mut self.tables {
            std::io::copy(&mut run.table_file(name)?, file)
                .map_err(|e| ExportError::file(path, e))?;
        }
        for (hidden, name) in &self.tables {
            self.folder
                .rename(&hidden.name, name)
                .map_err(|e| ExportError::access(path, e))?;
        }
        self.made.clear();
        Ok(std::mem::take(&mut self.tables).len() as u64)
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // Nobody is left to report it to.
        for (hidden, _) in &self.tables {
            let _ = self.folder.remove_file(&hidden.name);
        }
        remove_folders(&self.made);
    }
}

/// Those in which nothing else appeared.
fn remove_folders(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        let _ = std::fs::remove_dir(folder);
    }
}
