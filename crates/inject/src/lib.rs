//! Deliberate disturbances, for checking what a recording reports about them.
//!
//! There is one file per kind. A child process disturbs the victim's CPU in a known way and logs the times, on the
//! recording's own clock ([`protocol`]). The parent starts it by executing itself again with a hidden subcommand
//! ([`ChildHandle`]), and the subcommand calls [`run_command`]. [`SelftestPlan`] lists the injections of a selftest. A
//! pure function elsewhere scores the findings.
//!
//! A child never outlives its parent, restores every change to the machine ([`restore_leftovers`] after a SIGKILL), and
//! runs on the housekeeping CPU except while it disturbs.

mod burn;
mod child;
mod error;
mod fair;
mod fifo;
mod kind;
mod kworker;
mod lifetime;
pub mod membarrier;
mod pace;
mod plan;
mod private_net;
pub mod protocol;
mod quota;
mod restore;
mod softirq;
mod stop;
mod timer;
mod trap;
mod unavailable;
mod writeback;

pub use child::{ChildCommand, ChildError, ChildHandle, Disturbed};
pub use error::DisturbError;
pub use kind::DisturbKind;
pub use plan::{PlannedDisturbance, SelftestPlan};
pub use protocol::{DisturbSettings, Expectation, ExpectedSender, Header, Injection};
pub use quota::{leftover_groups, remove_leftover_groups};
pub use restore::{Leftover, LeftoverState, leftovers, restore_leftovers};
pub use unavailable::Unavailable;

use jitterscope_model::Nanos;
use jitterscope_platform::{Machine, current_tid, name_current_thread, pin_current_thread};
use lifetime::OnOrphaned;
use protocol::Line;
use std::io::{self, Write};

/// One kind of disturbance.
trait Injector {
    /// The expected verdict of a recording, if the thread `comm` (`tid`) injects.
    fn expectation(&self, comm: &str, tid: i32) -> Expectation;

    /// Moves to the CPU that it injects from. By default it stays on the housekeeping CPU.
    fn begin(&mut self) -> Result<(), DisturbError> {
        Ok(())
    }

    /// Waits until `deadline` (on `CLOCK_MONOTONIC`) and disturbs once; `None` if it has to end.
    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError>;
}

/// Whether this kind of disturbance is possible here. Some obstacles only show during the child's preparation; then the
/// child ends before it is ready ([`ChildError::NotReady`]).
///
/// # Errors
/// The reason.
pub fn availability(
    kind: DisturbKind,
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    match kind {
        DisturbKind::Fifo => fifo::availability(machine),
        DisturbKind::Fair | DisturbKind::Timer => Ok(()),
        DisturbKind::Membarrier => membarrier::availability(machine, settings),
        DisturbKind::Softirq => softirq::availability(machine, settings),
        DisturbKind::Kworker => kworker::availability(machine, settings),
        DisturbKind::Writeback => writeback::availability(machine, settings),
        DisturbKind::Stop => stop::availability(machine, settings),
        DisturbKind::Quota => quota::availability(machine, settings),
        DisturbKind::Trap => trap::availability(machine, settings),
    }
}

/// The hidden subcommand: [`run`] with the two arguments that [`ChildHandle::spawn`] appends.
///
/// # Errors
/// The arguments are invalid; or as [`run`].
pub fn run_command(kind: &str, settings: &str, out: &mut impl Write) -> Result<(), DisturbError> {
    let kind = DisturbKind::parse(kind)
        .ok_or_else(|| DisturbError::Arguments(format!("no kind '{kind}'")))?;
    let settings = serde_json::from_str(settings)
        .map_err(|error| DisturbError::Arguments(error.to_string()))?;
    run(kind, &settings, out)
}

/// Disturbs, in a process of its own: prepares, writes the header to `out`, waits for `go` on stdin, injects, and
/// writes the injections. It installs signal handlers, and may move the process to new namespaces; call it once, from
/// the main thread.
///
/// # Errors
/// The preparation or an injection failed, or the parent is gone.
pub fn run(
    kind: DisturbKind,
    settings: &DisturbSettings,
    out: &mut impl Write,
) -> Result<(), DisturbError> {
    let puts_back = matches!(
        kind,
        DisturbKind::Writeback | DisturbKind::Stop | DisturbKind::Quota
    );
    let orphaned = if puts_back {
        OnOrphaned::Asked
    } else {
        OnOrphaned::Killed
    };
    lifetime::tie_to_parent(settings.parent_pid, orphaned)?;
    let comm = kind.thread_name(std::process::id());
    name_current_thread(&comm);
    if let Some(helper) = settings.helper_cpu {
        pin_current_thread(helper)?;
    }
    let mut injector = prepare(kind, settings)?;
    let tid = current_tid();
    let expected = injector.expectation(&comm, tid);
    tell(
        out,
        &Line::Header(Header {
            kind,
            tid,
            comm,
            expected,
            settings: settings.clone(),
        }),
    )?;
    if !lifetime::wait_for_go(&mut io::stdin().lock())? {
        return Ok(());
    }
    let injections = pace::inject_all(injector.as_mut(), settings.period, settings.count)?;
    // Restores its changes before it reports, and reports from another CPU than the victim's if possible.
    drop(injector);
    if let Some(helper) = settings.helper_cpu {
        pin_current_thread(helper)?;
    }
    for injection in &injections {
        tell_later(out, &Line::Injection(*injection))?;
    }
    tell(
        out,
        &Line::Done {
            injected: injections.len() as u64,
        },
    )
}

fn prepare(
    kind: DisturbKind,
    settings: &DisturbSettings,
) -> Result<Box<dyn Injector>, DisturbError> {
    Ok(match kind {
        DisturbKind::Fifo => Box::new(fifo::Fifo::new(settings)),
        DisturbKind::Fair => Box::new(fair::Fair::new(settings)),
        DisturbKind::Timer => Box::new(timer::Timer::new(settings)?),
        DisturbKind::Membarrier => Box::new(membarrier::Membarrier::new(settings)),
        DisturbKind::Softirq => Box::new(softirq::Softirq::new(settings)?),
        DisturbKind::Kworker => Box::new(kworker::Kworker::new(settings)?),
        DisturbKind::Writeback => Box::new(writeback::Writeback::new(settings)?),
        DisturbKind::Stop => Box::new(stop::Stop::new(settings)?),
        DisturbKind::Quota => Box::new(quota::Quota::new(settings)?),
        DisturbKind::Trap => Box::new(trap::Trap::new(settings)?),
    })
}

fn tell_later(out: &mut impl Write, line: &Line) -> Result<(), DisturbError> {
    let mut text =
        serde_json::to_string(line).map_err(|error| DisturbError::Parent(error.into()))?;
    text.push('\n');
    out.write_all(text.as_bytes()).map_err(DisturbError::Parent)
}

fn tell(out: &mut impl Write, line: &Line) -> Result<(), DisturbError> {
    tell_later(out, line)?;
    out.flush().map_err(DisturbError::Parent)
}

/// For kinds that inject from another CPU than the victim's.
fn needs_helper(settings: &DisturbSettings) -> Result<(), Unavailable> {
    match settings.helper_cpu {
        Some(helper) if helper != settings.cpu => Ok(()),
        _ => Err(Unavailable::NoHelper),
    }
}

#[cfg(test)]
mod tests;
