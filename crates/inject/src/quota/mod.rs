//! A CPU quota on the measuring thread that runs out quickly. Its control group normally has an ample quota, and for
//! each injection briefly a tight one.

mod groups;

use super::protocol::{DisturbSettings, Expectation, Injection};
use super::{DisturbError, Injector, Unavailable, needs_helper, pace};
use groups::{Group, Hierarchy};
pub use groups::{leftover_groups, remove_leftover_groups};
use jitterscope_model::{CulpritKind, Nanos, QuotaLimit};
use jitterscope_platform::{Machine, clock, monotonic_now};
use std::time::Duration;

const PERIOD_US: u64 = 20_000;
/// More than a thread can use: two CPUs.
const AMPLE: QuotaLimit = QuotaLimit {
    quota_us: 40_000,
    period_us: PERIOD_US,
};
/// A twentieth of a CPU: the smallest that the kernel accepts, so it runs out soonest.
const TIGHT: QuotaLimit = QuotaLimit {
    quota_us: 1000,
    period_us: PERIOD_US,
};
/// The running time that the tight quota allows before the victim is throttled.
const USED_UP_AFTER: Nanos = Nanos(1_000_000);
/// The maximum time with the tight quota: five periods, each of which grants a twentieth of the CPU.
const LONGEST: Nanos = Nanos(100_000_000);
/// How long to retry an injection while the victim uses no quota because other threads have its CPU.
const PATIENCE: Nanos = Nanos(3_000_000_000);
/// A recorder reads the threads' groups once a second.
const UNTIL_SEEN: Duration = Duration::from_millis(1300);
/// How long the group stays after the last injection, so that a recorder reads its counts.
const UNTIL_COUNTED: Duration = Duration::from_millis(150);

pub(super) fn availability(
    machine: &Machine,
    settings: &DisturbSettings,
) -> Result<(), Unavailable> {
    needs_helper(settings)?;
    let victim = settings.victim_tid.ok_or(Unavailable::NoVictim)?;
    let no_controller =
        || Unavailable::kernel("has no control groups with a cpu controller mounted");
    let hierarchy = Hierarchy::of(machine).ok_or_else(no_controller)?;
    let own = hierarchy
        .own_group(machine, victim)
        .ok_or_else(no_controller)?;
    let file = hierarchy.members(&own);
    match std::fs::OpenOptions::new()
        .write(true)
        .open(machine.path(&file))
    {
        Ok(_) => Ok(()),
        Err(error) => Err(Unavailable::file(&file, &error, "moving a thread")),
    }
}

pub(super) struct Quota {
    settings: DisturbSettings,
    group: Group,
    waited: bool,
    /// How long the tight quota is set. If other programs compete, the victim takes longer to use it up.
    held: Nanos,
}

impl Quota {
    pub(super) fn new(settings: &DisturbSettings) -> Result<Quota, DisturbError> {
        let machine = Machine::host();
        let missing = || {
            DisturbError::Unavailable("the measuring thread's control group is not known".into())
        };
        let victim = settings.victim_tid.ok_or_else(missing)?;
        let hierarchy = Hierarchy::of(&machine).ok_or_else(missing)?;
        remove_leftover_groups(&machine);
        let own = hierarchy.own_group(&machine, victim).ok_or_else(missing)?;
        let group = Group::above(victim, own, hierarchy, machine)?;
        group.limit(AMPLE)?;
        group.take(victim)?;
        Ok(Quota {
            settings: settings.clone(),
            group,
            waited: false,
            held: settings.length + USED_UP_AFTER,
        })
    }
}

impl Drop for Quota {
    /// A recorder reads a group's counts in turns of 50 ms, and those of a removed group are lost.
    fn drop(&mut self) {
        if self.waited {
            std::thread::sleep(UNTIL_COUNTED);
        }
    }
}

impl Injector for Quota {
    fn expectation(&self, _comm: &str, _tid: i32) -> Expectation {
        Expectation {
            kind: CulpritKind::Quota,
            name: "CPU quota".into(),
            sender: None,
        }
    }

    fn begin(&mut self) -> Result<(), DisturbError> {
        let until = Nanos(u64::try_from(UNTIL_SEEN.as_nanos()).unwrap_or(u64::MAX));
        self.waited = pace::sleep_until(monotonic_now() + until)?;
        Ok(())
    }

    fn inject(&mut self, deadline: Nanos) -> Result<Option<Injection>, DisturbError> {
        let mut deadline = deadline;
        let given_up = deadline.max(monotonic_now()) + PATIENCE;
        while self.waited && monotonic_now() < given_up {
            if !pace::sleep_until(deadline)? {
                return Ok(None);
            }
            let before = self.group.throttled();
            let start_ticks = clock::now(self.settings.clock);
            self.group.limit(TIGHT)?;
            let slept = pace::sleep_until(monotonic_now() + self.held);
            self.group.limit(AMPLE)?;
            let end_ticks = clock::now(self.settings.clock);
            slept?;
            // A thread that other threads keep from its CPU uses no quota: that does not count as an injection.
            if self.group.throttled() > before {
                return Ok(Some(Injection {
                    start_ticks,
                    end_ticks,
                    length_ticks: None,
                }));
            }
            self.held = Nanos(self.held.0.saturating_mul(2)).min(LONGEST.max(self.held));
            deadline = monotonic_now() + self.settings.period;
        }
        if self.waited {
            return Err(DisturbError::Unavailable(
                "the measuring thread used up no quota any more".into(),
            ));
        }
        Ok(None)
    }
}
