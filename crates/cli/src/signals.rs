//! Ctrl-C and similar signals: they end a recording early and keep it.
//!
//! SIGINT, SIGTERM and SIGHUP (a closing terminal sends it at least twice) all request the same, any number of times,
//! and interrupt nothing. Only a second Ctrl-C, from a user who cannot wait, ends at once: the run is lost, but the
//! changes on the machine are still undone.

use crate::places::Places;
use jitterscope_platform::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// A second SIGINT within this time counts as the first one: `timeout`, `make` and others pass on a signal that the
/// terminal has already sent to its whole foreground.
const SAME: Duration = Duration::from_millis(500);

/// The stack of a thread that only waits; it may be locked in memory.
const STACK: usize = 128 << 10;

/// Whether SIGTERM or SIGHUP arrived.
static HURRIED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether SIGTERM or SIGHUP requested the end. A service manager or a closing terminal waits only a few seconds, so
/// optional work on a report is skipped.
pub fn is_hurried() -> bool {
    HURRIED.load(Ordering::Relaxed)
}

/// From now on, a file that reaches its limit (`ulimit -f`) is an error of the write; the signal's default would end
/// the program silently. A handler is used because child processes inherit ignored signals.
pub fn take_file_limits() {
    // Without the handler the kernel's default stays.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// A flag that SIGUSR1 sets.
///
/// # Errors
/// The kernel refuses the handler.
pub fn user1_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    flag::register(SIGUSR1, Arc::clone(&flag))?;
    Ok(flag)
}

/// A flag that SIGHUP sets: a service reads its settings again.
///
/// # Errors
/// The kernel refuses the handler.
pub fn reload_flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    flag::register(SIGHUP, Arc::clone(&flag))?;
    Ok(flag)
}

/// A flag that SIGTERM and SIGINT set: the end of a service, for which its manager has a limit of its own.
///
/// # Errors
/// The kernel refuses the handlers.
pub fn service_stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// A flag that these signals set, except those that this process was started to ignore: `nohup` ignores SIGHUP, a shell
/// without job control ignores SIGINT in the background.
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

/// Replaces this process by one that undoes its changes. No thread runs on and no file stays open, so the locks of the
/// old process are released.
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
