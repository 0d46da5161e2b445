//! Names of kernel functions and threads, live and stored.

use jitterscope_attribute::Lexicon;
use jitterscope_model::{Comm, KernelAddr, KernelEvent, Name};
use jitterscope_platform::Machine;
use jitterscope_trace::{Symbols, Tasks, TraceContext};
use std::cell::RefCell;
use std::collections::HashMap;

/// Kernel functions named so far. Bounded by the functions that are ever timers, work items or callers
/// of others, a few thousand in the largest kernels.
#[derive(Default)]
struct FunctionCache(RefCell<HashMap<KernelAddr, Name>>);

impl FunctionCache {
    fn get(&self, symbols: &Symbols, addr: KernelAddr) -> Name {
        let mut cache = self.0.borrow_mut();
        let name = cache.entry(addr).or_insert_with(|| match symbols.name(addr) {
            Some(name) => name.into(),
            None => format!("{:#x}", addr.0).into(),
        });
        name.clone()
    }
}

/// Names as a live machine knows them.
pub(crate) struct LiveNames {
    machine: Machine,
    symbols: Symbols,
    tasks: RefCell<Tasks>,
    functions: FunctionCache,
}

impl LiveNames {
    pub(crate) fn new(machine: Machine, symbols: Symbols) -> LiveNames {
        LiveNames { machine, symbols, tasks: RefCell::default(), functions: FunctionCache::default() }
    }

    /// Learns what an event tells, and asks for the name of its own thread while that still lives.
    pub(crate) fn learn(&self, event: &KernelEvent, ask: bool) {
        let mut tasks = self.tasks.borrow_mut();
        tasks.learn(event);
        if ask {
            tasks.name_or_read(&self.machine, event.tid);
        }
    }

    /// Learns names that the kernel kept.
    pub(crate) fn learn_all(&self, names: Vec<(i32, Comm)>) {
        let mut tasks = self.tasks.borrow_mut();
        for (tid, comm) in names {
            tasks.insert(tid, comm);
        }
    }

    /// Puts every name that was used into a context, for the run.
    pub(crate) fn save(&self, context: &mut TraceContext) {
        let functions = self.functions.0.borrow();
        context.keep_symbols(&self.symbols, functions.keys().copied());
        context.tasks = self.tasks.borrow().iter().map(|(tid, comm)| (tid, comm.to_string())).collect();
    }
}

impl Lexicon for LiveNames {
    fn function(&self, addr: KernelAddr) -> Name {
        self.functions.get(&self.symbols, addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        if tid == 0 {
            return Some("swapper".into());
        }
        let comm = self.tasks.borrow_mut().name_or_read(&self.machine, tid)?;
        Some(comm.to_string().into())
    }
}

/// Names as a stored run kept them.
pub struct StoredNames {
    symbols: Symbols,
    tasks: Tasks,
    functions: FunctionCache,
}

impl StoredNames {
    /// The names in a run's trace context.
    #[must_use]
    pub fn new(context: &TraceContext) -> StoredNames {
        StoredNames {
            symbols: context.symbol_table(),
            tasks: context.task_table(),
            functions: FunctionCache::default(),
        }
    }
}

impl Lexicon for StoredNames {
    fn function(&self, addr: KernelAddr) -> Name {
        self.functions.get(&self.symbols, addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        if tid == 0 {
            return Some("swapper".into());
        }
        self.tasks.name(tid).map(|comm| comm.to_string().into())
    }
}
