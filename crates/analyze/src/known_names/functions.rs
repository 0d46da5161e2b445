//! Kernel functions and vectors, and what they do, according to the kernel's documentation and source.

use super::Table;

/// Functions of high-resolution timers and of the timer wheel.
pub(super) const TIMERS: Table = &[
    ("local_timer", "the timer interrupt itself"),
    (
        "tick_nohz_handler",
        "scheduler tick, HZ times a second (nohz_full stops it)",
    ),
    (
        "tick_sched_timer",
        "scheduler tick, HZ times a second (nohz_full stops it)",
    ),
    (
        "hrtimer_wakeup",
        "wakes a sleeping thread (nanosleep, futex or poll timeout)",
    ),
    (
        "process_timeout",
        "wakes a thread that slept in the kernel with a timeout",
    ),
    ("it_real_fn", "a process's alarm (setitimer, alarm)"),
    ("posix_timer_fn", "a process's POSIX timer (timer_create)"),
    ("timerfd_tmrproc", "a process's timerfd"),
    (
        "alarmtimer_fired",
        "an alarm timer (CLOCK_BOOTTIME_ALARM, CLOCK_REALTIME_ALARM)",
    ),
    (
        "watchdog_timer_fn",
        "lockup watchdog, every 4 s by default (kernel.watchdog)",
    ),
    (
        "clocksource_watchdog",
        "checks the TSC, every 0.5 s (tsc=nowatchdog)",
    ),
    (
        "mce_timer_fn",
        "polls for corrected hardware errors (machinecheck check_interval)",
    ),
    (
        "sched_rt_period_timer",
        "real-time bandwidth accounting (kernel.sched_rt_period_us)",
    ),
    (
        "sched_cfs_period_timer",
        "CPU quota of a control group (cpu.max)",
    ),
    (
        "sched_cfs_slack_timer",
        "CPU quota of a control group (cpu.max)",
    ),
    ("hrtick", "ends a time slice precisely"),
    (
        "dl_task_timer",
        "replenishes a deadline thread or the fair server",
    ),
    ("inactive_task_timer", "deadline bandwidth accounting"),
    (
        "perf_mux_hrtimer_handler",
        "rotates perf events: somebody measures this CPU",
    ),
    ("perf_swevent_hrtimer", "perf samples by software clock"),
    ("delayed_work_timer_fn", "queues work whose delay is over"),
    ("idle_worker_timeout", "ends idle kernel workers"),
    ("wq_watchdog_timer_fn", "workqueue watchdog"),
    ("tcp_write_timer", "TCP retransmission"),
    ("tcp_delack_timer", "TCP delayed acknowledgement"),
    ("tcp_keepalive_timer", "TCP keepalive"),
    ("tcp_pace_kick", "TCP pacing"),
    ("tcp_compressed_ack_kick", "TCP acknowledgement compression"),
    ("tw_timer_handler", "TCP TIME_WAIT ends"),
    ("neigh_timer_handler", "ARP and neighbour table"),
    ("dev_watchdog", "network device transmit watchdog"),
    ("qdisc_watchdog", "packet scheduler"),
    ("napi_watchdog", "deferred network interrupt"),
    ("blk_rq_timed_out_timer", "block request timeout"),
    ("blk_stat_timer_fn", "block layer statistics"),
    ("commit_timeout", "ext4 journal commit"),
    ("writeout_period", "writeback bandwidth accounting"),
    ("mix_interrupt_randomness", "feeds the random number pool"),
    ("poll_timer_fn", "pressure-stall trigger polling"),
    ("bpf_timer_cb", "a BPF program's timer"),
    (
        "sync_timer_callback",
        "sets the hardware clock from the system clock",
    ),
    ("rtc_pie_update_irq", "hardware clock periodic interrupt"),
    ("apic_timer_fn", "a guest's timer (KVM host)"),
    ("srcu_delay_timer", "drives sleepable RCU"),
    (
        "poll_spurious_irqs",
        "polls interrupts that were switched off as spurious",
    ),
];

