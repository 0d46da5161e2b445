//! The remedy for each kind of culprit that a run measured, or that no setting here helps.

use crate::answer::Effect;
use crate::audit::AuditEntry;
use crate::catalogue;
use crate::examine::{Inspection, KnobState};
use crate::knob::{Group, How, Risk};
use crate::run_culprits::{Beginning, MeasuredCulprit, RunCulprits, Win};
use crate::threads::{TICK, Thread};
use jitterscope_model::{CpuSet, CulpritKind, Nanos, PutInOrder, Subject};
use jitterscope_platform::boot_id;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A remedy gains at least one part in this many of the time of its kind of culprit.
const HELPS_FROM: u32 = 10;
/// The knob for threads that no other knob moves.
const PINNED: &str = "pinned";

/// The remedy for one kind of culprit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Remedy {
    pub kind: CulpritKind,
    /// For threads: whether they may run only on the measured CPUs.
    pub pinned: bool,
    /// Time of the kind.
    pub total_ns: Nanos,
    /// Its share of all stolen time.
    pub share: f64,
    pub helps: Helps,
}

/// What helps. In JSON it has its stable `id` beside its fields.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Helps {
    Knob {
        knob: &'static str,
        how: How,
        risk: Risk,
        win: Win,
    },
    /// Moving programs away by their affinity.
    Repin {
        to: CpuSet,
        /// The programs of the run that still run, by process; empty if that is unknown, as after a reboot.
        programs: Vec<PinnedProgram>,
        win: Win,
    },
    /// Nothing on this machine: the host or the firmware must do it. The page of this knob says how.
    Elsewhere {
        knob: &'static str,
    },
    /// The knob that helps is now set as wanted.
    InPlace {
        knob: &'static str,
    },
    Nothing,
}

/// A program with threads pinned to the measured CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PinnedProgram {
    pub comm: String,
    pub pid: i32,
    pub service: Option<String>,
}

impl Remedy {
    #[must_use]
    pub fn win(&self) -> Option<&Win> {
        match &self.helps {
            Helps::Knob { win, .. } | Helps::Repin { win, .. } => Some(win),
            Helps::Elsewhere { .. } | Helps::InPlace { .. } | Helps::Nothing => None,
        }
    }
}

/// One remedy for each kind of culprit, largest time first.
pub(crate) fn remedies(
    inspection: &Inspection<'_>,
    knobs: &[AuditEntry],
    measured: &RunCulprits,
) -> Vec<Remedy> {
    let cpus = &inspection.goal.isolated;
    let kind_of = |culprit: &MeasuredCulprit| {
        let pinned = match &culprit.subject {
            Subject::Thread(task) => task.is_pinned_within(cpus),
            _ => false,
        };
        let kind = match culprit.subject.kind() {
            // A larger quota gives both back.
            CulpritKind::QuotaBeside => CulpritKind::Quota,
            kind => kind,
        };
        (kind, pinned)
    };
    let mut totals: BTreeMap<(CulpritKind, bool), Nanos> = BTreeMap::new();
    for culprit in &measured.culprits {
        *totals.entry(kind_of(culprit)).or_default() += culprit.total_ns;
    }
    let stolen = measured.stolen().0.max(1) as f64;
    let mut remedies: Vec<Remedy> = totals
        .into_iter()
        // Lost records have no culprit.
        .filter(|((kind, _), total)| *kind != CulpritKind::Loss && *total > Nanos::ZERO)
        .map(|(of, total_ns)| Remedy {
            kind: of.0,
            pinned: of.1,
            total_ns,
            share: total_ns.0 as f64 / stolen,
            helps: best(inspection, knobs, measured, total_ns, |culprit| {
                kind_of(culprit) == of
            }),
        })
        .collect();
    remedies.order_by_key(|remedy| Reverse(remedy.total_ns));
    remedies
}

