//! Names of kernel functions and threads on a live machine.

use crate::identities::{Identities, LastIdentities};
use jitterscope_attribute::NameResolver;
use jitterscope_model::{
    Comm, EventKind, IdentityRead, KernelAddr, KernelEvent, KeyedMap, KeyedSet, Name, NameRead,
    TaskIdentity,
};
use jitterscope_platform::Machine;
use jitterscope_source::{Symbols, Tasks, TraceContext};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a thread's name is used before it is read again. At first only for one turn, because a new thread often
/// renames itself soon; then twice as long each time, up to the last value.
const ASK_AGAIN: [Duration; 5] = [
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(320),
    Duration::from_millis(500),
];
/// Slots for the threads of the current turn.
const SAID: usize = 128;
/// Limit on remembered name texts.
const MOST_TEXTS: usize = 4096;
/// Limit on threads whose last read is remembered.
const MOST_ASKED: usize = 4096;

/// Kernel functions named so far. Bounded by the functions that are ever timers, work items or callers of others: a few
/// thousand in the largest kernels.
#[derive(Default)]
pub(crate) struct FunctionCache {
    pub(crate) known: RefCell<FxHashMap<KernelAddr, Name>>,
    /// Those with a symbol that nobody has taken yet.
    pub(crate) new: RefCell<Vec<(KernelAddr, Name)>>,
}

impl FunctionCache {
    pub(crate) fn get(&self, symbols: &Symbols, addr: KernelAddr) -> Name {
        let mut known = self.known.borrow_mut();
        let name = known.entry(addr).or_insert_with(|| {
            let Some(name) = symbols.name(addr) else {
                return format!("{:#x}", addr.0).into();
            };
            let name: Name = name.into();
            self.new.borrow_mut().push((addr, name.clone()));
            name
        });
        name.clone()
    }
}

/// Texts of thread names, shared by culprits: the same few names recur.
#[derive(Default)]
pub(crate) struct CommTexts(RefCell<KeyedMap<Comm, Name>>);

impl CommTexts {
    pub(crate) fn get(&self, comm: Comm) -> Name {
        let mut known = self.0.borrow_mut();
        if let Some(name) = known.get(&comm) {
            return name.clone();
        }
        if known.len() >= MOST_TEXTS {
            known.clear();
        }
        let name = Name::from(comm.to_string());
        known.insert(comm, name.clone());
        name
    }
}

/// The kernel functions in an event.
pub(crate) fn functions_in(event: &KernelEvent) -> impl Iterator<Item = KernelAddr> + use<> {
    let addrs = match event.kind {
        EventKind::NmiHandler { handler: addr, .. }
        | EventKind::WorkStart { function: addr, .. }
        | EventKind::WorkQueued { function: addr, .. }
        | EventKind::TimerEntry { function: addr, .. }
        | EventKind::HrtimerEntry { function: addr, .. }
        | EventKind::CsdEntry { function: addr, .. } => [Some(addr), None],
        EventKind::CsdQueued {
            function, callsite, ..
        } => [Some(function), Some(callsite)],
        EventKind::IpiSendCpu {
            callsite, callback, ..
        }
        | EventKind::IpiSendCpumask {
            callsite, callback, ..
        } => [Some(callsite), Some(callback)],
        _ => [None, None],
    };
    // 0 means no function.
    addrs.into_iter().flatten().filter(|addr| addr.0 != 0)
}

/// Names on a live machine.
pub(crate) struct LiveNames {
    machine: Machine,
    symbols: Symbols,
    tasks: RefCell<Tasks>,
    asked: RefCell<FxHashMap<i32, (Instant, usize)>>,
    identities: RefCell<Identities>,
    last_identities: RefCell<LastIdentities>,
    functions: FunctionCache,
    texts: CommTexts,
    /// Whether every function in a record is named immediately.
    keep_functions: bool,
    reads: RefCell<Reads>,
    /// Identities given in this turn, indexed by the low bits of the thread id.
    said: RefCell<Vec<Option<Said>>>,
    /// When the turn began: the clock is not read again for each record.
    turn: Cell<Instant>,
}

/// A thread and its identity.
type Said = (i32, Comm, TaskIdentity);

