//! Documents of a run: JSON files.

use crate::error::StoreError;
use serde::Serialize;
use std::path::Path;

/// A value as the bytes of its file.
pub(crate) fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|e| StoreError::damaged(path, e))?;
    text.push(b'\n');
    Ok(text)
}