/// The knob that gains most of the given culprits' time; among similar gains, the one with the least effort.
fn best(
    inspection: &Inspection<'_>,
    knobs: &[AuditEntry],
    measured: &RunCulprits,
    total: Nanos,
    of_kind: impl Fn(&MeasuredCulprit) -> bool,
) -> Helps {
    let cpus = &inspection.goal.isolated;
    let wrong = knobs.iter().filter(|entry| entry.is_wrong());
    let candidates = wrong.filter_map(|entry| {
        let knob = catalogue::find(entry.id)?;
        let win = measured.win_of(knob, cpus, &of_kind)?;
        let worth = match (win.effect, entry.how) {
            (Effect::Perhaps, _) => return None,
            _ if win.total_ns.0.saturating_mul(HELPS_FROM.into()) < total.0 => return None,
            (_, How::Reboot) if win.negligible => return None,
            (Effect::Removes, _) => win.total_ns.0,
            (Effect::Lessens, _) => win.total_ns.0 / 2,
        };
        // A knob that must be named to be changed is not advised first, except for settings of the host or firmware.
        let elsewhere = entry.group == Group::Firmware && entry.how == How::ByHand;
        (elsewhere || knob.is_tame()).then_some((entry, win, worth, elsewhere))
    });
    let candidates: Vec<_> = candidates.collect();
    let most = candidates.iter().map(|(.., worth, _)| *worth).max();
    let about = |worth: u64| worth >= most.unwrap_or(0) / 10 * 9;
    let effort = |how: How| match how {
        How::Now => 0,
        How::ByHand => 1,
        How::Reboot => 2,
    };
    let found = candidates
        .into_iter()
        .filter(|(.., worth, _)| about(*worth))
        .min_by_key(|(entry, _, worth, _)| (effort(entry.how), Reverse(*worth), entry.risk));
    match found {
        None => in_place(knobs, measured, cpus, total, of_kind),
        Some((entry, .., true)) => Helps::Elsewhere { knob: entry.id },
        Some((entry, win, ..)) if entry.id == PINNED => Helps::Repin {
            to: inspection.goal.housekeeping.clone(),
            programs: pinned_programs(inspection, measured, of_kind),
            win,
        },
        Some((entry, win, ..)) => Helps::Knob {
            knob: entry.id,
            how: entry.how,
            risk: entry.risk,
            win,
        },
    }
}

/// The knob that helps most among those set as wanted: set since the run, or too weak in it.
fn in_place(
    knobs: &[AuditEntry],
    measured: &RunCulprits,
    cpus: &CpuSet,
    total: Nanos,
    of_kind: impl Fn(&MeasuredCulprit) -> bool,
) -> Helps {
    let fine = knobs.iter().filter(|entry| entry.state == KnobState::Fine);
    let helping = fine.filter_map(|entry| {
        let win = measured.win_of(catalogue::find(entry.id)?, cpus, &of_kind)?;
        let enough = win.total_ns.0.saturating_mul(HELPS_FROM.into()) >= total.0;
        (win.effect != Effect::Perhaps && enough).then_some((win, entry.id))
    });
    let most = helping.min_by_key(|(win, _)| (win.effect, Reverse(win.total_ns)));
    most.map_or(Helps::Nothing, |(_, knob)| Helps::InPlace { knob })
}

