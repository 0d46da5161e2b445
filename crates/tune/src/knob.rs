//! An entry of the catalogue: a tunable of the machine as declarative data.

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
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// Keeps other threads off the CPUs.
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
    /// Firmware and the host.
    Firmware,
}

impl Group {
    /// All groups, in catalogue order.
    pub const ALL: [Group; 7] = [
        Group::Isolation,
        Group::Interrupts,
        Group::Workqueues,
        Group::Watchdogs,
        Group::Power,
        Group::Memory,
        Group::Firmware,
    ];

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

/// A set of knobs applied by one name. A knob in no profile must be named to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Keeps other threads off the CPUs.
    Isolation,
    /// Keeps packet processing off the CPUs.
    Network,
    /// Keeps the CPUs awake and at full frequency.
    Power,
}

impl Profile {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::Isolation => "isolation",
            Profile::Network => "network",
            Profile::Power => "power",
        }
    }
}

/// The possible damage of a knob. `High` and `Security` are never applied unless named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Other work may be slightly slower.
    Low,
    /// A useful function is lost, or other work gets clearly slower.
    Medium,
    /// The machine can hang, lose data or lose a safety net.
    High,
    /// It weakens the machine's security.
    Security,
}

impl Risk {
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

/// How much it usually steals without a measurement; orders an audit without evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Milliseconds at a time, or all the time.
    Major,
    /// Microseconds at a time, repeatedly.
    Minor,
    /// Rarely, or only under certain loads.
    Rare,
}

/// The CPUs whose per-CPU file is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Isolated,
    /// All of the goal's CPUs.
    All,
}

#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// These files; components may contain `*`.
    Files(&'static str),
    /// One file per CPU: `{cpu}` is its number; components may contain `*`.
    PerCpu(&'static str, Scope),
}

/// The argument of a [`Want::By`] function.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    pub machine: &'a Machine,
    pub goal: &'a Goal,
    pub path: &'a str,
    pub current: &'a str,
}

/// The wanted value. A value that satisfies it is not changed.
#[derive(Clone, Copy)]
pub enum Want {
    /// One of these; the first is written.
    OneOf(&'static [&'static str]),
    /// At least `enough`; otherwise `write` is written.
    AtLeast { enough: i64, write: i64 },
    /// At most `enough`; otherwise `write` is written.
    AtMost { enough: i64, write: i64 },
    /// CPUs without isolated ones: those set now stay, or else all housekeeping CPUs.
    OffIsolated,
    /// The contents of the file with this name in the same folder.
    SameAs(&'static str),
    /// `None` if the value is right; otherwise what to write. The text describes it.
    By(&'static str, fn(Spot<'_>) -> Option<String>),
}

impl Want {
    /// The wanted value as data, for these isolated CPUs.
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

/// A control file (or family of them) with its wanted value.
#[derive(Clone, Copy)]
pub struct Setting {
    pub place: Place,
    /// The format of the value.
    pub kind: ValueKind,
    pub want: Want,
    /// The file in the same folder that shows what is in force, if that differs from the request.
    pub effective: Option<&'static str>,
    /// Whether writing the same path after a boot means the same thing (interrupt numbers change).
    pub lasting: bool,
}

impl Setting {
    /// A lasting setting without a separate effective value.
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

/// The threads that a knob moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadFamily {
    /// Kernel threads that accept an affinity.
    Kernel,
    User,
}

/// How to see whether a boot parameter is in force.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// Only the command line shows it.
    Cmdline,
    /// A file with the list of CPUs; a kernel without the file lacks the feature.
    CpuFile(&'static str),
    /// A file with one of these values.
    Reads(&'static str, ValueKind, &'static [&'static str]),
    /// A file that is missing if the parameter is in force.
    Gone(&'static str),
}

/// The result of a [`Mechanism::Look`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// A wrong state: the found and the wanted one.
    Wrong(Finding, Wanted),
    Fine(Finding),
    /// It cannot be determined on this machine, and why.
    Unavailable(KnobReason),
    /// It does not concern this machine or does not show in its state, and why.
    NotApplicable(KnobReason),
    /// It exists, but this user may not see it, and why.
    Denied(KnobReason),
}

#[derive(Clone, Copy)]
pub enum Mechanism {
    /// By writing control files.
    Files(&'static [Setting]),
    Threads(ThreadFamily),
    /// By a cpuset that takes the CPUs out of the scheduler's domains.
    Partition,
    /// By taking the CPU offline and online again.
    Blink,
    /// Only by the kernel command line.
    Boot(Shown),
    /// By hand: the audit checks it and describes what to do.
    Look(fn(&Machine, &Goal) -> Look),
}

/// A conflict with another knob or program.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Conflict {
    /// Another knob's id, or a daemon's name.
    pub with: &'static str,
    /// Why, and what to do.
    pub why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "how", content = "note")]
pub enum Fact {
    /// Changed and restored on a real kernel; says which.
    Tried(&'static str),
    /// Seen on a real kernel, but not changed there.
    Seen(&'static str),
    /// Not checked, or only in part; says what.
    Unverified(&'static str),
}

impl Fact {
    /// Whether it needs no caveat.
    #[must_use]
    pub fn is_verified(self) -> bool {
        !matches!(self, Fact::Unverified(_))
    }

    /// What was seen of the knob, and what was not.
    #[must_use]
    pub fn note(self) -> &'static str {
        let (Fact::Tried(note) | Fact::Seen(note) | Fact::Unverified(note)) = self;
        note
    }
}

/// How a knob can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum How {
    #[serde(rename = "now")]
    Now,
    /// At the next boot.
    #[serde(rename = "reboot")]
    Reboot,
    /// Only by hand: no code here writes it.
    #[serde(rename = "by hand")]
    ByHand,
}

/// A tunable of the machine.
pub struct Knob {
    pub id: &'static str,
    pub group: Group,
    pub title: &'static str,
    /// What it removes, in a sentence or two.
    pub removes: &'static str,
    pub mechanism: Mechanism,
    /// Boot parameters that set it, or its lasting part, from the start.
    pub boot: &'static [BootParam],
    pub answers: &'static [Answer],
    /// Profiles that contain it.
    pub profiles: &'static [Profile],
    pub risk: Risk,
    pub loses: &'static str,
    /// The usual cost of leaving it.
    pub weight: Weight,
    pub kernel: &'static str,
    /// Why a machine may not have it.
    pub absent: &'static str,
    /// How to do it by hand, or other notes.
    pub by_hand: &'static str,
    /// How to check that it is in force.
    pub check: &'static str,
    /// When a change is in force, and when its undoing is.
    pub in_force: InForce,
    pub conflicts: &'static [Conflict],
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

    /// The strongest effect on a culprit on the CPUs to isolate; `None` if the knob does not answer it.
    #[must_use]
    pub fn answers(&self, subject: &Subject, cpus: &CpuSet) -> Option<Effect> {
        self.answers
            .iter()
            .filter(|answer| answer.matches(subject, cpus))
            .map(|answer| answer.effect)
            .min()
    }

    /// Whether it may be changed without being named.
    #[must_use]
    pub fn is_tame(&self) -> bool {
        self.risk < Risk::High
    }
}
