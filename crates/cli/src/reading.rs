//! The clock and the threshold: the same arguments for all recordings.

use crate::units::{in_nanos, some_duration};
use clap::{Args, ValueEnum};
use jitterscope_model::{ClockKind, Nanos};

/// The clock to read.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ClockName {
    /// The time stamp counter
    Tsc,
    /// CLOCK_MONOTONIC_RAW
    MonotonicRaw,
}

/// Which clock.
#[derive(Args, Clone, Copy, Debug)]
pub struct ClockArgs {
    /// The clock [default: the TSC where CPU and kernel vouch for it]; tsc is taken where the kernel alone does
    #[arg(long, value_enum, value_name = "CLOCK")]
    clock: Option<ClockName>,
}

impl ClockArgs {
    pub fn kind(&self) -> Option<ClockKind> {
        self.clock.map(|name| match name {
            ClockName::Tsc => ClockKind::Tsc,
            ClockName::MonotonicRaw => ClockKind::MonotonicRaw,
        })
    }
}

/// Which clock, and what counts.
#[derive(Args, Clone, Copy, Debug)]
pub struct ReadingArgs {
    #[command(flatten)]
    pub clock: ClockArgs,
    /// The shortest stall [default: 300ns, or what the clock allows if that is more; 50us for wakeup and attach]
    #[arg(long, short, value_name = "TIME", value_parser = some_duration)]
    pub threshold: Option<Nanos>,
}

/// The threshold in the old fronts, where a bare number is nanoseconds.
pub fn in_fronts(arg: clap::Arg) -> clap::Arg {
    arg.value_parser(in_nanos).allow_negative_numbers(true)
}