/// Names read in this turn from other places than the records. A replay cannot read them again, so the run keeps them.
#[derive(Default)]
struct Reads {
    /// The number of records learned from.
    records: u64,
    names: Vec<NameRead>,
    asked: Vec<(i32, String)>,
    identities: Vec<IdentityRead>,
    /// Threads whose identity was given in this turn.
    said: KeyedSet<(i32, Comm)>,
}

impl Reads {
    fn has_read(&self, tid: i32) -> bool {
        self.names.iter().any(|read| read.tid == tid)
    }

    fn name(&mut self, tid: i32, comm: Comm) {
        self.names.push(NameRead {
            after: self.records,
            tid,
            name: comm.to_string(),
        });
    }
}

impl LiveNames {
    pub(crate) fn new(machine: Machine, symbols: Symbols) -> LiveNames {
        LiveNames {
            identities: RefCell::new(Identities::new(machine.clone())),
            last_identities: RefCell::default(),
            machine,
            symbols,
            tasks: RefCell::default(),
            asked: RefCell::default(),
            functions: FunctionCache::default(),
            texts: CommTexts::default(),
            keep_functions: false,
            reads: RefCell::default(),
            said: RefCell::new(vec![None; SAID]),
            turn: Cell::new(Instant::now()),
        }
    }

    /// Names every function in a record, for the run to keep. Attribution only asks for the functions that it
    /// distinguishes, and for none of a wake-up.
    pub(crate) fn keep_functions(&mut self, keep: bool) {
        self.keep_functions = keep;
    }

    /// What was read since the last call: while records were learned from, and after that.
    pub(crate) fn take_reads(&self) -> (Vec<NameRead>, Vec<(i32, String)>, Vec<IdentityRead>) {
        let Reads {
            names,
            asked,
            identities,
            ..
        } = self.reads.take();
        self.last_identities.borrow_mut().turn();
        self.said.borrow_mut().fill(None);
        self.turn.set(Instant::now());
        (names, asked, identities)
    }

    /// Learns from an event, and with `ask` reads the name of its own thread while that lives.
    pub(crate) fn learn(&self, event: &KernelEvent, ask: bool) {
        self.tasks.borrow_mut().learn(event);
        self.reads.borrow_mut().records += 1;
        if let EventKind::TaskNew {
            tid,
            comm,
            thread,
            into_cgroup,
        } = event.kind
        {
            self.identities
                .borrow_mut()
                .born(tid, event.tid, comm.as_read(), thread, into_cgroup);
        }
        if let EventKind::CgroupAttach {
            hierarchy,
            tid,
            path,
        } = &event.kind
        {
            self.identities.borrow_mut().moved(*hierarchy, *tid, path);
        }
        if let EventKind::TaskRename { tid, old, comm } = event.kind {
            let mut identities = self.identities.borrow_mut();
            identities.renamed(tid, old.as_read(), comm.as_read());
        }
        if let EventKind::TaskNew { tid, .. } = event.kind
            && !self.reads.borrow().has_read(tid)
        {
            // The id is reused, so what is known about its last thread does not apply. A name read in this turn was
            // read after the record was written.
            self.tasks.borrow_mut().begin(tid, event.time);
            self.asked.borrow_mut().remove(&tid);
        }
        if ask {
            self.ask(event.tid);
        }
        if self.keep_functions {
            self.learn_functions(event);
        }
    }

    /// Names the functions in an event.
    fn learn_functions(&self, event: &KernelEvent) {
        functions_in(event).for_each(|addr| drop(self.function(addr)));
    }

    /// Reads a thread's name now, unless it was read recently. Ids are reused, so a known name may be that of an
    /// earlier thread.
    fn ask(&self, tid: i32) {
        let mut asked = self.asked.borrow_mut();
        let before = asked.get(&tid).copied();
        let now = self.turn.get();
        if tid <= 0 || before.is_some_and(|(at, times)| now.duration_since(at) < ASK_AGAIN[times]) {
            return;
        }
        if asked.len() >= MOST_ASKED {
            asked.clear();
        }
        let times = before.map_or(0, |(_, times)| (times + 1).min(ASK_AGAIN.len() - 1));
        asked.insert(tid, (now, times));
        if let Ok(name) = self.machine.read(format!("/proc/{tid}/comm")) {
            let comm = Comm::new(name.trim_end_matches('\n'));
            if self.tasks.borrow_mut().insert(tid, comm) {
                self.reads.borrow_mut().name(tid, comm);
            }
        }
    }

