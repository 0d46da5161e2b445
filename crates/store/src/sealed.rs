//! The rows of an unfinished run that are in its tables for good, so that its log need not have them.
//!
//! A table is unreadable without its footer, which describes all of its groups. Here is a footer for a part of each
//! table: with it, so much of the file is a table.

use crate::budget::document;
use crate::error::StoreError;
use crate::writer::write_document;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jitterscope_platform::HeldDir;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::Write;

/// The file, and its name until it is complete.
pub(crate) const SEALED: &str = "sealed.json";
const SEALED_PARTIAL: &str = ".sealed.json";
/// The largest accepted file, bytes. The five footers of a day-long run have less than 2 MiB.
const LARGEST: u64 = 64 << 20;

/// A part of each table.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sealed {
    /// The number of the log with the rows behind them.
    pub(crate) log: u32,
    pub(crate) tables: Vec<SealedTable>,
}

/// A part of a table.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SealedTable {
    pub(crate) file: String,
    pub(crate) bytes: u64,
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub(crate) footer: Vec<u8>,
}

impl Sealed {
    /// What an unfinished run has sealed; nothing if there is no such file.
    ///
    /// # Errors
    /// The file is damaged.
    pub(crate) fn read(folder: &HeldDir) -> Result<Sealed, StoreError> {
        match folder.open_file(SEALED) {
            Err(error) if error.is_absent() => Ok(Sealed::default()),
            opened => {
                let file = opened.map_err(StoreError::reading)?;
                document(&file, &folder.path().join(SEALED), LARGEST)
            }
        }
    }

    /// Writes the file in place of the one before.
    ///
    /// # Errors
    /// The disk is full or fails.
    pub(crate) fn write(&self, folder: &HeldDir) -> Result<(), StoreError> {
        let _ = folder.remove_file(SEALED_PARTIAL);
        write_document(folder, SEALED_PARTIAL, self)?;
        folder
            .rename(SEALED_PARTIAL, SEALED)
            .map_err(StoreError::writing)
    }

    /// Makes tables of the sealed parts, and removes what is behind them. May be repeated.
    ///
    /// # Errors
    /// A file is missing or too short, or the disk is full or fails.
    pub(crate) fn make_tables(&self, folder: &HeldDir) -> Result<(), StoreError> {
        for SealedTable {
            file,
            bytes,
            footer,
        } in &self.tables
        {
            let path = folder.path().join(file);
            let mut table = folder.open_own(file).map_err(StoreError::writing)?;
            let length = table
                .metadata()
                .map_err(|e| StoreError::read(&path, e))?
                .len();
            if length < *bytes {
                return Err(StoreError::damaged(&path, "it is shorter than it was"));
            }
            table
                .set_len(*bytes)
                .and_then(|()| table.write_all(footer))
                .map_err(|e| StoreError::write(&path, e))?;
        }
        Ok(())
    }
}

fn as_text<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(bytes))
}

fn from_text<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}
