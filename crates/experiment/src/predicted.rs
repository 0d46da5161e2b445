//! What a change should remove.

use jitterscope_analyze::gate::is_meant;
use jitterscope_model::Subject;
use std::fmt;

/// How the removed culprits are known. Displayed as a user would write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicted {
    /// The declaration of the knob with this id.
    Knob(String),
    /// The user's pattern for names or kinds of culprits, with `*` for any text.
    Pattern(String),
}

impl Predicted {
    /// Whether a culprit should be removed; `answers` says whether a knob declares that it removes one.
    #[must_use]
    pub fn removes(&self, culprit: &Subject, answers: &dyn Fn(&str, &Subject) -> bool) -> bool {
        match self {
            Predicted::Knob(id) => answers(id, culprit),
            Predicted::Pattern(pattern) => is_meant(pattern, culprit),
        }
    }
}

impl fmt::Display for Predicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicted::Knob(id) => f.write_str(id),
            Predicted::Pattern(pattern) => write!(f, "--removes {pattern}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::Task;

    #[test]
    fn a_pattern_that_is_called_like_a_knob_is_none() {
        let culprit = Subject::Thread(Task {
            comm: "vmstat".into(),
            ..Task::default()
        });
        let answers = |_: &str, _: &Subject| false;
        let [knob, pattern] = [
            Predicted::Knob("vmstat".into()),
            Predicted::Pattern("vmstat".into()),
        ];
        assert!(!knob.removes(&culprit, &answers) && pattern.removes(&culprit, &answers));
        assert_eq!(
            (knob.to_string(), pattern.to_string()),
            ("vmstat".into(), "--removes vmstat".to_owned())
        );
        assert!(knob.removes(&culprit, &|id, _| id == "vmstat"));
    }
}
