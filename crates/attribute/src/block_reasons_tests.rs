use super::*;

/// Stacks of Linux 6.18, as recorded: what the program did, the reason, the function that shows it, and the calls below
/// `schedule`, the innermost first.
const RECORDED: &[(&str, BlockReason, &str, &str)] = &[
    (
        "clock_nanosleep(2)",
        R::Timer,
        "do_nanosleep",
        "do_nanosleep hrtimer_nanosleep common_nsleep_timens __x64_sys_clock_nanosleep do_syscall_64 \
         entry_SYSCALL_64_after_hwframe",
    ),
    (
        "futex(2)",
        R::Lock,
        "futex_do_wait",
        "futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex do_syscall_64",
    ),
    (
        "read(2) of a pipe",
        R::Pipe,
        "anon_pipe_read",
        "anon_pipe_read vfs_read ksys_read do_syscall_64",
    ),
    (
        "select(2)",
        R::Poll,
        "poll_schedule_timeout",
        "schedule_hrtimeout_range_clock poll_schedule_timeout.constprop.0 do_select core_sys_select \
         do_pselect.constprop.0 __x64_sys_pselect6 do_syscall_64",
    ),
    (
        "poll(2)",
        R::Poll,
        "poll_schedule_timeout",
        "schedule_hrtimeout_range_clock poll_schedule_timeout.constprop.0 do_sys_poll __x64_sys_poll do_syscall_64",
    ),
    (
        "epoll_wait(2)",
        R::Poll,
        "do_epoll_wait",
        "schedule_hrtimeout_range_clock do_epoll_wait __x64_sys_epoll_wait do_syscall_64",
    ),
    (
        "recv(2) of a stream of this machine",
        R::Network,
        "unix_stream_read_generic",
        "schedule_timeout unix_stream_read_generic unix_stream_recvmsg sock_recvmsg __sys_recvfrom \
         __x64_sys_recvfrom do_syscall_64",
    ),
    (
        "recv(2) of datagrams of this machine",
        R::Network,
        "__skb_wait_for_more_packets",
        "schedule_timeout __skb_wait_for_more_packets __unix_dgram_recvmsg sock_recvmsg __sys_recvfrom \
         __x64_sys_recvfrom do_syscall_64",
    ),
    (
        "accept(2)",
        R::Network,
        "inet_csk_accept",
        "schedule_timeout inet_csk_accept inet_accept do_accept __sys_accept4 __x64_sys_accept4 do_syscall_64",
    ),
    (
        "recv(2) of TCP",
        R::Network,
        "sk_wait_data",
        "schedule_timeout wait_woken sk_wait_data tcp_recvmsg_locked tcp_recvmsg sock_recvmsg __sys_recvfrom \
         __x64_sys_recvfrom do_syscall_64",
    ),
    (
        "vfork(2)",
        R::Child,
        "kernel_clone",
        "schedule_timeout __wait_for_common wait_for_completion_state kernel_clone __do_sys_vfork do_syscall_64",
    ),
    (
        "wait4(2)",
        R::Child,
        "do_wait",
        "do_wait kernel_wait4 do_syscall_64",
    ),
    (
        "sigtimedwait(2)",
        R::Signal,
        "do_sigtimedwait",
        "schedule_hrtimeout_range_clock do_sigtimedwait.isra.0 __x64_sys_rt_sigtimedwait do_syscall_64",
    ),
    (
        "pause(2)",
        R::Signal,
        "__do_sys_pause",
        "__do_sys_pause do_syscall_64",
    ),
    (
        "flock(2)",
        R::FileLock,
        "locks_lock_inode_wait",
        "locks_lock_inode_wait __do_sys_flock do_syscall_64",
    ),
    (
        "fsync(2): the pages",
        R::WriteBack,
        "folio_wait_writeback",
        "io_schedule folio_wait_bit folio_wait_writeback __filemap_fdatawait_range file_write_and_wait_range \
         generic_buffers_fsync_noflush ext4_fsync_nojournal.constprop.0 ext4_sync_file do_fsync __x64_sys_fsync",
    ),
    (
        "fsync(2): the inode",
        R::Disk,
        "__sync_dirty_buffer",
        "io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __sync_dirty_buffer ext4_write_inode \
         __writeback_single_inode writeback_single_inode sync_inode_metadata ext4_sync_file do_fsync __x64_sys_fsync",
    ),
    (
        "fsync(2): the device's cache",
        R::Disk,
        "blkdev_issue_flush",
        "schedule_timeout io_schedule_timeout wait_for_completion_io_timeout submit_bio_wait blkdev_issue_flush \
         ext4_sync_file do_fsync __x64_sys_fsync do_syscall_64",
    ),
    (
        "pread(2)",
        R::Disk,
        "filemap_get_pages",
        "io_schedule folio_wait_bit_common filemap_get_pages filemap_read vfs_read __x64_sys_pread64 do_syscall_64",
    ),
    (
        "preadv(2) with O_DIRECT",
        R::Disk,
        "__iomap_dio_rw",
        "schedule_timeout io_schedule_timeout __iomap_dio_rw iomap_dio_rw ext4_file_read_iter do_iter_readv_writev \
         vfs_readv do_preadv do_syscall_64",
    ),
    (
        "open(2): a directory that is not in memory",
        R::Disk,
        "__ext4_find_entry",
        "io_schedule bit_wait_io __wait_on_bit out_of_line_wait_on_bit __ext4_find_entry ext4_lookup path_openat \
         do_filp_open do_sys_openat2 __x64_sys_openat do_syscall_64",
    ),
    (
        "a mapped page that is not in memory",
        R::FileFault,
        "filemap_fault",
        "io_schedule folio_wait_bit_common filemap_fault __do_fault do_fault __handle_mm_fault handle_mm_fault \
         exc_page_fault asm_exc_page_fault",
    ),
    (
        "sched_setaffinity(2): another CPU moves the thread",
        R::Function,
        "affine_move_task",
        "schedule_timeout wait_for_completion affine_move_task __set_cpus_allowed_ptr __sched_setaffinity \
         sched_setaffinity __x64_sys_sched_setaffinity do_syscall_64",
    ),
    (
        "a kworker without work",
        R::Idle,
        "worker_thread",
        "worker_thread kthread ret_from_fork ret_from_fork_asm",
    ),
    (
        "ksoftirqd",
        R::Idle,
        "smpboot_thread_fn",
        "smpboot_thread_fn kthread ret_from_fork ret_from_fork_asm",
    ),
];

