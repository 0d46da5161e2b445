//! The positions of the fields of a page header, parsed from `events/header_page`.

use crate::format::guard::is_tame_line;
use tracepoint_decode::PerfFieldFormat;

/// The largest accepted sub-buffer, bytes: the length field of a page header has 27 bits.
const LARGEST_DATA: usize = 1 << 27;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A required field is missing.
    #[error(
        "events/header_page does not describe the field '{0}': this kernel's trace pages cannot be read"
    )]
    Missing(&'static str),
    /// A field has an impossible position.
    #[error(
        "events/header_page puts the field '{field}' at offset {offset} with size {size}, where it cannot be: \
         this kernel's trace pages cannot be read"
    )]
    Implausible {
        field: &'static str,
        /// Its offset in the text, bytes.
        offset: usize,
        /// Its size in the text, bytes.
        size: usize,
    },
}

/// Offsets of the page header's fields, in bytes from the start of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    pub(super) timestamp: usize,
    pub(super) commit: usize,
    pub(super) commit_size: usize,
    pub(super) data: usize,
    data_size: usize,
}

impl PageLayout {
    /// Parses the text of `events/header_page`.
    ///
    /// # Errors
    /// A field is missing, or has an impossible position.
    pub fn parse(header_page: &str) -> Result<PageLayout, LayoutError> {
        let mut timestamp = None;
        let mut commit = None;
        let mut data = None;
        for line in header_page.lines() {
            // The data size of a large sub-buffer exceeds the 16 bits of the library's parser.
            if let Some((offset, size)) = data_line(line) {
                data = Some((offset, size));
                continue;
            }
            if !is_tame_line(line) {
                continue;
            }
            let Some(field) = PerfFieldFormat::parse(true, line) else {
                continue;
            };
            let place = (usize::from(field.offset()), usize::from(field.size()));
            match field.name() {
                "timestamp" => timestamp = Some(place),
                "commit" => commit = Some(place),
                _ => {}
            }
        }
        let (timestamp, timestamp_size) = timestamp.ok_or(LayoutError::Missing("timestamp"))?;
        let (commit, commit_size) = commit.ok_or(LayoutError::Missing("commit"))?;
        let (data, data_size) = data.ok_or(LayoutError::Missing("data"))?;
        let implausible = |field, offset, size| {
            Err(LayoutError::Implausible {
                field,
                offset,
                size,
            })
        };
        if data > 4096 || data_size == 0 || data_size > LARGEST_DATA {
            return implausible("data", data, data_size);
        }
        if timestamp_size != 8 || timestamp + 8 > data {
            return implausible("timestamp", timestamp, timestamp_size);
        }
        let overlaps = commit < timestamp + timestamp_size && timestamp < commit + commit_size;
        if !matches!(commit_size, 4 | 8) || commit + commit_size > data || overlaps {
            return implausible("commit", commit, commit_size);
        }
        Ok(PageLayout {
            timestamp,
            commit,
            commit_size,
            data,
            data_size,
        })
    }

    /// Size of a whole sub-buffer in bytes, including the header: the length of one read.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.data + self.data_size
    }

    /// Bytes before the records.
    #[must_use]
    pub fn header_size(&self) -> usize {
        self.data
    }
}

/// Offset and size of the `data` field, if `line` describes it.
fn data_line(line: &str) -> Option<(usize, usize)> {
    let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
    if declaration.split_whitespace().last()? != "data" {
        return None;
    }
    let mut offset = None;
    let mut size = None;
    for property in rest.split(';') {
        match property.trim().split_once(':') {
            Some(("offset", value)) => offset = value.trim().parse().ok(),
            Some(("size", value)) => size = value.trim().parse().ok(),
            _ => {}
        }
    }
    Some((offset?, size?))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    #[test]
    fn fields_that_share_bytes_are_refused() {
        let shifted = HEADER.replace("timestamp;\toffset:0", "timestamp;\toffset:1");
        let refused = LayoutError::Implausible {
            field: "commit",
            offset: 8,
            size: 8,
        };
        assert_eq!(PageLayout::parse(&shifted), Err(refused));
    }

    #[test]
    fn the_kernels_text_is_read() {
        let layout = PageLayout::parse(HEADER).unwrap();
        assert_eq!((layout.header_size(), layout.page_size()), (16, 4096));
        let large = PageLayout::parse(&HEADER.replace("4080", "131056")).unwrap();
        assert_eq!(large.page_size(), 131_072);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        assert_eq!(
            PageLayout::parse(""),
            Err(LayoutError::Missing("timestamp"))
        );
        let far = HEADER.replace("commit;\toffset:8", "commit;\toffset:12");
        assert!(matches!(
            PageLayout::parse(&far),
            Err(LayoutError::Implausible {
                field: "commit",
                ..
            })
        ));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,400}", cut in 0usize..180) {
            let _ = PageLayout::parse(&text);
            let _ = PageLayout::parse(&HEADER[..cut.min(HEADER.len())]);
        }
    }
}
