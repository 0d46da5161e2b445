//! A knob as a page, and the whole catalogue as a chapter.

use jitterscope_tune::{
    CulpritPattern, Effect, Fact, Group, How, InForce, Knob, Mechanism, Place, Scope, Setting,
    Settles, Shown, Sign, ThreadFamily, Want, Workers, catalogue,
};
use std::fmt::Write;

/// The rows of a knob's page (heading, text), in order; independent of the machine.
#[must_use]
pub(super) fn rows(knob: &Knob) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("removes", knob.removes.to_owned()),
        ("read and set", controls(knob)),
    ];
    if !knob.answers.is_empty() {
        rows.push(("answers", answers(knob)));
    }
    rows.push(("applied", applied(knob)));
    rows.push(("in force", in_force(&knob.in_force)));
    rows.push(("kept", kept(knob)));
    rows.push(("reverted", reverted(knob).to_owned()));
    rows.push(("by hand", knob.by_hand.to_owned()));
    rows.push(("check", knob.check.to_owned()));
    rows.push(("risk", knob.risk.as_str().to_owned()));
    rows.push(("one loses", knob.loses.to_owned()));
    rows.push(("kernel", knob.kernel.to_owned()));
    for conflict in knob.conflicts {
        rows.push(("conflict", format!("{}: {}", conflict.with, conflict.why)));
    }
    rows.push(("facts", fact(knob.fact)));
    rows
}

fn setting_text(setting: &Setting) -> String {
    let path = match setting.place {
        Place::Files(path) => path.to_owned(),
        Place::PerCpu(path, Scope::Isolated) => {
            format!("{} (isolated CPUs)", path.replace("{cpu}", "N"))
        }
        Place::PerCpu(path, Scope::All) => format!("{} (all CPUs)", path.replace("{cpu}", "N")),
    };
    let effective = setting
        .effective
        .map_or(String::new(), |e| format!("; in force is what {e} says"));
    format!("{path}: {}{effective}", want(&setting.want))
}

/// The wanted value of a setting.
fn want(of: &Want) -> String {
    match of {
        Want::OneOf([only]) => format!("`{only}`"),
        Want::OneOf(all) => {
            let names: Vec<String> = all.iter().map(|v| format!("`{v}`")).collect();
            format!(
                "{} (written: `{}`)",
                names.join(" or "),
                all.first().copied().unwrap_or_default()
            )
        }
        Want::AtLeast { enough, write } => format!("at least {enough} (written: {write})"),
        Want::AtMost { enough, write } if enough == write => format!("at most {enough}"),
        Want::AtMost { enough, write } => format!("at most {enough} (written: {write})"),
        Want::OffIsolated => "no isolated CPU".into(),
        Want::SameAs(file) => format!("the value of `{file}` beside it"),
        Want::By(words, _) => (*words).into(),
    }
}

/// The origin of a knob's facts.
fn fact(of: Fact) -> String {
    match of {
        Fact::Tried(note) => format!("tried: {note}"),
        Fact::Seen(note) => format!("seen: {note}"),
        Fact::Documented(note) => format!("documented: {note}"),
        Fact::Unverified(note) => format!("unverified: {note}"),
    }
}

/// When a change takes effect, and when its undoing does.
fn in_force(of: &InForce) -> String {
    let mut text = if of.apply == of.rollback {
        format!("applied and rolled back: {}", settles(&of.apply))
    } else {
        format!(
            "applied: {}; rolled back: {}",
            settles(&of.apply),
            settles(&of.rollback)
        )
    };
    match of.shown_by {
        Sign::ReadsBack if of.apply == Settles::Immediately => {}
        Sign::ReadsBack => text.push_str("; shown by the file itself"),
        Sign::File(file) => text.push_str(&format!("; shown by {file}")),
        Sign::Recording(what) => text.push_str(&format!("; shown by a recording: {what}")),
        Sign::Cmdline => text.push_str("; shown by /proc/cmdline"),
        Sign::Check => {}
    }
    if !of.leaves.is_empty() {
        text.push_str(&format!("; stays behind: {}", of.leaves));
    }
    text
}