/// Work functions of kernel workers.
pub(super) const WORK: Table = &[
    (
        "vmstat_update",
        "folds per-CPU memory statistics, every vm.stat_interval (1 s)",
    ),
    (
        "vmstat_shepherd",
        "starts memory statistics on CPUs, every vm.stat_interval (1 s)",
    ),
    ("wb_workfn", "writes dirty pages back (vm.dirty_*)"),
    (
        "wb_update_bandwidth_workfn",
        "writeback bandwidth accounting",
    ),
    (
        "page_reporting_process",
        "tells the host which pages are free (virtio balloon)",
    ),
    (
        "psi_avgs_work",
        "averages pressure-stall information, every 2 s (psi=0)",
    ),
    (
        "lru_add_drain_per_cpu",
        "drains per-CPU page lists (compaction, mlock, migration)",
    ),
    (
        "drain_local_pages_wq",
        "drains per-CPU free pages (compaction, hotplug)",
    ),
    (
        "flush_memcg_stats_dwork",
        "flushes memory control group statistics, every 2 s",
    ),
    (
        "drain_local_stock",
        "drains per-CPU memory control group charges",
    ),
    ("cache_reap", "reaps slab caches, every 2 s"),
    ("kfree_rcu_work", "frees memory after an RCU grace period"),
    (
        "kfree_rcu_monitor",
        "frees memory after an RCU grace period",
    ),
    ("process_srcu", "drives sleepable RCU"),
    ("srcu_invoke_callbacks", "runs sleepable RCU callbacks"),
    ("wait_rcu_exp_gp", "drives an expedited RCU grace period"),
    (
        "sync_rcu_exp_select_node_cpus",
        "begins an expedited RCU grace period on CPUs",
    ),
    ("rcu_core", "RCU callbacks"),
    ("blk_mq_run_work_fn", "submits block requests"),
    ("blk_mq_requeue_work", "submits block requests again"),
    ("blk_mq_timeout_work", "block request timeout"),
    ("loop_workfn", "a loop device"),
    ("loop_rootcg_workfn", "a loop device"),
    ("flush_to_ldisc", "terminal input and output"),
    ("delayed_fput", "closes files"),
    ("mmput_async_fn", "tears down a process's memory"),
    ("free_work", "frees kernel memory mappings"),
    ("drain_vmap_area_work", "frees kernel memory mappings"),
    ("css_free_rwork_fn", "frees a control group"),
    ("css_release_work_fn", "frees a control group"),
    ("css_killed_work_fn", "removes a control group"),
    ("bpf_map_free_deferred", "frees a BPF map"),
    ("bpf_prog_free_deferred", "frees a BPF program"),
    ("neigh_periodic_work", "ARP and neighbour table"),
    ("gc_worker", "connection tracking garbage collection"),
    ("linkwatch_event", "network link changes"),
    ("refill_work", "refills a virtual network device's buffers"),
    (
        "update_balloon_size_func",
        "memory balloon: the host takes or gives memory",
    ),
    ("update_balloon_stats_func", "memory balloon statistics"),
    (
        "sync_hw_clock",
        "sets the hardware clock from the system clock",
    ),
    ("clocksource_watchdog_work", "the clock was found unstable"),
    ("edac_mc_workq_function", "polls for memory errors (EDAC)"),
    ("mce_gen_pool_process", "reports hardware errors"),
    (
        "dbs_work_handler",
        "the ondemand governor sets the CPU frequency",
    ),
    ("sugov_work", "schedutil sets the CPU frequency"),
    ("fb_flashcursor", "console cursor"),
    ("drm_fb_helper_damage_work", "console on a graphics device"),
    (
        "toggle_allocation_gate",
        "KFENCE sampling (kfence.sample_interval)",
    ),
    (
        "jump_label_update_timeout",
        "switches a static key off: patches kernel code",
    ),
    (
        "netstamp_clear",
        "network time stamps on or off: patches kernel code",
    ),
    ("work_for_cpu_fn", "work that was asked of this CPU"),
    ("io_ring_exit_work", "tears down an io_uring"),
    (
        "io_fallback_req_func",
        "io_uring requests of a process that ended",
    ),
    ("acpi_os_execute_deferred", "ACPI events"),
    ("vmpressure_work_fn", "memory pressure notifications"),
    ("key_garbage_collector", "keyring garbage collection"),
    ("xfs_inodegc_worker", "frees XFS inodes"),
    ("rpc_async_schedule", "NFS and SunRPC"),
];

