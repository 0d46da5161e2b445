//! Patterns with `*`, for culprit names and families of control files.

use jitterscope_model::PutInOrder;
use jitterscope_platform::Machine;

/// Whether `name` matches `pattern`, in which `*` matches any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

/// Whether `path` matches `pattern` component by component: `*` matches text within one component, and `{cpu}` a CPU
/// number. A path with `.`, `..` or empty components matches no pattern.
#[must_use]
pub fn matches_path(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut have) = (pattern.split('/'), path.split('/'));
    // The text before the first slash: empty in an absolute path.
    if (wanted.next(), have.next()) != (Some(""), Some("")) {
        return false;
    }
    loop {
        match (wanted.next(), have.next()) {
            (None, None) => return true,
            (Some(_), Some("" | "." | "..")) => return false,
            (Some(pattern), Some(name)) if component_matches(pattern, name) => {}
            _ => return false,
        }
    }
}

fn component_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once("{cpu}") {
        None => matches(pattern, name),
        Some((before, after)) => name
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after))
            .is_some_and(|number| number.parse::<u32>().is_ok_and(|n| n.to_string() == number)),
    }
}

/// The existing files that match `pattern`, each component of which may contain `*`; in natural order (2 before 10).
#[must_use]
pub fn files(machine: &Machine, pattern: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for component in pattern.trim_start_matches('/').split('/') {
        found = found
            .into_iter()
            .flat_map(|base| {
                if component.contains('*') {
                    let mut names: Vec<String> = machine
                        .list(if base.is_empty() { "/" } else { &base })
                        .into_iter()
                        .filter(|name| matches(component, name))
                        .collect();
                    names.order_by_key(|name| (first_number(name), name.clone()));
                    names
                        .into_iter()
                        .map(|name| format!("{base}/{name}"))
                        .collect()
                } else {
                    vec![format!("{base}/{component}")]
                }
            })
            .collect();
    }
    found.retain(|path| machine.exists(path));
    found
}

fn first_number(name: &str) -> u64 {
    name.chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect::<String>()
        .parse()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_stand_for_any_text() {
        assert!(matches("kworker/u*", "kworker/u4:2"));
        assert!(matches("*", ""));
        assert!(matches("a*b*c", "a--b--bc"));
        assert!(!matches("a*b", "a--c"));
        assert!(!matches("ab", "abc"));
        assert!(matches("*flush_tlb*", "x flush_tlb_func"));
        assert!(!matches("ab*ba", "aba"));
    }

    #[test]
    fn a_star_in_a_path_stays_within_its_component() {
        for (pattern, path, fits) in [
            (
                "/proc/irq/*/smp_affinity_list",
                "/proc/irq/24/smp_affinity_list",
                true,
            ),
            (
                "/proc/irq/*/smp_affinity_list",
                "/proc/irq/24/x/smp_affinity_list",
                false,
            ),
            (
                "/proc/irq/*/smp_affinity_list",
                "/proc/irq/../smp_affinity_list",
                false,
            ),
            (
                "/proc/irq/*/smp_affinity_list",
                "/proc/irq//smp_affinity_list",
                false,
            ),
            (
                "/proc/irq/*/smp_affinity_list",
                "proc/irq/24/smp_affinity_list",
                false,
            ),
            (
                "/proc/irq/*/smp_affinity_list",
                "x/proc/irq/24/smp_affinity_list",
                false,
            ),
            ("/sys/cpu{cpu}/online", "/sys/cpu12/online", true),
            ("/sys/cpu{cpu}/online", "/sys/cpu012/online", false),
            ("/sys/cpu{cpu}/online", "/sys/cpu+1/online", false),
            ("/sys/cpu{cpu}/online", "/sys/cpu/online", false),
            ("/sys/cpu{cpu}/online", "/sys/cpu1/../online", false),
        ] {
            assert_eq!(matches_path(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn families_of_files_are_counted_as_people_do() {
        let dir = tempfile::tempdir().unwrap();
        for irq in ["2", "10", "1"] {
            let at = dir.path().join("proc/irq").join(irq);
            std::fs::create_dir_all(&at).unwrap();
            std::fs::write(at.join("smp_affinity_list"), "0\n").unwrap();
        }
        std::fs::create_dir_all(dir.path().join("proc/irq/7")).unwrap();
        let m = Machine::at(dir.path());
        assert_eq!(
            files(&m, "/proc/irq/*/smp_affinity_list"),
            [
                "/proc/irq/1/smp_affinity_list",
                "/proc/irq/2/smp_affinity_list",
                "/proc/irq/10/smp_affinity_list"
            ]
        );
        assert!(files(&m, "/proc/none/*/x").is_empty());
    }

    proptest! {
        #[test]
        fn a_name_fits_itself_and_its_own_prefix(name in "[a-z0-9/:_-]{0,20}", cut in 0usize..20) {
            prop_assert!(matches(&name, &name));
            let cut = cut.min(name.len());
            let pattern = format!("{}*", &name[..cut]);
            prop_assert!(matches(&pattern, &name));
        }
    }
}
