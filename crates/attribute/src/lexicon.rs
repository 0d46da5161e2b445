//! Names for the addresses and threads that events mention.

use jitterscope_model::{Comm, KernelAddr, Name, Task, TaskIdentity, TaskRef};

/// What a recorder knows of names. Implementations answer the same for the same question until
/// [`Attributor::forget_names`](crate::Attributor::forget_names) is called.
pub trait Lexicon {
    /// The kernel function at an address; its hexadecimal form when unknown.
    fn function(&self, addr: KernelAddr) -> Name;

    /// The name of a thread, when it was seen.
    fn comm(&self, tid: i32) -> Option<Name>;

    /// What the thread of this id and name belongs to, as far as known. Both are asked for because ids are
    /// used again.
    fn identity(&self, _tid: i32, _comm: Comm) -> TaskIdentity {
        TaskIdentity::default()
    }

    /// The text of a thread's name. Who is asked for the same ones again and again shares them.
    fn text(&self, comm: Comm) -> Name {
        comm.to_string().into()
    }

    /// A thread of a record, with what it belongs to.
    fn task(&self, task: &TaskRef) -> Task {
        Task::of(
            task,
            self.text(task.comm),
            self.identity(task.tid, task.comm),
        )
    }
}

/// Of tests: knows no name; functions go by their address.
#[cfg(test)]
pub(crate) struct NoNames;

#[cfg(test)]
impl Lexicon for NoNames {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("{:#x}", addr.0).into()
    }

    fn comm(&self, _: i32) -> Option<Name> {
        None
    }
}
