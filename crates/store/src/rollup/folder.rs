//! The folder of a watch's hours: written by the watch, emptied by the uploader.

use super::{HostHour, HourFile};
use jitterscope_model::PutInOrder;
use jitterscope_platform::{AccessError, HeldDir};

/// Its name, in the folder of the watch.
pub const HOURS: &str = "hours";
/// The largest accepted file, bytes: eight groups of 64 culprits, 600 buckets and 8 stalls need about 1 MiB.
const LARGEST: u64 = 8 << 20;

/// The hours in a folder, the oldest first. Other files are passed over.
///
/// # Errors
/// It cannot be listed.
pub fn hours_in(folder: &HeldDir) -> Result<Vec<HourFile>, AccessError> {
    let entries = folder.entries()?;
    let names = entries.iter().filter_map(|entry| entry.name.to_str());
    let mut files: Vec<HourFile> = names.filter_map(HourFile::parse).collect();
    files.put_in_order();
    Ok(files)
}

/// Reads an hour; `None` if the file is damaged or has another form.
///
/// # Errors
/// It cannot be read.
pub fn read_hour(folder: &HeldDir, file: &HourFile) -> Result<Option<HostHour>, AccessError> {
    let text = folder.read(file.name(), LARGEST)?;
    Ok(serde_json::from_slice(&text).ok())
}
