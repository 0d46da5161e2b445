//! `selftest`: checks that known disturbances are found and named.

use super::require::at_least_degraded;
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::measured;
use crate::output;
use crate::places::Places;
use crate::reading::ReadingArgs;
use crate::signals;
use anyhow::Context;
use clap::Args;
use jitterscope_inject::{ChildCommand, DisturbKind, SelftestPlan};
use jitterscope_model::{CpuList, EventGrain, Nanos};
use jitterscope_platform::Machine;
use jitterscope_recording::selftest::{self, SelftestError, SelftestSettings};
use jitterscope_recording::{RecordSettings, RunSettings, WriterThread};
use jitterscope_view::{record_error, with_fix};

/// Arguments of `selftest`.
#[derive(Args, Debug)]
#[command(mut_arg("threshold", |arg| {
    arg.help("The shortest stall [default: 300ns, or what the clock allows if that is more]")
}))]
pub struct SelftestArgs {
    /// The CPU to disturb and to measure; one [default: one that tune keeps undisturbed, else an isolated one,
    /// else the highest]
    #[arg(long, value_name = "CPU")]
    pub cpus: Option<CpuList>,
    /// Inject only these: fifo, fair, timer, membarrier, softirq, kworker, writeback, stop, quota, trap
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    pub only: Vec<DisturbKind>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Keep the run, to look at its report
    #[arg(long)]
    pub keep: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn kind(text: &str) -> Result<DisturbKind, String> {
    DisturbKind::parse(text).ok_or_else(|| {
        let known: Vec<&str> = DisturbKind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there are {}", known.join(", "))
    })
}

/// Runs `selftest`.
///
/// # Errors
/// Nothing could be recorded.
pub fn run(args: &SelftestArgs, places: &Places) -> anyhow::Result<Exit> {
    let machine = Machine::host();
    // Before the first examination, which may mount tracefs.
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    let mut cpus = measured::choose(&machine, args.cpus.as_ref(), "--cpus")?;
    if args.cpus.is_some() && cpus.cpus.len() != 1 {
        return Err(
            UsageError(format!("--cpus: selftest takes one CPU, not {}", cpus.cpus)).into(),
        );
    }
    cpus.cpus = cpus.cpus.last().into_iter().collect();
    let mut plan = SelftestPlan::default();
    if !args.only.is_empty() {
        plan.turns.retain(|turn| args.only.contains(&turn.kind));
    }
    // Fails before a recording that could not name culprits. Kinds whose events this kernel lacks are skipped
    // individually.
    at_least_degraded(&jitterscope_source::sources(&machine), "tracefs")?;
    let runs_dir = places.runs()?;
    let settings = SelftestSettings {
        record: RecordSettings {
            run: RunSettings {
                clock: args.reading.clock.kind(),
                trace_buffer_kib: 16 << 10,
                trace_limit_bytes: if args.keep { 256 << 20 } else { 0 },
                asked: Vec::new(),
                tuning: None,
                writer: WriterThread::default(),
                label: "selftest".into(),
                runs_dir: runs_dir.clone(),
                command_line: crate::given::given(),
                profile: None,
            },
            cpus,
            wakeup: None,
            duration: Nanos(1_000_000_000),
            warmup: Nanos(300_000_000),
            threshold: args.reading.threshold,
            interval: Nanos(1_000_000_000),
            fifo_priority: None,
            events: Some(EventGrain::All),
            graph: Vec::new(),
        },
        plan,
        child: ChildCommand::current_exe("disturb")?,
        work_dir: runs_dir,
    };
    let mut tell = |step| {
        if output::someone_watches() {
            output::talk(jitterscope_view::selftest::step(step));
        }
    };
    let done =
        selftest::run(&machine, &settings, &stop, &mut tell).map_err(|error| match error {
            SelftestError::Blind(Some(ref problem)) => UnavailableError(with_fix(problem)).into(),
            SelftestError::Blind(None) => UnavailableError(error.to_string()).into(),
            SelftestError::Record(ref refused) if refused.is_unavailable_here() => {
                UnavailableError(record_error(refused)).into()
            }
            other => anyhow::Error::from(other),
        })?;
    if args.keep {
        for run in &done.runs {
            output::talk(format_args!("the run is {}", run.display()));
        }
    } else {
        for run in &done.runs {
            jitterscope_store::remove(run).context("the selftest's run cannot be removed")?;
        }
    }
    if args.json {
        output::json(&jitterscope_view::selftest::json(&done.report))?;
    } else {
        let report = jitterscope_view::selftest::render(&done.report);
        output::result(&report.terminal(output::style()))?;
    }
    Ok(if done.report.passed {
        Exit::Ok
    } else {
        Exit::Failed
    })
}
