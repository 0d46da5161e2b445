//! Names of kernel functions and threads that a run keeps.

use crate::identities::LastIdentities;
use crate::names::{CommTexts, FunctionCache, functions_in, names_of};
use jitterscope_attribute::NameResolver;
use jitterscope_model::{
    Comm, EventKind, IdentityRead, KernelAddr, KernelEvent, KeyedMap, KeyedSet, Name, NameRead,
    TaskIdentity,
};
use jitterscope_source::{Symbols, Tasks, TraceContext};
use std::cell::RefCell;
use std::collections::VecDeque;

/// Names stored with a run.
pub struct StoredNames {
    symbols: Symbols,
    tasks: Tasks,
    functions: FunctionCache,
    texts: CommTexts,
}

impl StoredNames {
    #[must_use]
    pub fn new(context: &TraceContext) -> StoredNames {
        StoredNames {
            symbols: context.symbol_table(),
            tasks: context.task_table(),
            functions: FunctionCache::default(),
            texts: CommTexts::default(),
        }
    }
}

impl NameResolver for StoredNames {
    fn function(&self, addr: KernelAddr) -> Name {
        self.functions.get(&self.symbols, addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        if tid == 0 {
            return Some("swapper".into());
        }
        self.tasks.name(tid).map(|comm| self.texts.get(comm))
    }

    fn text(&self, comm: Comm) -> Name {
        self.texts.get(comm)
    }
}

/// Names as the recorder of a stored run knew them at each moment.
pub(crate) struct ReplayedNames {
    symbols: Symbols,
    functions: FunctionCache,
    texts: CommTexts,
    tasks: RefCell<Tasks>,
    /// Records of the turn that were learned from.
    records: u64,
    /// Reads of the turn that are still to come.
    reads: VecDeque<NameRead>,
    /// Threads whose names were read so far in the turn.
    read: KeyedSet<i32>,
    asked: KeyedMap<i32, Comm>,
    last_identities: LastIdentities,
    /// All names known at the end, for a trace with missing parts.
    known_in_the_end: Option<Tasks>,
    /// Whether every function in a record is named immediately.
    keep_functions: bool,
}

impl ReplayedNames {
    pub(crate) fn new(context: &TraceContext) -> ReplayedNames {
        ReplayedNames {
            symbols: context.symbol_table(),
            functions: FunctionCache::default(),
            texts: CommTexts::default(),
            tasks: RefCell::default(),
            records: 0,
            reads: VecDeque::new(),
            read: KeyedSet::default(),
            asked: KeyedMap::default(),
            last_identities: LastIdentities::default(),
            known_in_the_end: None,
            keep_functions: false,
        }
    }

    /// With all of the kernel's symbols, for a trace that comes with them. Names every function in a record, so that
    /// [`ReplayedNames::save`] has all that a reader may ask for.
    pub(crate) fn with_symbols(context: &TraceContext, symbols: Symbols) -> ReplayedNames {
        ReplayedNames {
            symbols,
            keep_functions: true,
            ..ReplayedNames::new(context)
        }
    }

    /// The functions named since the last call.
    pub(crate) fn take_functions(&self) -> Vec<(KernelAddr, Name)> {
        std::mem::take(&mut self.functions.new.borrow_mut())
    }

    /// Adds every name to the run's context.
    pub(crate) fn save(&self, context: &mut TraceContext) {
        let functions = self.functions.known.borrow();
        context.keep_symbols(&self.symbols, functions.keys().copied());
        context.tasks = names_of(&self.tasks.borrow());
    }

    /// Parts of the trace, and the names in them, are missing.
    pub(crate) fn miss(&mut self, context: &TraceContext) {
        self.known_in_the_end
            .get_or_insert_with(|| context.task_table());
    }

    /// A turn begins; `turn` holds what was read in it.
    pub(crate) fn turn(
        &mut self,
        names: Vec<NameRead>,
        asked: Vec<(i32, String)>,
        identities: Vec<IdentityRead>,
    ) {
        self.last_identities.turn();
        for read in identities {
            self.last_identities
                .set(read.tid, Comm::new(&read.comm), read.identity());
        }
        self.records = 0;
        self.read.clear();
        self.reads = names.into();
        self.asked = asked
            .into_iter()
            .map(|(tid, name)| (tid, Comm::new(&name)))
            .collect();
    }

    /// Learns from an event, and from the reads after it.
    pub(crate) fn learn(&mut self, event: &KernelEvent) {
        self.tasks.borrow_mut().learn(event);
        self.records += 1;
        if let EventKind::TaskNew { tid, .. } = event.kind
            && !self.read.contains(&tid)
        {
            self.tasks.borrow_mut().begin(tid, event.time);
        }
        if self.keep_functions {
            functions_in(event).for_each(|addr| drop(self.function(addr)));
        }
        self.read_until(self.records);
    }

    /// All pages of the turn were learned from.
    pub(crate) fn pages_done(&mut self) {
        self.read_until(u64::MAX);
    }

    fn read_until(&mut self, records: u64) {
        while let Some(read) = self.reads.pop_front_if(|read| read.after <= records) {
            self.tasks
                .borrow_mut()
                .insert(read.tid, Comm::new(&read.name));
            self.read.insert(read.tid);
        }
    }
}

impl NameResolver for ReplayedNames {
    fn function(&self, addr: KernelAddr) -> Name {
        self.functions.get(&self.symbols, addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        if tid == 0 {
            return Some("swapper".into());
        }
        let mut tasks = self.tasks.borrow_mut();
        let read = || self.asked.get(&tid).copied();
        let in_the_end = || self.known_in_the_end.as_ref()?.name(tid);
        let comm = tasks.name(tid).or_else(read).or_else(in_the_end)?;
        // A used name stays known, as in the recorder.
        tasks.insert(tid, comm);
        Some(self.texts.get(comm))
    }

    fn text(&self, comm: Comm) -> Name {
        self.texts.get(comm)
    }

    fn identity(&self, tid: i32, comm: Comm) -> TaskIdentity {
        self.last_identities.of(tid, comm.as_read())
    }
}
