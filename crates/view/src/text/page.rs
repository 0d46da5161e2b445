//! A report under construction, whose tables are laid out for a terminal.

use crate::report::{Report, Table};
use crate::style::{Style, Tone};
use jitterscope_analyze::RunSummary;

/// A report under construction.
pub(crate) struct Page {
    report: Report,
    pub(crate) style: Style,
}

impl Page {
    pub(crate) fn new(style: Style) -> Page {
        Page {
            report: Report::default(),
            style,
        }
    }

    pub(crate) fn into_report(self) -> Report {
        self.report
    }

    pub(crate) fn into_text(self) -> String {
        self.report.terminal(self.style)
    }

    /// Adds a line that fits the style.
    pub(crate) fn line(&mut self, text: &str) {
        self.report.line(text);
    }

    /// A heading after a blank line, with a remark at the right margin.
    pub(crate) fn heading(&mut self, text: &str, remark: &str) {
        if self.report.is_empty() {
            self.line("");
        }
        self.report.remarked(text, remark);
    }

    /// The name of what follows, after a blank line.
    pub(crate) fn name(&mut self, name: &str, remark: &str) {
        self.report.name(name, remark);
    }

    /// Prose over the whole width.
    pub(crate) fn prose(&mut self, tone: Option<Tone>, indent: usize, text: &str) {
        self.report.indented(tone, indent, text);
    }

    pub(crate) fn append(&mut self, report: Report) {
        self.report.append(report);
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.report.table(table);
    }

    /// What the reader must know, at the end of every report.
    pub(crate) fn warnings(&mut self, summary: &RunSummary) {
        let all = crate::warnings::texts(summary);
        if !all.is_empty() {
            self.heading("WARNINGS", "");
            self.report.warnings(all);
        }
    }
}
