//! The common arguments of all recordings.

use super::annotate::MarksArgs;
use super::gate::Gates;
use crate::units::size;
use clap::Args;
use jitterscope_export::Destination;
use jitterscope_model::AskedEvent;

/// How much of the kernel's records is kept, and where rows go beside the run.
#[derive(Args, Debug)]
pub struct KeptArgs {
    /// Trace buffer of each measured CPU
    #[arg(long, default_value = "8MiB", value_name = "SIZE", value_parser = trace_buffer)]
    pub trace_buffer: u64,
    /// Raw trace to keep with the run; beyond it only what lies around the worst stalls
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = size)]
    pub trace_limit: u64,
    /// Write rows there as they come, beside the run that is stored; may be repeated (see export --help)
    #[arg(short, long = "output", value_name = "TARGET")]
    pub output: Vec<Destination>,
    /// Also record this event of the kernel on the recorded CPUs, with the kernel's filter: report --stall shows its
    /// records. A probe that somebody defined is an event, too. May be repeated
    #[arg(short = 'e', long = "event", value_name = "SYSTEM:EVENT[:FILTER]")]
    pub event: Vec<AskedEvent>,
    #[command(flatten)]
    pub marks: MarksArgs,
}

/// What is printed of a run that was made of followed or watched threads, and what it is held against.
#[derive(Args, Debug)]
pub struct ShownArgs {
    /// Print all that is known, on as many lines as it takes
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub gates: Gates,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// The size of a trace buffer in KiB, for the recording.
pub fn kib(bytes: u64) -> u32 {
    u32::try_from(bytes >> 10).unwrap_or(u32::MAX)
}

/// The size of a trace buffer, bytes.
pub fn trace_buffer(text: &str) -> Result<u64, String> {
    match size(text)? {
        0..=65_535 => Err("must be at least 64KiB".into()),
        // The kernel counts the KiB of buffers in an int.
        some if some >> 10 > i32::MAX as u64 => Err("is larger than the kernel can count".into()),
        some => Ok(some),
    }
}
