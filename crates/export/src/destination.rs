//! The destination of an export, as the user writes it.

use crate::address::Address;
use crate::error::{DestinationError, ExportError};
use crate::exporter::{CopyRun, Exporter, Opening, Place};
use crate::formats::of_scheme;
use crate::pace::Pace;
use jitterscope_model::{PutInOrder, Sink};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// A place and a format. Two destinations are equal if they name the same place with the same options.
#[derive(Clone)]
pub struct Destination {
    scheme: &'static str,
    /// Options as given, sorted by key.
    options: Vec<(String, String)>,
    exporter: Arc<Exporter>,
}

/// A destination, opened for a stored run.
pub(crate) enum Opened {
    Rows(Box<dyn Sink + Send>),
    /// The destination copies the run's files.
    Copy(Box<dyn CopyRun>),
}

impl Destination {
    /// The text before `://`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }

    /// An option's value, as given.
    #[must_use]
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options
            .iter()
            .find(|(own, _)| own == key)
            .map(|(_, value)| value.as_str())
    }

    /// The same format with the same options and one more, written to another file.
    ///
    /// # Errors
    /// The format does not take the option, or the path is not valid text.
    pub fn with(
        &self,
        path: &Path,
        (key, value): (&str, &str),
    ) -> Result<Destination, DestinationError> {
        let options: Vec<String> = self
            .options
            .iter()
            .map(|(key, value)| format!("{key}={value}&"))
            .collect();
        format!(
            "{}://{}?{}{key}={value}",
            self.scheme,
            path.display(),
            options.concat()
        )
        .parse()
    }

    /// A caveat that the user should know.
    #[must_use]
    pub fn remark(&self) -> Option<&str> {
        self.exporter.remark.as_deref()
    }

    /// The file or folder of the destination, or `-`.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.exporter.place {
            Place::File(path) | Place::Folder(path) => Some(path),
            Place::Server(_) => None,
        }
    }

    /// Whether the destination is standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        matches!(&self.exporter.place, Place::File(path) if path == Path::new("-"))
    }

    /// Whether the destination copies what a stored run holds instead of taking rows.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        matches!(self.exporter.opening, Opening::Copy(_))
    }

    /// What the destination counts: `row`, `table`, `page`.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        match &self.exporter.opening {
            Opening::Rows(_) => "row",
            Opening::Copy(copying) => copying.unit,
        }
    }

    /// Opens the destination for the rows of a recording: makes files and contacts servers. Call it from a thread that
    /// keeps off the measured CPUs: a live target's threads inherit the caller's CPUs.
    ///
    /// # Errors
    /// A file is not writable, a host does not resolve, or a server is unreachable.
    pub fn open(&self, pace: Pace) -> Result<Box<dyn Sink + Send>, ExportError> {
        match &self.exporter.opening {
            Opening::Rows(open) => open(pace),
            Opening::Copy(_) => Err(ExportError::StoredOnly(self.scheme)),
        }
    }

    /// Opens the destination for a stored run.
    pub(crate) fn open_stored(&self) -> Result<Opened, ExportError> {
        Ok(match &self.exporter.opening {
            Opening::Rows(open) => Opened::Rows(open(Pace::Stored)?),
            Opening::Copy(copying) => Opened::Copy((copying.open)()?),
        })
    }
}

impl fmt::Display for Destination {
    /// Writes the scheme and the place, without options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.exporter.place {
            Place::File(path) | Place::Folder(path) => {
                write!(f, "{}://{}", self.scheme, path.display())
            }
            Place::Server(shown) => write!(f, "{}://{shown}", self.scheme),
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} {:?}", self.options)
    }
}

impl PartialEq for Destination {
    fn eq(&self, other: &Destination) -> bool {
        self.to_string() == other.to_string() && self.options == other.options
    }
}

impl Eq for Destination {}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Destination, DestinationError> {
        let address = Address::split(text)?;
        let (scheme, format) = of_scheme(address.scheme)?;
        let exporter = Arc::new((format.read)(&address)?);
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let mut options: Vec<(String, String)> = address.options.iter().map(own).collect();
        options.put_in_order();
        Ok(Destination {
            scheme,
            options,
            exporter,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(text: &str) -> Result<Destination, DestinationError> {
        text.parse()
    }

    #[test]
    fn places_and_options_are_read_and_shown() {
        for (text, shown, path) in [
            ("csv://a/b.csv", "csv://a/b.csv", Some("a/b.csv")),
            ("hgrm:///x?cpu=3", "hgrm:///x", Some("/x")),
            ("parquet://a/", "parquet://a/", Some("a/")),
            ("influx://[::1]:8089/", "influx://[::1]:8089", None),
            (
                "influx2+https://h:1/?org=my%20org&bucket=b",
                "influx2+https://h:1",
                None,
            ),
        ] {
            let read = target(text).unwrap();
            assert_eq!(
                (read.to_string().as_str(), read.path()),
                (shown, path.map(Path::new))
            );
        }
        assert_eq!(target("hgrm:///x?cpu=3").unwrap().option("cpu"), Some("3"));
        assert_eq!(target("hgrm://x?cpu=3&of=a"), target("hgrm://x?of=a&cpu=3"));
        assert_ne!(target("hgrm://x?cpu=3"), target("hgrm://x?cpu=4"));
        assert_ne!(target("hgrm://x"), target("csv://x"));
        let with = target("csv://x?formulas=escape")
            .unwrap()
            .with(Path::new("y"), ("rows", "series"));
        assert_eq!(with, target("csv://y?rows=series&formulas=escape"));
    }

    #[test]
    fn each_mistake_says_what_to_write() {
        for (text, word) in [
            ("file.csv", "SCHEME://"),
            ("xml://a", "csv, json"),
            ("csv://", "name a file"),
            ("csv://a?row=1", "rows="),
            (
                "csv://a?rows=all",
                "'rows=all' is no option of it; there is rows=stalls",
            ),
            ("csv://a?formulas=1", "'formulas=1' is no option of it"),
            ("csv://a?rows=stalls&rows=series", "'rows' is given twice"),
            ("hgrm://a?cpu=x", "cpu cannot be 'x'"),
            ("json://a?b=c", "there is none"),
            ("influx+http://h:1/?db=a&db=b", "'db' is given twice"),
        ] {
            let error = target(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn hostile_targets_never_panic(text in "(csv|hgrm|influx|influx2[+]http)://[a-z0-9:/?&=%]{0,30}") {
            let _ = text.parse::<Destination>();
        }
    }
}
