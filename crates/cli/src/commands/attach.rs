//! `attach`: the time of the user's own threads.

use super::asked_events;
use super::leftovers;
use super::machine_tuning;
use super::outputs::{beside_a_report, of_recording, tell, told_by_target};
use super::recording_args::{KeptArgs, ShownArgs, kib};
use super::report::{Form, print_run};
use crate::exit::{Exit, UnavailableError, UsageError};
use crate::output;
use crate::places::Places;
use crate::progress::ProgressLine;
use crate::reading::ReadingArgs;
use crate::signals;
use crate::units::some_duration;
use anyhow::Context;
use clap::{Args, ValueHint};
use jitterscope_model::{Nanos, ProbeKind};
use jitterscope_platform::{Machine, Topology};
use jitterscope_recording::{
    AttachSettings, FollowError, Followed, RecordError, RunSettings, WriterThread, attach,
};
use jitterscope_store::StoreError;
use jitterscope_view::record_error;

/// The default duration for a process or a name.
const DURATION: Nanos = Nanos(10_000_000_000);

/// The default length of the shortest wait or interruption that is kept one by one; sums include all.
pub(super) const THRESHOLD: Nanos = Nanos(50_000);

/// Arguments of `attach`.
#[derive(Args, Debug)]
#[command(mut_arg("threshold", |arg| {
    arg.help("The shortest wait or interruption that is kept one by one; sums have them all [default: 50us]")
}))]
#[command(mut_arg("trace_buffer", |arg| arg.help("Trace buffer of each CPU")))]
#[command(mut_arg("json", |arg| arg.help("Print JSON; a COMMAND's output then goes to stderr")))]
#[command(after_help = "\
Follows threads through the kernel's scheduler: how long they ran, waited for a CPU (and which threads had it), slept \
and were interrupted (by what), where they ran, and their worst stalls, each decomposed. It disturbs them \
only by the cost of recording. Needs root and tracefs.

  jitterscope attach --pid 1234
  jitterscope attach --comm rx-thread -d 1m
  jitterscope attach -- ./my-server --port 80