/// Functions that one CPU calls on another, and the vectors that carry them.
pub(super) const CALLS: Table = &[
    ("reschedule", "another CPU woke a thread for this one"),
    (
        "call_function",
        "a call from another CPU whose function was not seen",
    ),
    (
        "call_function_single",
        "a call from another CPU whose function was not seen",
    ),
    (
        "irq_work",
        "work deferred to an interrupt (perf, RCU, printk, scheduler)",
    ),
    ("ipi_mb", "membarrier() of a process that has a thread here"),
    ("ipi_sync_core", "membarrier(SYNC_CORE) of a process"),
    ("ipi_sync_rq_state", "a process registered for membarrier()"),
    ("ipi_rseq", "membarrier(RSEQ) of a process"),
    (
        "flush_tlb_func",
        "TLB shootdown: a thread of the same process unmapped memory",
    ),
    ("do_flush_tlb_all", "TLB shootdown of all mappings"),
    ("do_kernel_range_flush", "TLB shootdown of kernel mappings"),
    (
        "do_sync_core",
        "kernel code was patched (tracing, BPF, static keys, modules)",
    ),
    (
        "rcu_exp_handler",
        "expedited RCU grace period (rcu_normal avoids it)",
    ),
    (
        "rcu_barrier_handler",
        "rcu_barrier(): waits for all RCU callbacks",
    ),
    ("rps_trigger_softirq", "network packets steered here by RPS"),
    (
        "__rdmsr_on_cpu",
        "somebody reads this CPU's MSRs (turbostat, monitoring)",
    ),
    (
        "__rdmsr_safe_on_cpu",
        "somebody reads this CPU's MSRs (turbostat, monitoring)",
    ),
    ("__wrmsr_on_cpu", "somebody writes this CPU's MSRs"),
    ("__wrmsr_safe_on_cpu", "somebody writes this CPU's MSRs"),
    ("remote_function", "perf sets up an event on this CPU"),
    ("__perf_event_read", "perf reads a counter of this CPU"),
    ("__perf_event_disable", "perf takes an event off this CPU"),
    ("nohz_csd_func", "asked to balance load for idle CPUs"),
    (
        "sched_ttwu_pending",
        "another CPU woke a thread for this one",
    ),
    (
        "nohz_full_kick_func",
        "asked whether this CPU needs its tick again",
    ),
    ("retrigger_next_event", "the clock was set"),
    (
        "invalidate_bh_lru",
        "drops cached buffer heads (a block device was flushed)",
    ),
    (
        "__blk_mq_complete_request_remote",
        "block request completed here (rq_affinity)",
    ),
    ("aperfmperf_snapshot_khz", "somebody reads /proc/cpuinfo"),
    ("ack_flush", "KVM asks running guests to leave"),
    ("__wbinvd", "caches written back and emptied"),
];

pub(super) const SOFTIRQS: Table = &[
    ("HI", "high-priority tasklets"),
    ("TIMER", "timer wheel: kernel timeouts"),
    ("NET_TX", "network transmission completed"),
    ("NET_RX", "received network packets"),
    ("BLOCK", "block requests completed"),
    ("IRQ_POLL", "polled block devices"),
    ("TASKLET", "tasklets of drivers"),
    ("SCHED", "the scheduler balances load between CPUs"),
    ("HRTIMER", "high-resolution timers of no hurry"),
    ("RCU", "RCU callbacks (rcu_nocbs moves them)"),
];

/// Interrupt vectors that are neither timer nor call.
pub(super) const VECTORS: Table = &[
    ("error_apic", "the local APIC reported an error"),
    ("spurious_apic", "spurious interrupt"),
    ("thermal_apic", "the CPU grew too hot, or cooled down"),
    ("threshold_apic", "too many corrected hardware errors"),
    ("deferred_error_apic", "deferred hardware error"),
    ("x86_platform_ipi", "platform interrupt"),
    ("vector_free_moved_irq", "an interrupt moved to another CPU"),
];

/// Handlers of non-maskable interrupts.
pub(super) const NMIS: Table = &[
    (
        "perf_event_nmi_handler",
        "a performance counter ran over (perf, kernel.nmi_watchdog)",
    ),
    (
        "nmi_cpu_backtrace_handler",
        "another CPU asked for a stack trace",
    ),
    ("ghes_notify_nmi", "firmware reported a hardware error"),
    (
        "perf_ibs_nmi_handler",
        "instruction-based sampling (perf on AMD)",
    ),
];

pub(super) const FAULTS: Table = &[
    (
        "page_fault_user",
        "the measured thread touched memory that was not mapped",
    ),
    (
        "page_fault_kernel",
        "the kernel touched memory that was not mapped",
    ),
];
