//! `import`: a run from another tool's trace.

use super::annotate::MarksArgs;
use super::passive::named;
use super::recording_args::ShownArgs;
use super::report::{Form, print_run};
use crate::exit::{Exit, UsageError};
use crate::places::Places;
use crate::progress::ProgressLine;
use crate::signals;
use crate::units::{size, some_duration};
use anyhow::Context;
use clap::{Args, ValueHint};
use jitterscope_model::{CpuList, CpuSet, Nanos, ProbeKind};
use jitterscope_recording::{ImportError, ImportSettings, Owners, Victim, import, import_into};
use jitterscope_store::{RunReader, StoreError, resolve};
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads a trace.dat of version 6 or 7, as trace-cmd writes it, a perf.data with tracepoints, a trace of Perfetto, and a \
CTF trace, the folder of an LTTng session, on any machine. The run that it makes is an ordinary one: report, diff, \
export, query and serve take it.

  jitterscope import trace.dat --comm rx-thread
  jitterscope import trace.dat --cpus 3 --for java
  jitterscope import perf.data --cpus 3
  jitterscope import trace.pftrace --cpus 3
  jitterscope import lttng-traces/SESSION --cpus 3
  jitterscope import trace.dat --into latest

--into takes the stalls of a spinning probe's run instead, and says who caused them: record the trace while the probe \
runs (record --no-trace, beside trace-cmd). The clocks are aligned by the records themselves, and the report states how \
well they fit. The run stays as it is.

A trace has no probe, so otherwise name whose time counts: a thread that waits or is interrupted (--comm, --pid), or a CPU that \
others take from the threads that belong there (--cpus, with --for or with the thread that had most of it). Record \
with at least: trace-cmd record -C mono -e sched -e irq -e irq_vectors -e timer -e workqueue, or perf record -a \
-k CLOCK_MONOTONIC -e 'sched:*,irq:*,irq_vectors:local_timer_*,irq_vectors:reschedule_*,timer:*,workqueue:*'")]
pub struct ImportArgs {
    /// The file, or the folder of a CTF trace
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Watch these CPUs
    #[arg(long, value_name = "LIST", group = "victim")]
    pub cpus: Option<CpuList>,
    /// --cpus: the threads of this name, or this thread, belong there [default: the one with most of each CPU]
    #[arg(long = "for", value_name = "NAME|PID", requires = "cpus")]
    pub owner: Option<String>,
    /// Follow this thread, and those that it begins
    #[arg(long, short, value_name = "PID", group = "victim", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Follow every thread of this name
    #[arg(long, value_name = "NAME", group = "victim")]
    pub comm: Option<String>,
    /// Attribute the stalls of this run of a spinning probe: its id, its label, 'latest', or its folder
    #[arg(long, value_name = "RUN", group = "victim", add = crate::completion::runs())]
    pub into: Option<String>,
    /// Follow also processes that a followed one makes
    #[arg(long, conflicts_with_all = ["cpus", "into"])]
    pub children: bool,
    /// The tracing instance whose records are read, where several have some; '' is the kernel's own buffer
    #[arg(long, value_name = "NAME")]
    pub buffer: Option<String>,
    /// Ticks per second of the file's TSC, where it does not state them
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u64).range(1_000_000..=100_000_000_000))]
    pub tsc_hz: Option<u64>,
    /// The trace was recorded in a virtual machine: time beyond what the scheduler charged may be the host's
    #[arg(long, conflicts_with = "into")]
    pub virtual_machine: bool,
    /// The shortest stall that is kept one by one [default: 300ns; 50us with --comm and --pid]
    #[arg(long, short, value_name = "TIME", value_parser = some_duration, conflicts_with = "into")]
    pub threshold: Option<Nanos>,
    /// Name of this configuration, for comparing runs
    #[arg(long, short, default_value = "import", value_name = "NAME", add = crate::completion::labels())]
    pub label: String,
    /// Raw trace to keep with the run; beyond it only what lies around the worst stalls
    #[arg(long, default_value = "256MiB", value_name = "SIZE", value_parser = size)]
    pub trace_limit: u64,
    #[command(flatten)]
    pub marks: MarksArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
}

/// Runs `import`.
///
/// # Errors
/// The file is not one that we read, or lacks what is asked for; the run cannot be written; the report cannot be
/// printed.
pub fn run(args: &ImportArgs, places: &Places) -> anyhow::Result<Exit> {
    args.shown.gates.of_one_run()?;
    let victim = victim(args)?;
    let probed = args.into.as_deref().map(|run| opened(run, places));
    let probed = probed.transpose()?;
    let kind = match (&probed, &victim) {
        (Some(_), _) => ProbeKind::Spin,
        (None, Some(Victim::Cpus { .. })) => ProbeKind::Passive,
        (None, _) => ProbeKind::Attach,
    };
    let settings = ImportSettings {
        file: args.file.clone(),
        victim,
        buffer: args.buffer.clone(),
        tsc_hz: args.tsc_hz,
        virtual_machine: args.virtual_machine,
        children: args.children,
        threshold: args.threshold,
        trace_limit_bytes: args.trace_limit,
        label: args.label.clone(),
        runs_dir: places.runs()?,
        command_line: crate::given::given(),
    };
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let mut line = ProgressLine::importing(args.shown.quiet, kind, &args.file);
    let imported = match &probed {
        Some(run) => import_into(&settings, run, &stop, &mut line),
        None => import(&settings, &stop, &mut line),
    };
    line.clear();
    let imported = imported.map_err(usage_if_asked_wrongly)?;
    let form = Form::of(args.shown.json, args.shown.full);
    let marked = args.marks.add(&imported.path, &imported.manifest);
    let summary = print_run(&imported.path, imported.manifest, form)?;
    args.shown.gates.hold(None, &summary, marked)
}

/// The run whose stalls are attributed.
fn opened(run: &str, places: &Places) -> anyhow::Result<RunReader> {
    Ok(RunReader::open(&resolve(&places.runs()?, run)?)?)
}

fn victim(args: &ImportArgs) -> Result<Option<Victim>, UsageError> {
    let empty = |what: &str| UsageError(format!("{what} needs a name"));
    match (&args.cpus, args.pid, &args.comm) {
        (Some(list), _, _) => {
            let owners = match &args.owner {
                None => Owners::Largest,
                Some(owner) => named(owner)?,
            };
            Ok(Some(Victim::Cpus {
                cpus: cpus(list)?,
                owners,
            }))
        }
        (_, Some(pid), _) => Ok(Some(Victim::Process(pid))),
        (_, _, Some(name)) if name.is_empty() => Err(empty("--comm")),
        (_, _, Some(name)) => Ok(Some(Victim::Named(name.clone()))),
        _ => Ok(None),
    }
}

/// The listed CPUs: which are isolated or online is not known of another machine.
fn cpus(list: &CpuList) -> Result<CpuSet, UsageError> {
    match list {
        CpuList::Set(cpus) => Ok(cpus.clone()),
        _ => Err(UsageError(
            "--cpus: name the CPUs by their numbers; which of another machine's are isolated is not known here".into(),
        )),
    }
}

fn usage_if_asked_wrongly(error: ImportError) -> anyhow::Error {
    match error {
        ImportError::Store(StoreError::Label { .. }) => UsageError(error.to_string()).into(),
        other => other.into(),
    }
}