A COMMAND that fails passes its exit code on (128 and the signal's number where one ended it), whatever \
--fail-if says; the conditions decide where it succeeds, or is ended because its time is over.")]
pub struct AttachArgs {
    /// Follow all threads of this process
    #[arg(long, short, value_name = "PID", group = "target", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Option<i32>,
    /// Follow one thread
    #[arg(long, value_name = "TID", group = "target", value_parser = clap::value_parser!(i32).range(1..))]
    pub tid: Option<i32>,
    /// Follow every thread of this name, also those that begin meanwhile
    #[arg(long, value_name = "NAME", group = "target")]
    pub comm: Option<String>,
    /// --comm: only threads of this user, by number or name; anybody may take a name
    #[arg(long, value_name = "USER", requires = "comm", value_parser = user)]
    pub uid: Option<u32>,
    /// Follow so many threads at most [default: 1024 of a name, 32768 otherwise]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub most_threads: Option<u32>,
    /// --comm: wait for a thread of the name when there is none yet; the duration then begins with it
    #[arg(long, requires = "comm")]
    pub wait: bool,
    /// Start this and follow it, with the processes that it makes, until all have ended
    #[arg(
        last = true,
        value_name = "COMMAND",
        group = "target",
        num_args = 1..,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub command: Vec<String>,
    /// Follow also processes that a followed one makes
    #[arg(long)]
    pub children: bool,
    /// Do not record what sleeping threads wait for: their kernel stacks cost more than a switch does
    #[arg(long)]
    pub no_stacks: bool,
    /// How long to follow at most; a COMMAND is then ended [default: 10s; until a COMMAND ends]
    #[arg(long, short, value_name = "TIME", value_parser = some_duration)]
    pub duration: Option<Nanos>,
    #[command(flatten)]
    pub reading: ReadingArgs,
    /// Name of this configuration, for comparing runs
    #[arg(long, short, default_value = "attach", value_name = "NAME", add = crate::completion::labels())]
    pub label: String,
    #[command(flatten)]
    pub kept: KeptArgs,
    #[command(flatten)]
    pub shown: ShownArgs,
}

/// Runs `attach`.
///
/// # Errors
/// There is nothing to follow, kernel events are unavailable, or the report cannot be printed.
pub fn run(args: &AttachArgs, places: &Places) -> anyhow::Result<Exit> {
    beside_a_report(&args.kept.output, args.shown.quiet)?;
    args.shown.gates.of_one_run()?;
    let machine = Machine::host();
    let followed = followed(args)?;
    let of_command = matches!(followed, Followed::Command { .. });
    let settings = AttachSettings {
        run: RunSettings {
            clock: args.reading.clock.kind(),
            trace_buffer_kib: kib(args.kept.trace_buffer),
            trace_limit_bytes: args.kept.trace_limit,
            asked: args.kept.event.clone(),
            tuning: machine_tuning::of(&machine, &Topology::read(&machine).online),
            writer: WriterThread::default(),
            label: args.label.clone(),
            runs_dir: places.runs()?,
            command_line: crate::given::given(),
            profile: None,
        },
        followed,
        wait: args.wait,
        stacks: !args.no_stacks,
        most_threads: args.most_threads.and_then(|most| most.try_into().ok()),
        children: args.children || of_command,
        duration: args.duration.or((!of_command).then_some(DURATION)),
        threshold: args.reading.threshold.unwrap_or(THRESHOLD),
    };
    let stop = signals::stop_flag(places).context("signal handlers cannot be set")?;
    asked_events::check(&machine, &args.kept.event)?;
    let mut line = ProgressLine::new(args.shown.quiet, ProbeKind::Attach);
    let outcome = attach(
        &machine,
        &settings,
        of_recording(&args.kept.output),
        &stop,
        &mut line,
    );
    line.clear();
    let outcome = outcome.map_err(usage_if_asked_wrongly)?;
    let marked = args.kept.marks.add(&outcome.path, &outcome.manifest);
    let summary = print_run(
        &outcome.path,
        outcome.manifest,
        Form::of(args.shown.json, args.shown.full),
    )?;
    let delivered = tell(&args.kept.output, &outcome.outputs, args.shown.quiet).and(marked);
    leftovers::tell_left_behind(outcome.taken_down);
    let own = args.shown.gates.hold(None, &summary, delivered)?;
    // After a failed command the conditions do not apply.
    Ok(match outcome.command.map(Exit::of_command) {
        None | Some(Exit::Ok) => own,
        Some(failed) => failed,
    })
}

fn followed(args: &AttachArgs) -> Result<Followed, UsageError> {
    match (args.pid, args.tid, &args.comm) {
        (Some(pid), _, _) => Ok(Followed::Process(pid)),
        (_, Some(tid), _) => Ok(Followed::Thread(tid)),
        (_, _, Some(name)) if name.is_empty() => Err(UsageError("--comm needs a name".into())),
        (_, _, Some(name)) => {
            if name.len() > 15 {
                let cut: String = name.chars().take(15).collect();
                output::talk(format_args!(
                    "the kernel keeps 15 bytes of a thread's name: following '{cut}'"
                ));
            }
            Ok(Followed::Named {
                name: name.clone(),
                user: args.uid,
            })
        }
        _ if args.command.is_empty() => Err(UsageError(
            "nothing to follow: give --pid PID, --tid TID, --comm NAME, or -- COMMAND".into(),
        )),
        _ => Ok(Followed::Command {
            line: args.command.clone(),
            env: Vec::new(),
            to_stderr: args.shown.json,
        }),
    }
}

/// A user id, from a number or a name in `/etc/passwd`.
fn user(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_user = |line: &str| {
        // `ann:x:1000:1000:...`
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (name == text).then(|| number.parse().ok())?
    };
    users
        .lines()
        .find_map(of_user)
        .ok_or_else(|| "there is no such user in /etc/passwd; give a number".into())
}

/// The error of a recording, as one of wrong arguments or of a missing source if it is one.
pub(super) fn usage_if_asked_wrongly(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::Store(StoreError::Label { .. })
        | RecordError::Follow(FollowError::Gone { .. } | FollowError::NoSuchName(_)) => {
            UsageError(error.to_string()).into()
        }
        RecordError::Output(error) => told_by_target(error),
        RecordError::Blind { .. } => UnavailableError(record_error(&error)).into(),
        error if error.is_unavailable_here() => UnavailableError(record_error(&error)).into(),
        other => other.into(),
    }
}
