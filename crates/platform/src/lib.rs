//! The machine: which clock to use, CPUs, privileges and control files.
//!
//! All requests to the kernel go through this crate: files below the injectable [`Machine`] root, and raw system calls
//! that have no safe wrapper elsewhere. Crates that measure or record contain neither.

mod access;
mod allocated;
mod allocator;
mod children;
mod claim;
pub mod clock;
mod full_disk;
mod held_lock;
mod host;
mod kept_file;
mod layout;
mod machine;
mod maps;
mod memory;
mod message_path;
mod owner_lock;
mod pid_namespace;
mod process;
mod quota;
mod rate;
mod run_folder;
mod selection;
mod sleep;
mod state;
mod task_stat;
mod thread;
mod thread_affinity;
mod topology;
mod trusted_folder;
mod user_namespace;
mod write_watch;

pub use access::{
    AccessError, DirEntry, HeldDir, OpenedOutput, OutputPlace, open_regular, read_bounded,
    read_bounded_from,
};
pub use allocated::allocated;
pub use allocator::{Allocator, give_memory_back, keep_freed_memory};
pub use children::{ChildrenTime, children_time};
pub use claim::{ClaimHolder, CpuClaim, CpuClaimed};
pub use full_disk::is_full;
pub use held_lock::HeldLock;
pub use host::{boot_id, host_facts, hostname};
pub use kept_file::KeptFile;
pub use layout::CpuLayout;
pub use machine::{FileError, Machine};
pub use maps::{FilePiece, GrowingFile, MapError, MappedFile, make_random_file};
pub use memory::{LockedMemory, lock_in_memory, peak_rss_bytes, resident_bytes};
pub use message_path::{MessagePath, MessagePathError, MessagePaths, MessageSocket};
pub use owner_lock::{Owner, OwnerLock, owner_of};
pub use pid_namespace::is_in_pid_namespace;
pub use process::{ask_to_end, effective_user, end_with_parent, is_ignored, kill_group, notify};
pub use quota::{
    CpuGroup, CpuGroupCounts, Throttling, cpu_groups, cpu_quota_millis, read_throttling,
};
pub use rate::{ClockCheck, ClockChoice, ClockError, choose_clock};
pub use run_folder::own_run_folder;
pub use selection::{CpuChoice, SelectionError, check_cpus, select_cpus};
pub use sleep::{ShallowIdle, monotonic_now, no_timer_slack, sleep_until};
pub use state::{CpuTimes, machine_settings};
pub use task_stat::TaskStat;
pub use thread::{
    OwnName, PinError, ThreadUsage, confine_current_thread, current_affinity, current_cpu,
    current_tid, name_current_thread, pin_current_thread, set_fifo, set_nice, thread_usage,
};
pub use thread_affinity::set_thread_affinity;
pub use topology::Topology;
pub use trusted_folder::{Distrust, TrustError, TrustedFolder};
pub use user_namespace::{UserNamespace, own_user, user_outside};
pub use write_watch::{Watched, WriteWatch};
