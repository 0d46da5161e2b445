//! The catalogue: every knob as one declarative entry. A new knob is a new entry in the file of its group;
//! documentation, audit, plan and rollback follow from it.

mod firmware;
mod irq_net;
mod isolation;
mod memory;
mod observed;
mod power;
mod scheduler;
mod watchdog;
mod workqueue;

use crate::goal::Goal;
use crate::knob::{Group, Knob};
use crate::knob_reason::KnobReason;
use jitterscope_platform::Machine;

pub fn all() -> impl Iterator<Item = &'static Knob> {
    Group::ALL.into_iter().flat_map(of)
}

pub fn of(group: Group) -> impl Iterator<Item = &'static Knob> {
    let (first, second): (&[Knob], &[Knob]) = match group {
        Group::Isolation => (isolation::KNOBS, scheduler::KNOBS),
        Group::Interrupts => (irq_net::KNOBS, &[]),
        Group::Workqueues => (workqueue::KNOBS, &[]),
        Group::Watchdogs => (watchdog::KNOBS, &[]),
        Group::Power => (power::KNOBS, &[]),
        Group::Memory => (memory::KNOBS, &[]),
        Group::Firmware => (firmware::KNOBS, &[]),
    };
    first.iter().chain(second)
}

#[must_use]
pub fn find(id: &str) -> Option<&'static Knob> {
    all().find(|knob| knob.id == id)
}

/// Why a wrong value of this knob does not matter on this machine; `None` if it may.
#[must_use]
pub fn moot(knob: &Knob, machine: &Machine, goal: &Goal) -> Option<KnobReason> {
    observed::moot(knob.id, machine, goal)
}

