//! Words for why a recording chose its CPUs.

use crate::any_version::{UNKNOWN, in_words};
use jitterscope_model::{AnyVersion, CpusBecause};

/// The reason as part of a sentence.
#[must_use]
pub fn cpus_because(of: &CpusBecause) -> String {
    match of {
        CpusBecause::Isolated { cpus } => format!("CPUs {cpus} are isolated"),
        CpusBecause::HighestAllowed => {
            "no CPU is isolated, and this is the highest one allowed".into()
        }
        CpusBecause::KeptByTune { cpus } => {
            let them = if cpus.len() == 1 { "it" } else { "them" };
            format!("tune keeps {them} undisturbed (tune status)")
        }
    }
}

/// The reason in a stored run.
pub(crate) fn stored_cpus_because(of: &AnyVersion<CpusBecause>) -> String {
    in_words(of, cpus_because, UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_and_several_are_told_apart() {
        let kept = |cpus: &str| {
            cpus_because(&CpusBecause::KeptByTune {
                cpus: cpus.parse().unwrap(),
            })
        };
        assert_eq!(kept("1-2"), "tune keeps them undisturbed (tune status)");
        assert_eq!(kept("3"), "tune keeps it undisturbed (tune status)");
    }
}
