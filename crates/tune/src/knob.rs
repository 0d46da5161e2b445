//! One entry of the catalogue: a tunable of the machine as declared data.

use crate::answer::{Answer, Effect};
use crate::cmdline::BootParam;
use crate::finding::Finding;
use crate::goal::Goal;
use crate::knob_reason::KnobReason;
use crate::settles::InForce;
use crate::value::ValueKind;
use crate::wanted::{Wanted, WantedValue};
use jitterscope_model::{CpuSet, Subject};
use jitterscope_platform::Machine;
use serde::Serialize;

/// The chapter of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Keeping others off the CPUs.
    Isolation,
    /// Interrupts, softirqs, network and block devices.
    Interrupts,
    /// Workqueues and kernel daemons.
    Workqueues,
    /// Watchdogs, clocks, error reporting.
    Watchdogs,
    /// Frequency and idle states.
    Power,
    /// Memory, TLB, cross-CPU calls, security.
    Memory,
    /// Firmware and the host below.
    Firmware,
}

impl Group {
    /// All of them, in the order of the catalogue.
    pub const ALL: [Group; 7] = [
        Group::Isolation,
        Group::Interrupts,
        Group::Workqueues,
        Group::Watchdogs,
        Group::Power,
        Group::Memory,
        Group::Firmware,
    ];

    /// Heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Group::Isolation => "Isolation",
            Group::Interrupts => "Interrupts, softirqs, network, block",
            Group::Workqueues => "Workqueues and kernel daemons",
            Group::Watchdogs => "Watchdogs, clocks, error reporting",
            Group::Power => "Power",
            Group::Memory => "Memory, cross-CPU calls, security",
            Group::Firmware => "Firmware and host",
        }
    }
}

/// A set of knobs applied by one name. A knob in none must be named to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Keep everybody off the CPUs.
    Isolation,
    /// Keep packet processing off them.
    Network,
    /// Keep them awake and at speed.
    Power,
}

impl Profile {
    /// Its name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Isolation => "isolation",
            Profile::Network => "network",
            Profile::Power => "power",
        }
    }
}

/// What may go wrong with it. `High` and `Security` are never applied unless named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Other work may be a little slower.
    Low,
    /// Something useful is lost or other work gets clearly slower.
    Medium,
    /// The machine can hang, lose data or lose a safety net.
    High,
    /// It weakens the machine's security.
    Security,
}

impl Risk {
    /// Its name on screen.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
            Risk::Security => "security",
        }
    }
}

/// How much the thing usually steals where nothing was measured; orders an audit without evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Milliseconds at a time, or all the time.
    Major,
    /// Microseconds, again and again.
    Minor,
    /// Seldom, or only with certain work loads.
    Rare,
}

/// Which CPUs a per-CPU file is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The isolated ones.
    Isolated,
    /// All of the goal's CPUs.
    All,
}

/// Where a value lies.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// These files; components may hold `*`.
    Files(&'static str),
    /// One file a CPU: `{cpu}` is its number; components may hold `*`.
    PerCpu(&'static str, Scope),
}

/// What a [`Want::By`] function is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The goal.
    pub goal: &'a Goal,
    /// The file.
    pub path: &'a str,
    /// What it reads.
    pub current: &'a str,
}

/// Which value is wanted. A value that satisfies it is left alone.
#[derive(Clone, Copy)]
pub enum Want {
    /// One of these; the first is what is written.
    OneOf(&'static [&'static str]),
    /// At least `enough`; else `write` is written.
    AtLeast {
        /// Good enough.
        enough: i64,
        /// What is written.
        write: i64,
    },
    /// At most `enough`; else `write` is written.
    AtMost {
        /// Good enough.
        enough: i64,
        /// What is written.
        write: i64,
    },
    /// CPUs without isolated ones among them; those named now stay, else all housekeeping CPUs.
    OffIsolated,
    /// What the file of this name in the same folder reads.
    SameAs(&'static str),
    /// `None` when it is right as it is; else what to write. The text says it in words.
    By(&'static str, fn(Spot<'_>) -> Option<String>),
}

impl Want {
    /// The same as data, for these isolated CPUs.
    #[must_use]
    pub fn value(&self, isolated: &CpuSet) -> WantedValue {
        match *self {
            Want::OneOf(values) => WantedValue::OneOf { values },
            Want::AtLeast { enough, write } => WantedValue::AtLeast { enough, write },
            Want::AtMost { enough, write } => WantedValue::AtMost { enough, write },
            Want::OffIsolated => WantedValue::NoCpuOf {
                cpus: isolated.clone(),
            },
            Want::SameAs(file) => WantedValue::SameAs { file },
            Want::By(words, _) => WantedValue::AsDeclared { words },
        }
    }
}

/// One control file (or family of them) with the value wanted there.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Where.
    pub place: Place,
    /// How the value is written.
    pub kind: ValueKind,
    /// Which value.
    pub want: Want,
    /// The file in the same folder that says what is in force, where that differs from what was asked.
    pub effective: Option<&'static str>,
    /// Whether writing the same path again after a boot means the same thing (interrupt numbers change).
    pub lasting: bool,
}

