//! `parquet`: unchanged copies of the store's own tables, and the views that join them. `jitterscope_store::SCHEMA`
//! lists their columns.

use super::Format;
use crate::error::ExportError;
use crate::exporter::{CopyRun, Exporter};
use crate::partial::{self, PartialFile};
use jitterscope_model::Delivery;
use jitterscope_platform::HeldDir;
use jitterscope_store::{RunReader, SCHEMA, VIEWS, views};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(super) static FORMAT: Format = Format {
    schemes: &["parquet"],
    usage: &[("parquet://FOLDER", "the run's own tables")],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::folder(address.path()?, "table", Tables::open))
    },
};

/// The tables while they are copied into a folder. Dropped early, they leave neither files nor new folders.
struct Tables {
    folder: HeldDir,
    /// The folders that this export made, the outermost first.
    made: Vec<PathBuf>,
    /// Each table's hidden file, and its final name.
    tables: Vec<(PartialFile, &'static str)>,
}

impl Tables {
    /// Makes the folder if it is missing, and in it a hidden file for each table.
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
        for name in SCHEMA.map(|(name, _)| name).into_iter().chain([VIEWS]) {
            let table = partial::make(&tables.folder, OsStr::new(name)).map_err(failed)?;
            tables.tables.push((table, name));
        }
        Ok(tables)
    }
}

impl CopyRun for Tables {
    /// Renames the tables once all of them are complete.
    fn copy(mut self: Box<Self>, run: &RunReader) -> Result<Delivery, ExportError> {
        let path = self.folder.path();
        for (PartialFile { file, .. }, name) in &mut self.tables {
            let copied = if *name == VIEWS {
                file.write_all(views().as_bytes())
            } else {
                std::io::copy(&mut run.table_file(name)?, file).map(drop)
            };
            copied.map_err(|e| ExportError::file(path, e))?;
        }
        for (hidden, name) in &self.tables {
            self.folder
                .rename(&hidden.name, name)
                .map_err(|e| ExportError::access(path, e))?;
        }
        self.made.clear();
        Ok(Delivery::of(std::mem::take(&mut self.tables).len() as u64))
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // There is no caller left to report it to.
        for (hidden, _) in &self.tables {
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
