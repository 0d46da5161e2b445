//! Exporters: the target of each format, and the way to open it.

use crate::error::ExportError;
use crate::line_file::{LineFile, RowLines};
use crate::output::Output;
use crate::pace::Pace;
use jitterscope_model::{Delivery, Sink};
use jitterscope_store::RunReader;
use std::path::{Path, PathBuf};

/// A destination that its format has parsed. Nothing is open yet.
pub(crate) struct Exporter {
    pub(crate) place: Place,
    pub(crate) opening: Opening,
    /// A caveat that the user should know.
    pub(crate) remark: Option<String>,
}

/// The target of an exporter.
pub(crate) enum Place {
    /// One file, or `-`.
    File(PathBuf),
    /// Files in a folder.
    Folder(PathBuf),
    /// A server, as the user sees it.
    Server(String),
}

/// How an exporter is opened.
pub(crate) enum Opening {
    /// The exporter takes the rows of a stored run or of a recording.
    Rows(Box<OpenRows>),
    /// The exporter copies what a stored run holds.
    Copy(Copying),
}

/// How a copy is opened.
pub(crate) struct Copying {
    pub(crate) open: Box<OpenCopy>,
    /// What it copies: `table`, `page`.
    pub(crate) unit: &'static str,
}

type OpenRows = dyn Fn(Pace) -> Result<Box<dyn Sink + Send>, ExportError> + Send + Sync;
type OpenCopy = dyn Fn() -> Result<Box<dyn CopyRun>, ExportError> + Send + Sync;

/// Copies what a stored run holds, instead of its rows.
pub(crate) trait CopyRun {
    /// Copies it.
    ///
    /// # Errors
    /// The run cannot be read, or the files cannot be written.
    fn copy(self: Box<Self>, run: &RunReader) -> Result<Delivery, ExportError>;
}

impl Exporter {
    /// Writes rows to one file.
    pub(crate) fn file<S: Sink + Send + 'static>(
        path: PathBuf,
        sink: impl Fn(Output) -> S + Send + Sync + 'static,
    ) -> Exporter {
        let own = path.clone();
        let open = move |pace| -> Result<Box<dyn Sink + Send>, ExportError> {
            Ok(Box::new(sink(Output::open(&own, pace)?)))
        };
        Exporter {
            place: Place::File(path),
            opening: Opening::Rows(Box::new(open)),
            remark: None,
        }
    }

    /// Writes a line for each row to one file. The parameter of `lines` says whether the output is a terminal.
    pub(crate) fn lines<L: RowLines + Send + 'static>(
        path: PathBuf,
        lines: impl Fn(bool) -> L + Send + Sync + 'static,
    ) -> Exporter {
        Exporter::file(path, move |output| {
            LineFile::new(lines(output.is_terminal()), output)
        })
    }

    /// Sends rows to a server.
    pub(crate) fn server<S: Sink + Send + 'static>(
        shown: &str,
        sink: impl Fn(Pace) -> Result<S, ExportError> + Send + Sync + 'static,
    ) -> Exporter {
        let open =
            move |pace| -> Result<Box<dyn Sink + Send>, ExportError> { Ok(Box::new(sink(pace)?)) };
        let place = Place::Server(shown.to_owned());
        Exporter {
            place,
            opening: Opening::Rows(Box::new(open)),
            remark: None,
        }
    }

    /// Copies a stored run's units into a folder.
    pub(crate) fn folder<C: CopyRun + 'static>(
        path: PathBuf,
        unit: &'static str,
        copy: impl Fn(&Path) -> Result<C, ExportError> + Send + Sync + 'static,
    ) -> Exporter {
        Exporter::copied(Place::Folder(path.clone()), path, unit, copy)
    }

    /// Copies a stored run's units into one file.
    pub(crate) fn copied_file<C: CopyRun + 'static>(
        path: PathBuf,
        unit: &'static str,
        copy: impl Fn(&Path) -> Result<C, ExportError> + Send + Sync + 'static,
    ) -> Exporter {
        Exporter::copied(Place::File(path.clone()), path, unit, copy)
    }

    fn copied<C: CopyRun + 'static>(
        place: Place,
        path: PathBuf,
        unit: &'static str,
        copy: impl Fn(&Path) -> Result<C, ExportError> + Send + Sync + 'static,
    ) -> Exporter {
        let open = move || -> Result<Box<dyn CopyRun>, ExportError> { Ok(Box::new(copy(&path)?)) };
        Exporter {
            place,
            opening: Opening::Copy(Copying {
                open: Box::new(open),
                unit,
            }),
            remark: None,
        }
    }
}
