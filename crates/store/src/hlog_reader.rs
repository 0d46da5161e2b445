//! Reading the histogram log, a line at a time.

use crate::error::StoreError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, LogEntry,
};
use jitterscope_platform::HeldDir;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// No line of ours is longer, bytes: a histogram up to an hour with every bucket in use takes 1 MiB.
const LONGEST_LINE: u64 = 16 << 20;

/// The stalls of one interval of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHistogram {
    /// `<probe>-cpu<N>`.
    pub tag: String,
    /// Their lengths in nanoseconds.
    pub histogram: Histogram<u64>,
}

/// All lines of a log. The library reads from memory alone, so each line is a log of its own to it.
pub(crate) struct HistogramLog {
    path: PathBuf,
    lines: BufReader<File>,
    deserializer: Deserializer,
    failed: bool,
}

impl HistogramLog {
    pub(crate) fn open(run: &HeldDir, name: &str) -> Result<HistogramLog, StoreError> {
        let path = run.path().join(name);
        let lines = BufReader::new(run.open_file(name).map_err(StoreError::reading)?);
        Ok(HistogramLog {
            path,
            lines,
            deserializer: Deserializer::new(),
            failed: false,
        })
    }
}

impl Iterator for HistogramLog {
    type Item = Result<StoredHistogram, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            let mut line = Vec::new();
            match (&mut self.lines)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)
            {
                Ok(0) => return None,
                Ok(_) if line.len() as u64 >= LONGEST_LINE => {
                    self.failed = true;
                    return Some(Err(StoreError::damaged(
                        &self.path,
                        "a line is too long for a histogram",
                    )));
                }
                Ok(_) => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(StoreError::read(&self.path, error)));
                }
            }
            for entry in IntervalLogIterator::new(&line) {
                let found = match entry {
                    Ok(LogEntry::Interval(interval)) => {
                        decode(&mut self.deserializer, &self.path, &interval)
                    }
                    Ok(_) => continue,
                    Err(_) => Err(StoreError::damaged(&self.path, "a line is no interval")),
                };
                self.failed = found.is_err();
                return Some(found);
            }
        }
        None
    }
}

fn decode(
    deserializer: &mut Deserializer,
    path: &Path,
    interval: &IntervalLogHistogram<'_>,
) -> Result<StoredHistogram, StoreError> {
    let bytes = STANDARD
        .decode(interval.encoded_histogram())
        .map_err(|e| StoreError::damaged(path, e))?;
    let histogram = deserializer
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| StoreError::damaged(path, format!("a histogram cannot be decoded: {e}")))?;
    let tag = interval
        .tag()
        .map(|tag| tag.as_str().to_owned())
        .unwrap_or_default();
    Ok(StoredHistogram { tag, histogram })
}
