//! The kinds of recording: the one table of their words.

/// What found the stalls of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeKind {
    /// Probes that read the clock back to back.
    Spin,
    /// Probes that sleep to deadlines.
    Wakeup,
    /// The pipeline of threads, with its slow messages.
    Pipeline,
    /// Threads of the user's that were followed.
    Attach,
    /// Nothing ran but what runs there anyway: CPUs were watched.
    Passive,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [ProbeKind; 5] =
        [ProbeKind::Spin, ProbeKind::Wakeup, ProbeKind::Pipeline, ProbeKind::Attach, ProbeKind::Passive];

    /// Its word in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ProbeKind::Spin => "spin",
            ProbeKind::Wakeup => "wakeup",
            ProbeKind::Pipeline => "pipeline",
            ProbeKind::Attach => "attach",
            ProbeKind::Passive => "passive",
        }
    }

    /// Of a word; `None` of one that a newer version wrote.
    #[must_use]
    pub fn from_word(word: &str) -> Option<ProbeKind> {
        ProbeKind::ALL.into_iter().find(|kind| kind.as_str() == word)
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
