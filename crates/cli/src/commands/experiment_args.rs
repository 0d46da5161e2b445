//! The arguments of `experiment`.

use super::diff::percent;
use super::gate::Gates;
use crate::reading::ClockArgs;
use crate::units::{duration, some_duration};
use clap::{Args, ValueEnum, ValueHint};
use jitterscope_model::{CpuList, Nanos, ProbeKind};
use jitterscope_tune::DEFAULT_STATE_DIR;
use std::path::PathBuf;

/// What to measure with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ProbeArg {
    /// Reads the clock back to back
    #[default]
    Spin,
    /// Sleeps to deadlines and looks how late it wakes
    Wakeup,
    /// Threads that pass messages, and how long those take
    Pipeline,
    /// Nothing: watches who takes time from the CPUs' owner (--for)
    None,
}

impl ProbeArg {
    /// The probe of its runs.
    pub(super) fn kind(self) -> ProbeKind {
        match self {
            ProbeArg::Spin => ProbeKind::Spin,
            ProbeArg::Wakeup => ProbeKind::Wakeup,
            ProbeArg::Pipeline => ProbeKind::Pipeline,
            ProbeArg::None => ProbeKind::Passive,
        }
    }

    /// Whether it measures chosen CPUs.
    pub(super) fn is_on_cpus(self) -> bool {
        self != ProbeArg::Pipeline
    }
}

/// Arguments of `experiment`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("change").required(true).args(["knob", "apply", "env", "manual", "auto"]))]
#[command(after_help = "\
Arms alternate in pairs of random order. The results are judged after 8, 12 and 16 pairs; a verdict is \
final. However it ends, killed or not, the machine is left as it was found.

  jitterscope experiment --knob vmstat --dry-run
  jitterscope experiment --knob vmstat,governor --probe wakeup
  jitterscope experiment --knob irq-aff --probe none --for rx-thread --cpus 3
  jitterscope experiment --apply 'systemctl stop irqbalance' --revert 'systemctl start irqbalance'
  jitterscope experiment --apply 'ethtool -L eth0 combined 1' --revert 'ethtool -L eth0 combined 4' \
    --applied-when 'ip link show eth0 | grep -q LOWER_UP' --settles-in 10s --removes 'eth0*'
  jitterscope experiment --knob isolcpus-domain,nohz-full --cpus 3 --across-reboot
  jitterscope experiment --manual 'turbo off in BIOS' --cpus 3
  jitterscope experiment --manual 'turbo off in BIOS' --cpus 3 --changed --changes '*boost*'
  jitterscope experiment --env MALLOC_ARENA_MAX=1 -- ./my-server --benchmark")]
