//! The catalogue: every knob as one declarative entry. Adding a knob is adding an entry to the file of
//! its group; documentation, audit, plan and rollback follow from it.

mod firmware;
mod irq_net;
mod isolation;
mod memory;
mod observed;
mod power;
mod scheduler;
mod watchdog;
mod workqueue;

use crate::knob::{Group, Knob};

/// All knobs, group by group.
pub fn all() -> impl Iterator<Item = &'static Knob> {
    Group::ALL.into_iter().flat_map(of)
}

/// The knobs of one group.
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

/// The knob of this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Knob> {
    all().find(|knob| knob.id == id)
}

/// Ids that resemble `id`, for an error message.
#[must_use]
pub fn similar(id: &str) -> Vec<&'static str> {
    let id = id.to_ascii_lowercase();
    all()
        .map(|knob| knob.id)
        .filter(|known| {
            known.contains(&id)
                || id.contains(known)
                || known.split('-').any(|part| part.len() > 2 && id.contains(part))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::{Control, Effect, Place, Risk};
    use jitterscope_model::CulpritKind;
    use std::collections::BTreeSet;

    #[test]
    fn what_was_mistyped_resembles_what_was_meant() {
        assert_eq!(similar("GOVERNORS"), ["governor"]);
        assert_eq!(similar("rcu-no"), ["rcu-nocbs", "rcu-nocb-poll", "rcu-normal", "rcu-patience"]);
        assert_eq!(similar("vm"), ["vmstat", "kvm-host"]);
        assert!(similar("zzz").is_empty());
        assert!(similar("sort").is_empty(), "two letters are no resemblance");
    }

    #[test]
    fn there_are_sixty_five_and_each_says_everything() {
        let mut ids = BTreeSet::new();
        for knob in all() {
            assert!(ids.insert(knob.id), "{} twice", knob.id);
            assert!(knob.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
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
                let daemon =
                    ["irqbalance", "tuned", "systemd", "container runtimes"].contains(&conflict.with);
                assert!(daemon || find(conflict.with).is_some(), "{}: no knob {}", knob.id, conflict.with);
            }
            if let Control::Boot(_) = knob.control {
                assert!(!knob.boot.is_empty(), "{} is set at boot by what?", knob.id);
            }
            if let Control::Files(settings) = knob.control {
                assert!(!settings.is_empty());
                for setting in settings {
                    let (Place::Files(path) | Place::PerCpu(path, _)) = setting.place;
                    assert!(path.starts_with("/proc/") || path.starts_with("/sys/"), "{path}");
                }
            }
            if matches!(knob.risk, Risk::High | Risk::Security) {
                assert!(knob.profiles.is_empty(), "{} is too risky for a profile", knob.id);
            }
        }
        assert_eq!(ids.len(), 65);
    }

    #[test]
    fn security_is_never_in_a_profile_and_needs_its_name() {
        let knob = find("mitigations").unwrap();
        assert_eq!(knob.risk, Risk::Security);
        assert!(knob.profiles.is_empty() && !knob.is_tame());
    }

    #[test]
    fn known_culprits_have_their_cures() {
        for (kind, name, detail, cure) in [
            (CulpritKind::Kworker, "vmstat_update", "", "vmstat"),
            (CulpritKind::Timer, "tick_nohz_handler", "", "nohz-full"),
            (CulpritKind::Timer, "tick_sched_timer", "", "nohz-full"),
            (CulpritKind::Kworker, "wb_workfn", "", "wq-named"),
            (CulpritKind::Irq, "virtio2-input.0", "irq 38", "irq-aff"),
            (CulpritKind::Ipi, "flush_tlb_func", "", "tlb"),
            (CulpritKind::Ipi, "ipi_mb", "", "membarrier"),
            (CulpritKind::Ipi, "do_sync_core", "", "text-poke"),
            (CulpritKind::Timer, "watchdog_timer_fn", "", "softlockup"),
            (CulpritKind::Softirq, "TIMER", "clocksource_watchdog", "tsc-wd"),
            (CulpritKind::Softirq, "NET_RX", "", "rps"),
            (CulpritKind::RtThrottle, "", "", "rt-runtime"),
            (CulpritKind::Firmware, "SMI", "", "smi"),
            (CulpritKind::Hypervisor, "no kernel event", "", "host-vcpu"),
            (CulpritKind::PageFault, "user", "", "prefault"),
            (CulpritKind::Thread, "rcu_preempt", "", "kthread-aff"),
            (CulpritKind::Thread, "chrome", "", "cpuset-part"),
        ] {
            let effect = find(cure).unwrap().answers(kind, name, detail);
            assert_eq!(effect, Some(Effect::Removes), "{kind} {name} -> {cure}");
        }
        assert_eq!(find("kthread-aff").unwrap().answers(CulpritKind::Thread, "migration/1", ""), None);
        assert_eq!(
            find("tsc-wd").unwrap().answers(CulpritKind::Softirq, "TIMER", "delayed_work_timer_fn"),
            None
        );
    }

    #[test]
    fn a_slip_of_the_pen_finds_its_knob() {
        assert!(similar("nohz").contains(&"nohz-full"));
        assert!(similar("irq").contains(&"irq-aff"));
    }
}
