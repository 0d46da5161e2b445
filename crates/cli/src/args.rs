//! The command line.

use crate::commands::{disturb, doctor, selftest};
use crate::output::Color;
use crate::places::Places;
use clap::{Parser, Subcommand};

/// Finds what steals time from a machine's CPUs, and names it.
#[derive(Parser, Debug)]
#[command(name = "jitterscope", version, about, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 ok, 1 failed, 2 wrong arguments, 3 a limit was exceeded, \
                        4 something required is not available.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub places: Places,
    /// When to colour
    #[arg(long, value_enum, default_value = "auto", global = true, value_name = "WHEN")]
    pub color: Color,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Say what this machine lets us see, what not, and how to get it
    Doctor(doctor::DoctorArgs),
    /// Inject known disturbances and check that they are found and named
    Selftest(selftest::SelftestArgs),
    /// Inject one disturbance (a child of selftest)
    #[command(hide = true)]
    Disturb(disturb::DisturbArgs),
    /// Print a shell's completion script
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}
