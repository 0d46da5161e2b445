//! What a sleeping thread waits for, from its kernel stack: one table of functions.
//!
//! The walk goes from the innermost call outwards. Some functions decide alone: a thread in `do_nanosleep` sleeps for a
//! time, whatever called it. Others only say how the kernel waits: `io_schedule` is a wait for a device unless a call
//! further out says for what, such as a page fault. So each function has a weight: the first one that decides ends the
//! walk, otherwise the heaviest counts, and of equal ones the innermost. A page fault ends the walk, too: what called
//! is the interrupted code, which does not wait for anything of its own.

use crate::name_resolver::NameResolver;
use jitterscope_model::{BlockReason, KernelAddr, Name};

/// Ends the walk. It decides unless a function further in already says enough.
const DECIDES: u8 = 9;
const ENOUGH: u8 = 4;
/// Only if no other function of the table or of interest is further in: the idle loop of a kernel thread, which also
/// surrounds its work.
const INNERMOST: u8 = 0;

/// A function, its reason and its weight. A name that ends with `*` stands for all names that begin so.
type Rule = (&'static str, BlockReason, u8);

use BlockReason as R;

/// By reason.
const RULES: &[Rule] = &[
    // Locks of user space.
    ("futex_*", R::Lock, DECIDES),
    ("__futex_*", R::Lock, DECIDES),
    ("do_futex", R::Lock, DECIDES),
    ("__do_semtimedop", R::Lock, DECIDES),
    ("do_semtimedop", R::Lock, DECIDES),
    // Locks of the kernel.
    ("__mutex_lock*", R::KernelLock, DECIDES),
    ("mutex_lock*", R::KernelLock, DECIDES),
    ("__ww_mutex_lock*", R::KernelLock, DECIDES),
    ("rwsem_*", R::KernelLock, DECIDES),
    ("down_*", R::KernelLock, DECIDES),
    ("__down*", R::KernelLock, DECIDES),
    ("down", R::KernelLock, DECIDES),
    ("percpu_rwsem_wait", R::KernelLock, DECIDES),
    ("__percpu_down_read", R::KernelLock, DECIDES),
    ("percpu_down_write", R::KernelLock, DECIDES),
    ("rt_mutex_*", R::KernelLock, DECIDES),
    ("__rt_mutex_*", R::KernelLock, DECIDES),
    ("rtlock_*", R::KernelLock, DECIDES),
    ("rwbase_*", R::KernelLock, DECIDES),
    ("rt_spin_lock*", R::KernelLock, DECIDES),
    ("__lock_sock", R::KernelLock, DECIDES),
    ("lock_sock_nested", R::KernelLock, DECIDES),
    // Locks on files.
    ("locks_lock_inode_wait", R::FileLock, DECIDES),
    ("flock_lock_inode_wait", R::FileLock, DECIDES),
    ("posix_lock_inode_wait", R::FileLock, DECIDES),
    ("do_lock_file_wait", R::FileLock, DECIDES),
    ("fcntl_setlk*", R::FileLock, DECIDES),
    ("__break_lease", R::FileLock, DECIDES),
    // Devices: how the kernel waits, then what for.
    ("io_schedule*", R::Disk, 1),
    ("bit_wait_io*", R::Disk, 1),
    ("wait_for_completion_io*", R::Disk, 1),
    ("submit_bio_wait", R::Disk, 3),
    ("blkdev_issue_*", R::Disk, 4),
    ("blkdev_*", R::Disk, 3),
    ("__wait_on_buffer", R::Disk, 3),
    ("__sync_dirty_buffer", R::Disk, 4),
    ("fsync_buffers_list", R::Disk, 4),
    ("blk_mq_*", R::Disk, 3),
    ("__blk_mq_*", R::Disk, 3),
    ("blk_execute_rq", R::Disk, 3),
    ("__bio_queue_enter", R::Disk, 3),
    ("rq_qos_wait", R::Disk, 4),
    ("wbt_wait", R::Disk, 4),
    ("__iomap_dio_rw", R::Disk, 3),
    ("iomap_dio_*", R::Disk, 3),
    ("filemap_read", R::Disk, 3),
    ("filemap_get_pages", R::Disk, 3),
    ("filemap_read_folio", R::Disk, 3),
    ("generic_file_buffered_read", R::Disk, 3),
    ("jbd2_log_wait_commit", R::Disk, DECIDES),
    ("jbd2_complete_transaction", R::Disk, DECIDES),
    ("wait_transaction_locked", R::Disk, DECIDES),
    ("add_transaction_credits", R::Disk, DECIDES),
    ("__jbd2_log_wait_for_space", R::Disk, DECIDES),
    ("do_get_write_access", R::Disk, DECIDES),
    ("ext4_*", R::Disk, 2),
    ("__ext4_*", R::Disk, 2),
    ("xlog_*", R::Disk, DECIDES),
    ("xfs_log_*", R::Disk, DECIDES),
    ("xfs_buf_*", R::Disk, 3),
    ("xfs_*", R::Disk, 2),
    ("wait_current_trans*", R::Disk, DECIDES),
    ("btrfs_*", R::Disk, 2),
    ("f2fs_*", R::Disk, 2),
    // Write-back.
    ("balance_dirty_pages*", R::WriteBack, DECIDES),
    ("folio_wait_writeback*", R::WriteBack, 5),
    ("folio_wait_stable", R::WriteBack, 5),
    ("wait_on_page_writeback*", R::WriteBack, 5),
    ("wait_for_stable_page", R::WriteBack, 5),
    ("__filemap_fdatawait_range", R::WriteBack, 5),
    ("wb_wait_for_completion", R::WriteBack, 5),
    ("__inode_wait_for_writeback", R::WriteBack, 5),
    ("inode_wait_for_writeback", R::WriteBack, 5),
    // Pages that are locked, unless a fault or a read says what for.
    ("folio_wait_bit*", R::PageLock, 2),
    ("__folio_lock*", R::PageLock, 2),
    ("__lock_page*", R::PageLock, 2),
    ("wait_on_page_bit*", R::PageLock, 2),
    ("migration_entry_wait*", R::PageLock, 4),
    // Page faults.
    ("filemap_fault", R::FileFault, 4),
    ("handle_userfault", R::MemoryFault, DECIDES),
    ("do_swap_page", R::MemoryFault, 4),
    ("shmem_fault", R::MemoryFault, 4),
    ("do_anonymous_page", R::MemoryFault, 3),
    ("do_wp_page", R::MemoryFault, 3),
    ("hugetlb_fault", R::MemoryFault, 3),
    ("handle_mm_fault", R::MemoryFault, 2),
    // Reclaim and compaction.
    ("shrink_*", R::Reclaim, 6),
    ("do_try_to_free_pages", R::Reclaim, 6),
    ("try_to_free_*", R::Reclaim, 6),
    ("reclaim_throttle", R::Reclaim, 6),
    ("throttle_direct_reclaim", R::Reclaim, 6),
    ("mem_cgroup_handle_over_high", R::Reclaim, 6),
    ("__mem_cgroup_handle_over_high", R::Reclaim, 6),
    ("mem_cgroup_oom_synchronize", R::Reclaim, 6),
    ("compact_zone*", R::Reclaim, 6),
    ("try_to_compact_pages", R::Reclaim, 6),
    ("congestion_wait", R::Reclaim, 6),
    ("out_of_memory", R::Reclaim, 6),
    // Sockets.
    ("sk_wait_data", R::Network, DECIDES),
    ("sk_stream_wait_*", R::Network, DECIDES),
    ("sock_alloc_send_pskb", R::Network, DECIDES),
    ("sock_wait_for_wmem", R::Network, DECIDES),
    ("tcp_*", R::Network, DECIDES),
    ("udp_*", R::Network, DECIDES),
    ("inet_csk_*", R::Network, DECIDES),
    ("inet_wait_for_connect", R::Network, DECIDES),
    ("__inet_stream_connect", R::Network, DECIDES),
    ("unix_*", R::Network, DECIDES),
    ("__unix_*", R::Network, DECIDES),
    ("__skb_wait_for_more_packets", R::Network, DECIDES),
    ("__skb_recv_*", R::Network, DECIDES),
    ("vsock_*", R::Network, DECIDES),
    ("mptcp_*", R::Network, DECIDES),
    ("rpc_wait_bit_killable", R::Network, DECIDES),
    // Pipes.
    ("pipe_read", R::Pipe, DECIDES),
    ("pipe_write", R::Pipe, DECIDES),
    ("anon_pipe_read", R::Pipe, DECIDES),
    ("anon_pipe_write", R::Pipe, DECIDES),
    ("fifo_pipe_read", R::Pipe, DECIDES),
    ("fifo_pipe_write", R::Pipe, DECIDES),
    ("pipe_wait*", R::Pipe, DECIDES),
    ("fifo_open", R::Pipe, DECIDES),
    ("wait_for_partner", R::Pipe, DECIDES),
    // Several descriptors.
    ("poll_schedule_timeout", R::Poll, DECIDES),
    ("do_epoll_wait", R::Poll, DECIDES),
    ("ep_poll", R::Poll, DECIDES),
    ("do_select", R::Poll, DECIDES),
    ("do_poll", R::Poll, DECIDES),
    ("do_sys_poll", R::Poll, DECIDES),
    // Asynchronous operations.
    ("io_cqring_wait", R::AsyncIo, DECIDES),
    ("io_wq_worker", R::Idle, INNERMOST),
    ("io_sq_thread", R::Idle, INNERMOST),
    ("read_events", R::AsyncIo, DECIDES),
    ("do_io_getevents", R::AsyncIo, DECIDES),
    // Events.
    ("eventfd_read", R::Event, DECIDES),
    ("eventfd_write", R::Event, DECIDES),
    ("inotify_read", R::Event, DECIDES),
    ("fanotify_read", R::Event, DECIDES),
    // Times.
    ("do_nanosleep", R::Timer, DECIDES),
    ("hrtimer_nanosleep", R::Timer, DECIDES),
    ("alarmtimer_do_nsleep", R::Timer, DECIDES),
    ("timerfd_read*", R::Timer, DECIDES),
    ("msleep*", R::Timer, DECIDES),
    ("usleep_range_state", R::Timer, DECIDES),
    // Children.
    ("do_wait", R::Child, DECIDES),
    ("kernel_wait*", R::Child, DECIDES),
    ("kernel_clone", R::Child, 1),
    // Signals.
    ("do_sigtimedwait", R::Signal, DECIDES),
    ("sigsuspend", R::Signal, DECIDES),
    ("__do_sys_pause", R::Signal, DECIDES),
    ("signalfd_read*", R::Signal, DECIDES),
    ("signalfd_dequeue", R::Signal, DECIDES),
    // Terminals.
    ("n_tty_read", R::Terminal, DECIDES),
    ("n_tty_write", R::Terminal, DECIDES),
    ("tty_wait_until_sent", R::Terminal, DECIDES),
    // Grace periods.
    ("synchronize_rcu*", R::Rcu, DECIDES),
    ("__synchronize_srcu", R::Rcu, DECIDES),
    ("__wait_rcu_gp", R::Rcu, DECIDES),
    ("rcu_barrier", R::Rcu, DECIDES),
    // Virtual machines.
    ("kvm_vcpu_block", R::VirtualCpu, DECIDES),
    ("kvm_vcpu_halt", R::VirtualCpu, DECIDES),
    // Threads of the kernel without work.
    ("worker_thread", R::Idle, INNERMOST),
    ("rescuer_thread", R::Idle, INNERMOST),
    ("smpboot_thread_fn", R::Idle, INNERMOST),
    ("kthread_worker_fn", R::Idle, INNERMOST),
    ("rcu_gp_kthread", R::Idle, INNERMOST),
    ("kthread", R::Idle, INNERMOST),
];

/// The outermost functions of a page fault.
const FAULTS: &[&str] = &[
    "handle_mm_fault",
    "do_user_addr_fault",
    "exc_page_fault",
    "do_page_fault",
    "do_mem_abort",
];

/// Functions that are part of every wait, or of recording it, and say nothing about it.
const PLUMBING: &[&str] = &[
    "trace_*",
    "__traceiter_*",
    "perf_trace_*",
    "bpf_*",
    "ftrace_*",
    "__schedule",
    "schedule",
    "schedule_timeout*",
    "schedule_hrtimeout*",
    "schedule_preempt_disabled",
    "io_schedule*",
    "bit_wait*",
    "__wait_on_bit*",
    "out_of_line_wait_on_bit*",
    "wait_woken",
    "wait_for_completion*",
    "__wait_for_common",
    "do_wait_intr*",
];

fn is(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    }
}

