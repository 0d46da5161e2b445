//! The formats of control file values, so that two spellings of one value compare equal.

use jitterscope_model::CpuSet;
use serde::{Deserialize, Serialize};

/// The format of a control file's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// Words, compared without surrounding white space.
    Text,
    Number,
    /// `Y` or `N`, also written `1` or `0`.
    Switch,
    /// All choices in one line, the current one in brackets: `always [madvise] never`.
    Choice,
    /// A CPU list: `0-3,5`.
    CpuList,
    /// A hexadecimal CPU mask: `ff,00000001`.
    CpuMask,
    /// cgroup v2's `cgroup.subtree_control`: a list of names, changed by `+name` and `-name`.
    Controllers,
}

impl ValueKind {
    /// The value in canonical spelling.
    #[must_use]
    pub fn canonical(self, raw: &str) -> String {
        let text = raw.trim();
        match self {
            ValueKind::Text | ValueKind::Controllers => text.to_owned(),
            ValueKind::Number => text
                .parse::<i128>()
                .map_or_else(|_| text.to_owned(), |n| n.to_string()),
            ValueKind::Switch => match text {
                "1" | "Y" | "y" => "Y".into(),
                "0" | "N" | "n" => "N".into(),
                other => other.into(),
            },
            ValueKind::Choice => selected(text).unwrap_or(text).to_owned(),
            ValueKind::CpuList => text
                .parse::<CpuSet>()
                .map_or_else(|_| text.to_owned(), |s| s.to_string()),
            ValueKind::CpuMask => {
                CpuSet::from_mask(text).map_or_else(|| text.to_owned(), |s| s.to_string())
            }
        }
    }

    /// Whether a file that now reads `now` has the value `written`.
    #[must_use]
    pub fn holds(self, now: &str, written: &str) -> bool {
        match (
            self,
            written.trim().strip_prefix('+'),
            written.trim().strip_prefix('-'),
        ) {
            (ValueKind::Controllers, Some(name), _) => now.split_whitespace().any(|n| n == name),
            (ValueKind::Controllers, _, Some(name)) => now.split_whitespace().all(|n| n != name),
            _ => self.canonical(now) == self.canonical(written),
        }
    }

    /// For display: one line, without the alternatives.
    #[must_use]
    pub fn shown(self, raw: &str) -> String {
        let text = match self {
            ValueKind::Choice => self.canonical(raw),
            ValueKind::CpuMask => match CpuSet::from_mask(raw) {
                Some(cpus) => format!("{} ({})", raw.trim(), cpus.in_words()),
                None => raw.trim().to_owned(),
            },
            _ => raw.trim().to_owned(),
        };
        if text.is_empty() {
            "(empty)".into()
        } else {
            text.replace(['\n', '\t'], " ")
        }
    }

    /// The CPUs in the value, for the two kinds that contain CPUs.
    #[must_use]
    pub fn cpus(self, raw: &str) -> Option<CpuSet> {
        match self {
            ValueKind::CpuList => raw.parse().ok(),
            ValueKind::CpuMask => CpuSet::from_mask(raw.trim()),
            _ => None,
        }
    }

    /// A set of CPUs in this format.
    #[must_use]
    pub fn spell_cpus(self, cpus: &CpuSet) -> String {
        if self == ValueKind::CpuMask {
            cpus.to_mask()
        } else {
            cpus.to_string()
        }
    }

    /// What to write so that the file reads `original` again after `written`.
    #[must_use]
    pub fn restoring(self, original: &str, written: &str) -> String {
        match self {
            ValueKind::Choice => selected(original).unwrap_or(original).to_owned(),
            ValueKind::Controllers => match written.trim().strip_prefix('+') {
                Some(name) => format!("-{name}"),
                None => original.to_owned(),
            },
            _ => original.to_owned(),
        }
    }
}

