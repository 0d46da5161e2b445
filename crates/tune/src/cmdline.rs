//! The kernel command line: its parameters, and the ones to add.

use crate::goal::Goal;
use jitterscope_model::CpuSet;

/// The wanted value of a boot parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootValue {
    /// The bare word, as in `nosmt`.
    Flag,
    /// `key=value`.
    Is(&'static str),
    /// `key=value` with one of these; the first is written.
    OneOf(&'static [&'static str]),
    /// `key=LIST` of the isolated CPUs.
    Isolated,
    /// `key=flag,LIST` of the isolated CPUs (`isolcpus`); the flags of one key are joined.
    IsolatedWith(&'static str),
    /// `key=LIST` of the housekeeping CPUs.
    Housekeeping,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootParam {
    pub key: &'static str,
    pub value: BootValue,
}

const FULL_DYNTICKS: BootParam = BootParam {
    key: "nohz_full",
    value: BootValue::Isolated,
};

impl BootParam {
    /// The documented form: `nohz_full=LIST`.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self.value {
            BootValue::Flag => self.key.to_owned(),
            BootValue::Is(value) => format!("{}={value}", self.key),
            BootValue::OneOf(values) => format!("{}={}", self.key, values.join("|")),
            BootValue::Isolated => format!("{}=ISOLATED", self.key),
            BootValue::IsolatedWith(flag) => format!("{}={flag},ISOLATED", self.key),
            BootValue::Housekeeping => format!("{}=HOUSEKEEPING", self.key),
        }
    }

    /// The form for these CPUs.
    #[must_use]
    pub fn spelled(&self, goal: &Goal) -> String {
        match self.value {
            BootValue::Flag => self.key.to_owned(),
            BootValue::Is(value) => format!("{}={value}", self.key),
            BootValue::OneOf(values) => {
                format!(
                    "{}={}",
                    self.key,
                    values.first().copied().unwrap_or_default()
                )
            }
            BootValue::Isolated => format!("{}={}", self.key, goal.isolated),
            BootValue::IsolatedWith(flag) => format!("{}={flag},{}", self.key, goal.isolated),
            BootValue::Housekeeping => format!("{}={}", self.key, goal.housekeeping),
        }
    }
}

/// A parsed command line.
#[derive(Clone, Debug, Default)]
pub struct Cmdline(Vec<(String, Option<String>)>);

impl Cmdline {
    /// Splits `/proc/cmdline`. Everything after a bare `--` belongs to init, not to the kernel.
    #[must_use]
    pub fn parse(text: &str) -> Cmdline {
        Cmdline(
            text.split_whitespace()
                .take_while(|word| *word != "--")
                .map(|word| match word.split_once('=') {
                    Some((key, value)) => {
                        (key.to_owned(), Some(value.trim_matches('"').to_owned()))
                    }
                    None => (word.to_owned(), None),
                })
                .collect(),
        )
    }

    /// The last value of `key` on the line: `Some(None)` for the bare word.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Option<&str>> {
        self.0
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_deref())
    }

    /// The parameter for display: `nohz_full=2-3`, or `None` if it is missing.
    #[must_use]
    pub fn shown(&self, key: &str) -> Option<String> {
        self.get(key).map(|value| match value {
            Some(value) => format!("{key}={value}"),
            None => key.to_owned(),
        })
    }

    /// Whether the line satisfies `param`.
    #[must_use]
    pub fn satisfies(&self, param: &BootParam, goal: &Goal) -> bool {
        if param.key == "rcu_nocbs" && self.satisfies(&FULL_DYNTICKS, goal) {
            // The kernel moves the callbacks of full-dynticks CPUs by itself.
            return true;
        }
        let Some(value) = self.get(param.key) else {
            return false;
        };
        match param.value {
            BootValue::Flag => true,
            BootValue::Is(wanted) => value.is_some_and(|v| v.split(',').any(|word| word == wanted)),
            BootValue::OneOf(any) => {
                value.is_some_and(|v| v.split(',').any(|word| any.contains(&word)))
            }
            BootValue::Isolated => value
                .and_then(|v| v.parse::<CpuSet>().ok())
                .is_some_and(|set| goal.isolated.difference(&set).is_empty()),
            BootValue::Housekeeping => value
                .and_then(|v| v.parse::<CpuSet>().ok())
                .is_some_and(|set| !set.is_empty() && set.intersection(&goal.isolated).is_empty()),
            BootValue::IsolatedWith(flag) => value.is_some_and(|v| {
                let (flags, cpus) = split_flags(v);
                // A list without flags means `domain`, the parameter's original meaning.
                (flags.contains(&flag) || (flags.is_empty() && flag == "domain"))
                    && goal.isolated.difference(&cpus).is_empty()
            }),
        }
    }
}

