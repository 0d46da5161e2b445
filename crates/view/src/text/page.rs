//! A report under construction, whose tables are laid out for a terminal.

use crate::report::{Report, Table};
use crate::style::{Style, Tone};
use crate::worst_case;
use jitterscope_analyze::RunSummary;
use jitterscope_model::Nanos;

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

    /// The observed maximum with its exposure. A probe without a stall has a bound in its headline.
    pub(crate) fn worst_case(&mut self, summary: &RunSummary) {
        let spun = summary.wakeup.is_none() && summary.probe.total.measured_ns > Nanos::ZERO;
        let worst = summary.worst_case.as_ref();
        let worst = worst.filter(|_| !spun || summary.probe.total.stalls > 0);
        if let Some(text) = worst.and_then(worst_case::sentence) {
            self.prose(None, 0, &text);
        }
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
