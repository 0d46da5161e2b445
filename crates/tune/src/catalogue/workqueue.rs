//! Workqueues and kernel daemons.

use crate::answer::{Answer, CulpritPattern, Workers};
use crate::cmdline::{BootParam, BootValue};
use crate::knob::{Fact, Group, Knob, Mechanism, Profile, Risk, Setting, Shown, Want, Weight};
use crate::settles::{InForce, Settles, Sign};
use crate::value::ValueKind;
use jitterscope_model::Nanos;

/// Work on the power-efficient queues, the only work that becomes unbound. Other work stays bound or is already
/// unbound. From memory of the kernel source.
const POWER_EFFICIENT: &[&str] = &[
    "neigh_periodic_work",
    "neigh_managed_work",
    "check_lifetime",
    "gc_worker",
    "nft_rhash_gc",
    "flow_offload_work_gc",
    "do_cache_clean",
    "disk_events_workfn",
    "phy_state_machine",
    "sync_hw_clock",
    "fb_flashcursor",
    "hub_init_func*",
    "thermal_zone_device_check",
    "crda_timeout_work",
    "reg_check_chans_work",
];

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        id: "wq-unbound",
        group: Group::Workqueues,
        title: "Unbound kernel workers",
        removes: "Work of unbound workqueues (kworker/u*).",
        mechanism: Mechanism::Files(&[Setting::file(
            "/sys/devices/virtual/workqueue/cpumask",
            ValueKind::CpuMask,
            Want::OffIsolated,
        )]),
        boot: &[BootParam {
            key: "workqueue.unbound_cpus",
            value: BootValue::Housekeeping,
        }],
        answers: &[
            Answer::removes(CulpritPattern::WorkBy(Workers::Unbound, &["*"])),
            Answer::perhaps(CulpritPattern::WorkBy(Workers::Unknown, &["*"]))
                .but_not(&["vmstat_update", "lru_add_drain_per_cpu"]),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "The housekeeping CPUs run the work. Work bound to a CPU is unaffected.",
        weight: Weight::Major,
        kernel: "4.2 and later; the boot parameter came later (unverified)",
        absent: "the kernel has no mask for unbound workqueues",
        by_hand: "Write the mask to /sys/devices/virtual/workqueue/cpumask. Bound workers (kworker/N:) cannot move: remove the source of their work.",
        check: "A recording shows no kworker/u* on the isolated CPUs.",
        in_force: InForce::both(
            Settles::AtNextEvent("work already queued or running there ends"),
            Sign::Recording("kworker/u* on the CPUs"),
        ),
        conflicts: &[],
        fact: Fact::Tried("6.18; first versions from memory"),
    },
    Knob {
        id: "wq-named",
        group: Group::Workqueues,
        title: "Named workqueues",
        removes: "Writeback and other workqueues that sysfs lists by name.",
        mechanism: Mechanism::Files(&[Setting::file(
            "/sys/devices/virtual/workqueue/*/cpumask",
            ValueKind::CpuMask,
            Want::OffIsolated,
        )]),
        boot: &[],
        answers: &[
            Answer::removes(CulpritPattern::Work(&[
                "wb_workfn",
                "wb_update_bandwidth_workfn",
            ])),
            Answer::lessens(CulpritPattern::Work(&["blkcg_*"])),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "The housekeeping CPUs run the work.",
        weight: Weight::Major,
        kernel: "3.10 and later; workqueues created with WQ_SYSFS only",
        absent: "no workqueue shows a mask in sysfs",
        by_hand: "Write the mask to /sys/devices/virtual/workqueue/NAME/cpumask (also under /sys/bus/workqueue/devices).",
        check: "The isolated CPUs record no wb_workfn while other CPUs write data.",
        in_force: InForce::both(
            Settles::AtNextEvent("work already queued or running there ends"),
            Sign::Recording("wb_workfn on the CPUs"),
        ),
        conflicts: &[],
        fact: Fact::Tried("6.18, with writeback"),
    },
    Knob {
        id: "wq-powereff",
        group: Group::Workqueues,
        title: "Power-efficient workqueues",
        removes: "Some work that is otherwise bound to the CPU that queued it. It becomes unbound.",
        mechanism: Mechanism::Boot(Shown::Reads(
            "/sys/module/workqueue/parameters/power_efficient",
            ValueKind::Switch,
            &["Y"],
        )),
        boot: &[BootParam {
            key: "workqueue.power_efficient",
            value: BootValue::Is("1"),
        }],
        answers: &[
            Answer::lessens(CulpritPattern::WorkBy(Workers::Bound, POWER_EFFICIENT)),
            Answer::perhaps(CulpritPattern::WorkBy(Workers::Unknown, POWER_EFFICIENT)),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "Cache locality of that work.",
        weight: Weight::Minor,
        kernel: "3.11 and later",
        absent: "the kernel has no such parameter",
        by_hand: "Add workqueue.power_efficient=1 to the kernel command line. The parameter is read-only at run time.",
        check: "/sys/module/workqueue/parameters/power_efficient reads Y.",
        in_force: InForce::AT_BOOT,
        conflicts: &[],
        fact: Fact::Seen(
            "6.1 and 6.12 guests: reads N, and Y when booted with it; read-only at run time on 6.18",
        ),
    },
    Knob {
        id: "vmstat",
        group: Group::Workqueues,
        title: "Memory statistics",
        removes: "Most runs of the bound worker that folds each CPU's memory counters into the global ones: one per minute remains instead of one per second.",
        mechanism: Mechanism::Files(&[Setting::file(
            "/proc/sys/vm/stat_interval",
            ValueKind::Number,
            Want::AtLeast {
                enough: 10,
                write: 60,
            },
        )]),
        boot: &[],
        answers: &[Answer::removes(CulpritPattern::Work(&[
            "vmstat_update",
            "vmstat_shepherd",
        ]))],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "/proc/vmstat and /proc/meminfo may be stale by that many seconds. Memory reclaim works with less exact numbers.",
        weight: Weight::Minor,
        kernel: "any; newer kernels skip isolated CPUs (unverified)",
        absent: "the kernel has no such statistics",
        by_hand: "sysctl -w vm.stat_interval=60. Do not exceed it: queued work keeps its delay, so undoing 3600 takes up to an hour. Neither vm.stat_refresh nor a second write shortens the delay.",
        check: "At most one vmstat_update per minute on the isolated CPUs. One already armed may still come first.",
        in_force: InForce::both(
            Settles::WithinReplaced {
                unit: Nanos(1_000_000_000),
                slack: Nanos(2_000_000_000),
            },
            Sign::Recording("vmstat_update"),
        ),
        conflicts: &[],
        fact: Fact::Tried(
            "6.18: queued work keeps its delay. After undoing 20, the first run came 16.8 s later, 21.8 s after it was queued. vm.stat_refresh and a second write changed nothing",
        ),
    },
    Knob {
        id: "writeback",
        group: Group::Workqueues,
        title: "Early writeback in small batches",
        removes: "Long bursts of dirty-page writeback. The kernel writes earlier and less at a time.",
        mechanism: Mechanism::Files(&[
            Setting::file(
                "/proc/sys/vm/dirty_background_ratio",
                ValueKind::Number,
                Want::AtMost {
                    enough: 5,
                    write: 3,
                },
            ),
            Setting::file(
                "/proc/sys/vm/dirty_ratio",
                ValueKind::Number,
                Want::AtMost {
                    enough: 10,
                    write: 10,
                },
            ),
        ]),
        boot: &[],
        answers: &[Answer::lessens(CulpritPattern::Work(&["wb_workfn"]))],
        profiles: &[],
        risk: Risk::Medium,
        loses: "I/O throughput: writers stall sooner. Values set in bytes (dirty_bytes) read as ratio 0 and stay unchanged.",
        weight: Weight::Minor,
        kernel: "any",
        absent: "the kernel has no writeback controls",
        by_hand: "sysctl -w vm.dirty_background_ratio=3 vm.dirty_ratio=10. wq-named keeps writeback off the CPUs entirely.",
        check: "wb_workfn runs are shorter in a recording.",
        in_force: InForce::both(
            Settles::Within(Nanos(5_000_000_000)),
            Sign::Recording("wb_workfn"),
        ),
        conflicts: &[],
        fact: Fact::Tried("6.18: writable; good values depend on the disk"),
    },
    Knob {
        id: "ksm",
        group: Group::Workqueues,
        title: "Same-page merging",
        removes: "The ksmd thread and the TLB shootdowns of the pages it merges.",
        mechanism: Mechanism::Files(&[Setting::file(
            "/sys/kernel/mm/ksm/run",
            ValueKind::Number,
            Want::OneOf(&["0", "2"]),
        )]),
        boot: &[],
        answers: &[
            Answer::removes(CulpritPattern::Threads(&["ksmd"])),
            Answer::lessens(CulpritPattern::Calls(&["flush_tlb_func"])),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "The memory that merging saves. Merged pages stay merged.",
        weight: Weight::Minor,
        kernel: "2.6.32 and later, built with KSM",
        absent: "the kernel is built without KSM",
        by_hand: "Write 0 to /sys/kernel/mm/ksm/run. Stop ksmtuned, which writes it again.",
        check: "The file reads 0, and ksmd does not run.",
        in_force: InForce::both(
            Settles::Within(Nanos(1_000_000_000)),
            Sign::Recording("ksmd"),
        ),
        conflicts: &[],
        fact: Fact::Tried("6.18"),
    },
    Knob {
        id: "thp",
        group: Group::Workqueues,
        title: "Transparent huge pages",
        removes: "khugepaged, page faults that clear or assemble 2 MiB, and the drains on all CPUs that compaction requests.",
        mechanism: Mechanism::Files(&[
            Setting::file(
                "/sys/kernel/mm/transparent_hugepage/enabled",
                ValueKind::Choice,
                Want::OneOf(&["madvise", "never"]),
            ),
            Setting::file(
                "/sys/kernel/mm/transparent_hugepage/defrag",
                ValueKind::Choice,
                Want::OneOf(&["madvise", "never", "defer+madvise"]),
            ),
        ]),
        boot: &[BootParam {
            key: "transparent_hugepage",
            value: BootValue::Is("madvise"),
        }],
        answers: &[
            Answer::removes(CulpritPattern::Threads(&["khugepaged"])),
            Answer::lessens(CulpritPattern::Work(&[
                "lru_add_drain_per_cpu",
                "drain_local_pages_wq",
            ])),
            Answer::lessens(CulpritPattern::PageFaults),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "Programs that do not request huge pages have more TLB misses.",
        weight: Weight::Minor,
        kernel: "2.6.38 and later",
        absent: "the kernel is built without transparent huge pages",
        by_hand: "Write madvise to enabled and defrag, or never if no program requests huge pages.",
        check: "Both files bracket the chosen word; khugepaged does not run.",
        in_force: InForce::AT_ONCE.leaving(
            "memory touched in the meantime stays in small pages until khugepaged collects it",
        ),
        conflicts: &[],
        fact: Fact::Tried("6.18"),
    },
    Knob {
        id: "compaction",
        group: Group::Workqueues,
        title: "Memory compaction",
        removes: "Proactive kcompactd runs, and drains of per-CPU page lists on every CPU.",
        mechanism: Mechanism::Files(&[
            Setting::file(
                "/proc/sys/vm/compaction_proactiveness",
                ValueKind::Number,
                Want::OneOf(&["0"]),
            ),
            Setting::file(
                "/proc/sys/vm/compact_unevictable_allowed",
                ValueKind::Number,
                Want::OneOf(&["0"]),
            ),
        ]),
        boot: &[],
        answers: &[
            Answer::removes(CulpritPattern::Threads(&["kcompactd*"])),
            Answer::lessens(CulpritPattern::Work(&[
                "lru_add_drain_per_cpu",
                "drain_local_pages_wq",
            ])),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Low,
        loses: "As memory fragments, huge pages become harder to allocate.",
        weight: Weight::Minor,
        kernel: "compaction_proactiveness since 5.9, compact_unevictable_allowed since 4.1 (0 is the default on PREEMPT_RT)",
        absent: "the kernel is built without compaction",
        by_hand: "sysctl -w vm.compaction_proactiveness=0 vm.compact_unevictable_allowed=0",
        check: "A recording shows no kcompactd.",
        in_force: InForce::both(
            Settles::Within(Nanos(1_000_000_000)),
            Sign::Recording("kcompactd*"),
        ),
        conflicts: &[],
        fact: Fact::Tried("6.18; first versions from memory"),
    },
    Knob {
        id: "kfence",
        group: Group::Workqueues,
        title: "KFENCE sampling",
        removes: "A sampling memory checker. It patches kernel text on all CPUs whenever it turns itself on or off.",
        mechanism: Mechanism::Files(&[Setting::file(
            "/sys/module/kfence/parameters/sample_interval",
            ValueKind::Number,
            Want::OneOf(&["0"]),
        )]),
        boot: &[BootParam {
            key: "kfence.sample_interval",
            value: BootValue::Is("0"),
        }],
        answers: &[
            Answer::lessens(CulpritPattern::Calls(&["do_sync_core"])),
            Answer::removes(CulpritPattern::Work(&["toggle_allocation_gate"])),
        ],
        profiles: &[Profile::Isolation],
        risk: Risk::Medium,
        loses: "Kernel memory errors go undetected. Older kernels cannot turn it on again without a reboot.",
        weight: Weight::Minor,
        kernel: "5.12 and later, built with KFENCE",
        absent: "the kernel is built without KFENCE",
        by_hand: "Write 0 to /sys/module/kfence/parameters/sample_interval.",
        check: "A recording shows no toggle_allocation_gate work.",
        in_force: InForce::both(
            Settles::AtNextEvent("the pending sample is taken"),
            Sign::Recording("toggle_allocation_gate"),
        )
        .undone(Settles::Immediately)
        .leaving(
            "on kernels before 5.18 (from memory) KFENCE stays off, and the rollback reports it",
        ),
        conflicts: &[],
        fact: Fact::Tried(
            "6.12 guest: toggle_allocation_gate stops (57 times in 6 s before, none after); versions from memory",
        ),
    },
    Knob {
        id: "psi",
        group: Group::Workqueues,
        title: "Pressure stall information",
        removes: "A worker that averages pressure every 2 s, and accounting in every context switch.",
        mechanism: Mechanism::Boot(Shown::Gone("/proc/pressure")),
        boot: &[BootParam {
            key: "psi",
            value: BootValue::Is("0"),
        }],
        answers: &[
            Answer::removes(CulpritPattern::Work(&["psi_avgs_work"])),
            Answer::removes(CulpritPattern::Threads(&["psimon"])),
        ],
        profiles: &[],
        risk: Risk::Medium,
        loses: "systemd-oomd and other users of pressure information stop working.",
        weight: Weight::Minor,
        kernel: "4.20 and later",
        absent: "-",
        by_hand: "Add psi=0 to the kernel command line.",
        check: "/proc/pressure does not exist.",
        in_force: InForce::AT_BOOT,
        conflicts: &[],
        fact: Fact::Seen("6.18: with psi=1, psi_avgs_work runs and /proc/pressure exists"),
    },
];
