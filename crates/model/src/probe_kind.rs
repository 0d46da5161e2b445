//! The kinds of recording: the one table of their words.

use crate::words::closed_words;

closed_words! {
    /// What found the stalls of a run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    ProbeKind {
        /// Probes that read the clock back to back.
        Spin = "spin",
        /// Probes that sleep to deadlines.
        Wakeup = "wakeup",
        /// The pipeline of threads, with its slow messages.
        Pipeline = "pipeline",
        /// Threads of the user's that were followed.
        Attach = "attach",
        /// Nothing ran but what runs there anyway: CPUs were watched.
        Passive = "passive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_word_of_its_own_and_a_newer_one_is_none() {
        for kind in ProbeKind::ALL {
            assert_eq!(ProbeKind::from_word(kind.as_str()), Some(kind));
        }
        assert_eq!(ProbeKind::from_word("hourglass"), None);
    }
}
