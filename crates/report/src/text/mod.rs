//! A run as text for a terminal: what was stolen, by whom, the worst of it, percentiles, and how far to
//! trust all that, in this order.

mod brief;
mod cpus;
mod culprits;
mod headline;
mod over_time;
mod percentiles;
pub(crate) mod periods;
pub(crate) mod threads;
mod trust;
mod unattributed;
mod wakeup;
mod worst;

pub use brief::{Next, Step, brief};
pub use periods::periods_table;

use crate::style::{Style, Tone, fit, wrap};
use jitterscope_analyze::RunSummary;
use jitterscope_model::CpuSet;

/// With more CPUs than this, they are shown as a table and percentiles of all together.
const FEW_CPUS: usize = 4;

/// The whole report, each line within `style`'s width.
#[must_use]
pub fn render(summary: &RunSummary, style: Style) -> String {
    if summary.probe.kind == "attach" {
        return followed(summary, style);
    }
    if let Some(pipeline) = &summary.pipeline {
        return crate::pipeline::render(summary, pipeline, &[crate::pipeline::Format::Long], style);
    }
    let mut page = Page::new(style);
    headline::render(&mut page, summary);
    if let Some(wakeup) = &summary.wakeup {
        wakeup::phases(&mut page, summary, wakeup);
    }
    match &summary.attribution {
        Some(attribution) => culprits::render(&mut page, summary, attribution),
        None => unattributed::render(&mut page, summary),
    }
    periods::render(&mut page, summary);
    worst::render(&mut page, summary);
    match &summary.wakeup {
        Some(wakeup) => wakeup::percentiles(&mut page, wakeup),
        None => percentiles::render(&mut page, summary),
    }
    trust::render(&mut page, summary);
    page.warnings(summary);
    page.into_text()
}

/// Of threads that were followed nothing was measured by a probe: it is told from their side.
fn followed(summary: &RunSummary, style: Style) -> String {
    let mut page = Page::new(style);
    headline::title(&mut page, summary, &CpuSet::new());
    threads::render(&mut page, "THREADS", summary);
    if let Some(attribution) = &summary.attribution {
        culprits::render(&mut page, summary, attribution);
    }
    periods::render(&mut page, summary);
    worst::render(&mut page, summary);
    trust::of_followed(&mut page, summary);
    page.warnings(summary);
    page.into_text()
}

fn cpus_text(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    if cpus.len() == 1 { format!("CPU {list}") } else { format!("CPUs {}", fit(&list, 40)) }
}

/// A report being written.
pub(crate) struct Page {
    out: String,
    pub(crate) style: Style,
}

impl Page {
    pub(crate) fn new(style: Style) -> Page {
        Page { out: String::new(), style }
    }

    pub(crate) fn into_text(self) -> String {
        self.out
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A heading with a blank line before it, and a remark at the right margin.
    pub(crate) fn heading(&mut self, text: &str, remark: &str) {
        self.line("");
        let gap = self.style.columns().saturating_sub(text.len() + remark.len()).max(1);
        let line = format!(
            "{}{}{}",
            self.style.paint(Tone::Heading, text),
            " ".repeat(gap),
            self.style.paint(Tone::Dim, remark)
        );
        self.line(&line);
    }

    /// Prose over the whole width.
    pub(crate) fn prose(&mut self, tone: Option<Tone>, indent: usize, text: &str) {
        for line in wrap(text, self.style.columns() - indent) {
            let line = tone.map_or(line.clone(), |tone| self.style.paint(tone, &line));
            self.line(&format!("{}{line}", " ".repeat(indent)));
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
            for (at, line) in wrap(&warning.text, self.style.columns() - 4).into_iter().enumerate() {
                let mark = if at == 0 { &mark } else { " " };
                self.line(&format!("  {mark} {line}"));
            }
        }
    }
}
