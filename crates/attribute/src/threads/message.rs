//! A slow message between two followed threads, split among what held it up.

use super::Episode;
use super::episode::add_part;
use crate::culprits;
use jitterscope_model::{Attribution, CpuId, Culprit, CulpritKind, Part, StallId, TickRate, Ticks};

/// What a part of a message's latency was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessagePhase {
    /// The producer did not get on when the message was due.
    ProducerStalled,
    /// The ring had no free slot, and no stall of the consumer explains it.
    RingFull,
    /// The consumer had no CPU.
    ConsumerNotRunning,
    /// The consumer had its CPU, and an interrupt ran on it.
    ConsumerInterrupted,
    /// Both ran; earlier messages were dealt with first.
    Queueing,
    /// Nothing that was recorded explains it.
    Unexplained,
}

impl MessagePhase {
    /// All of them, in the order of a message's way.
    pub const ALL: [MessagePhase; 6] = [
        MessagePhase::ProducerStalled,
        MessagePhase::RingFull,
        MessagePhase::ConsumerNotRunning,
        MessagePhase::ConsumerInterrupted,
        MessagePhase::Queueing,
        MessagePhase::Unexplained,
    ];

    /// Its name in reports, and as the evidence of a stored part.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            MessagePhase::ProducerStalled => "producer stalled",
            MessagePhase::RingFull => "ring full",
            MessagePhase::ConsumerNotRunning => "consumer not running",
            MessagePhase::ConsumerInterrupted => "consumer interrupted",
            MessagePhase::Queueing => "queueing",
            MessagePhase::Unexplained => "unexplained",
        }
    }
}

/// A message's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageWindow {
    /// When it was due.
    pub intended: Ticks,
    /// When it was published.
    pub published: Ticks,
    /// When it was received.
    pub received: Ticks,
    /// When the message before it was published.
    pub published_before: Ticks,
    /// When the message before it was received.
    pub received_before: Ticks,
    /// How long the producer waited for a slot, just before it published.
    pub waited: Ticks,
}

struct Piece {
    start: Ticks,
    end: Ticks,
    phase: MessagePhase,
    culprit: Culprit,
    moved_from: Option<CpuId>,
}

/// Splits the time from when a message was due to its reception. `producer` and `consumer` are what the
/// two threads suffered, in order of time. The parts sum to the whole exactly; their evidence is the
/// phase's name.
#[must_use]
pub fn split_message<'e>(
    id: StallId,
    window: &MessageWindow,
    producer: impl Iterator<Item = &'e Episode>,
    consumer: impl Iterator<Item = &'e Episode> + Clone,
    rate: TickRate,
) -> Attribution {
    let published = window.published.clamp(window.intended, window.received);
    let blocked_from = (published - window.waited).max(window.intended);
    let mut pieces = Vec::new();
    let held = |_: &Episode| MessagePhase::ProducerStalled;
    cover(&mut pieces, (window.intended, blocked_from), producer, held, |pieces, from, to| {
        queueing_until(pieces, window.published_before, from, to);
    });
    let not_taking = |episode: &Episode| match episode.kind {
        super::EpisodeKind::Interrupted => MessagePhase::ConsumerInterrupted,
        _ => MessagePhase::ConsumerNotRunning,
    };
    cover(&mut pieces, (blocked_from, published), consumer.clone(), not_taking, |pieces, start, end| {
        let culprit = culprits::culprit(CulpritKind::Switch, "ring full", "the producer waited for a slot");
        pieces.push(Piece { start, end, phase: MessagePhase::RingFull, culprit, moved_from: None });
    });
    cover(&mut pieces, (published, window.received), consumer, not_taking, |pieces, from, to| {
        queueing_until(pieces, window.received_before, from, to);
    });
    Attribution { stall: id, parts: parts(&pieces, window.intended, rate) }
}

/// Fills a window: what lies in an episode with its slices, the rest with whatever `other` says.
fn cover<'e>(
    pieces: &mut Vec<Piece>,
    (from, to): (Ticks, Ticks),
    episodes: impl Iterator<Item = &'e Episode>,
    phase: impl Fn(&Episode) -> MessagePhase,
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
            });
        }
    }
    if to > at {
        other(pieces, at, to);
    }
}

/// Before `busy_until` the thread was dealing with earlier messages; what lies after it is unexplained.
fn queueing_until(pieces: &mut Vec<Piece>, busy_until: Ticks, from: Ticks, to: Ticks) {
    let cut = busy_until.clamp(from, to);
    if cut > from {
        let culprit = culprits::culprit(CulpritKind::Switch, "earlier messages", "dealt with in their order");
        pieces.push(Piece {
            start: from,
            end: cut,
            phase: MessagePhase::Queueing,
            culprit,
            moved_from: None,
        });
    }
    if to > cut {
        let culprit = culprits::culprit(
            CulpritKind::Unresolved,
            "no record",
            "outside this kernel, or the hand-over itself",
        );
        let phase = MessagePhase::Unexplained;
        pieces.push(Piece { start: cut, end: to, phase, culprit, moved_from: None });
    }
}

fn parts(pieces: &[Piece], start: Ticks, rate: TickRate) -> Vec<Part> {
    let at = |time: Ticks| rate.nanos(time.since(start));
    let mut parts: Vec<Part> = Vec::new();
    for piece in pieces {
        let net = at(piece.end).saturating_sub(at(piece.start));
        let evidence = match piece.moved_from {
            Some(cpu) => format!("{}, moved from CPU {cpu}", piece.phase.as_str()),
            None => piece.phase.as_str().to_owned(),
        };
        add_part(&mut parts, &piece.culprit, net, &evidence);
    }
    parts
}