impl Setting {
    /// A lasting setting with no separate effective value.
    #[must_use]
    pub const fn new(place: Place, kind: ValueKind, want: Want) -> Setting {
        Setting {
            place,
            kind,
            want,
            effective: None,
            lasting: true,
        }
    }

    /// A sysctl or another single file.
    #[must_use]
    pub const fn file(path: &'static str, kind: ValueKind, want: Want) -> Setting {
        Setting::new(Place::Files(path), kind, want)
    }
}

/// Which threads a knob moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadFamily {
    /// Kernel threads that accept an affinity.
    Kernel,
    /// Everybody else's threads.
    User,
}

/// How it can be seen whether a boot parameter took effect.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Only the command line itself tells.
    Cmdline,
    /// A file with the list of CPUs; a kernel without the file has no such feature.
    CpuFile(&'static str),
    /// A file with one of these values.
    Reads(&'static str, ValueKind, &'static [&'static str]),
    /// A file that is gone when the parameter took effect.
    Gone(&'static str),
}

/// What a [`Mechanism::Look`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Something is as it should not be: what there is, what is wanted.
    Wrong(Finding, Wanted),
    /// It is as it should be.
    Fine(Finding),
    /// It cannot be told on this machine, and why.
    Unavailable(KnobReason),
    /// It does not concern this machine or cannot be read off it, and why.
    NotApplicable(KnobReason),
    /// It is there, but not for this user to see, and why.
    Denied(KnobReason),
}

/// How the knob is turned.
#[derive(Clone, Copy)]
pub enum Mechanism {
    /// By writing control files.
    Files(&'static [Setting]),
    /// By moving threads.
    Threads(ThreadFamily),
    /// By a cpuset that takes the CPUs out of the scheduler's domains.
    Partition,
    /// By taking the CPU offline and back.
    Blink,
    /// By the kernel command line alone.
    Boot(Shown),
    /// By hand: we look, say what to do, and write nothing.
    Look(fn(&Machine, &Goal) -> Look),
}

/// What gets in this knob's way, or the other way round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conflict {
    /// Another knob's id, or a daemon's name.
    pub with: &'static str,
    /// Why, and what to do.
    pub why: &'static str,
}

/// How its facts were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "note")]
pub enum Fact {
    /// Turned and turned back on a real kernel; says which.
    Tried(&'static str),
    /// Read off a real kernel, not turned there.
    Seen(&'static str),
    /// As kernel documentation or source describes it.
    Documented(&'static str),
    /// Not checked, or in part: says what.
    Unverified(&'static str),
}

impl Fact {
    /// Whether it may be stated without a caveat.
    #[must_use]
    pub fn is_verified(self) -> bool {
        !matches!(self, Fact::Unverified(_))
    }
}

/// How a knob can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum How {
    /// At once.
    #[serde(rename = "now")]
    Now,
    /// At the next boot.
    #[serde(rename = "reboot")]
    Reboot,
    /// By hand alone: nothing of ours writes it.
    #[serde(rename = "by hand")]
    ByHand,
}

/// One tunable of the machine.
pub struct Knob {
    /// Stable name.
    pub id: &'static str,
    /// Chapter.
    pub group: Group,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What goes away, in a sentence or two.
    pub removes: &'static str,
    /// How it is turned.
    pub mechanism: Mechanism,
    /// Boot parameters that do it, or its lasting part, from the start.
    pub boot: &'static [BootParam],
    /// Culprits it answers.
    pub answers: &'static [Answer],
    /// Profiles that include it.
    pub profiles: &'static [Profile],
    /// What may go wrong.
    pub risk: Risk,
    /// What one loses.
    pub loses: &'static str,
    /// What it usually costs to leave it.
    pub weight: Weight,
    /// Kernels that have it.
    pub kernel: &'static str,
    /// Why a machine may not have it.
    pub absent: &'static str,
    /// How to do it by hand, or what else there is to know.
    pub by_hand: &'static str,
    /// What to look at to see that it took effect.
    pub check: &'static str,
    /// When a change is in force, and when its undoing is.
    pub in_force: InForce,
    /// What gets in its way.
    pub conflicts: &'static [Conflict],
    /// How these facts were checked.
    pub fact: Fact,
}

impl Knob {
    /// How it can be changed.
    #[must_use]
    pub fn how(&self) -> How {
        match self.mechanism {
            Mechanism::Boot(_) => How::Reboot,
            Mechanism::Look(_) => How::ByHand,
            Mechanism::Files(_)
            | Mechanism::Threads(_)
            | Mechanism::Partition
            | Mechanism::Blink => How::Now,
        }
    }

    /// The strongest effect on a culprit; `None` when it does not answer it.
    #[must_use]
    pub fn answers(&self, subject: &Subject) -> Option<Effect> {
        self.answers
            .iter()
            .filter(|answer| answer.matches(subject))
            .map(|answer| answer.effect)
            .min()
    }

    /// Whether it may be changed without being named.
    #[must_use]
    pub fn is_tame(&self) -> bool {
        self.risk < Risk::High
    }
}