/// The time until a change takes effect.
pub(crate) fn settles(of: &Settles) -> String {
    match of {
        Settles::Immediately => "at once".into(),
        Settles::Within(time) => format!("within {time}"),
        Settles::WithinReplaced { unit, slack } => format!(
            "within the time that the replaced value says ({unit} for each 1; a seventh and {slack} more for rounding)"
        ),
        Settles::AtNextEvent(event) => format!("when {event}"),
        Settles::AfterReboot => "at the next boot".into(),
        Settles::ByHand => "by hand".into(),
        Settles::Unbounded(why) => format!("no limit is known: {why}"),
    }
}

/// How to change a knob, in a word or two.
pub(super) fn how(of: How) -> &'static str {
    match of {
        How::Now => "now",
        How::Reboot => "reboot",
        How::ByHand => "by hand",
    }
}

/// A group of culprits: their kind and names.
fn pattern(of: &CulpritPattern) -> String {
    let names: Vec<String> = of.names().iter().map(|name| format!("`{name}`")).collect();
    let by = match of.workers() {
        None => "",
        Some(Workers::Bound) => " by workers bound to a CPU",
        Some(Workers::Unbound) => " by workers not bound to a CPU",
        Some(Workers::Unknown) => {
            " by workers of which no record tells whether they were bound to a CPU"
        }
    };
    format!("{} {}{by}", of.kind(), names.join(", "))
}

fn controls(knob: &Knob) -> String {
    match knob.mechanism {
        Mechanism::Files(settings) => settings
            .iter()
            .map(setting_text)
            .collect::<Vec<_>>()
            .join("; "),
        Mechanism::Threads(ThreadFamily::Kernel) => {
            "Cpus_allowed_list of kernel threads in /proc/PID/status: no isolated CPU".into()
        }
        Mechanism::Threads(ThreadFamily::User) => {
            "Cpus_allowed_list of all other threads in /proc/PID/task/TID/status: no isolated CPU"
                .into()
        }
        Mechanism::Partition => {
            "cgroup v2 cpuset.cpus.partition, else cgroup v1 cpuset.sched_load_balance".into()
        }
        Mechanism::Blink => "/sys/devices/system/cpu/cpuN/online: 0, then 1".into(),
        Mechanism::Boot(shown) => {
            let line = knob
                .boot
                .iter()
                .map(|p| p.pattern())
                .collect::<Vec<_>>()
                .join(" ");
            match shown {
                Shown::Cmdline => format!("kernel command line: {line}"),
                Shown::CpuFile(path) | Shown::Reads(path, ..) => {
                    format!("{path}; kernel command line: {line}")
                }
                Shown::Gone(path) => format!("{path} is gone; kernel command line: {line}"),
            }
        }
        Mechanism::Look(_) => "looked at where the machine tells; nothing is written".into(),
    }
}

fn answers(knob: &Knob) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (effect, verb) in [
        (Effect::Removes, "removes"),
        (Effect::Lessens, "lessens"),
        (Effect::Perhaps, "may be behind"),
    ] {
        let names: Vec<String> = knob
            .answers
            .iter()
            .filter(|a| a.effect == effect)
            .map(|a| {
                let except: Vec<String> = a
                    .except
                    .iter()
                    .flat_map(|l| l.iter())
                    .map(|n| format!("`{n}`"))
                    .collect();
                let except = match except.len() {
                    0 => String::new(),
                    1..=4 => format!(" except {}", except.join(", ")),
                    _ => " except the kernel's own".to_owned(),
                };
                format!("{}{except}", pattern(&a.culprits))
            })
            .collect();
        if !names.is_empty() {
            parts.push(format!("{verb} {}", names.join("; ")));
        }
    }
    parts.join(". ")
}

