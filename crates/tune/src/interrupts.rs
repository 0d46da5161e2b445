//! Compares two readings of `/proc/interrupts`: which interrupts reached which CPUs in between.

use jitterscope_model::{CpuId, CpuSet, PutInOrder, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// One reading of `/proc/interrupts`: counts by line and CPU, and each line's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    lines: BTreeMap<String, (BTreeMap<CpuId, u64>, String)>,
}

/// One CPU's count on one line, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counted {
    pub cpu: CpuId,
    /// The count of the first reading.
    pub before: u64,
    /// The count of the second.
    pub after: u64,
}

/// One line that rose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rose {
    /// The kernel's name for it: `36` or `LOC`.
    pub line: String,
    /// Chip, handlers, or the kernel's description.
    pub what: String,
    /// The selected CPUs, ascending.
    pub cpus: Vec<Counted>,
}

/// The lines that rose on the selected CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterruptDiff {
    /// Version of this structure in JSON.
    pub schema_version: u32,
    pub cpus: CpuSet,
    /// Lines that rose on any of them, the largest rise first.
    pub rose: Vec<Rose>,
}

impl Interrupts {
    /// Parses `/proc/interrupts`; skips malformed lines.
    #[must_use]
    pub fn parse(text: &str) -> Interrupts {
        let mut lines = text.lines();
        // The heading names the online CPUs: CPU0 CPU2 ...
        let cpus: Vec<CpuId> = lines
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("CPU")?.parse().ok().map(CpuId))
            .collect();
        let mut out = Interrupts::default();
        for line in lines {
            let Some((name, rest)) = line.split_once(':') else {
                continue;
            };
            let mut counts = BTreeMap::new();
            let mut rest = rest.trim_start();
            for cpu in &cpus {
                let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                let Ok(count) = word.parse() else { break };
                counts.insert(*cpu, count);
                rest = tail.trim_start();
            }
            let what = rest.split_whitespace().collect::<Vec<_>>().join(" ");
            out.lines.insert(name.trim().to_owned(), (counts, what));
        }
        out
    }

    /// The rises between `self` and `later` on these CPUs.
    #[must_use]
    pub fn until(&self, later: &Interrupts, cpus: &CpuSet) -> InterruptDiff {
        let mut rose: Vec<Rose> = Vec::new();
        for (line, (counts, what)) in &later.lines {
            let earlier = self.lines.get(line).map(|(counts, _)| counts);
            let before = |cpu: CpuId| earlier.and_then(|c| c.get(&cpu)).copied().unwrap_or(0);
            let counted: Vec<Counted> = cpus
                .iter()
                .filter_map(|cpu| {
                    Some(Counted {
                        cpu,
                        before: before(cpu),
                        after: *counts.get(&cpu)?,
                    })
                })
                .collect();
            if counted.iter().any(|c| c.after > c.before) {
                rose.push(Rose {
                    line: line.clone(),
                    what: what.clone(),
                    cpus: counted,
                });
            }
        }
        rose.order_by_key(|r| {
            std::cmp::Reverse(
                r.cpus
                    .iter()
                    .map(|c| c.after.saturating_sub(c.before))
                    .max()
                    .unwrap_or(0),
            )
        });
        InterruptDiff {
            schema_version: SCHEMA_VERSION,
            cpus: cpus.clone(),
            rose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: &str = "           CPU0       CPU1       CPU3\n  0:         43          0          0  IR-IO-APIC-edge      timer\n 47:      66878       1362       1951  IR-PCI-MSI-edge  i915\nLOC:     123968     449426     469447   Local timer interrupts\nERR:          0\n";

    #[test]
    fn rising_interrupts_are_listed_for_the_given_cpus() {
        let after = BEFORE
            .replace("1362", "1366")
            .replace("66878", "70000")
            .replace("469447", "509306");
        let diff =
            Interrupts::parse(BEFORE).until(&Interrupts::parse(&after), &"1,3".parse().unwrap());
        let shown: Vec<String> = diff
            .rose
            .iter()
            .map(|r| {
                let cpus: Vec<String> = r
                    .cpus
                    .iter()
                    .map(|c| format!("{} {}->{}", c.cpu, c.before, c.after))
                    .collect();
                format!("{} {} [{}]", r.line, cpus.join(", "), r.what)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "LOC 1 449426->449426, 3 469447->509306 [Local timer interrupts]",
                "47 1 1362->1366, 3 1951->1951 [IR-PCI-MSI-edge i915]"
            ]
        );
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "[CPU0-9: a-z\n]{0,200}") {
            let one = Interrupts::parse(&text);
            let _ = one.until(&Interrupts::parse(BEFORE), &"0-3".parse().unwrap());
        }
    }
}
