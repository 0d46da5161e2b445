//! Values of many CPUs, mostly equal.

use crate::{CpuId, CpuSet};
use serde::{Deserialize, Serialize};

/// CPUs with the same value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuGroup<T> {
    pub cpus: CpuSet,
    pub value: T,
}

/// A value for each CPU. CPUs with equal values form one group; groups are in order of their lowest CPU. A machine of
/// 256 equal CPUs has one entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerCpu<T>(pub Vec<CpuGroup<T>>);

impl<T> Default for PerCpu<T> {
    fn default() -> PerCpu<T> {
        PerCpu(Vec::new())
    }
}

impl<T> PerCpu<T> {
    /// The value of one CPU.
    #[must_use]
    pub fn of(&self, cpu: CpuId) -> Option<&T> {
        self.0
            .iter()
            .find(|group| group.cpus.contains(cpu))
            .map(|group| &group.value)
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: PartialEq> FromIterator<(CpuId, T)> for PerCpu<T> {
    fn from_iter<I: IntoIterator<Item = (CpuId, T)>>(values: I) -> PerCpu<T> {
        let mut groups: Vec<CpuGroup<T>> = Vec::new();
        for (cpu, value) in values {
            match groups.iter_mut().find(|group| group.value == value) {
                Some(group) => {
                    group.cpus.insert(cpu);
                }
                None => groups.push(CpuGroup {
                    cpus: [cpu].into_iter().collect(),
                    value,
                }),
            }
        }
        groups.sort_by_key(|group| group.cpus.first());
        PerCpu(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_entry() {
        let all: PerCpu<&str> = (0..256)
            .map(|n| {
                (
                    CpuId(n),
                    if n % 2 == 0 {
                        "performance"
                    } else {
                        "powersave"
                    },
                )
            })
            .collect();
        assert_eq!(all.0.len(), 2);
        assert_eq!(all.of(CpuId(3)), Some(&"powersave"));
        assert_eq!(all.of(CpuId(256)), None);
        let alike: PerCpu<u8> = (0..256).map(|n| (CpuId(n), 1)).collect();
        assert_eq!(
            serde_json::to_string(&alike).unwrap(),
            r#"[{"cpus":"0-255","value":1}]"#
        );
    }
}
