//! The kinds of recording: the one table of their words.

use crate::words::closed_words;

closed_words! {
    /// How the stalls of a run are detected.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    ProbeKind {
        /// Probes that read the clock back to back.
        Spin = "spin",
        /// Wakes threads at deadlines.
        Wakeup = "wakeup",
        /// The pipeline of threads, with its slow messages.
        Pipeline = "pipeline",
        /// Follows threads of the user's processes.
        Attach = "attach",
        /// Watches CPUs without running anything on them.
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
