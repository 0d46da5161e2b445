//! The command line.

use crate::commands::{
    agent, annotate, attach, audit, diff, disturb, doctor, experiment_args, experiment_guard,
    export, fleet, guard_args, import, journal, list, mcp, open, pipeline, query, record, report,
    runs, sampler, selftest, serve, sljtest, top, tune, watch_args,
};
use crate::output::Color;
use crate::places::Places;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Finds what steals time from a machine's CPUs, and names it.
#[derive(Parser, Debug)]
#[command(name = "jitterscope", version)]
#[command(
    after_help = "Exit codes: 0 ok, 1 failed, 2 wrong arguments, 3 a limit was exceeded, \
                        4 something required is not available; attach and guard -- COMMAND end with the code of a \
                        COMMAND that failed."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub places: Places,
    /// When to colour
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        global = true,
        value_name = "WHEN",
        display_order = 901
    )]
    pub color: Color,
}

/// The probes of `record`.
pub const PROBES: [&str; 4] = ["spin", "wakeup", "none", "pipeline"];

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure CPUs, name who stalled them, store the run and print its report
    Record(record::RecordArgs),
    /// Follow your own threads: who takes their time
    Attach(attach::AttachArgs),
    /// Run a benchmark several times, mark the disturbed iterations, and name the culprits
    Guard(Box<guard_args::GuardArgs>),
    /// Record without end, and save a run around the moment that mattered
    Watch(Box<watch_args::WatchArgs>),
    /// Show live who takes time from the CPUs
    Top(Box<top::TopArgs>),
    /// The same as 'watch' as a service, with the options of a file
    Agent(agent::AgentArgs),
    /// Print the report of a stored run, or one of its stalls
    Report(report::ReportArgs),
    /// Compare settings: what got better, what worse, what is undecided
    Diff(diff::DiffArgs),
    /// Prove that a change helps: measure with it and without it, in turns
    Experiment(experiment_args::ExperimentArgs),
    /// List stored runs
    List(list::ListArgs),
    /// Remove stored runs: by name, or all but the newest
    Runs(runs::RunsArgs),
    /// Show stored runs in a browser: a list, their pages, two beside one another
    Serve(serve::ServeArgs),
    /// Show a stored run in Perfetto's page (ui.perfetto.dev), which fetches it from this machine
    Open(open::OpenArgs),
    /// Ask a stored run in SQL, with your own DuckDB
    Query(query::QueryArgs),
    /// Ask the rollups of many machines: worse hosts, new culprits, kernels that matter
    Fleet(fleet::FleetArgs),
    /// Answer an assistant's questions about stored runs and this machine (Model Context Protocol)
    Mcp(mcp::McpArgs),
    /// Make a run of another tool's trace: who took the time of a thread or a CPU in it
    Import(Box<import::ImportArgs>),
    /// Hold an application's own log against a stored run: its pauses, its slow requests
    Annotate(annotate::AnnotateArgs),
    /// Write a stored run in the formats of other tools
    Export(export::ExportArgs),
    /// Read a pipeline's journal back
    Journal(journal::JournalArgs),
    /// SLJ Test: a histogram of clock deltas in one screen
    Sljtest(sljtest::SljtestArgs),
    /// The jitter sampler: a time series of delays, to files and InfluxDB
    Sampler(sampler::SamplerArgs),
    /// perf-workshop: inter-thread latency, by its letters and with its report
    Workshop(Box<pipeline::WorkshopArgs>),
    /// Say what this machine lets us see, what not, and how to get it
    Doctor(doctor::DoctorArgs),
    /// Say which settings are wrong for CPUs that must not be disturbed
    Audit(audit::AuditArgs),
    /// Change them: plan, apply, roll back, status
    Tune(tune::TuneArgs),
    /// Inject known disturbances and check that they are found and named
    Selftest(selftest::SelftestArgs),
    /// Inject one disturbance (a child of selftest)
    #[command(hide = true)]
    Disturb(disturb::DisturbArgs),
    /// Undo an experiment whose process has gone (a child of experiment)
    #[command(hide = true)]
    ExperimentGuard(experiment_guard::GuardArgs),
    /// Remove what this process left when it was started anew (a second Ctrl-C)
    #[command(hide = true)]
    EndNow,
    /// Print a shell's completion script
    Completions {
        /// Which shell
        #[arg(value_parser = PossibleValuesParser::new(crate::completion::shells()))]
        shell: String,
    },
    /// Write the manual pages into a folder
    Manual {
        /// Which folder
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
}

impl Command {
    /// The redaction of error messages, for commands that have `--redact`.
    pub fn redact(&self) -> Option<crate::redact::Redact> {
        match self {
            Command::Doctor(args) => Some(args.redact),
            Command::Report(args) => Some(args.redact),
            Command::Diff(args) => Some(args.redact),
            Command::List(args) => Some(args.redact),
            Command::Serve(args) => Some(args.redact),
            Command::Open(args) => Some(args.redact),
            Command::Export(args) => Some(args.redact),
            _ => None,
        }
    }

    /// Whether the command records, and so first cleans up after killed recordings.
    pub fn records(&self) -> bool {
        match self {
            Command::Record(_)
            | Command::Attach(_)
            | Command::Guard(_)
            | Command::Top(_)
            | Command::Import(_)
            | Command::Sljtest(_)
            | Command::Sampler(_)
            | Command::Workshop(_)
            | Command::Selftest(_) => true,
            // A dry run changes nothing and cleans nothing up.
            Command::Experiment(args) => !args.dry_run(),
            // The others only ask a running watch.
            Command::Watch(args) => args.ask.is_none(),
            // An agent looks where its file says.
            Command::Agent(_)
            | Command::Report(_)
            | Command::Diff(_)
            | Command::List(_)
            | Command::Serve(_)
            | Command::Runs(_)
            | Command::Open(_)
            | Command::Query(_)
            | Command::Fleet(_)
            | Command::Mcp(_)
            | Command::Annotate(_)
            | Command::Export(_)
            | Command::Journal(_)
            | Command::Doctor(_)
            | Command::Audit(_)
            | Command::Tune(_)
            | Command::Disturb(_)
            | Command::ExperimentGuard(_)
            | Command::EndNow
            | Command::Completions { .. }
            | Command::Manual { .. } => false,
        }
    }
}
