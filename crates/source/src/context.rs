//! What must be known to decode pages: stored beside them, so that a run is decoded on any machine.

use crate::format::{EventFormat, FormatError};
use crate::ring::{LayoutError, PageLayout};
use crate::symbols::Symbols;
use crate::tasks::Tasks;
use jitterscope_model::{ClockKind, Comm, KernelAddr, SetupStep, SourceProblem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The text of one event's `format` file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormatText {
    /// The event's folder: `sched`.
    pub system: String,
    /// The event: `sched_switch`.
    pub event: String,
    /// The file as read.
    pub text: String,
}

/// Why a context cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// The page layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An event's format.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ContextError {
    /// The same as a report of sources has it.
    #[must_use]
    pub fn problem(&self) -> SourceProblem {
        SourceProblem::FormatUnreadable {
            parser: self.to_string(),
        }
    }
}

/// All that decoding and naming needs beside the pages themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// Text of `events/header_page` of the instance that made the pages.
    pub header_page: String,
    /// Formats of the recorded events.
    pub formats: Vec<FormatText>,
    /// The clock of the pages' times.
    pub clock: ClockKind,
    /// Names of the kernel addresses that events carry: those that were looked up.
    #[serde(default)]
    pub symbols: BTreeMap<KernelAddr, String>,
    /// Names of threads by thread id: those that were learnt.
    #[serde(default)]
    pub tasks: BTreeMap<i32, String>,
    /// What the recorder set up, in order; none in runs of before it was kept, which cannot be replayed step
    /// by step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<SetupStep>,
}

impl TraceContext {
    /// The page layout.
    ///
    /// # Errors
    /// The stored text does not describe one.
    pub fn layout(&self) -> Result<PageLayout, LayoutError> {
        PageLayout::parse(&self.header_page)
    }

    /// The event formats, parsed.
    ///
    /// # Errors
    /// A stored text is no format.
    pub fn formats(&self) -> Result<Vec<EventFormat>, FormatError> {
        self.formats
            .iter()
            .map(|f| EventFormat::parse(&f.system, &f.event, &f.text))
            .collect()
    }

    /// Adds the names of `addresses` as far as `symbols` knows them.
    pub fn keep_symbols(
        &mut self,
        symbols: &Symbols,
        addresses: impl IntoIterator<Item = KernelAddr>,
    ) {
        for address in addresses {
            if let Some(name) = symbols.name(address) {
                self.symbols
                    .entry(address)
                    .or_insert_with(|| name.to_owned());
            }
        }
    }

    /// The stored symbols as a table: it names exactly the stored addresses.
    #[must_use]
    pub fn symbol_table(&self) -> Symbols {
        Symbols::from_resolved(
            self.symbols
                .iter()
                .map(|(address, name)| (*address, name.as_str())),
        )
    }

    /// The stored thread names as a table.
    #[must_use]
    pub fn task_table(&self) -> Tasks {
        let mut tasks = Tasks::default();
        for (tid, name) in &self.tasks {
            tasks.insert(*tid, Comm::new(name));
        }
        tasks
    }
}