/// The processes with such threads pinned to these CPUs, the largest culprit first: those that the run met and that still
/// run. None in another boot, where the run's process ids mean nothing.
fn pinned_programs(
    inspection: &Inspection<'_>,
    measured: &RunCulprits,
    of_kind: impl Fn(&MeasuredCulprit) -> bool,
) -> Vec<PinnedProgram> {
    let cpus = &inspection.goal.isolated;
    let here = |began: &&Beginning| began.boot_id == boot_id(inspection.machine);
    let Some(began) = measured.began.as_ref().filter(here) else {
        return Vec::new();
    };
    let is_older = |thread: &Thread| thread.started() + TICK <= began.since_boot;
    let met = |pid: i32| {
        let threads = inspection.threads().iter();
        threads.filter(|of| of.pid == pid).any(is_older)
    };
    let pinned: Vec<&Thread> = inspection
        .threads()
        .iter()
        .filter(|thread| !thread.kernel && thread.allowed.difference(cpus).is_empty())
        .collect();
    let mut thieves: Vec<&MeasuredCulprit> = measured
        .culprits
        .iter()
        .filter(|culprit| of_kind(culprit))
        .collect();
    thieves.order_by_key(|culprit| Reverse(culprit.total_ns));
    let mut programs: Vec<PinnedProgram> = Vec::new();
    for task in thieves.iter().filter_map(|culprit| culprit.subject.task()) {
        for thread in &pinned {
            let same = match (task.tgid, task.tid) {
                (Some(process), _) => thread.pid == process,
                (None, Some(tid)) => thread.tid == tid,
                (None, None) => true,
            };
            // Programs rename themselves. A row for several processes has their common name.
            let named = thread.comm == *task.comm
                || inspection.process_name(thread.pid).as_deref() == Some(&*task.comm);
            let known = programs.iter().any(|known| known.pid == thread.pid);
            if same && named && !known && met(thread.pid) {
                programs.push(PinnedProgram {
                    comm: task.comm.to_string(),
                    pid: thread.pid,
                    service: inspection.service(thread.pid),
                });
            }
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::audit;
    use crate::fake_machine::{FakeMachine, goal};
    use jitterscope_model::{Quota, Task, Verdict};

    const STAT: &str = "9 (x) S 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n";

    fn machine() -> FakeMachine {
        FakeMachine::of(&[
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
            ("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n"),
            ("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("/proc/cmdline", "quiet\n"),
            ("/proc/cpuinfo", "flags : fpu hypervisor\n"),
            ("/proc/20/comm", "hog\n"),
            ("/proc/20/cgroup", "0::/system.slice/hog.service\n"),
            ("/proc/20/task/20/stat", STAT),
            ("/proc/20/task/20/status", "Cpus_allowed_list:\t3\n"),
            // Another thread of the process, and another program that is pinned there, too.
            ("/proc/20/task/21/stat", STAT),
            ("/proc/20/task/21/status", "Cpus_allowed_list:\t3\n"),
            ("/proc/30/comm", "ours\n"),
            ("/proc/30/task/30/stat", STAT),
            ("/proc/30/task/30/status", "Cpus_allowed_list:\t3\n"),
            ("/proc/sys/kernel/random/boot_id", "this-boot\n"),
        ])
    }

    /// A run in this boot; its machine's processes began 770 ms after the boot.
    fn run(culprits: Vec<MeasuredCulprit>) -> RunCulprits {
        RunCulprits {
            measured_ns: Nanos(1_000_000_000),
            culprits,
            began: Some(Beginning {
                boot_id: "this-boot".into(),
                since_boot: Nanos(780_000_000),
            }),
            ..RunCulprits::default()
        }
    }

    fn thread(comm: &str, allowed: &str, tgid: i32) -> Subject {
        Subject::Thread(Task {
            comm: comm.into(),
            tgid: Some(tgid),
            kernel: Some(false),
            allowed: Some(allowed.into()),
            ..Task::default()
        })
    }

    fn tick() -> Subject {
        Subject::Timer {
            function: Some("tick_nohz_handler".into()),
            source: None,
        }
    }

    fn found(culprits: &[(Subject, u64)]) -> Vec<(CulpritKind, bool, Helps)> {
        let culprits = culprits.iter().map(|(subject, ms)| MeasuredCulprit {
            subject: subject.clone(),
            total_ns: Nanos(ms * 1_000_000),
            count: 1,
        });
        let measured = run(culprits.collect());
        let remedies = audit(&machine().machine, &goal("3", "0-2"), Some(&measured)).remedies;
        remedies
            .into_iter()
            .map(|remedy| (remedy.kind, remedy.pinned, remedy.helps))
            .collect()
    }

    fn knob(of: &Helps) -> &str {
        match of {
            Helps::Knob { knob, .. } | Helps::Elsewhere { knob } | Helps::InPlace { knob } => knob,
            Helps::Repin { .. } => PINNED,
            Helps::Nothing => "",
        }
    }

    #[test]
    fn threads_that_no_cpuset_moves_are_moved_by_hand() {
        let found = found(&[
            (thread("hog", "3", 20), 400),
            (thread("cc", "0-3", 50), 300),
        ]);
        let [(_, true, pinned), (_, false, movable)] = &found[..] else {
            panic!("{found:?}")
        };
        let Helps::Repin { to, programs, win } = pinned else {
            panic!("{pinned:?}")
        };
        assert_eq!(
            (to.to_string(), win.total_ns),
            ("0-2".into(), Nanos(400_000_000))
        );
        let hog = PinnedProgram {
            comm: "hog".into(),
            pid: 20,
            service: Some("hog.service".into()),
        };
        assert_eq!(programs[..], [hog]);
        let Helps::Knob { knob, win, .. } = movable else {
            panic!("{movable:?}")
        };
        // The pinned thread's time is not part of its gain.
        assert_eq!((*knob, win.total_ns), ("cpuset-part", Nanos(300_000_000)));
    }

    #[test]
    fn a_process_is_named_only_in_the_boot_of_the_run_and_if_it_is_older() {
        let named = |change: &dyn Fn(&mut RunCulprits)| {
            let mut measured = run(vec![MeasuredCulprit {
                subject: thread("hog", "3", 20),
                total_ns: Nanos(400_000_000),
                count: 1,
            }]);
            change(&mut measured);
            let audit = audit(&machine().machine, &goal("3", "0-2"), Some(&measured));
            let Helps::Repin { programs, win, .. } = &audit.remedies[0].helps else {
                panic!("{:?}", audit.remedies)
            };
            assert_eq!(win.culprits, ["thread hog"]);
            programs.iter().map(|of| of.pid).collect::<Vec<_>>()
        };
        let began = |boot_id: &str, since_boot| {
            Some(Beginning {
                boot_id: boot_id.into(),
                since_boot: Nanos(since_boot),
            })
        };
        assert_eq!(named(&|_| {}), [20]);
        let other_boot = began("another-boot", 780_000_000);
        assert!(named(&|run| run.began = other_boot.clone()).is_empty());
        let earlier = began("this-boot", 779_999_999);
        assert!(named(&|run| run.began = earlier.clone()).is_empty());
        assert!(named(&|run| run.began = None).is_empty());
        // Of two runs, the earlier one counts.
        let and = |of: Option<Beginning>| {
            let other = RunCulprits {
                began: of,
                ..RunCulprits::default()
            };
            named(&|run| *run = std::mem::take(run).and(other.clone()))
        };
        assert_eq!(and(began("this-boot", 900_000_000)), [20]);
        assert!(and(earlier).is_empty());
        assert!(and(other_boot).is_empty());
    }

    #[test]
    fn a_program_that_has_ended_is_not_named_by_a_used_up_id() {
        let found = found(&[(thread("gone", "3", 30), 400)]);
        let Helps::Repin { programs, .. } = &found[0].2 else {
            panic!("{found:?}")
        };
        assert!(programs.is_empty(), "{programs:?}");
    }

    #[test]
    fn a_reboot_must_be_worth_it_and_the_hosts_time_is_the_hosts() {
        let host = || Subject::verdict(Verdict::CpuTaken);
        let found_kinds = |tick_ms| {
            let found = found(&[(host(), 640), (tick(), tick_ms)]);
            let named = found
                .iter()
                .map(|(kind, _, helps)| (*kind, knob(helps).to_owned()));
            named.collect::<Vec<_>>()
        };
        let (hypervisor, timer) = (CulpritKind::Hypervisor, CulpritKind::Timer);
        assert_eq!(
            found_kinds(10),
            [(hypervisor, "host-vcpu".into()), (timer, String::new())]
        );
        assert_eq!(
            found_kinds(100),
            [
                (hypervisor, "host-vcpu".into()),
                (timer, "nohz-full".into())
            ]
        );
    }

    #[test]
    fn a_quota_and_the_time_of_its_neighbour_are_one_culprit_with_one_remedy() {
        let quota = |beside: Option<Task>| {
            Subject::Quota(Quota {
                cgroup: "/shop/checkout".into(),
                limit: None,
                beside,
            })
        };
        let neighbour = Task {
            comm: "hog".into(),
            ..Task::default()
        };
        let found = found(&[
            (quota(None), 300),
            (quota(Some(neighbour)), 320),
            (thread("hog", "0-3", 20), 380),
        ]);
        let kinds: Vec<_> = found
            .iter()
            .map(|(kind, _, helps)| (*kind, knob(helps)))
            .collect();
        assert_eq!(kinds[0].0, CulpritKind::Quota, "{kinds:?}");
        assert_eq!(kinds[1], (CulpritKind::Thread, "cpuset-part"));
        assert_eq!(kinds.len(), 2, "{kinds:?}");
    }

    /// A quota that was removed since the run, and one that still applies.
    #[test]
    fn what_is_as_wanted_by_now_is_said_and_not_that_nothing_helps() {
        let culprits = vec![MeasuredCulprit {
            subject: Subject::Quota(Quota {
                cgroup: "/shop/checkout".into(),
                limit: None,
                beside: None,
            }),
            total_ns: Nanos(5_000_000),
            count: 3,
        }];
        let measured = RunCulprits {
            measured_ns: Nanos(1_000_000_000),
            culprits,
            ..RunCulprits::default()
        };
        let helps = |limit: &str| {
            let machine = machine();
            machine.put("/sys/fs/cgroup/shop/cpu.max", limit);
            let audit = audit(&machine.machine, &goal("3", "0-2"), Some(&measured));
            audit.remedies[0].helps.clone()
        };
        let gone = helps("max 100000\n");
        assert_eq!(gone, Helps::InPlace { knob: "cfs-quota" });
        assert!(gone != Helps::Nothing && matches!(helps("5000 100000\n"), Helps::Knob { .. }));
    }

    #[test]
    fn what_nothing_recorded_explains_has_no_remedy() {
        let unknown = Subject::verdict(Verdict::NoEventInVm);
        let lost = Subject::verdict(Verdict::TraceDataLost);
        let found = found(&[(unknown, 10), (lost, 5)]);
        assert_eq!(found, [(CulpritKind::Unresolved, false, Helps::Nothing)]);
    }
}
