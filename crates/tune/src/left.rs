//! Threads that stay on the isolated CPUs in any case.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Left {
    pub comm: String,
    pub tid: i32,
    pub because: Stays,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stays {
    /// The kernel binds it to its CPU.
    BoundToCpu,
    /// The kernel does not let it be moved, and rarely runs it.
    Immovable,
    /// A kernel thread that may run only on isolated CPUs.
    OnIsolatedOnly,
    /// A program thread pinned to isolated CPUs only, assumed to be intended there.
    PinnedThere,
}

/// Threads that stay for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftTogether {
    pub because: Stays,
    /// By the prefix of their names, in order of appearance.
    pub families: Vec<LeftFamily>,
}

/// Threads whose names share a prefix: `kworker/1:2-events` and `kworker/u8:0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftFamily {
    /// The prefix: `kworker`.
    pub name: String,
    pub threads: usize,
    pub comm: String,
    pub tid: i32,
}

/// Groups them by reason: there are many similar kernel workers.
#[must_use]
pub(crate) fn together(left: Vec<Left>) -> Vec<LeftTogether> {
    let mut out: Vec<LeftTogether> = Vec::new();
    for Left { comm, tid, because } in left {
        let name: String = comm
            .chars()
            .take_while(|c| !matches!(c, '/' | '(' | ' '))
            .collect();
        let at = out
            .iter()
            .position(|of| of.because == because)
            .unwrap_or_else(|| {
                out.push(LeftTogether {
                    because,
                    families: Vec::new(),
                });
                out.len() - 1
            });
        let Some(LeftTogether { families, .. }) = out.get_mut(at) else {
            continue;
        };
        match families.iter_mut().find(|family| family.name == name) {
            Some(family) => family.threads += 1,
            None => families.push(LeftFamily {
                name,
                threads: 1,
                comm,
                tid,
            }),
        }
    }
    out
}