/// What each of them has above.
const ABOVE: &str =
    "trace_event_raw_event_sched_switch __traceiter_sched_switch __schedule schedule";

fn of(stack: &str) -> Option<(BlockReason, Name)> {
    classify(stack.split_whitespace().map(Name::from))
}

#[test]
fn recorded_stacks_show_what_the_program_waited_for() {
    for (what, reason, function, stack) in RECORDED {
        let found = of(&format!("{ABOVE} {stack}"));
        assert_eq!(
            found,
            Some((reason.clone(), Name::from(*function))),
            "{what}"
        );
    }
}

#[test]
fn the_caller_of_a_fault_or_of_an_allocation_is_not_the_reason() {
    let fault = "io_schedule folio_wait_bit_common filemap_fault __handle_mm_fault handle_mm_fault exc_page_fault \
                 asm_exc_page_fault tcp_recvmsg_locked tcp_recvmsg";
    assert_eq!(of(fault).unwrap().0, R::FileFault);
    let reclaim = "io_schedule_timeout reclaim_throttle shrink_node do_try_to_free_pages try_to_free_pages \
                   __alloc_pages_slowpath sk_page_frag_refill tcp_sendmsg_locked";
    assert_eq!(of(reclaim), Some((R::Reclaim, "reclaim_throttle".into())));
    let lock = "rwsem_down_read_slowpath down_read do_user_addr_fault exc_page_fault";
    assert_eq!(of(lock).unwrap().0, R::KernelLock);
}

#[test]
fn a_kernel_thread_at_work_is_not_idle() {
    let work = "schedule_timeout wait_for_completion drain_all_pages process_one_work worker_thread kthread";
    assert_eq!(of(work), Some((R::Function, "drain_all_pages".into())));
    let disk = "io_schedule process_one_work worker_thread kthread";
    assert_eq!(of(disk).unwrap().0, R::Disk);
}

#[test]
fn a_stack_without_names_has_no_reason() {
    let numbers = [KernelAddr(1), KernelAddr(2)];
    assert_eq!(reason_of(&numbers, &crate::name_resolver::NoNames), None);
    assert_eq!(reason_of(&[], &crate::name_resolver::NoNames), None);
    // Nothing but the scheduler: still a name.
    assert_eq!(of("__schedule"), Some((R::Function, "__schedule".into())));
}

#[test]
fn no_rule_is_hidden_by_an_earlier_one() {
    for (at, (pattern, ..)) in RULES.iter().enumerate() {
        let name = pattern.trim_end_matches('*');
        let first = RULES.iter().position(|(pattern, ..)| is(pattern, name));
        let hidden = first != Some(at) && RULES[first.unwrap()].1 != RULES[at].1;
        assert!(
            !hidden,
            "{pattern} is never reached: {}",
            RULES[first.unwrap()].0
        );
    }
}