/// Ids similar to `id`, for an error message.
#[must_use]
pub fn similar(id: &str) -> Vec<&'static str> {
    let id = id.to_ascii_lowercase();
    all()
        .map(|knob| knob.id)
        .filter(|known| {
            known.contains(&id)
                || id.contains(known)
                || known
                    .split('-')
                    .any(|part| part.len() > 2 && id.contains(part))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Effect;
    use crate::knob::{Fact, Mechanism, Place, Risk};
    use jitterscope_model::{About, CpuSet, Name, Quota, Subject, Task, Verdict, Work};
    use std::collections::BTreeSet;

    #[test]
    fn what_was_mistyped_resembles_what_was_meant() {
        assert_eq!(similar("GOVERNORS"), ["governor"]);
        assert_eq!(
            similar("rcu-no"),
            [
                "rcu-nocbs",
                "rcu-nocb-poll",
                "rcu-normal",
                "rcu-patience",
                "rcu-prio"
            ]
        );
        assert_eq!(similar("vm"), ["vmstat", "kvm-host"]);
        assert!(similar("zzz").is_empty());
        assert!(similar("sort").is_empty(), "two letters are no resemblance");
    }

    #[test]
    fn there_are_seventy_four_and_each_says_everything() {
        let mut ids = BTreeSet::new();
        for knob in all() {
            assert!(ids.insert(knob.id), "{} twice", knob.id);
            assert!(
                knob.id
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            for (what, text) in [
                ("title", knob.title),
                ("removes", knob.removes),
                ("loses", knob.loses),
                ("kernel", knob.kernel),
                ("absent", knob.absent),
                ("by_hand", knob.by_hand),
                ("check", knob.check),
            ] {
                assert!(!text.is_empty(), "{}: {what} is empty", knob.id);
            }
            for conflict in knob.conflicts {
                let daemon = ["irqbalance", "tuned", "systemd", "container runtimes"]
                    .contains(&conflict.with);
                assert!(
                    daemon || find(conflict.with).is_some(),
                    "{}: no knob {}",
                    knob.id,
                    conflict.with
                );
            }
            if let Mechanism::Boot(_) = knob.mechanism {
                assert!(!knob.boot.is_empty(), "{} is set at boot by what?", knob.id);
            }
            if let Mechanism::Files(settings) = knob.mechanism {
                assert!(!settings.is_empty());
                for setting in settings {
                    let (Place::Files(path) | Place::PerCpu(path, _)) = setting.place;
                    assert!(
                        path.starts_with("/proc/") || path.starts_with("/sys/"),
                        "{path}"
                    );
                }
            }
            // A profile is applied by people who have read none of its pages.
            assert!(
                knob.fact.is_verified() || knob.profiles.is_empty(),
                "{} is unverified, and in a profile",
                knob.id
            );
            if matches!(knob.risk, Risk::High | Risk::Security) {
                assert!(
                    knob.profiles.is_empty(),
                    "{} is too risky for a profile",
                    knob.id
                );
            }
        }
        assert_eq!(ids.len(), 74);
    }

    #[test]
    fn each_says_what_was_seen_of_it_and_on_which_kernel_it_was_tried() {
        for knob in all() {
            assert!(
                !knob.fact.note().trim().is_empty(),
                "{}: no evidence",
                knob.id
            );
            let names_kernel = |note: &str| {
                note.split(|c: char| !c.is_ascii_digit() && c != '.')
                    .any(|number| number.trim_matches('.').contains('.'))
            };
            assert!(
                !matches!(knob.fact, Fact::Tried(note) if !names_kernel(note)),
                "{} was tried on which kernel?",
                knob.id
            );
        }
    }

    #[test]
    fn security_is_never_in_a_profile_and_needs_its_name() {
        let knob = find("mitigations").unwrap();
        assert_eq!(knob.risk, Risk::Security);
        assert!(knob.profiles.is_empty() && !knob.is_tame());
    }

    #[test]
    fn known_culprits_have_their_cures() {
        let named = |name: &str| Some(Name::from(name));
        let thread = |comm: &str| {
            Subject::Thread(Task {
                comm: comm.into(),
                ..Task::default()
            })
        };
        let work = |name: &str| {
            Subject::Work(Work {
                function: named(name),
                ..Work::default()
            })
        };
        let timer = |name: &str| Subject::Timer {
            function: named(name),
            source: None,
        };
        let call = |name: &str| Subject::Call(name.into());
        for (subject, cure) in [
            (work("vmstat_update"), "vmstat"),
            (timer("tick_nohz_handler"), "nohz-full"),
            (timer("tick_sched_timer"), "nohz-full"),
            (work("wb_workfn"), "wq-named"),
            (
                Subject::Interrupt {
                    number: Some(38),
                    action: "virtio2-input.0".into(),
                },
                "irq-aff",
            ),
            (call("flush_tlb_func"), "tlb"),
            (call("ipi_mb"), "membarrier"),
            (call("do_sync_core"), "text-poke"),
            (timer("watchdog_timer_fn"), "softlockup"),
            (timer("clocksource_watchdog"), "tsc-wd"),
            (Subject::Softirq(3), "rps"),
            (Subject::Throttle(Task::default()), "rt-runtime"),
            (Subject::verdict(Verdict::Smi), "smi"),
            (Subject::verdict(Verdict::CpuTaken), "host-vcpu"),
            (
                Subject::Quota(Quota {
                    cgroup: "/pod".into(),
                    limit: None,
                    beside: None,
                }),
                "cfs-quota",
            ),
            (Subject::PageFault { user: true }, "prefault"),
            (thread("rcu_preempt"), "kthread-aff"),
            (thread("chrome"), "cpuset-part"),
        ] {
            let effect = find(cure).unwrap().answers(&subject, &CpuSet::new());
            assert_eq!(effect, Some(Effect::Removes), "{subject:?} -> {cure}");
        }
        assert_eq!(
            find("kthread-aff")
                .unwrap()
                .answers(&thread("migration/1"), &CpuSet::new()),
            None
        );
        assert_eq!(
            find("tsc-wd")
                .unwrap()
                .answers(&timer("delayed_work_timer_fn"), &CpuSet::new()),
            None
        );
    }

    /// The cost of leaving idle states is a verdict; thread names do not matter.
    #[test]
    fn idle_states_answer_for_leaving_them_and_for_no_thread_of_that_name() {
        let idle = Subject::Verdict(Verdict::IdleExit, About::IdleState(3));
        let thread = |comm: &str| {
            Subject::Thread(Task {
                comm: comm.into(),
                ..Task::default()
            })
        };
        for knob in ["cstate", "cstate-cpu"].map(|id| find(id).unwrap()) {
            assert_eq!(
                knob.answers(&idle, &CpuSet::new()),
                Some(Effect::Lessens),
                "{}",
                knob.id
            );
            assert_eq!(
                knob.answers(&thread("idle-game"), &CpuSet::new()),
                None,
                "{}",
                knob.id
            );
        }
    }

    #[test]
    fn a_slip_of_the_pen_finds_its_knob() {
        assert!(similar("nohz").contains(&"nohz-full"));
        assert!(similar("irq").contains(&"irq-aff"));
        for (slip, knobs) in [
            ("vmstats", &["vmstat"][..]),
            ("VMSTAT", &["vmstat"]),
            ("frequency-floor", &["freq-floor"]),
            // Two letters occur in too many words.
            ("xwqx", &[]),
            ("what", &[]),
        ] {
            assert_eq!(similar(slip), knobs, "{slip}");
        }
    }
}