fn applied(knob: &Knob) -> String {
    let profiles: Vec<&str> = knob.profiles.iter().map(|p| p.as_str()).collect();
    let named = match (knob.how(), profiles.as_slice()) {
        (How::ByHand, _) => return "by hand".into(),
        (_, []) => "only when named (`--only`) or by evidence".to_owned(),
        (_, some) => format!("profile {}", some.join(", ")),
    };
    let named = if knob.is_tame() {
        named
    } else {
        "only when named (`--only`)".into()
    };
    match knob.how() {
        How::Reboot => format!("at the next boot; {named}"),
        How::Now | How::ByHand => format!("at once; {named}"),
    }
}

fn kept(knob: &Knob) -> String {
    let line = knob
        .boot
        .iter()
        .map(|p| format!("`{}`", p.pattern()))
        .collect::<Vec<_>>()
        .join(" ");
    match knob.mechanism {
        Mechanism::Files(settings) => {
            let mut how: Vec<&str> = Vec::new();
            for setting in settings {
                let (Place::Files(path) | Place::PerCpu(path, _)) = setting.place;
                let one = match (setting.lasting, path.starts_with("/proc/sys/")) {
                    (false, _) => "kernel command line",
                    (true, true) => "sysctl.d",
                    (true, false) => "tmpfiles.d",
                };
                if !how.contains(&one) {
                    how.push(one);
                }
            }
            let also = if line.is_empty() {
                String::new()
            } else {
                format!("; at boot {line}")
            };
            format!("{}{also}", how.join(", "))
        }
        Mechanism::Boot(_) => format!("kernel command line {line}"),
        Mechanism::Threads(ThreadFamily::User) => "systemd drop-in (CPUAffinity=)".into(),
        Mechanism::Threads(ThreadFamily::Kernel) | Mechanism::Partition => {
            "not by itself: isolcpus-domain does it from boot".into()
        }
        Mechanism::Blink | Mechanism::Look(_) => "-".into(),
    }
}

fn reverted(knob: &Knob) -> &'static str {
    match knob.mechanism {
        Mechanism::Files(_) => "the original text is written back",
        Mechanism::Threads(_) => {
            "each thread's former CPUs; children started meanwhile are freed too"
        }
        Mechanism::Partition => {
            "original values, then the cgroup is removed; its members go to its parent"
        }
        Mechanism::Blink => "nothing to revert; a CPU found offline is brought back",
        Mechanism::Boot(_) => "the drop-in is removed, then a reboot",
        Mechanism::Look(_) => "-",
    }
}

/// The chapter `docs/knobs.md`.
#[must_use]
pub fn chapter() -> String {
    let mut out = String::from(
        "# The knobs\n\n<!-- Generated from crates/tune/src/catalogue by a test of crates/view \
         (JITTERSCOPE_WRITE_DOCS=1 rewrites it); edit the catalogue instead. -->\n\n\
         Every tunable that `jitterscope audit` looks at and `jitterscope tune` can turn: what it removes, \
         how it is read, what is wanted, which culprits of a recording it answers, how it is kept and \
         reverted, and what one loses. `jitterscope audit --explain ID` prints one of them. ISOLATED and \
         HOUSEKEEPING stand for CPU lists. Facts marked *unverified* were not checked on a machine.\n\n",
    );
    for group in Group::ALL {
        let _ = writeln!(
            out,
            "- {}: {}",
            group.title(),
            catalogue::of(group)
                .map(|k| format!("[{0}](#{0})", k.id))
                .collect::<Vec<_>>()
                .join(", ")
        );
    }
    for group in Group::ALL {
        let _ = write!(out, "\n## {}\n", group.title());
        for knob in catalogue::of(group) {
            let _ = write!(
                out,
                "\n### {}\n\n**{}.**\n\n| | |\n|---|---|\n",
                knob.id, knob.title
            );
            for (heading, text) in rows(knob) {
                let _ = writeln!(out, "| {heading} | {} |", text.replace('|', "\\|"));
            }
        }
    }
    out
}