    /// Learns the names that the kernel saved, for threads without another name: a saved name may be that of an earlier
    /// thread with the same id.
    pub(crate) fn learn_all(&self, names: Vec<(i32, Comm)>) {
        let mut tasks = self.tasks.borrow_mut();
        for (tid, comm) in names {
            if tasks.name(tid).is_none() && tasks.insert(tid, comm) {
                self.reads.borrow_mut().name(tid, comm);
            }
        }
    }

    /// The functions named since the last call.
    pub(crate) fn take_functions(&self) -> Vec<(KernelAddr, Name)> {
        std::mem::take(&mut self.functions.new.borrow_mut())
    }

    /// Adds every used name to the run's context.
    pub(crate) fn save(&self, context: &mut TraceContext) {
        let functions = self.functions.known.borrow();
        context.keep_symbols(&self.symbols, functions.keys().copied());
        context.tasks = names_of(&self.tasks.borrow());
    }

    /// Frees the kernel's symbols, the largest part here, after the last function was named.
    pub(crate) fn free_symbols(&mut self) {
        self.symbols = Symbols::default();
    }
}

impl NameResolver for LiveNames {
    fn function(&self, addr: KernelAddr) -> Name {
        self.functions.get(&self.symbols, addr)
    }

    fn comm(&self, tid: i32) -> Option<Name> {
        if tid == 0 {
            return Some("swapper".into());
        }
        let mut tasks = self.tasks.borrow_mut();
        let known = tasks.name(tid).is_some();
        let comm = tasks.name_or_read(&self.machine, tid)?;
        if !known {
            self.reads.borrow_mut().asked.push((tid, comm.to_string()));
        }
        Some(self.texts.get(comm))
    }

    fn text(&self, comm: Comm) -> Name {
        self.texts.get(comm)
    }

    fn identity(&self, tid: i32, comm: Comm) -> TaskIdentity {
        let comm = comm.as_read();
        let mut said = self.said.borrow_mut();
        let place = &mut said[tid as usize % SAID];
        match place {
            Some((of, called, identity)) if (*of, *called) == (tid, comm) => identity.clone(),
            _ => {
                let identity = self.say(tid, comm);
                *place = Some((tid, comm, identity.clone()));
                identity
            }
        }
    }
}

impl LiveNames {
    /// The identity of a thread. It is the same throughout a turn, as in a replay.
    fn say(&self, tid: i32, comm: Comm) -> TaskIdentity {
        let mut last = self.last_identities.borrow_mut();
        let mut reads = self.reads.borrow_mut();
        let before = last.of(tid, comm);
        if !reads.said.insert((tid, comm)) {
            return before;
        }
        let now = self.identities.borrow_mut().of(tid, comm);
        if now != before {
            reads.identities.push(IdentityRead::new(tid, comm, &now));
            last.set(tid, comm, now.clone());
        }
        now
    }
}

/// Names of threads, as a run keeps them.
pub(crate) fn names_of(tasks: &Tasks) -> BTreeMap<i32, String> {
    let named = tasks.iter();
    named.map(|(tid, comm)| (tid, comm.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_stands_against_the_kernels_old_notes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/42")).unwrap();
        std::fs::write(dir.path().join("proc/42/comm"), "today\n").unwrap();
        let names = LiveNames::new(Machine::at(dir.path()), Symbols::default());
        names.learn_all(vec![(42, Comm::new("yesterday")), (43, Comm::new("gone"))]);
        names.ask(42);
        assert_eq!(names.comm(42).as_deref(), Some("today"));
        names.learn_all(vec![(42, Comm::new("yesterday"))]);
        assert_eq!(names.comm(42).as_deref(), Some("today"));
        assert_eq!(names.comm(43).as_deref(), Some("gone"));
    }
}
