//! Ctrl-C and its relatives: they end a recording early and keep it.
//!
//! SIGINT, SIGTERM and SIGHUP (a terminal that closes sends it twice and more) all ask for the same, as often
//! as they come, and nothing is cut short. Only a second Ctrl-C, from somebody who cannot wait, ends at once:
//! the run is lost, but what was changed on the machine is put back all the same.

use crate::places::Places;
use jitterscope_platform::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// A second SIGINT that comes sooner is the first one: `timeout`, `make` and others pass on what the terminal
/// has already sent to all of its foreground.
const SAME: Duration = Duration::from_millis(500);

/// A thread that only waits needs little; its stack may be locked in memory.
const STACK: usize = 128 << 10;

/// Whether SIGTERM or SIGHUP has come.
static HURRIED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the end was asked for by SIGTERM or SIGHUP: a service manager or a terminal that closes waits a few seconds at
/// most, so that what only makes a report handier is left out.
pub fn is_hurried() -> bool {
    HURRIED.load(Ordering::Relaxed)
}

/// A flag that these signals set, except those that this process was started to ignore: `nohup` ignores
/// SIGHUP, a shell without job control SIGINT in the background.
///
/// # Errors
/// The kernel refuses the handlers.
pub fn stop_flag(places: &Places) -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        if !is_ignored(signal) {
            flag::register(signal, Arc::clone(&HURRIED))?;
            flag::register(signal, Arc::clone(&stop))?;
        }
    }
    if !is_ignored(SIGINT) {
        flag::register(SIGINT, Arc::clone(&stop))?;
        let mut signals = Signals::new([SIGINT])?;
        let runs = places.runs().ok();
        let wait = move || {
            let mut first: Option<Instant> = None;
            for _ in signals.forever() {
                if first.get_or_insert_with(Instant::now).elapsed() >= SAME {
                    end_now(runs.as_ref().map(|runs| runs.as_os_str().to_owned()));
                }
            }
        };
        std::thread::Builder::new()
            .name("js-signals".into())
            .stack_size(STACK)
            .spawn(wait)?;
    }
    Ok(stop)
}

/// Replaces this process by one that puts back what it changed. Nothing of the old one runs on or stays open,
/// whatever it was waiting for, and with its files the locks of what it owned go.
fn end_now(runs: Option<OsString>) {
    let mut command = Command::new("/proc/self/exe");
    command.arg("end-now");
    if let Some(runs) = runs {
        command.arg("--runs").arg(runs);
    }
    let error = command.exec();
    crate::output::talk(format_args!(
        "it cannot be ended at once ({error}): wait for it"
    ));
}
