//! A file with one line a row: the common part of such formats.

use crate::error::ExportError;
use crate::output::Output;
use jitterscope_model::{Delivery, Row, RunFacts, RunManifest, Sink, SinkError};

/// Formats rows as lines.
pub(crate) trait RowLines {
    /// The text before the first row.
    ///
    /// # Errors
    /// It cannot be made.
    fn head(&mut self, facts: &RunFacts) -> Result<Vec<u8>, ExportError>;

    /// Whether a row has a line.
    fn takes(&self, row: &Row<'_>) -> bool;

    /// The line of a row, with its line end, for a row that has one.
    ///
    /// # Errors
    /// It cannot be made.
    fn line(&mut self, facts: &RunFacts, row: &Row<'_>) -> Result<Vec<u8>, ExportError>;

    /// The text after the last row.
    ///
    /// # Errors
    /// It cannot be made.
    fn foot(&mut self, _facts: &RunFacts, _run: &RunManifest) -> Result<Vec<u8>, ExportError> {
        Ok(Vec::new())
    }
}

pub(crate) struct LineFile<L> {
    lines: L,
    output: Output,
    facts: Option<RunFacts>,
    written: u64,
}

impl<L> LineFile<L> {
    pub(crate) fn new(lines: L, output: Output) -> LineFile<L> {
        LineFile {
            lines,
            output,
            facts: None,
            written: 0,
        }
    }
}

impl<L: RowLines> Sink for LineFile<L> {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        let head = self.lines.head(facts)?;
        self.facts = Some(facts.clone());
        self.output.begin()?;
        Ok(self.output.write(head)?)
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        let Some(facts) = &self.facts else {
            return Ok(());
        };
        for row in batch {
            if self.lines.takes(row) {
                let line = self.lines.line(facts, row)?;
                self.written += 1;
                self.output.write(line)?;
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        self.lines.takes(row)
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.output.flush()?;
        Ok(self.written)
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        if let Some(facts) = &self.facts {
            let foot = self.lines.foot(facts, run)?;
            self.output.write(foot)?;
        }
        self.output.finish()?;
        Ok(Delivery::of(self.written))
    }
}
