//! Processors and sets of them, in the kernel's own list syntax.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A logical CPU, as the kernel numbers it.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct CpuId(pub u32);

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The highest CPU number accepted in a list: far above any kernel's `NR_CPUS`, low enough that a
/// hostile list cannot exhaust memory.
const HIGHEST_CPU: u32 = 65_535;

/// A set of CPUs, ordered. In JSON it is a text in the kernel's list format: `0-3,5`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct CpuSet(BTreeSet<CpuId>);

impl CpuSet {
    #[must_use]
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// Adds a CPU; false if the set already has it.
    pub fn insert(&mut self, cpu: CpuId) -> bool {
        self.0.insert(cpu)
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.contains(&cpu)
    }

    /// CPUs in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = CpuId> + '_ {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn last(&self) -> Option<CpuId> {
        self.0.last().copied()
    }

    #[must_use]
    pub fn first(&self) -> Option<CpuId> {
        self.0.first().copied()
    }

    /// CPUs in `self` and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.difference(&other.0).copied().collect())
    }

    /// CPUs in both.
    #[must_use]
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        CpuSet(self.0.intersection(&other.0).copied().collect())
    }

    /// The kernel's hexadecimal mask: comma-separated groups of 32 bits, highest first, as `tracing_cpumask` and
    /// `smp_affinity` expect it.
    #[must_use]
    pub fn to_mask(&self) -> String {
        let groups = self.last().map_or(1, |c| c.0 as usize / 32 + 1);
        let mut words = vec![0u32; groups];
        for cpu in self.iter() {
            words[cpu.0 as usize / 32] |= 1 << (cpu.0 % 32);
        }
        let mut parts: Vec<String> = words.iter().rev().map(|w| format!("{w:08x}")).collect();
        if let Some(first) = parts.first_mut() {
            let trimmed = first.trim_start_matches('0');
            *first = if trimmed.is_empty() {
                "0".into()
            } else {
                trimmed.into()
            };
        }
        parts.join(",")
    }
}

impl CpuSet {
    /// For sentences: `CPU 1`, `CPUs 1-3`, `CPUs none`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.len() {
            0 => "CPUs none".into(),
            1 => format!("CPU {self}"),
            _ => format!("CPUs {self}"),
        }
    }

    /// Parses the kernel's hexadecimal mask ([`CpuSet::to_mask`]); `None` if it is malformed.
    #[must_use]
    pub fn from_mask(text: &str) -> Option<CpuSet> {
        let mut digits: Vec<u32> = Vec::new();
        for (i, group) in text.trim().split(',').enumerate() {
            // Only the first group may be short; the others are 32 bits each.
            if group.is_empty() || group.len() > 8 || (i > 0 && group.len() != 8) {
                return None;
            }
            for c in group.chars() {
                digits.push(c.to_digit(16)?);
            }
            if digits.len() > (HIGHEST_CPU as usize + 1) / 4 {
                return None;
            }
        }
        let mut set = CpuSet::new();
        for (i, digit) in digits.iter().rev().enumerate() {
            for bit in (0..4u32).filter(|bit| digit >> bit & 1 == 1) {
                set.insert(CpuId(u32::try_from(i).ok()? * 4 + bit));
            }
        }
        Some(set)
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(iter: I) -> CpuSet {
        CpuSet(iter.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    /// Kernel list syntax with joined ranges: `0-3,5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        let mut iter = self.iter().peekable();
        while let Some(first) = iter.next() {
            let mut last = first;
            while iter.peek().is_some_and(|next| next.0 == last.0 + 1) {
                last = iter.next().unwrap_or(last);
            }
            if !out.is_empty() {
                out.push(',');
            }
            out.push_str(&first.to_string());
            if last != first {
                out.push('-');
                out.push_str(&last.to_string());
            }
        }
        f.pad(&out)
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

impl TryFrom<String> for CpuSet {
    type Error = CpuListError;
    fn try_from(text: String) -> Result<CpuSet, CpuListError> {
        text.parse()
    }
}

/// What is wrong with a CPU list, and which token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// A token is neither a number, a range nor a range with a stride.
    #[error(
        "'{token}' in CPU list '{list}' is not a CPU, a range or a range with a stride (0-3,5 or 0-31:2 or 0-31:2/8, 'all', 'isolated')"
    )]
    BadToken { token: String, list: String },
    /// A range runs backwards.
    #[error("'{token}' in CPU list '{list}' runs backwards")]
    Backwards { token: String, list: String },
    /// A number that no kernel uses.
    #[error("CPU {cpu} in list '{list}' is out of range (0 to {HIGHEST_CPU})")]
    TooHigh { cpu: u64, list: String },
    /// A stride or group of zero, or more used than the group holds.
    #[error(
        "'{token}' in CPU list '{list}' has a stride that selects nothing or too much (range:stride, or range:used/group with 1 <= used <= group)"
    )]
    BadStride { token: String, list: String },
}

