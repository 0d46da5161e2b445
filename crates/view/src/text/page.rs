//! A report under construction, line by line.

use crate::style::{Style, Tone, wrap};
use jitterscope_analyze::RunSummary;

/// A statement of a report, for other views.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Its topic; empty for prose.
    pub(crate) name: String,
    /// How it is meant.
    pub(crate) tone: Option<Tone>,
    pub(crate) text: String,
}

/// A report under construction.
pub(crate) struct Page {
    out: String,
    pub(crate) style: Style,
    /// Gathers statements instead of lines, if set.
    statements: Option<Vec<Statement>>,
}

impl Page {
    pub(crate) fn new(style: Style) -> Page {
        Page {
            out: String::new(),
            style,
            statements: None,
        }
    }

    /// A page that gathers statements for another view.
    pub(super) fn gathering() -> Page {
        Page {
            statements: Some(Vec::new()),
            ..Page::new(Style::default())
        }
    }

    pub(super) fn into_statements(self) -> Vec<Statement> {
        self.statements.unwrap_or_default()
    }

    pub(crate) fn into_text(self) -> String {
        self.out
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A heading after a blank line, with a remark at the right margin.
    pub(crate) fn heading(&mut self, text: &str, remark: &str) {
        self.line("");
        let gap = self
            .style
            .columns()
            .saturating_sub(text.len() + remark.len())
            .max(1);
        let line = format!(
            "{}{}{}",
            self.style.paint(Tone::Heading, text),
            " ".repeat(gap),
            self.style.paint(Tone::Dim, remark)
        );
        self.line(&line);
    }

    /// Gathers a statement if the page does so; returns whether it did.
    pub(super) fn gathers(&mut self, name: &str, tone: Option<Tone>, text: &str) -> bool {
        let statement = Statement {
            name: name.to_owned(),
            tone,
            text: text.to_owned(),
        };
        self.statements
            .as_mut()
            .map(|all| all.push(statement))
            .is_some()
    }

    /// Prose over the whole width.
    pub(crate) fn prose(&mut self, tone: Option<Tone>, indent: usize, text: &str) {
        if self.gathers("", tone, text) {
            return;
        }
        for line in self.style.prose(tone, indent, text) {
            self.line(&line);
        }
    }

    /// What the reader must know, at the end of every report.
    pub(crate) fn warnings(&mut self, summary: &RunSummary) {
        if summary.warnings.is_empty() {
            return;
        }
        self.heading("WARNINGS", "");
        for warning in &summary.warnings {
            let mark = self.style.paint(Tone::Warning, "!");
            for (at, line) in wrap(
                &crate::warnings::warning(&warning.warning),
                self.style.columns() - 4,
            )
            .into_iter()
            .enumerate()
            {
                let mark = if at == 0 { &mark } else { " " };
                self.line(&format!("  {mark} {line}"));
            }
        }
    }
}
