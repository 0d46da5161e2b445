//! A stretch in which a thread made no progress: what had its CPU.

use super::Named;
use super::holder::culprit;
use super::shared_culprit::{CulpritCache, SharedCulprit};
use crate::culprits;
use jitterscope_model::{Evidence, Ticks};
use std::sync::Arc;

/// A piece of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub start: Ticks,
    pub end: Ticks,
    /// What had the CPU.
    pub culprit: Arc<SharedCulprit>,
    pub evidence: Evidence,
    /// Number of the turn within its episode: slices that are separated by an interrupt belong to one turn.
    pub turn: usize,
    /// The number of stretches that it sums, whose order is lost. 0: it is one stretch.
    pub sums: u32,
}

impl Slice {
    /// The number of stretches that it stands for.
    pub(crate) fn turns(&self) -> u32 {
        self.sums.max(1)
    }
}

/// The owner of a frame in a wait.
#[derive(Clone)]
struct Owner {
    culprit: Arc<SharedCulprit>,
    evidence: Evidence,
    turn: usize,
}

/// What had a CPU while the victim made no progress. The slices are in order, adjacent, and fill the window.
pub(crate) fn slices(named: &Named<'_>, cache: &mut CulpritCache) -> Vec<Slice> {
    let mut found: Vec<Slice> = Vec::with_capacity(named.window.slices.len());
    // By frame.
    let mut owners: Vec<Option<Owner>> = vec![None; named.window.frames.len()];
    for slice in &named.window.slices {
        let Owner {
            culprit,
            evidence,
            turn,
        } = match named.owner(slice) {
            Some(owner) => match &owners[owner as usize] {
                Some(known) => known.clone(),
                None => owners[owner as usize]
                    .insert(owner_of(owner, named, cache))
                    .clone(),
            },
            // Neither another frame's time nor the victim's: the scheduler's own.
            None => Owner {
                culprit: cache.context_switch(),
                evidence: Evidence::ThreadRecords,
                turn: named.window.frames.len(),
            },
        };
        let owner = named.owner(slice);
        let perhaps = owner.map_or_else(Vec::new, |owner| named.perhaps_hosts(slice, owner));
        let sums = slice.sums;
        let mut add = |start: Ticks, end: Ticks, evidence: &Evidence| {
            let is_same = |last: &&mut Slice| {
                last.turn == turn && last.culprit == culprit && last.evidence == *evidence
            };
            match found.last_mut().filter(is_same) {
                _ if start >= end => {}
                Some(last) => {
                    last.end = end;
                    last.sums = last.sums.saturating_add(sums);
                }
                None => found.push(Slice {
                    start,
                    end,
                    culprit: Arc::clone(&culprit),
                    evidence: evidence.clone(),
                    turn,
                    sums,
                }),
            }
        };
        let mut at = slice.start;
        for (start, end, why) in perhaps {
            add(at, start, &evidence);
            add(start, end, &why);
            at = end;
        }
        add(at, slice.end, &evidence);
    }
    found
}

fn owner_of(owner: u32, named: &Named<'_>, cache: &mut CulpritCache) -> Owner {
    let own = cache.culprit(owner, named);
    let around = std::iter::successors(named.outside(owner), |at| named.outside(*at));
    let turn = around
        .filter(|outer| cache.culprit(*outer, named) == own)
        .last()
        .unwrap_or(owner) as usize;
    let evidence = culprits::quota_evidence(own.kind()).unwrap_or(Evidence::ThreadRecords);
    Owner {
        culprit: own,
        evidence,
        turn,
    }
}

/// The turn that a frame belongs to: the outermost frame around it with the same culprit.
pub(super) fn turn(owner: u32, named: &Named<'_>) -> usize {
    let own = culprit(owner, named);
    let around = std::iter::successors(named.outside(owner), |at| named.outside(*at));
    around
        .filter(|outer| culprit(*outer, named) == own)
        .last()
        .unwrap_or(owner) as usize
}
