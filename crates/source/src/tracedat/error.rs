//! Why a file is not read.

use std::io;

/// A file from which nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum TraceDatError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not a `trace.dat`.
    #[error(
        "this is not a trace.dat: {recognised}. jitterscope imports trace.dat of versions 6 and 7, as trace-cmd writes it"
    )]
    Other {
        /// What it seems to be.
        recognised: &'static str,
    },
    #[error(
        "this is a trace.dat of version '{version}'; jitterscope reads versions 6 and 7. \
         Convert it: trace-cmd convert --file-version 7 -i FILE -o OTHER"
    )]
    Version { version: String },
    #[error(
        "this is a trace.dat of version {version} in big-endian byte order; jitterscope reads little-endian ones. \
         Import it with a tool of the machine that recorded it (trace-cmd report)"
    )]
    BigEndian { version: u32 },
    #[error(
        "this is a trace.dat of version {version}, and its {field} says {value}, which no kernel has: the file is damaged"
    )]
    Implausible {
        version: u32,
        field: &'static str,
        value: u64,
    },
    #[error(
        "this is a trace.dat of version 7, compressed with {name}; jitterscope reads zstd, zlib and none. \
         Write it again uncompressed: trace-cmd convert --compression none -i FILE -o OTHER"
    )]
    Compression { name: String },
    #[error(
        "this is a trace.dat whose {what} is cut off, so its records cannot be read; copy the file again in full"
    )]
    Ends { what: &'static str },
    #[error("this is a trace.dat whose {what} is damaged: {why}")]
    Damaged {
        what: &'static str,
        why: &'static str,
    },
    #[error(
        "this is a trace.dat that holds only text (of a latency tracer), and no records; record events instead: \
         trace-cmd record -e sched -e irq -e irq_vectors"
    )]
    Text,
}
