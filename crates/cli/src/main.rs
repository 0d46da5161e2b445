//! `jitterscope`: finds what steals time from a machine's CPUs, names it, and proves it.
#![forbid(unsafe_code)]

mod args;
mod ask;
mod commands;
mod completion;
#[cfg(test)]
mod documents;
mod excerpt;
mod exit;
mod given;
mod manual;
mod measured;
mod output;
mod parsing;
mod places;
mod profile;
mod progress;
mod reading;
mod redact;
mod signals;
mod toml_options;
mod units;
mod user_file;
mod wrong_args;

use args::Command;
use clap::CommandFactory;
use exit::Exit;
use jitterscope_platform::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The stack size of the main work. If the first thread's stack cannot grow to it, another thread does the work.
const STACK: usize = 2 << 20;

fn main() -> std::process::ExitCode {
    signals::take_file_limits();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    if limit.is_none_or(|bytes| bytes >= STACK as u64) {
        return whole();
    }
    let whole = std::thread::Builder::new().stack_size(STACK).spawn(whole);
    match whole.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        // The panic message is already printed.
        Ok(Err(_)) => Exit::Failed.into(),
        Err(error) => {
            let why = format!("no thread with a stack of {} KiB", STACK >> 10);
            ended(Err(anyhow::Error::from(error).context(why)))
        }
    }
}

fn whole() -> std::process::ExitCode {
    completion::answer(args::Cli::command);
    let given = match parsing::given() {
        Ok(given) => given,
        Err(error) => return ended(Err(error.into())),
    };
    if profile::is_listed(&given) {
        return ended(profile::list().map(|()| Exit::Ok));
    }
    let cli = match parsing::parse(&given) {
        Ok(cli) => cli,
        Err(answer) => return ended(output::answer(&answer)),
    };
    cli.color.apply();
    if let Err(error) = places::allow_memory() {
        return ended(Err(error.into()));
    }
    if cli.command.records() {
        commands::leftovers::put_right_at_start(&cli.places);
    }
    let result = match &cli.command {
        Command::Record(args) => commands::record::run(args, &cli.places),
        Command::Attach(args) => commands::attach::run(args, &cli.places),
        Command::Guard(args) => commands::guard::run(args, &cli.places),
        Command::Watch(args) => commands::watch::run(args, &cli.places),
        Command::Top(args) => commands::top::run(args, &cli.places),
        Command::Agent(args) => commands::agent::run(args, &cli.places),
        Command::Report(args) => commands::report::run(args, &cli.places),
        Command::Diff(args) => commands::diff::run(args, &cli.places),
        Command::Serve(args) => commands::serve::run(args, &cli.places),
        Command::Experiment(args) => commands::experiment::run(args, &cli.places),
        Command::ExperimentGuard(args) => commands::experiment_guard::run(args, &cli.places),
        Command::List(args) => commands::list::run(args, &cli.places),
        Command::Runs(args) => commands::runs::run(args, &cli.places),
        Command::Open(args) => commands::open::run(args, &cli.places),
        Command::Query(args) => commands::query::run(args, &cli.places),
        Command::Fleet(args) => commands::fleet::run(args),
        Command::Mcp(args) => commands::mcp::run(args, &cli.places),
        Command::Import(args) => commands::import::run(args, &cli.places),
        Command::Annotate(args) => commands::annotate::run(args, &cli.places),
        Command::Export(args) => commands::export::run(args, &cli.places),
        Command::Journal(args) => commands::journal::run(args, &cli.places),
        Command::Sljtest(args) => commands::sljtest::run(args, &cli.places),
        Command::Sampler(args) => commands::sampler::run(args, &cli.places),
        Command::Workshop(args) => commands::pipeline::run_front(args, &cli.places),
        Command::Doctor(args) => commands::doctor::run(args, &cli.places),
        Command::Selftest(args) => commands::selftest::run(args, &cli.places),
        Command::Audit(args) => commands::audit::run(args, &cli.places),
        Command::Tune(args) => commands::tune::run(args, &cli.places),
        Command::Disturb(args) => commands::disturb::run(args),
        Command::EndNow => commands::end_now::run(&cli.places),
        Command::Completions { shell } => commands::completions(shell),
        Command::Manual { dir } => commands::manual(dir),
    };
    let redact = cli.command.redact();
    ended(result.map_err(|error| match redact {
        Some(redact) => redact.error(error),
        None => error,
    }))
}

fn ended(result: anyhow::Result<Exit>) -> std::process::ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) if output::is_broken_pipe(&error) => Exit::Ok.into(),
        Err(error) => {
            output::error(&error);
            exit::of(&error).into()
        }
    }
}
