//! The numbers of the fields that are written, by message, as Perfetto publishes them in `protos/perfetto/trace`.

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