fn number(text: &str, token: &str, list: &str) -> Result<u32, CpuListError> {
    let bad = || CpuListError::BadToken {
        token: token.into(),
        list: list.into(),
    };
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    let n: u64 = text.parse().map_err(|_| bad())?;
    match u32::try_from(n) {
        Ok(n) if n <= HIGHEST_CPU => Ok(n),
        _ => Err(CpuListError::TooHigh {
            cpu: n,
            list: list.into(),
        }),
    }
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    /// Parses `0-3,5`, `0-31:2` (every second) and the kernel's `0-31:2/8` (the first two of each eight). Empty text is
    /// the empty set, as the kernel prints it.
    fn from_str(list: &str) -> Result<CpuSet, CpuListError> {
        let mut set = BTreeSet::new();
        let trimmed = list.trim();
        if trimmed.is_empty() {
            return Ok(CpuSet(set));
        }
        for token in trimmed.split(',') {
            let token = token.trim();
            let (range, stride) = match token.split_once(':') {
                Some((range, stride)) => (range, Some(stride)),
                None => (token, None),
            };
            let (first, last) = match range.split_once('-') {
                Some((a, b)) => (number(a, token, trimmed)?, number(b, token, trimmed)?),
                None => {
                    let n = number(range, token, trimmed)?;
                    (n, n)
                }
            };
            if last < first {
                return Err(CpuListError::Backwards {
                    token: token.into(),
                    list: trimmed.into(),
                });
            }
            let (used, group) = match stride {
                None => (1, 1),
                Some(s) => match s.split_once('/') {
                    Some((u, g)) => (number(u, token, trimmed)?, number(g, token, trimmed)?),
                    None => (1, number(s, token, trimmed)?),
                },
            };
            if used == 0 || group == 0 || used > group {
                return Err(CpuListError::BadStride {
                    token: token.into(),
                    list: trimmed.into(),
                });
            }
            set.extend(
                (first..=last)
                    .filter(|c| (c - first) % group < used)
                    .map(CpuId),
            );
        }
        Ok(CpuSet(set))
    }
}

/// A user's choice of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuList {
    /// Every online CPU.
    All,
    /// The CPUs that the kernel keeps out of scheduling domains.
    Isolated,
    Set(CpuSet),
}

impl FromStr for CpuList {
    type Err = CpuListError;
    fn from_str(list: &str) -> Result<CpuList, CpuListError> {
        match list.trim() {
            "all" => Ok(CpuList::All),
            "isolated" => Ok(CpuList::Isolated),
            "" => Err(CpuListError::BadToken {
                token: String::new(),
                list: String::new(),
            }),
            other => other.parse().map(CpuList::Set),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(cpus: &[u32]) -> CpuSet {
        cpus.iter().copied().map(CpuId).collect()
    }

    #[test]
    fn reads_what_the_kernel_writes() {
        assert_eq!("0-3,5".parse(), Ok(set(&[0, 1, 2, 3, 5])));
        assert_eq!("0-8:2".parse(), Ok(set(&[0, 2, 4, 6, 8])));
        assert_eq!("0-15:2/8\n".parse(), Ok(set(&[0, 1, 8, 9])));
        assert_eq!("".parse(), Ok(set(&[])));
        assert_eq!("all".parse(), Ok(CpuList::All));
    }

    #[test]
    fn errors_name_the_token() {
        for (list, token) in [
            ("0,x", "x"),
            ("0,,1", ""),
            ("1-", "1-"),
            ("+1", "+1"),
            ("-1", "-1"),
        ] {
            match list.parse::<CpuSet>() {
                Err(CpuListError::BadToken { token: t, .. }) => assert_eq!(t, token),
                other => panic!("{list}: {other:?}"),
            }
        }
        assert!(matches!(
            "3-1".parse::<CpuSet>(),
            Err(CpuListError::Backwards { .. })
        ));
        assert!(matches!(
            "0-4294967295".parse::<CpuSet>(),
            Err(CpuListError::TooHigh { .. })
        ));
        assert!(matches!(
            "0-4:0".parse::<CpuSet>(),
            Err(CpuListError::BadStride { .. })
        ));
        assert!(matches!(
            "0-4:3/2".parse::<CpuSet>(),
            Err(CpuListError::BadStride { .. })
        ));
    }

    #[test]
    fn masks_are_grouped_by_32_bits() {
        assert_eq!(set(&[1]).to_mask(), "2");
        assert_eq!(set(&[0, 33]).to_mask(), "2,00000001");
        assert_eq!(set(&[]).to_mask(), "0");
    }

    proptest! {
        #[test]
        fn display_parses_back(cpus in proptest::collection::btree_set(0u32..600, 0..60)) {
            let set: CpuSet = cpus.into_iter().map(CpuId).collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
        }

        #[test]
        fn hostile_lists_never_panic(list in "[0-9a-z,:/ -]{0,40}") {
            let _ = list.parse::<CpuList>();
        }
    }
}