/// The word in brackets.
fn selected(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::CpuId;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_value_are_equal() {
        assert!(ValueKind::Choice.holds("always [madvise] never\n", "madvise"));
        assert!(ValueKind::Switch.holds("Y\n", "1"));
        assert!(ValueKind::CpuMask.holds("00000000,00000003\n", "3"));
        assert!(ValueKind::CpuList.holds("0,1,2\n", "0-2"));
        assert!(ValueKind::Number.holds("-1\n", "-1"));
        assert!(!ValueKind::Number.holds("950000", "-1"));
        assert!(ValueKind::Controllers.holds("cpu cpuset\n", "+cpuset"));
        assert!(ValueKind::Controllers.holds("cpu\n", "-cpuset"));
    }

    #[test]
    fn each_kind_has_its_own_spellings() {
        let same = |kind: ValueKind, now, written| kind.holds(now, written);
        assert!(same(ValueKind::Text, " a b\n", "a b") && !same(ValueKind::Text, "a", "A"));
        assert!(same(ValueKind::Number, "007\n", "7") && !same(ValueKind::Text, "007", "7"));
        assert!(same(ValueKind::Number, "off\n", "off"));
        for (on, off) in [("Y", "N"), ("y", "n"), ("1", "0")] {
            assert!(same(ValueKind::Switch, on, "Y") && same(ValueKind::Switch, off, "N"));
            assert!(!same(ValueKind::Switch, on, off));
        }
        assert!(!same(ValueKind::Switch, "m", "Y") && same(ValueKind::Switch, "m\n", "m"));
        assert!(!same(ValueKind::Choice, "always [madvise] never", "always"));
        // Without brackets the whole text is the choice.
        assert!(same(ValueKind::Choice, "never\n", "never"));
        assert!(same(ValueKind::CpuList, "x", "x") && same(ValueKind::CpuMask, "zz", "zz"));
        assert!(!same(ValueKind::CpuMask, "f", "7"));
        assert!(!same(ValueKind::Controllers, "cpu\n", "+cpuset"));
        assert!(!same(ValueKind::Controllers, "cpu cpuset\n", "-cpuset"));
        assert!(same(ValueKind::Controllers, "cpu io\n", "cpu io"));
        // A sign has a meaning only there.
        assert!(!same(ValueKind::Text, "cpu cpuset", "+cpuset"));
    }

    #[test]
    fn a_value_is_shown_in_one_line() {
        assert_eq!(
            ValueKind::Choice.shown("always [madvise] never\n"),
            "madvise"
        );
        assert_eq!(ValueKind::CpuMask.shown("f\n"), "f (CPUs 0-3)");
        assert_eq!(ValueKind::CpuMask.shown("1\n"), "1 (CPU 0)");
        assert_eq!(ValueKind::CpuMask.shown("0\n"), "0 (CPUs none)");
        assert_eq!(ValueKind::CpuMask.shown("what\n"), "what");
        assert_eq!(ValueKind::Text.shown(" a\nb\n"), "a b");
        assert_eq!(ValueKind::CpuList.shown("\n"), "(empty)");
    }

    #[test]
    fn cpus_are_read_and_spelled_as_the_file_has_them() {
        let cpus: CpuSet = "0-1,4".parse().unwrap();
        assert_eq!(ValueKind::CpuList.cpus("0,1,4"), Some(cpus.clone()));
        assert_eq!(ValueKind::CpuMask.cpus("13\n"), Some(cpus.clone()));
        assert_eq!(
            [ValueKind::Number.cpus("1"), ValueKind::CpuList.cpus("x")],
            [None, None]
        );
        assert_eq!(ValueKind::CpuMask.spell_cpus(&cpus), "13");
        assert_eq!(ValueKind::CpuList.spell_cpus(&cpus), "0-1,4");
    }

    #[test]
    fn what_restores_a_file_is_what_the_kernel_takes() {
        assert_eq!(
            ValueKind::Choice.restoring("always [madvise] never\n", "never"),
            "madvise"
        );
        assert_eq!(ValueKind::Number.restoring("1\n", "3600"), "1\n");
        assert_eq!(
            ValueKind::Controllers.restoring("cpu io\n", "+cpuset"),
            "-cpuset"
        );
    }

    proptest! {
        #[test]
        fn masks_survive_a_round_trip(cpus in proptest::collection::btree_set(0u32..300, 0..40)) {
            let set: CpuSet = cpus.into_iter().map(CpuId).collect();
            prop_assert_eq!(CpuSet::from_mask(&set.to_mask()), Some(set));
        }

        #[test]
        fn hostile_masks_never_panic(text in "[0-9a-fx, ]{0,60}") {
            let _ = CpuSet::from_mask(&text);
        }
    }
}
