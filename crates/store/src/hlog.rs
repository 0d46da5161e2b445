//! `histograms.hlog`: the HdrHistogram V2 interval log.

use crate::error::StoreError;
use crate::hlog_reader::LONGEST_LINE;
use crate::reserved::ReservedFile;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use jitterscope_platform::HeldDir;
use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, SystemTime};

/// Interval_Max is in milliseconds, as in jHiccup and its log processor; values are in ns.
const NANOS_PER_MS: f64 = 1e6;

/// How the line of an interval begins.
const TAG: &[u8] = b"Tag=";

/// Room reserved ahead, bytes: for the last intervals of every CPU and a pipeline's whole-run histograms.
const AHEAD: u64 = 1 << 20;

/// The library's writer borrows all its parts, so a writer is made for each line, which comes once a second.
pub(crate) struct Hlog {
    file: ReservedFile,
    serializer: V2DeflateSerializer,
    started: Option<SystemTime>,
}

impl Hlog {
    pub(crate) fn create(folder: &HeldDir, name: &str) -> Result<Hlog, StoreError> {
        let mut file = ReservedFile::create(folder, name)?;
        file.reserve(AHEAD)?;
        Ok(Hlog {
            file,
            serializer: V2DeflateSerializer::new(),
            started: None,
        })
    }

    /// A log with the header and the first `lines` intervals of another one, whose rest may be damaged.
    pub(crate) fn copy(
        from: &HeldDir,
        into: &HeldDir,
        name: &str,
        lines: usize,
    ) -> Result<Hlog, StoreError> {
        let mut log = Hlog::create(into, name)?;
        let path = from.path().join(name);
        let mut old = BufReader::new(from.open_file(name).map_err(StoreError::reading)?);
        let mut copied = 0;
        loop {
            let mut line = Vec::new();
            let read = old.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
            read.map_err(|e| StoreError::read(&path, e))?;
            let is_interval = line.starts_with(TAG);
            // What follows the last wanted line, or no line break, is not part of it.
            if !line.ends_with(b"\n") || (is_interval && copied == lines) {
                return Ok(log);
            }
            copied += usize::from(is_interval);
            log.file.reserve(line.len() as u64).and_then(|()| {
                log.file
                    .write_all(&line)
                    .map_err(|e| StoreError::write(log.file.path(), e))
            })?;
        }
    }

    pub(crate) fn begin(&mut self, started: SystemTime) -> Result<(), StoreError> {
        self.started = Some(started);
        let mut builder = IntervalLogWriterBuilder::new();
        builder
            .add_comment("[Logged with jitterscope: stalls, values in nanoseconds]")
            .add_comment(jitterscope_model::LENGTHS_REMARK)
            .with_start_time(started)
            .with_base_time(started)
            .with_max_value_divisor(NANOS_PER_MS);
        let mut header = Vec::new();
        builder
            .begin_log_with(&mut header, &mut self.serializer)
            .map_err(|e| StoreError::write(self.file.path(), e))?;
        self.file
            .write_all(&header)
            .map_err(|e| StoreError::write(self.file.path(), e))
    }

    /// Writes one interval: its start since the beginning of the log, its length and its histogram.
    pub(crate) fn write(
        &mut self,
        tag: &str,
        start: Duration,
        length: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<(), StoreError> {
        let Some(tag) = Tag::new(tag) else {
            return Ok(());
        };
        let mut line = Vec::new();
        {
            // Each line has its own writer. The header that the writer begins with is cut off.
            let mut builder = IntervalLogWriterBuilder::new();
            builder.with_max_value_divisor(NANOS_PER_MS);
            let mut writer: IntervalLogWriter<'_, '_, Vec<u8>, V2DeflateSerializer> = builder
                .begin_log_with(&mut line, &mut self.serializer)
                .map_err(|e| StoreError::write(self.file.path(), e))?;
            writer
                .write_histogram(histogram, start, length, Some(tag))
                .map_err(|e| StoreError::damaged(self.file.path(), format!("{e:?}")))?;
        }
        // Each writer begins by stating the divisor in a line of its own.
        let record = line
            .splitn(2, |byte| *byte == b'\n')
            .nth(1)
            .unwrap_or_default();
        // Reserves room for this line and for the lines that may follow after the disk is full.
        if let Err(error) = self.file.reserve(AHEAD + record.len() as u64)
            && !(error.is_full() && self.file.has_room(record.len() as u64))
        {
            return Err(error);
        }
        self.file
            .write_all(record)
            .map_err(|e| StoreError::write(self.file.path(), e))
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.file.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reserved::STEP;
    use jitterscope_testing::Tmpfs;

    /// A histogram of many buckets whose counts do not compress.
    fn lengths() -> Histogram<u64> {
        let mut lengths = Histogram::new(3).unwrap();
        for n in 0..5_000_u64 {
            lengths
                .record_n(n, 1 + (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50))
                .unwrap();
        }
        lengths
    }

    fn log(folder: &HeldDir) -> Hlog {
        let mut log = Hlog::create(folder, "log").unwrap();
        log.begin(SystemTime::UNIX_EPOCH).unwrap();
        log
    }

    fn line(log: &mut Hlog, lengths: &Histogram<u64>) -> Result<(), StoreError> {
        log.write("x", Duration::ZERO, Duration::from_secs(1), lengths)
    }

    #[test]
    fn behind_each_line_there_is_room_for_those_to_come() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = log(&HeldDir::trusted(dir.path()).unwrap());
        let lengths = lengths();
        for n in 0..200 {
            line(&mut log, &lengths).unwrap();
            assert!(log.file.has_room(AHEAD), "line {n}");
            // The file must not reserve much more either: the disk serves other writers, too.
            assert!(!log.file.has_room(AHEAD + STEP), "line {n}");
        }
        assert!(std::fs::metadata(log.file.path()).unwrap().len() > 3 * STEP);
    }

    #[test]
    fn a_full_disk_takes_lines_while_it_has_room() {
        let Some(disk) = Tmpfs::mount_or_run_where_it_can(4 << 20) else {
            return;
        };
        let folder = HeldDir::trusted(disk.path()).unwrap();
        let mut log = log(&folder);
        let mut other = folder.create_new("other").unwrap();
        while other.write_all(&[1; 4096]).is_ok() {}
        let lengths = lengths();
        let mut lines = 0;
        let error = loop {
            match line(&mut log, &lengths) {
                Ok(()) => lines += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_full(), "{error}");
        let path = log.file.path().to_owned();
        let used = std::fs::metadata(&path).unwrap().len();
        assert!(
            (AHEAD - used) < used / lines,
            "{lines} lines in {used} bytes"
        );
        log.finish().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("Tag=x,"))
                .count() as u64,
            lines
        );
    }
}
