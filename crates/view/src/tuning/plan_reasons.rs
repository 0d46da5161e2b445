//! Words for why a plan changes something or not, what remains, and what the user must do.

use super::findings::finding;
use super::reasons::knob_reason;
use super::refusals::refused_with;
use jitterscope_tune::{
    BootByHand, ChangeReason, KnobNotice, LastsBecause, Left, LeftFamily, LeftTogether, Measured,
    NoTime, Notice, OF_MEASURED, OF_STOLEN, REBOOT_FROM, SkipReason, Stays,
};

/// Why a change is made; this program adds no full stop.
#[must_use]
pub fn change_reason(of: &ChangeReason) -> String {
    match of {
        ChangeReason::AsDeclared { words } => (*words).to_owned(),
        ChangeReason::Measured(of) => measured(of),
        ChangeReason::Needed { by } => {
            format!("{by} needs it: otherwise threads would stay stranded on these CPUs")
        }
        ChangeReason::Lasting => "keeps the setting after the next boot".into(),
    }
}

/// Why a requested knob has no change, or what to do instead.
#[must_use]
pub fn skip_reason(of: &SkipReason) -> String {
    match of {
        SkipReason::AlreadySo { found } => {
            format!(
                "already so: {}",
                found.as_ref().map(finding).unwrap_or_default()
            )
        }
        SkipReason::LeftOut => "left out on request".into(),
        SkipReason::NotHere { cause } => knob_reason(cause),
        SkipReason::Unreadable { cause } => format!("cannot be read: {}", knob_reason(cause)),
        SkipReason::NeedsReboot { parameters } => {
            format!(
                "needs a reboot with {}: --persist prepares it",
                parameters.join(" ")
            )
        }
        SkipReason::ByHand { words } => format!("manual: {words}"),
        SkipReason::Risk { measured: of, risk } => {
            format!(
                "{}; its risk is {}: select it with --only",
                measured(of),
                risk.as_str()
            )
        }
        SkipReason::Negligible { measured: of } => measured(of),
        SkipReason::ForNow { at_boot } => {
            format!("lasts until the next boot; {at_boot} does it from boot")
        }
    }
}

/// The gain below which a change is not worthwhile.
pub(super) fn too_little() -> String {
    let percent = |parts: u32| 100.0 / f64::from(parts);
    format!(
        "under {} % of the stolen time and under {} % of the measured time; if it needs a reboot, under {} % of the \
         stolen time",
        percent(OF_STOLEN),
        percent(OF_MEASURED),
        percent(REBOOT_FROM)
    )
}

fn measured(of: &Measured) -> String {
    let times = match of.count {
        0 => String::new(),
        1 => ", 1 time".into(),
        n => format!(", {n} times"),
    };
    format!(
        "measured: {} took {}{times}",
        of.culprits.join(", "),
        of.total_ns
    )
}

/// Why threads stay on the isolated CPUs.
#[must_use]
pub fn stays(of: Stays) -> &'static str {
    match of {
        Stays::BoundToCpu => "the kernel binds it to its CPU",
        Stays::Immovable => "the kernel does not allow moving it, and rarely runs it",
        Stays::OnIsolatedOnly => "it may run on isolated CPUs only",
        Stays::PinnedThere => "it is pinned to isolated CPUs only, so it stays there",
    }
}

/// A thread that stays.
#[must_use]
pub fn left_thread(of: &Left) -> String {
    thread(&of.comm, of.tid)
}

/// Threads that stay for one reason: `2 kworker, migration/1 (16)`.
#[must_use]
pub fn left_threads(of: &LeftTogether) -> String {
    let family = |LeftFamily {
                      name,
                      threads,
                      comm,
                      tid,
                  }: &LeftFamily| match threads {
        1 => thread(comm, *tid),
        many => format!("{many} {name}"),
    };
    of.families
        .iter()
        .map(family)
        .collect::<Vec<_>>()
        .join(", ")
}

fn thread(comm: &str, tid: i32) -> String {
    format!("{comm} ({tid})")
}

/// A notice on the use of a knob.
#[must_use]
pub fn notice(of: &Notice) -> String {
    match of {
        Notice::StartInGroup { group } => {
            format!(
                "start programs in it: echo $$ > {group}/cgroup.procs; others get EINVAL on these CPUs"
            )
        }
        Notice::PinPrograms { cpus } => format!(
            "pin programs to CPU {cpus} yourself (taskset, sched_setaffinity): nothing balances tasks there"
        ),
        Notice::MoveLater { interrupts } => format!("{interrupts} will move when they next fire"),
    }
}

/// The notice with the knob's name.
#[must_use]
pub fn knob_notice(of: &KnobNotice) -> String {
    format!("{}: {}", of.knob, notice(&of.notice))
}

/// The remaining steps until boot parameters take effect.
#[must_use]
pub fn boot_by_hand(of: &BootByHand) -> String {
    match of {
        BootByHand::UpdateGrub { path } => {
            format!("{path} holds them: run update-grub, then reboot (and update-grub again after a rollback)")
        }
        BootByHand::EditGrub => {
            "add them manually: grubby --update-kernel=ALL --args=\"...\", or to GRUB_CMDLINE_LINUX in \
             /etc/default/grub; then reboot"
                .into()
        }
        BootByHand::EditLoader => {
            "add them manually to the boot loader's kernel command line (no GRUB configuration was found); then \
             reboot"
                .into()
        }
    }
}

/// Why a drop-in still restores a rolled-back change.
#[must_use]
pub fn lasts_because(of: &LastsBecause) -> String {
    match of {
        LastsBecause::Shared => {
            "other knobs may share its boot parameters: `--only persist` removes all".into()
        }
        LastsBecause::Edited => "another program has edited it".into(),
        LastsBecause::Refused { why, means } => refused_with(why, *means),
    }
}

/// Why the time of effect is unknown.
#[must_use]
pub fn no_time(of: &NoTime) -> String {
    match of {
        NoTime::NoLimit { words } => (*words).to_owned(),
        NoTime::Replaced { value } => format!("it replaced {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Nanos;
    use jitterscope_tune::Risk;

    #[test]
    fn threads_of_one_family_are_counted_and_a_single_one_is_named() {
        let family = |name: &str, threads, comm: &str, tid| LeftFamily {
            name: name.into(),
            threads,
            comm: comm.into(),
            tid,
        };
        let families = vec![
            family("migration", 1, "migration/2", 16),
            family("kworker", 2, "kworker/2:0", 50),
        ];
        let left = LeftTogether {
            because: Stays::BoundToCpu,
            families,
        };
        assert_eq!(left_threads(&left), "migration/2 (16), 2 kworker");
    }

    #[test]
    fn what_is_too_little_is_reported_in_percent() {
        let text = "under 1 % of the stolen time and under 0.01 % of the measured time; if it needs a reboot, under \
                    5 % of the stolen time";
        assert_eq!(too_little(), text);
    }

    #[test]
    fn what_was_measured_is_reported_with_how_often_where_that_is_known() {
        let of = |count| Measured {
            culprits: vec!["a".into(), "b".into()],
            total_ns: Nanos(5_000),
            count,
        };
        assert_eq!(measured(&of(0)), "measured: a, b took 5.00 us");
        assert_eq!(measured(&of(1)), "measured: a, b took 5.00 us, 1 time");
        let risk = SkipReason::Risk {
            measured: of(3),
            risk: Risk::High,
        };
        assert!(
            skip_reason(&risk)
                .ends_with("5.00 us, 3 times; its risk is high: select it with --only")
        );
    }
}
