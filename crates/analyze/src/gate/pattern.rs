//! Matches names in conditions with culprits.

use super::owner::OwnerPattern;
use jitterscope_model::{CulpritKind, Subject};

/// Whether `text` matches the pattern; `*` matches any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| matches(after, &rest[at..]))
        }),
    }
}

/// A kind at the beginning of a pattern, and the rest: `kworker vmstat_update`.
pub(super) fn kind_and_rest(pattern: &str) -> (Option<CulpritKind>, &str) {
    let parts = pattern.split_once(' ');
    match parts.and_then(|(kind, rest)| Some((CulpritKind::from_word(kind)?, rest.trim_start()))) {
        Some((kind, rest)) => (Some(kind), rest),
        None => (None, pattern),
    }
}

/// Whether the pattern matches a culprit by its name, its process's name, its kind, or kind and name separated by a
/// blank; `*` matches any text. `unit:`, `container:`, `pod:`, `cgroup:` and `user:` match a thread by its owner.
#[must_use]
pub fn is_meant(pattern: &str, subject: &Subject) -> bool {
    if let Some(owner) = OwnerPattern::of(pattern) {
        return owner.is_meant(subject);
    }
    if let (Some(kind), name) = kind_and_rest(pattern)
        && kind == subject.kind()
        && is_meant(name, subject)
    {
        return true;
    }
    let of_process = || subject.task().and_then(|task| task.process.as_deref());
    matches(pattern, &subject.name())
        || matches(pattern, subject.kind_word())
        // Whether or not another thread ran meanwhile.
        || subject.kind() == CulpritKind::QuotaBeside && matches(pattern, CulpritKind::Quota.as_str())
        || of_process().is_some_and(|process| matches(pattern, process))
}

#[cfg(test)]
mod tests {
    use super::{is_meant, matches};
    use jitterscope_model::{Quota, Subject, Task};

    #[test]
    fn a_quota_is_meant_whoever_ran_beside_it() {
        let alone = Quota {
            cgroup: "/small".into(),
            limit: None,
            beside: None,
        };
        let beside = Quota {
            beside: Some(Task {
                comm: "hog".into(),
                ..Task::default()
            }),
            ..alone.clone()
        };
        for quota in [alone, beside] {
            let subject = Subject::Quota(quota);
            assert!(is_meant("quota", &subject), "{subject:?}");
            assert!(is_meant("CPU quota", &subject), "{subject:?}");
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, is) in [
            ("kworker", "kworker", true),
            ("kworker", "kworker/1:1", false),
            ("kworker*", "kworker/1:1", true),
            ("*:1", "kworker/1:1", true),
            ("k*r*1", "kworker/1:1", true),
            ("*", "", true),
            ("k*x", "kworker", false),
            ("\u{e9}*", "\u{e9}t\u{e9}", true),
        ] {
            assert_eq!(matches(pattern, text), is, "{pattern} {text}");
        }
    }
}
