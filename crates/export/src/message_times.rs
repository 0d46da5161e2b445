//! Exports a pipeline's histogram as two files: the percentile table and the interval log.

use crate::error::ExportError;
use crate::formats::hgrm::table;
use crate::formats::hlog::log_of;
use hdrhistogram::Histogram;
use jitterscope_model::{MessageTimes, Nanos};
use jitterscope_platform::OutputPlace;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The largest value of the probe's histograms: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Writes `FOLDER/STEM.hgrm` and `FOLDER/STEM.hlog`, values in nanoseconds, for a measurement that began at
/// `started_realtime_ns` and took `length`. Returns both paths.
///
/// # Errors
/// The files cannot be written.
pub fn write_message_times(
    folder: &Path,
    stem: &str,
    times: &MessageTimes,
    (started_realtime_ns, length): (u64, Nanos),
) -> Result<[PathBuf; 2], ExportError> {
    let histogram = histogram(times)?;
    let hgrm = folder.join(format!("{stem}.hgrm"));
    let hlog = folder.join(format!("{stem}.hlog"));
    write(&hgrm, table(&histogram).as_bytes())?;
    write(&hlog, &log_of(&histogram, started_realtime_ns, length)?)?;
    Ok([hgrm, hlog])
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ExportError> {
    let place = OutputPlace::find(path).map_err(|e| ExportError::access(path, e))?;
    let (_, mut opened) = place.open().map_err(|e| ExportError::access(path, e))?;
    let written = opened.empty().and_then(|()| opened.file.write_all(bytes));
    written.map_err(|e| ExportError::file(path, e))
}

/// Rebuilds the probe's histogram: each stored value is the highest of its bucket.
fn histogram(times: &MessageTimes) -> Result<Histogram<u64>, ExportError> {
    let failed = |error: &dyn std::fmt::Display| ExportError::Histogram(error.to_string());
    let mut histogram = Histogram::new_with_bounds(1, LONGEST_NS, 3).map_err(|e| failed(&e))?;
    for (value, count) in &times.plain {
        histogram.saturating_record_n(*value, *count);
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_hold_every_count() {
        let times = MessageTimes {
            count: 105,
            min: Nanos(76),
            max: Nanos(11_534_399),
            sum: Nanos(0),
            plain: vec![(76, 50), (168, 54), (11_534_399, 1)],
        };
        let dir = tempfile::tempdir().unwrap();
        let [hgrm, hlog] = write_message_times(
            dir.path(),
            "x",
            &times,
            (1_443_100_651_000_000_000, Nanos(2_000_000_000)),
        )
        .unwrap();
        let text = std::fs::read_to_string(hgrm).unwrap();
        assert!(text.contains("Total count    =          105"), "{text}");
        assert!(text.lines().nth(2).unwrap().contains("76.000"), "{text}");
        let log = std::fs::read(hlog).unwrap();
        let log = String::from_utf8(log).unwrap();
        assert!(log.contains("#[StartTime: 1443100651"), "{log}");
        let row = log.lines().last().unwrap();
        assert!(row.starts_with("0.000,2.000,11.5"), "{row}");
        assert!(write_message_times(&dir.path().join("no"), "x", &times, (0, Nanos(0))).is_err());
    }
}
