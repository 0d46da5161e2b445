//! The columns of the wide table.

use crate::tables::{Column, Table};

/// Stands for the table where files are named.
pub(crate) const ROLLUP_TABLE: &str = "rollups.parquet";

/// The table: one host-hour, or after compaction those of many hosts. Which columns a row has depends on its `record`.
/// New versions only ever add columns.
pub const ROLLUPS: Table = (
    ROLLUP_TABLE,
    &[
        (
            "record",
            Column::Text,
            "what the row is: hour, culprit, bucket, stall or part",
        ),
        (
            "batch",
            Column::Text,
            "the host-hour; its rows arrive together, once",
        ),
        (
            "host_id",
            Column::Text,
            "stays the same when a host is renamed",
        ),
        ("host", Column::Text, "name of the host at that time"),
        ("boot", Column::Text, "the kernel's id of the boot"),
        ("kernel", Column::Text, "uname -r"),
        ("cpu_model", Column::Text, "model of the processor"),
        ("machine", Column::Text, "vendor and product"),
        ("firmware", Column::TextOrNull, "version of the firmware"),
        (
            "tuning",
            Column::Text,
            "fingerprint of the settings that tuning changes",
        ),
        ("version", Column::Text, "version of jitterscope"),
        ("probe", Column::Text, "spin or none"),
        (
            "cpus",
            Column::Text,
            "the group: measured CPUs of one NUMA node, as a list",
        ),
        ("cpu_count", Column::U32, "number of these CPUs"),
        (
            "hour_s",
            Column::U64,
            "start of the hour, seconds since the epoch, by the host's clock",
        ),
        (
            "clock_ahead_s",
            Column::I32OrNull,
            "seconds by which the host's clock was ahead of the store's, null if unknown",
        ),
        ("kind", Column::TextOrNull, "culprit, part: kind of culprit"),
        (
            "name",
            Column::TextOrNull,
            "culprit, part: name of the culprit; (others) sums those of a kind without a row",
        ),
        (
            "owner",
            Column::TextOrNull,
            "culprit, part: unit:, pod: or cgroup: of the culprit, null if unknown or the kernel",
        ),
        (
            "count",
            Column::U64OrNull,
            "hour: stalls; culprit: parts; bucket: durations",
        ),
        (
            "sum_ns",
            Column::U64OrNull,
            "hour: stolen time; culprit: its part of it; stall, part: length",
        ),
        (
            "max_ns",
            Column::U64OrNull,
            "hour: longest stall; culprit: longest part",
        ),
        (
            "measured_ns",
            Column::U64OrNull,
            "hour: measured time, summed over CPUs",
        ),
        (
            "lost",
            Column::U64OrNull,
            "hour: lost kernel records of the host, in its first group",
        ),
        (
            "key",
            Column::TextOrNull,
            "bucket: stall for lengths of stalls, part:KIND for parts of that kind",
        ),
        (
            "bucket",
            Column::I32OrNull,
            "bucket i has the durations from 2^((i-1)/4) s to 2^(i/4) s, the upper bound included",
        ),
        (
            "stall",
            Column::U32OrNull,
            "stall, part: number of the stall within batch and group, the longest first",
        ),
        ("cpu", Column::U32OrNull, "stall: CPU that stalled"),
        (
            "start_ns",
            Column::U64OrNull,
            "stall: start, nanoseconds since the epoch, by the host's clock",
        ),
        (
            "phase",
            Column::TextOrNull,
            "part: which phase of a wake-up or a followed thread it delayed",
        ),
    ],
);
