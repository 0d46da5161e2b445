//! What a stored trace holds: its pages by buffer, and the names of its threads.

use crate::error::ExportError;
use jitterscope_model::{Comm, CpuId, EventKind, KernelEvent, KeyedMap, TraceRole};
use jitterscope_source::{Decoder, TraceContext};
use jitterscope_store::{RunReader, StoredPage, TracePiece};
use std::collections::{BTreeMap, BTreeSet};

/// No kernel has a CPU beyond this, and a table has a row for each one below the highest.
const MOST_CPUS: u32 = 8192;
/// The largest number of named threads.
const MOST_NAMES: usize = 1 << 18;

/// The buffer of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Buffer {
    pub(super) role: TraceRole,
    pub(super) cpu: CpuId,
}

impl Buffer {
    pub(super) fn of(page: &StoredPage) -> Buffer {
        Buffer {
            role: page.role,
            cpu: page.cpu,
        }
    }
}

#[derive(Default)]
pub(super) struct Census {
    pages: BTreeMap<Buffer, u64>,
    names: KeyedMap<i32, Comm>,
    /// Pages that do not fit into the file.
    unfit: u64,
}

impl Census {
    /// Reads the trace of a run.
    ///
    /// # Errors
    /// It cannot be read or decoded.
    pub(super) fn take(run: &RunReader, context: &TraceContext) -> Result<Census, ExportError> {
        let mut decoder =
            Decoder::new(context).map_err(|e| ExportError::TraceContext(e.to_string()))?;
        let size = decoder.layout().page_size();
        let mut census = Census::default();
        for (tid, name) in &context.tasks {
            census.name(*tid, Comm::new(name));
        }
        for piece in run.trace_pieces()? {
            let TracePiece::Page(page) = piece? else {
                continue;
            };
            if page.cpu.0 >= MOST_CPUS || page.bytes.len() > size {
                census.unfit += 1;
                continue;
            }
            *census.pages.entry(Buffer::of(&page)).or_default() += 1;
            if page.role.has_events() {
                // A page that cannot be decoded names nobody.
                let _ = decoder.page(page.cpu, &page.bytes, |event| census.names_in(&event));
            }
        }
        Ok(census)
    }

    /// The number of pages in the file.
    pub(super) fn pages(&self) -> u64 {
        self.pages.values().sum()
    }

    /// The number of pages of a buffer.
    pub(super) fn of(&self, role: TraceRole, cpu: u32) -> u64 {
        let cpu = CpuId(cpu);
        self.pages.get(&Buffer { role, cpu }).copied().unwrap_or(0)
    }

    /// One more than the highest CPU.
    pub(super) fn cpus(&self) -> u32 {
        let cpus = self.pages.keys().map(|buffer| buffer.cpu.0 + 1);
        cpus.max().unwrap_or(0)
    }

    /// The buffers besides that of the measured CPUs.
    pub(super) fn other_roles(&self) -> BTreeSet<TraceRole> {
        let roles = self.pages.keys().map(|buffer| buffer.role);
        roles.filter(|role| *role != TraceRole::Local).collect()
    }

    /// The last name of each thread, by its id.
    pub(super) fn names(&self) -> BTreeMap<i32, Comm> {
        self.names.iter().map(|(tid, comm)| (*tid, *comm)).collect()
    }

    /// What of the trace is not in the file.
    pub(super) fn remarks(&self) -> Option<String> {
        let unfit = self.unfit;
        (unfit > 0)
            .then(|| format!("{unfit} pages are left out: their CPU or their size cannot be"))
    }

    fn name(&mut self, tid: i32, comm: Comm) {
        // The idle threads share an id, and readers name them.
        if tid > 0 && (self.names.len() < MOST_NAMES || self.names.contains_key(&tid)) {
            self.names.insert(tid, comm);
        }
    }

    fn names_in(&mut self, event: &KernelEvent) {
        match &event.kind {
            EventKind::SchedSwitch { prev, next, .. } => {
                self.name(prev.tid, prev.comm);
                self.name(next.tid, next.comm);
            }
            EventKind::SchedWaking { task, .. } | EventKind::SchedMigrate { task, .. } => {
                self.name(task.tid, task.comm);
            }
            EventKind::TaskNew { tid, comm, .. } | EventKind::TaskRename { tid, comm, .. } => {
                self.name(*tid, *comm);
            }
            _ => {}
        }
    }
}
