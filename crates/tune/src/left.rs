//! Threads that stay on the isolated CPUs whatever is done.

use serde::Serialize;

/// A thread that stays, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Left {
    /// Its name.
    pub comm: String,
    /// Its id.
    pub tid: i32,
    /// Why.
    pub because: Stays,
}

/// Why a thread stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stays {
    /// The kernel binds it to its CPU.
    BoundToCpu,
    /// The kernel lets nobody move it, and seldom runs it.
    Immovable,
    /// A kernel thread that may run on isolated CPUs only.
    OnIsolatedOnly,
    /// A program's thread that is pinned to isolated CPUs alone, so that it is taken to belong there.
    PinnedThere,
}

/// Threads that stay for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftTogether {
    /// Why.
    pub because: Stays,
    /// By the beginning of their names, in order of appearance.
    pub families: Vec<LeftFamily>,
}

/// Threads whose names begin alike: `kworker/1:2-events` and `kworker/u8:0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftFamily {
    /// The beginning: `kworker`.
    pub name: String,
    /// How many there are.
    pub threads: usize,
    /// The name of the first.
    pub comm: String,
    /// The id of the first.
    pub tid: i32,
}

/// One entry a reason: kernel workers and their like are many and all alike.
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
