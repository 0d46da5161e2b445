//! A stretch in which a thread did not get on: who had its CPU.

use super::Named;
use super::holder::culprit;
use super::shared_culprit::{CulpritCache, SharedCulprit};
use jitterscope_model::{Evidence, Subject, Ticks};
use std::sync::Arc;

/// A piece of an episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// From.
    pub start: Ticks,
    /// To.
    pub end: Ticks,
    /// Who had the CPU.
    pub culprit: Arc<SharedCulprit>,
    /// What that rests on.
    pub evidence: Evidence,
    /// Number of the turn on the CPU within its episode: slices that an interrupt parts belong to one turn.
    pub turn: usize,
}

/// What a frame is to a wait.
#[derive(Clone)]
struct Owner {
    culprit: Arc<SharedCulprit>,
    evidence: Evidence,
    turn: usize,
}

/// Who had a CPU while the victim did not get on. The slices are in order, touch, and fill the window.
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
            // The scheduler's own time, beside the victim's.
            None => Owner {
                culprit: cache.context_switch(),
                evidence: Evidence::ThreadRecords,
                turn: named.window.frames.len(),
            },
        };
        match found
            .last_mut()
            .filter(|last| last.turn == turn && last.culprit == culprit)
        {
            Some(last) => last.end = slice.end,
            None => found.push(Slice {
                start: slice.start,
                end: slice.end,
                culprit,
                evidence,
                turn,
            }),
        }
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
    let evidence = match named.basis(owner) {
        Some((evidence @ Evidence::SwitchRecordsWhileThrottled, _)) => evidence,
        _ if matches!(own.subject, Subject::Quota(_)) => Evidence::QuotaCount,
        _ => Evidence::ThreadRecords,
    };
    Owner {
        culprit: own,
        evidence,
        turn,
    }
}

/// The turn that a frame belongs to: the outermost frame around it of the same culprit.
pub(super) fn turn(owner: u32, named: &Named<'_>) -> usize {
    let own = culprit(owner, named);
    let around = std::iter::successors(named.outside(owner), |at| named.outside(*at));
    around
        .filter(|outer| culprit(*outer, named) == own)
        .last()
        .unwrap_or(owner) as usize
}