pub struct ExperimentArgs {
    /// Try these knobs of the catalogue, by id
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub(super) knob: Vec<String>,
    /// Try what this command does
    #[arg(long, value_name = "CMD", requires = "revert")]
    pub(super) apply: Option<String>,
    /// The command that undoes it
    #[arg(long, value_name = "CMD", requires = "apply")]
    pub(super) revert: Option<String>,
    /// --apply: the change is in force as soon as this command succeeds; it is asked until then
    #[arg(long, value_name = "CMD", requires = "apply")]
    pub(super) applied_when: Option<String>,
    /// --apply: its undoing is in force as soon as this command succeeds
    #[arg(long, value_name = "CMD", requires = "apply")]
    pub(super) reverted_when: Option<String>,
    /// --apply: how long the change, and its undoing, take at most until they are in force. An arm begins then, or
    /// as soon as a command shows it; where that does not by then, the pair does not count [default: no time at all,
    /// --longest-wait where a command shows it]
    #[arg(long, value_name = "TIME", requires = "apply", value_parser = some_duration)]
    pub(super) settles_in: Option<Nanos>,
    /// What --apply or --env is to remove: names or kinds of culprits, with * for anything. They are decided by
    /// themselves, and a pair in which they are not back without the change does not count
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["knob", "auto"])]
    pub(super) removes: Vec<String>,
    /// Try this in the environment of the COMMAND; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "command", value_parser = assignment)]
    pub(super) env: Vec<String>,
    /// Try all that the audit advises for what is measured, sift it, and confirm what is kept
    #[arg(long)]
    pub(super) auto: bool,
    /// The knobs are set at boot: measure without them now, and with them after a reboot, when the same command is
    /// started again. Nothing is changed: it says what to add to the boot line
    #[arg(long, requires = "knob", requires = "cpus", conflicts_with_all = ["auto", "command", "dry_run"])]
    pub(super) across_reboot: bool,
    /// Try this change, which you make by hand, as in the firmware: measure without it now, and with it when the same
    /// command is started with --changed
    #[arg(long, value_name = "TEXT", requires = "cpus", conflicts_with_all = ["command", "dry_run"], value_parser = described)]
    pub(super) manual: Option<String>,
    /// --manual: the change is made now. Everything else must be as before: the kernel, its command line, the CPUs,
    /// the settings of the machine, and its knobs
    #[arg(long, requires = "manual")]
    pub(super) changed: bool,
    /// --changed: settings that belong to the change, as an error names them, with * for anything
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "changed"
    )]
    pub(super) changes: Vec<String>,
    /// --auto: how long all of it may take
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = some_duration)]
    pub(super) budget: Nanos,
    /// --auto: leave these knobs out, by id
    #[arg(long, value_name = "ID,...", value_delimiter = ',', requires = "auto")]
    pub(super) except: Vec<String>,
    /// Measure with this probe
    #[arg(long, value_enum, default_value = "spin", conflicts_with = "command")]
    pub(super) probe: ProbeArg,
    /// --probe none: the CPUs' owner, as for 'record none'
    #[arg(long = "for", value_name = "OWNER", conflicts_with = "command")]
    pub(super) owner: Option<String>,
    /// Measure this: how long it takes, and what its threads lose
    #[arg(last = true, value_name = "COMMAND", num_args = 1.., value_hint = ValueHint::CommandWithArguments)]
    pub(super) command: Vec<String>,
    /// CPUs to measure, and to set the knobs for [default: the isolated ones, else the highest]; for pipeline
    /// those of producer, accumulator and, with a third, journaller [default: two threads, wherever they run]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    pub(super) cpus: Option<CpuList>,
    /// How long each run measures; a COMMAND is measured from its start to its end
    #[arg(long, short, default_value = "8s", value_name = "TIME", value_parser = some_duration,
          conflicts_with = "command")]
    pub(super) duration: Nanos,
    /// The shortest stall [default: 300ns, 5us where CLOCK_MONOTONIC_RAW is read, 50us for wakeup and a
    /// COMMAND]; of a pipeline the slow messages [default: 50us late]
    #[arg(long, short, value_name = "TIME", value_parser = some_duration)]
    pub(super) threshold: Option<Nanos>,
    #[command(flatten)]
    pub(super) clock: ClockArgs,
    /// Pairs before the first look, 8 or more; the others follow in proportion
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(super) pairs: usize,
    /// The share of a figure that counts as no difference; of stolen shares also 0.1 points, but at most half of the
    /// baseline's
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub(super) margin: f64,
    /// The longest wait until a change is undone; beyond it the arms do not take turns
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub(super) longest_wait: Nanos,
    /// Tell how long it will take and what it could find; change and measure nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Go on with the same experiment, where one was stopped or killed
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) resume: bool,
    /// Name of this experiment; its runs get it as label, with -A and -B
    #[arg(long, short, default_value = "experiment", value_name = "NAME")]
    pub(super) label: String,
    /// Folder of the journal, which remembers what is applied
    #[arg(long, value_name = "DIR", env = "JITTERSCOPE_STATE", default_value = DEFAULT_STATE_DIR)]
    pub(super) state_dir: PathBuf,
    #[command(flatten)]
    pub(super) gates: Gates,
    /// Write the outcome to this file as Markdown, for the summary page of a build
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", value_hint = ValueHint::FilePath)]
    pub(super) markdown: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

fn described(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("must say what the change is".into()),
        text if text.chars().any(char::is_control) => Err("must be one line of text".into()),
        text => Ok(text.to_owned()),
    }
}

fn assignment(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => Err("must be NAME=VALUE".into()),
    }
}

impl ExperimentArgs {
    /// Whether it only shows its plan.
    pub fn dry_run(&self) -> bool {
        self.dry_run
    }
}
