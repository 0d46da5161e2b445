//! Words for the default choice of CPUs.

use jitterscope_tune::DefaultCpus;

/// The reason as part of a sentence.
#[must_use]
pub fn default_cpus(of: DefaultCpus) -> &'static str {
    match of {
        DefaultCpus::Isolated => "the kernel isolates them",
        DefaultCpus::Highest => "no CPU is isolated, this is the highest one",
    }
}
