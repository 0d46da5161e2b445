//! `open`: a stored run in Perfetto's page, which fetches it from this machine.

mod offer;
mod scratch;

use super::outputs::told_by_target;
use super::serve::browser::tunnel;
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use crate::signals;
use anyhow::Context;
use clap::Args;
use jitterscope_export::{Destination, export_redacted, export_run};
use jitterscope_store::{RunReader, resolve};
use offer::{Offer, Outcome};
use scratch::Scratch;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// The port from which Perfetto's page may fetch: its content policy names no other one.
const PORT: u16 = 9001;

/// Arguments of `open`.
#[derive(Args, Debug)]
pub struct OpenArgs {
    /// The run: latest, an id, a label, a folder
    #[arg(default_value = "latest", add = crate::completion::runs())]
    pub run: String,
    /// Another port, for programs other than Perfetto's page
    #[arg(long, default_value_t = PORT, hide = true)]
    pub port: u16,
    #[command(flatten)]
    pub redact: Redact,
}

/// Runs `open` until the page has the trace, or until Ctrl-C.
///
/// # Errors
/// The port is taken, the run does not exist, or its trace cannot be written.
pub fn run(args: &OpenArgs, places: &Places) -> anyhow::Result<Exit> {
    // A trace takes time, a port does not.
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| taken(args, &error))?;
    let port = listener
        .local_addr()
        .context("the port cannot be learnt")?
        .port();
    let run = RunReader::open(&resolve(&places.runs()?, &args.run)?)?;
    let stop = signals::stop_flag(places).context("signals cannot be received")?;

    let scratch = Scratch::make()?;
    let target: Destination = scratch.target("perfetto")?;
    let export = if args.redact.on {
        export_redacted
    } else {
        export_run
    };
    let delivered = export(&run, std::slice::from_ref(&target)).map_err(told_by_target)?;
    let file = scratch.into_file()?;
    for delivery in &delivered {
        delivery.remarks.iter().for_each(output::talk);
    }

    let offer = Offer::new(listener, port, &run.manifest().id, file)?;
    output::result(&format!(
        "https://ui.perfetto.dev/#!/?url={}\n",
        offer.address()
    ))?;
    output::talk(
        "Open this address in a browser on this machine: the page fetches the trace from here, and sends it nowhere. \
         This command then ends; Ctrl-C ends it before.",
    );
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("SUDO_USER").or_else(|| variable("USER"));
    if let Some(tunnel) = tunnel(variable("SSH_CONNECTION").as_deref(), user.as_deref(), port) {
        output::talk(format!("From where you are, first run there: {tunnel}"));
    }
    match offer.wait(&stop)? {
        Outcome::Fetched => output::talk("The trace was fetched."),
        Outcome::Ended => output::talk("The trace was not fetched."),
    }
    Ok(Exit::Ok)
}

fn taken(args: &OpenArgs, error: &io::Error) -> UsageError {
    let why = if error.kind() == io::ErrorKind::AddrInUse {
        "another program has it, perhaps another 'jitterscope open', or Perfetto's trace_processor"
            .to_owned()
    } else {
        error.to_string()
    };
    UsageError(format!(
        "port {port} of 127.0.0.1 is not available, and Perfetto's page fetches from no other: {why}. End that \
         program, or run 'jitterscope export {run} --to perfetto://FILE' and open FILE in the page",
        port = args.port,
        run = args.run,
    ))
}