/// `nohz,domain,2-3,6` -> (`[nohz, domain]`, 2-3,6).
fn split_flags(value: &str) -> (Vec<&str>, CpuSet) {
    let (flags, list): (Vec<&str>, Vec<&str>) = value
        .split(',')
        .partition(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()));
    (flags, list.join(",").parse().unwrap_or_default())
}

/// The additions to the line for these parameters, in order: flags of one key joined, without duplicates.
#[must_use]
pub fn compose(params: &[BootParam], goal: &Goal) -> Vec<String> {
    let mut out: Vec<(&str, Vec<&str>, String)> = Vec::new();
    for param in params {
        let known = out.iter_mut().find(|(key, ..)| *key == param.key);
        match (param.value, known) {
            (BootValue::IsolatedWith(flag), Some((_, flags, _))) => {
                if !flags.contains(&flag) {
                    flags.push(flag);
                }
            }
            (BootValue::IsolatedWith(flag), None) => {
                out.push((param.key, vec![flag], goal.isolated.to_string()));
            }
            (_, Some(_)) => {}
            (_, None) => out.push((param.key, Vec::new(), param.spelled(goal))),
        }
    }
    out.into_iter()
        .map(|(key, flags, rest)| {
            if flags.is_empty() {
                rest
            } else {
                format!("{key}={},{rest}", flags.join(","))
            }
        })
        .collect()
}

