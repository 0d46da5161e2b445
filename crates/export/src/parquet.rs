//! `parquet`: the store's own tables, copied as they are. Their columns are `jitterscope_store::SCHEMA`.

use crate::error::ExportError;
use jitterscope_store::{RunReader, SCHEMA};
use std::fs;
use std::path::Path;

/// Copies the tables of a run to a folder, which is made if it is not there. Returns how many.
pub(crate) fn copy(run: &RunReader, folder: &Path) -> Result<u64, ExportError> {
    fs::create_dir_all(folder).map_err(|e| ExportError::file(folder, e))?;
    let mut copied = 0;
    for (name, _) in SCHEMA {
        let to = folder.join(name);
        let partial = folder.join(format!(".{name}.{}.partial", std::process::id()));
        let result = fs::copy(run.path().join(name), &partial).and_then(|_| fs::rename(&partial, &to));
        if let Err(error) = result {
            // It may not be there; the error to tell is the first one.
            let _ = fs::remove_file(&partial);
            return Err(ExportError::file(&to, error));
        }
        copied += 1;
    }
    Ok(copied)
}
