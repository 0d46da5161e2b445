//! The numbers of Perfetto's messages that are read or written, as `protos/perfetto/trace` publishes them.

/// `Trace` and `TracePacket`.
pub mod packet {
    pub const TRACE_PACKET: u32 = 1;
    pub const FTRACE_EVENTS: u32 = 1;
    pub const PROCESS_TREE: u32 = 2;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const INTERNED: u32 = 12;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const FTRACE_STATS: u32 = 34;
    pub const STATE_CLEARED: u32 = 41;
    pub const DROPPED_BEFORE: u32 = 42;
    pub const SYSTEM_INFO: u32 = 45;
    pub const COMPRESSED: u32 = 50;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const MACHINE: u32 = 98;
    pub const ZSTD_COMPRESSED: u32 = 133;

    /// `SequenceFlags`.
    pub const CLEARED: u32 = 1;
    pub const NEEDS_INTERNED: u32 = 2;
}

/// `ClockSnapshot` and its `Clock`.
pub mod clock {
    pub const CLOCKS: u32 = 1;
    pub const PRIMARY: u32 = 2;
    pub const ID: u32 = 1;
    pub const TIMESTAMP: u32 = 2;

    /// `BuiltinClock`.
    pub const REALTIME: u32 = 1;
    pub const MONOTONIC_RAW: u32 = 5;
    pub const BOOTTIME: u32 = 6;
}

/// `SystemInfo` and its `Utsname`.
pub mod system {
    pub const UTSNAME: u32 = 1;
    pub const SERVICE: u32 = 4;
    pub const CPUS: u32 = 8;
    pub const HOSTNAME: u32 = 17;
    pub const SYSNAME: u32 = 1;
    pub const VERSION: u32 = 2;
    pub const RELEASE: u32 = 3;
    pub const MACHINE: u32 = 4;
}

/// `InternedData`; each of its entries has a number and a text.
pub mod interned {
    pub const EVENT_NAMES: u32 = 2;
    pub const ANNOTATION_NAMES: u32 = 3;
    pub const KERNEL_SYMBOLS: u32 = 26;
    pub const ANNOTATION_TEXTS: u32 = 29;

    pub const ID: u32 = 1;
    pub const TEXT: u32 = 2;
}

/// `FtraceEventBundle`.
pub mod bundle {
    pub const CPU: u32 = 1;
    pub const EVENT: u32 = 2;
    pub const LOST_EVENTS: u32 = 3;
    pub const COMPACT: u32 = 4;
    pub const CLOCK: u32 = 5;
    pub const ERROR: u32 = 8;
    pub const DESCRIPTORS: u32 = 11;
}

/// `CompactSched`: switches and wake-ups as one list per field.
pub mod compact {
    pub const SWITCH_TIME: u32 = 1;
    pub const SWITCH_PREV_STATE: u32 = 2;
    pub const SWITCH_NEXT_PID: u32 = 3;
    pub const SWITCH_NEXT_PRIO: u32 = 4;
    pub const TEXTS: u32 = 5;
    pub const SWITCH_NEXT_COMM: u32 = 6;
    pub const WAKING_TIME: u32 = 7;
    pub const WAKING_PID: u32 = 8;
    pub const WAKING_CPU: u32 = 9;
    pub const WAKING_PRIO: u32 = 10;
    pub const WAKING_COMM: u32 = 11;
    pub const WAKING_FLAGS: u32 = 12;
}

/// `GenericEventDescriptor`, and what it holds of a `DescriptorProto` and its `FieldDescriptorProto`.
pub mod descriptor {
    pub const FIELD: u32 = 1;
    pub const MESSAGE: u32 = 2;
    pub const SYSTEM: u32 = 3;

    pub const NAME: u32 = 1;
    pub const FIELDS: u32 = 2;
    pub const FIELD_NAME: u32 = 1;
    pub const FIELD_NUMBER: u32 = 3;
    pub const FIELD_TYPE: u32 = 5;
    pub const TYPE_STRING: u64 = 9;
}

/// `GenericFtraceEvent` and its `Field`.
pub mod generic {
    pub const EVENT: u32 = 1;
    pub const FIELD: u32 = 2;
    pub const NAME: u32 = 1;
    pub const TEXT: u32 = 3;
    pub const INT: u32 = 4;
    pub const UINT: u32 = 5;
}

/// `ProcessTree`, its `Thread`, and `FtraceStats` with its `FtraceCpuStats`.
pub mod tree {
    pub const THREADS: u32 = 2;
    pub const TID: u32 = 1;
    pub const NAME: u32 = 2;
}
pub mod stats {
    pub const PHASE: u32 = 1;
    pub const CPUS: u32 = 2;
    pub const CPU: u32 = 1;
    pub const OVERRUN: u32 = 3;
    pub const DROPPED: u32 = 8;
    pub const AT_START: u64 = 1;
    pub const AT_END: u64 = 2;
}

/// `FtraceEvent`: its own fields, and the message of each event.
pub mod ftrace {
    pub const TIMESTAMP: u32 = 1;
    pub const PID: u32 = 2;
    pub const FLAGS: u32 = 5;

    pub const SCHED_SWITCH: u32 = 4;
    pub const CPU_FREQUENCY: u32 = 11;
    pub const CPU_IDLE: u32 = 13;
    pub const SCHED_WAKING: u32 = 20;
    pub const IPI_ENTRY: u32 = 21;
    pub const IPI_EXIT: u32 = 22;
    pub const SOFTIRQ_ENTRY: u32 = 24;
    pub const SOFTIRQ_EXIT: u32 = 25;
    pub const IRQ_HANDLER_ENTRY: u32 = 36;
    pub const IRQ_HANDLER_EXIT: u32 = 37;
    pub const WORKQUEUE_EXECUTE_END: u32 = 57;
    pub const WORKQUEUE_EXECUTE_START: u32 = 58;
    pub const WORKQUEUE_QUEUE_WORK: u32 = 59;
    pub const CGROUP_ATTACH_TASK: u32 = 67;
    pub const TASK_NEWTASK: u32 = 235;
    pub const TASK_RENAME: u32 = 236;
    pub const SIGNAL_GENERATE: u32 = 325;
    pub const GENERIC: u32 = 327;
    pub const SCHED_MIGRATE_TASK: u32 = 491;
    pub const HRTIMER_EXPIRE_ENTRY: u32 = 553;
    pub const HRTIMER_EXPIRE_EXIT: u32 = 554;
    pub const TIMER_EXPIRE_ENTRY: u32 = 557;
    pub const TIMER_EXPIRE_EXIT: u32 = 558;
    pub const LOCAL_TIMER_ENTRY: u32 = 559;
    pub const LOCAL_TIMER_EXIT: u32 = 560;
}
