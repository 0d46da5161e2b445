//! `parquet`: unchanged copies of the store's own tables, and the views that join them. `jitterscope_store::SCHEMA`
//! lists their columns.

use super::Format;
use crate::error::ExportError;
use crate::exporter::{CopyRun, Exporter};
use crate::partial_folder::PartialFolder;
use jitterscope_model::Delivery;
use jitterscope_store::{RunReader, SCHEMA, VIEWS, views};
use std::io::Write;
use std::path::Path;

pub(super) static FORMAT: Format = Format {
    schemes: &["parquet"],
    usage: &[("parquet://FOLDER", "the run's own tables")],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::folder(address.path()?, "table", Tables::open))
    },
};

/// The tables while they are copied into a folder.
struct Tables(PartialFolder);

impl Tables {
    /// Makes the folder if it is missing, and in it a hidden file for each table.
    fn open(folder: &Path) -> Result<Tables, ExportError> {
        let mut tables = PartialFolder::open(folder)?;
        for name in SCHEMA.map(|(name, _)| name).into_iter().chain([VIEWS]) {
            tables.make(name)?;
        }
        Ok(Tables(tables))
    }
}

impl CopyRun for Tables {
    /// Renames the tables once all of them are complete.
    fn copy(self: Box<Self>, run: &RunReader) -> Result<Delivery, ExportError> {
        let Tables(mut tables) = *self;
        let path = tables.path().to_owned();
        for (file, name) in tables.files() {
            let copied = if name == VIEWS {
                file.write_all(views().as_bytes())
            } else {
                std::io::copy(&mut run.table_file(name)?, file).map(drop)
            };
            copied.map_err(|e| ExportError::file(&path, e))?;
        }
        Ok(Delivery::of(tables.finish()?))
    }
}