/// The name as the source has it: the compiler adds an ending to a part of a function (`do_select.constprop.0`).
fn in_source(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The reason of a stack, and the function that shows it; `None` if none of its functions has a name.
pub(crate) fn reason_of(
    frames: &[KernelAddr],
    resolver: &dyn NameResolver,
) -> Option<(BlockReason, Name)> {
    let names = frames.iter().map(|frame| resolver.function(*frame));
    // An address without a name is shown as a number.
    classify(names.filter(|name| !name.starts_with("0x")))
}

/// The same from the names of its functions, the innermost first.
fn classify(names: impl Iterator<Item = Name>) -> Option<(BlockReason, Name)> {
    let (mut heaviest, mut first, mut any): (Option<(u8, BlockReason, Name)>, _, _) =
        (None, None, None);
    for name in names {
        let own = in_source(&name);
        let rule = RULES.iter().find(|(pattern, ..)| is(pattern, own));
        let own: Name = own.into();
        if let Some((_, reason, weight)) = rule {
            let most = heaviest.as_ref().map(|(most, ..)| *most);
            let is_first = first.is_none() && most.is_none();
            match *weight {
                DECIDES if most.is_some_and(|most| most >= ENOUGH) => break,
                DECIDES => return Some((reason.clone(), own)),
                INNERMOST if is_first => return Some((reason.clone(), own)),
                INNERMOST => {}
                weight if most.is_none_or(|most| weight > most) => {
                    heaviest = Some((weight, reason.clone(), own.clone()));
                }
                _ => {}
            }
        }
        if FAULTS.contains(&&*own) {
            break;
        }
        if first.is_none() && !PLUMBING.iter().any(|pattern| is(pattern, &own)) {
            first = Some(own.clone());
        }
        any.get_or_insert(own);
    }
    match heaviest {
        Some((_, reason, name)) => Some((reason, name)),
        None => first.or(any).map(|name| (BlockReason::Function, name)),
    }
}

#[cfg(test)]
#[path = "block_reasons_tests.rs"]
mod tests;
