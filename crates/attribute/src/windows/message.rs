//! A slow message between two followed threads, split by what delayed it.

use super::SharedCulprit;
use crate::part_sums::{PartKey, PartSums};
use crate::threads::{Episode, EpisodeKind};
use jitterscope_model::{
    Attribution, CpuId, Culprit, Evidence, Part, Phase, StallId, Subject, TickRate, Ticks, Verdict,
};
use std::sync::Arc;

/// The times of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageWindow {
    /// When it was due.
    pub intended: Ticks,
    /// When it was published.
    pub published: Ticks,
    /// When it was received.
    pub received: Ticks,
    /// When the previous message was published.
    pub published_before: Ticks,
    /// When the previous message was received.
    pub received_before: Ticks,
    /// How long the producer waited for a slot, just before the publication.
    pub waited: Ticks,
    /// Whether it was published by a system call, which then delivered it: until its reception, what holds up the
    /// producer may hold it up.
    pub in_kernel: bool,
}

struct Piece {
    start: Ticks,
    end: Ticks,
    phase: Phase,
    culprit: Arc<SharedCulprit>,
    moved_from: Option<CpuId>,
    evidence: Evidence,
    sums: u32,
}

impl Piece {
    /// Time that only the message's own times explain, and no thread's episode.
    fn own(start: Ticks, end: Ticks, phase: Phase, verdict: Verdict) -> Piece {
        let culprit = Arc::new(Culprit::from(Subject::verdict(verdict)).into());
        Piece {
            start,
            end,
            phase,
            culprit,
            moved_from: None,
            evidence: Evidence::MessageTimes,
            sums: 0,
        }
    }
}

/// Splits the time from a message's intended time to its reception. `producer` and `consumer` are the episodes of the
/// two threads, in order of time. The parts sum to the whole exactly.
#[must_use]
pub fn split_message<'e>(
    id: StallId,
    window: &MessageWindow,
    producer: impl Iterator<Item = &'e Episode> + Clone,
    consumer: impl Iterator<Item = &'e Episode> + Clone,
    rate: TickRate,
) -> Attribution {
    let published = window.published.clamp(window.intended, window.received);
    let blocked_from = (published - window.waited).max(window.intended);
    let mut pieces = Vec::new();
    let held = |_: &Episode| Phase::ProducerStalled;
    cover(
        &mut pieces,
        (window.intended, blocked_from),
        producer.clone(),
        held,
        |pieces, from, to| {
            queueing_until(pieces, window.published_before, from, to);
        },
    );
    let not_taking = |episode: &Episode| match episode.kind {
        EpisodeKind::Interrupted => Phase::ConsumerInterrupted,
        _ => Phase::ConsumerNotRunning,
    };
    cover(
        &mut pieces,
        (blocked_from, published),
        consumer.clone(),
        not_taking,
        |pieces, start, end| {
            pieces.push(Piece::own(start, end, Phase::RingFull, Verdict::RingFull));
        },
    );
    cover(
        &mut pieces,
        (published, window.received),
        consumer,
        not_taking,
        |pieces, from, to| {
            let busy = window.received_before.clamp(from, to);
            queueing_until(pieces, busy, from, busy);
            if !window.in_kernel {
                return queueing_until(pieces, busy, busy, to);
            }
            // The consumer looks for the message, and does not find it.
            let delivering = producer.clone();
            let held = |_: &Episode| Phase::Delivery;
            cover(pieces, (busy, to), delivering, held, |pieces, from, to| {
                queueing_until(pieces, from, from, to);
            });
        },
    );
    Attribution {
        stall: id,
        parts: parts(&pieces, window.intended, rate),
    }
}

/// Fills a time span: with the slices of episodes where there are any, and with `other` elsewhere.
fn cover<'e>(
    pieces: &mut Vec<Piece>,
    (from, to): (Ticks, Ticks),
    episodes: impl Iterator<Item = &'e Episode>,
    phase: impl Fn(&Episode) -> Phase,
    mut other: impl FnMut(&mut Vec<Piece>, Ticks, Ticks),
) {
    let mut at = from;
    let inside = episodes.skip_while(|episode| episode.end <= from);
    for episode in inside.take_while(|episode| episode.start < to) {
        for slice in episode.clipped(at, to) {
            if slice.start > at {
                other(pieces, at, slice.start);
            }
            at = slice.end;
            let phase = phase(episode);
            pieces.push(Piece {
                start: slice.start,
                end: slice.end,
                phase,
                culprit: slice.culprit,
                moved_from: episode.migrated_from,
                evidence: slice.evidence,
                sums: slice.sums,
            });
        }
    }
    if to > at {
        other(pieces, at, to);
    }
}

/// Before `busy_until` the thread processed earlier messages; later time is unexplained.
fn queueing_until(pieces: &mut Vec<Piece>, busy_until: Ticks, from: Ticks, to: Ticks) {
    let cut = busy_until.clamp(from, to);
    if cut > from {
        pieces.push(Piece::own(
            from,
            cut,
            Phase::Queueing,
            Verdict::EarlierMessages,
        ));
    }
    if to > cut {
        pieces.push(Piece::own(cut, to, Phase::Unexplained, Verdict::NoRecord));
    }
}

fn parts(pieces: &[Piece], start: Ticks, rate: TickRate) -> Vec<Part> {
    let at = |time: Ticks| rate.nanos(time.since(start));
    let mut sums = PartSums::default();
    for Piece {
        start,
        end,
        culprit,
        phase,
        moved_from,
        evidence,
        sums: of,
    } in pieces
    {
        let key = PartKey {
            culprit: culprit.shared(),
            phase,
            moved_from: *moved_from,
            evidence,
        };
        sums.add(key, at(*end).saturating_sub(at(*start)), *of);
    }
    sums.into_parts()
}
