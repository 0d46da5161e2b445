//! Reads the histogram log, a line at a time.

use crate::error::StoreError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, LogEntry,
};
use jitterscope_platform::HeldDir;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest accepted line, bytes: a histogram up to an hour with every bucket in use takes 1 MiB.
pub(crate) const LONGEST_LINE: u64 = 4 << 20;
/// The largest accepted histogram after inflation, bytes.
const LARGEST: u64 = 4 << 20;
/// The magic numbers of a deflated histogram and a plain one.
const DEFLATED: u32 = 0x1c84_9314;
const INFLATED: u32 = 0x1c84_9313;
/// Offset of the number of significant digits in a plain histogram, and the largest accepted number: with five digits,
/// the counts alone take 50 MB.
const DIGITS_AT: usize = 12;
const MOST_DIGITS: u64 = 3;

/// The stalls of one interval of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredHistogram {
    /// `<probe>-cpu<N>`.
    pub tag: String,
    /// Their lengths in nanoseconds.
    pub histogram: Histogram<u64>,
}

/// All lines of a log. The library reads from memory only, so each line is passed to it as a log.
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
    let bytes = inflated(&bytes, path)?;
    let histogram = deserializer
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| StoreError::damaged(path, format!("a histogram cannot be decoded: {e}")))?;
    let tag = interval
        .tag()
        .map(|tag| tag.as_str().to_owned())
        .unwrap_or_default();
    Ok(StoredHistogram { tag, histogram })
}

/// Inflates a histogram and checks its size. The library itself inflates any size, and allocates all counts that the
/// header claims.
fn inflated(bytes: &[u8], path: &Path) -> Result<Vec<u8>, StoreError> {
    let cap = |what, found, most| StoreError::Cap {
        path: path.to_path_buf(),
        what,
        found,
        most,
    };
    let none = || StoreError::damaged(path, "a histogram does not begin as one");
    let begins = number_at(bytes, 0);
    if begins != Some(DEFLATED) && begins != Some(INFLATED) {
        return Err(none());
    }
    let mut whole = Vec::new();
    if begins == Some(DEFLATED) {
        // The payload follows the magic number and its length.
        let deflated = bytes.get(8..).ok_or_else(none)?;
        ZlibDecoder::new(deflated)
            .take(LARGEST + 1)
            .read_to_end(&mut whole)
            .map_err(|e| {
                StoreError::damaged(path, format!("a histogram cannot be decoded: {e}"))
            })?;
    } else {
        whole.extend_from_slice(bytes);
    }
    if whole.len() as u64 > LARGEST {
        let found = whole.len() as u64;
        return Err(cap("bytes of a histogram", found, LARGEST));
    }
    // The library would inflate a twice-deflated histogram again.
    if number_at(&whole, 0) != Some(INFLATED) {
        return Err(none());
    }
    let digits = u64::from(number_at(&whole, DIGITS_AT).ok_or_else(none)?);
    if digits > MOST_DIGITS {
        return Err(cap("digits of a histogram", digits, MOST_DIGITS));
    }
    Ok(whole)
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut deflated = ZlibEncoder::new(Vec::new(), Compression::best());
        deflated.write_all(bytes).unwrap();
        let payload = deflated.finish().unwrap();
        let length = u32::try_from(payload.len()).unwrap();
        [&DEFLATED.to_be_bytes()[..], &length.to_be_bytes(), &payload].concat()
    }

    fn head(digits: u32, highest: u64) -> Vec<u8> {
        [
            &INFLATED.to_be_bytes()[..],
            &[0; 8],
            &digits.to_be_bytes(),
            &1u64.to_be_bytes(),
            &highest.to_be_bytes(),
            &1f64.to_be_bytes(),
        ]
        .concat()
    }

    #[test]
    fn what_would_inflate_beyond_any_histogram_is_refused() {
        let of = |bytes: &[u8]| inflated(bytes, Path::new("histograms.hlog"));
        let fine = head(3, 3_600_000_000_000);
        assert_eq!(of(&fine).unwrap(), fine);
        assert_eq!(of(&deflated(&fine)).unwrap(), fine);
        let bomb = [fine.clone(), vec![0; 64 << 20]].concat();
        assert!(deflated(&bomb).len() < 100_000);
        for (bytes, what) in [
            (deflated(&bomb), "bytes of a histogram"),
            (deflated(&head(5, u64::MAX)), "digits of a histogram"),
            (head(4, 1 << 40), "digits of a histogram"),
        ] {
            let error = of(&bytes).unwrap_err();
            assert!(
                matches!(&error, StoreError::Cap { what: found, .. } if *found == what),
                "{error}"
            );
        }
        for damaged in [
            &b""[..],
            b"none",
            &deflated(&deflated(&fine)),
            &deflated(&fine)[..12],
        ] {
            assert!(matches!(of(damaged), Err(StoreError::Damaged { .. })));
        }
    }
}
