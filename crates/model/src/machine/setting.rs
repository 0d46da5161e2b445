//! What a row of [`super::MACHINE_SETTINGS`] states of a setting.

use schemars::JsonSchema;
use serde::Serialize;

/// A setting of the machine: where it is read, how two runs are compared, and what a redacted run keeps.
#[derive(Debug)]
pub struct MachineSetting {
    /// Its name in `machine.json` and in comparisons, with its unit.
    pub name: &'static str,
    pub from: ReadFrom,
    pub compared: Compared,
    pub kept: KeptText,
    pub names: KeptNames,
}

/// Where a setting is read.
#[derive(Debug)]
pub enum ReadFrom {
    /// The first of these files that exists. `{cpu}` is each online CPU, `*` each name in its folder.
    Files(&'static [(&'static str, FileForm)]),
    /// This field of each CPU in `/proc/cpuinfo`.
    CpuInfo(&'static str),
    /// How many different contents these files have, over the `topology` folders of the online CPUs.
    Topology(&'static [&'static str]),
    /// Code in `platform`.
    Code,
}

/// How a file states its value.
#[derive(Clone, Copy, Debug)]
pub enum FileForm {
    Text,
    Number,
    /// `0` and `1`, `N` and `Y`.
    Switch,
    /// `1` means on.
    On,
    /// `1` means off.
    Off,
    /// Words between blanks.
    Words,
    /// A list of CPUs.
    Cpus,
    /// A bit mask of CPUs.
    Mask,
    /// The word in brackets of `always [madvise] never`, or the whole text.
    Bracketed,
    /// The word in parentheses of `none (full) lazy`, or the whole text.
    InParentheses,
    /// The number after this text.
    After(&'static str),
}

/// The effect of a difference on a comparison of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceClass {
    /// The runs are of different machines: their figures do not show the effect of a setting.
    Incomparable,
    /// The property affects stalls: it may cause a difference, so it should be the only difference.
    Matters,
    Informational,
}

/// How two runs' values of a setting are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    Not,
    /// All its entries as one value.
    Whole(DifferenceClass),
    /// Entries of one name.
    ByName(DifferenceClass),
    /// Entries of one name, if both runs have any.
    ByNameIfBoth(DifferenceClass),
    /// The mean over CPUs; a small difference is noise.
    Mean(DifferenceClass),
}

/// The texts that a redacted run keeps. Numbers and lists of CPUs stay, except with `Nothing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptText {
    Nothing,
    /// Words that settings have.
    Words,
    Date,
    Hexadecimal,
    Makers,
    Hypervisors,
    Architectures,
    /// Words of processor names.
    Processors,
    /// A kernel's release, without a builder's additions.
    Releases,
    /// Words of `uname -v`.
    KernelVersions,
    /// Whether a flaw is mitigated; the means are the kernel's prose.
    Mitigations,
}

/// The names of entries that a redacted run keeps; others get a pseudonym or are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptNames {
    Nothing,
    /// Numbers with a unit.
    Numbers,
    /// Words that settings have.
    Words,
    BuildOptions,
    Flaws,
    Devices,
    Queues,
    /// All get a pseudonym.
    Groups,
}
