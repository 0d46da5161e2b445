//! `agent`: a watch as a service.

use super::agent_config::{AgentConfig, ConfigError};
use super::agent_notify::Notifier;
use super::leftovers;
use super::watch::{self, Service, Serving};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::signals;
use anyhow::Context;
use clap::{Args, Subcommand};
use jitterscope_platform::Machine;
use jitterscope_recording::RecordError;
use jitterscope_recording::watch::Watch;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two looks for a thread that owns the CPUs.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Arguments of `agent`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "\
Watches as 'watch' does, with the options of a file, as a service of systemd: it says when it is ready, that it lives, \
and that it ends. SIGHUP has it read the file again. Conditions, limits, actions and metrics change then without a gap \
in the recording; a wrong file is refused, and the old one stays.

  jitterscope agent check /etc/jitterscope/agent.toml
  jitterscope agent --config /etc/jitterscope/agent.toml")]
pub struct AgentArgs {
    #[command(subcommand)]
    pub ask: Option<AgentAsk>,
    /// The options of 'watch', in TOML: cpus = \"2-5\", save-if = [\"max>200us\"]
    #[arg(long, value_name = "FILE", required = true, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
}

/// What is asked about a file.
#[derive(Subcommand, Debug)]
pub enum AgentAsk {
    /// Say whether a file is right, and start nothing
    Check {
        /// The file
        #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        config: PathBuf,
    },
}

/// Runs `agent`.
///
/// # Errors
/// The file is wrong, or nothing can be watched.
pub fn run(args: &AgentArgs, places: &Places) -> anyhow::Result<Exit> {
    match (&args.ask, &args.config) {
        (Some(AgentAsk::Check { config }), _) => check(config.clone(), places),
        (None, Some(config)) => serve(config.clone(), places),
        (None, None) => Err(UsageError("name a file: --config FILE".into()).into()),
    }
}

fn check(path: PathBuf, places: &Places) -> anyhow::Result<Exit> {
    let config = AgentConfig::read(&path).map_err(usage)?;
    let machine = Machine::host();
    let chosen = watch::chosen(&config.args, &machine)?;
    let settings = watch::settings(&config.args, config.places(places))?;
    watch::decidable_all(&settings, &chosen, &config.args)?;
    settings
        .check(chosen.cpus.cpus.len())
        .map_err(|error| UsageError(error.to_string()))?;
    output::result(&format!("{}: ok\n", path.display()))?;
    Ok(Exit::Ok)
}

fn serve(path: PathBuf, places: &Places) -> anyhow::Result<Exit> {
    let mut config = AgentConfig::read(&path).map_err(usage)?;
    let reload = signals::reload_flag().context("signal handlers cannot be set")?;
    let stop = signals::service_stop_flag().context("signal handlers cannot be set")?;
    leftovers::put_right_at_start(config.places(places));
    loop {
        let (args, runs) = (Rc::clone(&config.args), config.places(places).clone());
        let agent = Agent {
            path: path.clone(),
            runs: runs.clone(),
            config,
            reload: Arc::clone(&reload),
            stop: Arc::clone(&stop),
            notifier: Notifier::of_environment(),
            is_ready: false,
            is_ending: false,
        };
        let ended = watch::watch(&args, &runs, Some((Box::new(agent), Arc::clone(&stop))));
        let error = match ended {
            Err(error) if is_without_owner(&error) => error,
            ended => return ended,
        };
        if !wait_for_an_owner(&error, &stop) {
            return Ok(Exit::Ok);
        }
        config = AgentConfig::read(&path).map_err(usage)?;
    }
}

/// Whether no thread has had the CPUs yet: at boot, the agent may be there before the work.
fn is_without_owner(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<RecordError>(),
        Some(RecordError::NoOwner { .. })
    )
}

/// Waits until the CPUs are worth another look, which sets up tracing anew. Returns whether to look.
fn wait_for_an_owner(error: &anyhow::Error, stop: &AtomicBool) -> bool {
    let said = format!(
        "waits, and looks again in {} s: {error}",
        LOOK_AGAIN.as_secs()
    );
    output::talk(&said);
    let mut notifier = Notifier::of_environment();
    notifier.ready(&said);
    let until = Instant::now() + LOOK_AGAIN;
    while Instant::now() < until {
        if stop.load(Ordering::Relaxed) {
            notifier.stopping();
            return false;
        }
        notifier.alive();
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

fn usage(error: ConfigError) -> anyhow::Error {
    UsageError(error.to_string()).into()
}

/// A running agent.
struct Agent {
    path: PathBuf,
    /// The folders that the command line names.
    runs: Places,
    config: AgentConfig,
    /// Set by SIGHUP.
    reload: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    notifier: Notifier,
    is_ready: bool,
    is_ending: bool,
}

impl Service for Agent {
    fn turn(&mut self, watch: &mut Watch, serving: &Serving, has_ended: bool) {
        if !self.is_ready {
            self.is_ready = true;
            self.notifier.ready("watching");
        }
        self.notifier.alive();
        if self.reload.swap(false, Ordering::Relaxed) {
            self.notifier.reloading();
            let said = match self.read_again(watch, serving) {
                Ok(()) => {
                    output::talk(format_args!("{}: read again", self.path.display()));
                    "watching, with a file that was read again".to_owned()
                }
                Err(why) => {
                    let text = format!(
                        "{}: refused, and the old settings stay: {why}",
                        self.path.display()
                    );
                    output::talk(&text);
                    text
                }
            };
            self.notifier.ready(&said);
        }
        if (has_ended || self.stop.load(Ordering::Relaxed)) && !self.is_ending {
            self.is_ending = true;
            self.notifier.stopping();
        }
    }
}

impl Agent {
    /// Reads the file again, and goes on with it. Nothing has changed if it is wrong.
    fn read_again(&mut self, watch: &mut Watch, serving: &Serving) -> Result<(), String> {
        let config = AgentConfig::read(&self.path).map_err(|error| error.to_string())?;
        config.follows(&self.config)?;
        let settings = |config: &AgentConfig| {
            let settings = watch::settings(&config.args, config.places(&self.runs));
            settings.map_err(|error| format!("{error:#}"))
        };
        let (before, after) = (settings(&self.config)?, settings(&config)?);
        watch::decidable_all(&after, &serving.chosen, &config.args)
            .map_err(|error| error.to_string())?;
        watch.change(after).map_err(|error| error.to_string())?;
        let (old, new) = (&self.config.args.metrics, &config.args.metrics);
        if let Err(error) = serving.metrics.replace(old, new, &watch.published()) {
            // The old limits were accepted before.
            let _ = watch.change(before);
            return Err(error.to_string());
        }
        self.config = config;
        Ok(())
    }
}