/// Combines parameters added `before` with `new` ones. For each key the new value wins, but the flags of a CPU list
/// (`isolcpus`) are joined.
#[must_use]
pub fn merge(before: &str, new: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for old in before.split_whitespace() {
        let key = old.split('=').next().unwrap_or(old);
        if !new.iter().any(|n| n.split('=').next() == Some(key)) {
            out.push(old.to_owned());
        }
    }
    for word in new {
        let Some((key, value)) = word.split_once('=') else {
            out.push(word.clone());
            continue;
        };
        let earlier = before
            .split_whitespace()
            .rev()
            .find_map(|old| old.strip_prefix(key)?.strip_prefix('='));
        let (flags, cpus) = split_flags(value);
        match earlier.map(split_flags) {
            Some((old_flags, old_cpus))
                if !flags.is_empty() && old_cpus == cpus && !cpus.is_empty() =>
            {
                let mut all = old_flags;
                all.extend(
                    flags
                        .iter()
                        .filter(|f| !all.contains(*f))
                        .copied()
                        .collect::<Vec<_>>(),
                );
                out.push(format!("{key}={},{cpus}", all.join(",")));
            }
            _ => out.push(word.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal() -> Goal {
        Goal {
            isolated: "2-3".parse().unwrap(),
            housekeeping: "0-1".parse().unwrap(),
        }
    }

    const DOMAIN: BootParam = BootParam {
        key: "isolcpus",
        value: BootValue::IsolatedWith("domain"),
    };
    const MANAGED: BootParam = BootParam {
        key: "isolcpus",
        value: BootValue::IsolatedWith("managed_irq"),
    };
    const NOHZ: BootParam = BootParam {
        key: "nohz_full",
        value: BootValue::Isolated,
    };

    #[test]
    fn the_line_is_read_as_the_kernel_reads_it() {
        let line = Cmdline::parse(
            "quiet isolcpus=nohz,managed_irq,2,3 nohz_full=2-7 mce=ignore_ce -- nosmt\n",
        );
        assert!(line.satisfies(&MANAGED, &goal()));
        assert!(!line.satisfies(&DOMAIN, &goal()));
        assert!(line.satisfies(&NOHZ, &goal()));
        assert!(line.satisfies(
            &BootParam {
                key: "mce",
                value: BootValue::Is("ignore_ce")
            },
            &goal()
        ));
        assert_eq!(
            line.get("nosmt"),
            None,
            "what follows -- is not the kernel's"
        );
        assert!(Cmdline::parse("isolcpus=2-3").satisfies(&DOMAIN, &goal()));
        assert!(!Cmdline::parse("isolcpus=2").satisfies(&DOMAIN, &goal()));
        assert!(Cmdline::parse("psi=1 psi=0").satisfies(
            &BootParam {
                key: "psi",
                value: BootValue::Is("0")
            },
            &goal()
        ));
    }

    #[test]
    fn a_parameter_is_satisfied_by_what_covers_the_goal() {
        let param = |key, value| BootParam { key, value };
        let skew = param("skew_tick", BootValue::OneOf(&["1", "2"]));
        let others = param("irqaffinity", BootValue::Housekeeping);
        let callbacks = param("rcu_nocbs", BootValue::Isolated);
        for (line, param, satisfied) in [
            ("nosmt", param("nosmt", BootValue::Flag), true),
            ("nosmt=force", param("nosmt", BootValue::Flag), true),
            ("smt", param("nosmt", BootValue::Flag), false),
            (
                "mce=a,ignore_ce",
                param("mce", BootValue::Is("ignore_ce")),
                true,
            ),
            (
                "mce=ignore",
                param("mce", BootValue::Is("ignore_ce")),
                false,
            ),
            ("mce", param("mce", BootValue::Is("ignore_ce")), false),
            ("skew_tick=2", skew, true),
            ("skew_tick=\"1\"", skew, true),
            ("skew_tick=3", skew, false),
            ("nohz_full=2-3", NOHZ, true),
            ("nohz_full=1-7", NOHZ, true),
            ("nohz_full=3-7", NOHZ, false),
            ("nohz_full=all-but-one", NOHZ, false),
            ("nohz_full", NOHZ, false),
            ("irqaffinity=0", others, true),
            ("irqaffinity=0-2", others, false),
            ("irqaffinity=", others, false),
            ("isolcpus=2-3", MANAGED, false),
            ("isolcpus=nohz,2-3", DOMAIN, false),
            ("isolcpus=domain,2", DOMAIN, false),
            ("isolcpus", DOMAIN, false),
            ("rcu_nocbs=2-3", callbacks, true),
            ("rcu_nocbs=2", callbacks, false),
            // Full dynticks moves those callbacks.
            ("nohz_full=2-3", callbacks, true),
            ("nohz_full=2", callbacks, false),
        ] {
            assert_eq!(
                Cmdline::parse(line).satisfies(&param, &goal()),
                satisfied,
                "{line}: {param:?}"
            );
        }
    }

    #[test]
    fn a_parameter_is_spelled_for_a_goal_and_shown_as_a_pattern() {
        for (key, value, pattern, spelled) in [
            ("nosmt", BootValue::Flag, "nosmt", "nosmt"),
            ("psi", BootValue::Is("0"), "psi=0", "psi=0"),
            (
                "tsc",
                BootValue::OneOf(&["reliable", "nowatchdog"]),
                "tsc=reliable|nowatchdog",
                "tsc=reliable",
            ),
            (
                "nohz_full",
                BootValue::Isolated,
                "nohz_full=ISOLATED",
                "nohz_full=2-3",
            ),
            (
                "isolcpus",
                BootValue::IsolatedWith("domain"),
                "isolcpus=domain,ISOLATED",
                "isolcpus=domain,2-3",
            ),
            (
                "irqaffinity",
                BootValue::Housekeeping,
                "irqaffinity=HOUSEKEEPING",
                "irqaffinity=0-1",
            ),
        ] {
            let param = BootParam { key, value };
            assert_eq!(
                (param.pattern().as_str(), param.spelled(&goal()).as_str()),
                (pattern, spelled)
            );
        }
    }

    #[test]
    fn a_parameter_is_shown_as_the_line_says_it_last() {
        let line = Cmdline::parse("quiet psi=1 psi=0 nosmt=force nosmt");
        let shown = |key| line.shown(key);
        assert_eq!(shown("psi").as_deref(), Some("psi=0"));
        assert_eq!(shown("nosmt").as_deref(), Some("nosmt"));
        assert_eq!(shown("nohz_full"), None);
    }

    #[test]
    fn flags_are_joined_only_with_those_of_the_same_cpus() {
        for (before, new, merged) in [
            (
                "isolcpus=domain,2-3",
                "isolcpus=domain,managed_irq,2-3",
                "isolcpus=domain,managed_irq,2-3",
            ),
            (
                "isolcpus=domain,2",
                "isolcpus=managed_irq,2-3",
                "isolcpus=managed_irq,2-3",
            ),
            (
                "isolcpus=nohz,domain",
                "isolcpus=managed_irq",
                "isolcpus=managed_irq",
            ),
            ("isolcpus=domain,2-3", "isolcpus=2-3", "isolcpus=2-3"),
            // The kernel uses the last of several.
            (
                "isolcpus=domain,2-3 isolcpus=nohz,2-3",
                "isolcpus=managed_irq,2-3",
                "isolcpus=nohz,managed_irq,2-3",
            ),
        ] {
            assert_eq!(
                merge(before, &[new.to_owned()]),
                [merged],
                "{before} and {new}"
            );
        }
    }

    #[test]
    fn what_was_added_before_stays() {
        let new = ["isolcpus=managed_irq,2-3".to_owned(), "nosmt".to_owned()];
        assert_eq!(
            merge("rcu_nocbs=2-3 isolcpus=domain,2-3 nosmt", &new),
            ["rcu_nocbs=2-3", "isolcpus=domain,managed_irq,2-3", "nosmt"]
        );
        assert_eq!(
            merge("nohz_full=2", &["nohz_full=3".to_owned()]),
            ["nohz_full=3"]
        );
    }

    #[test]
    fn flags_of_one_parameter_are_joined() {
        assert_eq!(
            compose(&[DOMAIN, NOHZ, MANAGED, NOHZ], &goal()),
            ["isolcpus=domain,managed_irq,2-3", "nohz_full=2-3"]
        );
    }
}
