//! The numbers of the fields that are written, by message, as Perfetto publishes them in `protos/perfetto/trace`.

/// `Trace` and `TracePacket`.
pub(super) mod packet {
    pub(crate) const TRACE_PACKET: u32 = 1;
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;

    /// `SequenceFlags`.
    pub(crate) const CLEARED: u32 = 1;
    pub(crate) const NEEDS_INTERNED: u32 = 2;
}

/// `ClockSnapshot` and its `Clock`.
pub(super) mod clock {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;

    /// `BuiltinClock`.
    pub(crate) const REALTIME: u32 = 1;
    pub(crate) const MONOTONIC_RAW: u32 = 5;
    pub(crate) const BOOTTIME: u32 = 6;
}

/// `SystemInfo` and its `Utsname`.
pub(super) mod system {
    pub(crate) const UTSNAME: u32 = 1;
    pub(crate) const SYSNAME: u32 = 1;
    pub(crate) const VERSION: u32 = 2;
    pub(crate) const RELEASE: u32 = 3;
    pub(crate) const MACHINE: u32 = 4;
}

/// `TrackDescriptor` and `CounterDescriptor`.
pub(super) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const RANK: u32 = 12;
    pub(crate) const DESCRIPTION: u32 = 14;

    pub(crate) const EXPLICIT: u32 = 3;
    pub(crate) const COUNTER_UNIT: u32 = 3;
    pub(crate) const UNIT_TIME_NS: u32 = 1;
}

/// `TrackEvent`.
pub(super) mod event {
    pub(crate) const ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK: u32 = 11;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const FLOW: u32 = 47;
    pub(crate) const LAST_OF_FLOW: u32 = 48;

    pub(crate) const BEGIN: u32 = 1;
    pub(crate) const END: u32 = 2;
    pub(crate) const INSTANT: u32 = 3;
    pub(crate) const COUNTER: u32 = 4;
}

/// `DebugAnnotation`.
pub(super) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const INT: u32 = 4;
    pub(crate) const TEXT: u32 = 6;
    pub(crate) const TEXT_IID: u32 = 17;
}

/// `InternedData`; each of its entries has a number and a text.
pub(super) mod interned {
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const ANNOTATION_NAMES: u32 = 3;
    pub(crate) const KERNEL_SYMBOLS: u32 = 26;
    pub(crate) const ANNOTATION_TEXTS: u32 = 29;

    pub(crate) const ID: u32 = 1;
    pub(crate) const TEXT: u32 = 2;
}

/// `FtraceEventBundle`.
pub(super) mod bundle {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const EVENT: u32 = 2;
    pub(crate) const LOST_EVENTS: u32 = 3;
}

/// `FtraceEvent`: its own fields, and the message of each event.
pub(super) mod ftrace {
    pub(crate) const TIMESTAMP: u32 = 1;
    pub(crate) const PID: u32 = 2;

    pub(crate) const SCHED_SWITCH: u32 = 4;
    pub(crate) const CPU_FREQUENCY: u32 = 11;
    pub(crate) const CPU_IDLE: u32 = 13;
    pub(crate) const SCHED_WAKING: u32 = 20;
    pub(crate) const IPI_ENTRY: u32 = 21;
    pub(crate) const IPI_EXIT: u32 = 22;
    pub(crate) const SOFTIRQ_ENTRY: u32 = 24;
    pub(crate) const SOFTIRQ_EXIT: u32 = 25;
    pub(crate) const IRQ_HANDLER_ENTRY: u32 = 36;
    pub(crate) const IRQ_HANDLER_EXIT: u32 = 37;
    pub(crate) const WORKQUEUE_EXECUTE_END: u32 = 57;
    pub(crate) const WORKQUEUE_EXECUTE_START: u32 = 58;
    pub(crate) const WORKQUEUE_QUEUE_WORK: u32 = 59;
    pub(crate) const CGROUP_ATTACH_TASK: u32 = 67;
    pub(crate) const TASK_NEWTASK: u32 = 235;
    pub(crate) const TASK_RENAME: u32 = 236;
    pub(crate) const SIGNAL_GENERATE: u32 = 325;
    pub(crate) const SCHED_MIGRATE_TASK: u32 = 491;
    pub(crate) const HRTIMER_EXPIRE_ENTRY: u32 = 553;
    pub(crate) const HRTIMER_EXPIRE_EXIT: u32 = 554;
    pub(crate) const TIMER_EXPIRE_ENTRY: u32 = 557;
    pub(crate) const TIMER_EXPIRE_EXIT: u32 = 558;
    pub(crate) const LOCAL_TIMER_ENTRY: u32 = 559;
    pub(crate) const LOCAL_TIMER_EXIT: u32 = 560;
}
