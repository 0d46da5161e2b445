//! Names for the addresses and threads that events mention.

use jitterscope_model::{Comm, KernelAddr, Name, Task, TaskIdentity, TaskRef};

/// The recorder's names. Implementations must return the same answer for the same question until
/// [`Attributor::forget_names`](crate::Attributor::forget_names) is called.
pub trait NameResolver {
    /// The kernel function at an address; the address in hexadecimal if unknown.
    fn function(&self, addr: KernelAddr) -> Name;

    /// The name of a thread, if known.
    fn comm(&self, tid: i32) -> Option<Name>;

    /// The known facts about the thread with this id and name. Both are needed because ids are reused.
    fn identity(&self, _tid: i32, _comm: Comm) -> TaskIdentity {
        TaskIdentity::default()
    }

    /// The text of a thread's name. An implementation with frequent calls should share the texts.
    fn text(&self, comm: Comm) -> Name {
        comm.to_string().into()
    }

    /// A thread of a record, with its identity.
    fn task(&self, task: &TaskRef) -> Task {
        Task::of(
            task,
            self.text(task.comm),
            self.identity(task.tid, task.comm),
        )
    }
}

/// For tests: knows no names, and shows functions as addresses.
#[cfg(test)]
pub(crate) struct NoNames;

#[cfg(test)]
impl NameResolver for NoNames {
    fn function(&self, addr: KernelAddr) -> Name {
        format!("{:#x}", addr.0).into()
    }

    fn comm(&self, _: i32) -> Option<Name> {
        None
    }
}
