//! The data needed to decode pages. It is stored with them, so that a run can be decoded on any machine.

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

/// Why a context is unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// The page layout is invalid.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An event's format is invalid.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ContextError {
    /// The same for a report of sources.
    #[must_use]
    pub fn problem(&self) -> SourceProblem {
        SourceProblem::FormatUnreadable {
            parser: self.to_string(),
        }
    }
}

/// All data for decoding and naming, except the pages themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    /// Text of `events/header_page` of the instance that made the pages.
    pub header_page: String,
    /// Formats of the recorded events.
    pub formats: Vec<FormatText>,
    /// The clock of the pages' times.
    pub clock: ClockKind,
    /// Names of the kernel addresses in events that were looked up.
    #[serde(default)]
    pub symbols: BTreeMap<KernelAddr, String>,
    /// Known names of threads by thread id.
    #[serde(default)]
    pub tasks: BTreeMap<i32, String>,
    /// The recorder's setup steps, in order.
    #[serde(default)]
    pub setup: Vec<SetupStep>,
}

impl TraceContext {
    /// Parses the page layout.
    ///
    /// # Errors
    /// The stored text does not describe one.
    pub fn layout(&self) -> Result<PageLayout, LayoutError> {
        PageLayout::parse(&self.header_page)
    }

    /// Parses the event formats.
    ///
    /// # Errors
    /// A stored text is not a format.
    pub fn formats(&self) -> Result<Vec<EventFormat>, FormatError> {
        self.formats
            .iter()
            .map(|f| EventFormat::parse(&f.system, &f.event, &f.text))
            .collect()
    }

    /// Adds the names of those `addresses` that `symbols` knows.
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

    /// The stored symbols as a table, which names exactly the stored addresses.
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
