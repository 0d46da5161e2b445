//! Why a thread sleeps.

use crate::{CpuId, KernelAddr, Nanos, Ticks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel stack of a thread that was switched out to sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SleepStack {
    /// Shortly after the switch is recorded, and before the thread runs again.
    pub time: Ticks,
    /// The CPU that the thread left.
    pub cpu: CpuId,
    pub tid: i32,
    /// Return addresses, the innermost call first.
    pub frames: Vec<KernelAddr>,
}

crate::words::open_words! {
    /// What a sleeping thread waits for.
    BlockReason {
        /// A lock of user space: a futex, or a semaphore of System V.
        Lock = "lock",
        /// A lock inside the kernel: a mutex, a semaphore, or a socket that another thread uses.
        KernelLock = "kernel_lock",
        /// A lock on a file: flock(2) or fcntl(2).
        FileLock = "file_lock",
        /// A device reads or writes for it.
        Disk = "disk",
        /// Dirty pages are written back: its own, or those of a page that it wants to change.
        WriteBack = "writeback",
        /// A page of a file that another thread has locked.
        PageLock = "page_lock",
        /// A page fault on a mapped file reads the page.
        FileFault = "file_fault",
        /// A page fault on other memory: swap, or a handler of userfaultfd.
        MemoryFault = "memory_fault",
        /// It reclaims or compacts memory for its own allocation.
        Reclaim = "reclaim",
        /// A socket.
        Network = "network",
        /// The other end of a pipe.
        Pipe = "pipe",
        /// Any of several descriptors: poll(2), select(2), epoll(7).
        Poll = "poll",
        /// The completion of asynchronous operations: io_uring, aio.
        AsyncIo = "async_io",
        /// A count of eventfd(2), or an event of inotify(7).
        Event = "event",
        /// It sleeps for a time.
        Timer = "timer",
        /// A child process.
        Child = "child",
        /// A signal.
        Signal = "signal",
        /// A terminal.
        Terminal = "terminal",
        /// A grace period of the kernel's RCU.
        Rcu = "rcu",
        /// Its virtual CPU is idle.
        VirtualCpu = "virtual_cpu",
        /// A thread of the kernel without work.
        Idle = "idle",
        /// Some other function of the kernel, by name.
        Function = "other",
        /// The function is not known.
        NotRecorded = "not_recorded",
    }
}

crate::words::open_words! {
    /// Why it is not known what a thread waited for.
    NoReason {
        /// The run records no stacks.
        Off = "off",
        /// The thread slept before it was followed, or before its stacks were recorded.
        Before = "before",
        /// The stack of this sleep has no record: the buffer was overwritten, or the switch itself was not recorded.
        Lost = "lost",
        /// The functions of the stack have no names.
        NoNames = "no_names",
    }
}

/// The sleeps of a thread for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedOn {
    pub reason: BlockReason,
    /// The kernel function that shows the reason. Null if it is not known, and in the sum of the less frequent ones.
    pub function: Option<String>,
    /// Why the reason is not known; null if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_because: Option<NoReason>,
    /// The number of sleeps.
    pub count: u64,
    pub blocked_ns: Nanos,
    /// The longest sleep.
    pub max_ns: Nanos,
}
