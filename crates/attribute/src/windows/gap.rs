//! A spinning probe's gap: assigns each nanosecond to a culprit.

use super::Named;
use super::numbered::CulpritNo;
use crate::costs::{Edge, EdgeCosts};
use crate::culprits::{self, EdgeVerdict, Host};
use crate::occupancy::{Outcome, Slice};
use crate::part_sums::turns;
use jitterscope_model::{
    Attribution, Confidence, CulpritKind, Evidence, Nanos, Part, Placement, Stall, TickRate, Ticks,
    Verdict,
};

/// The usual number of parts of a stall on a busy CPU.
const USUAL_PARTS: usize = 16;

/// A piece of a stall and its culprit. Pieces are in order, adjacent, and fill the stall.
#[derive(Clone, Debug)]
struct Piece {
    start: Ticks,
    end: Ticks,
    /// The number of stretches that it sums, whose order is lost. 0: it is one stretch.
    sums: u32,
    culprit: CulpritNo,
    placement: Placement,
    confidence: Confidence,
    evidence: Evidence,
}

/// Adds the edges of a stall to `costs`.
pub(crate) fn learn(named: &Named<'_>, costs: &mut EdgeCosts) {
    for slice in &named.window.slices {
        if let (None, Some(edge)) = (named.owner(slice), edge_of(slice)) {
            costs.learn(edge, slice.length());
        }
    }
}

/// The class of a slice of the victim's own time, which lies between records. `None` for folded ones, and if there is
/// no record at all.
fn edge_of(slice: &Slice) -> Option<Edge> {
    match (slice.began, slice.ended) {
        (None, Some(first)) => Some(Edge::lead(first)),
        (Some(last), None) => Some(Edge::trail(last)),
        (Some(_), Some(next)) => Some(Edge::hole(next)),
        (None, None) => None,
    }
}

/// Splits a stall with records inside.
pub(crate) fn split(
    stall: &Stall,
    named: &Named<'_>,
    costs: &EdgeCosts,
    host: Host,
    rate: TickRate,
) -> Attribution {
    let mut pieces: Vec<Piece> = Vec::with_capacity(named.window.slices.len());
    let mut last = None;
    for slice in &named.window.slices {
        let owner = named.owner(slice);
        match owner {
            // Slices with the same owner form one piece.
            Some(at) => {
                let host_from = named.host_from(slice, at).unwrap_or(slice.end);
                let certain = Slice {
                    end: host_from,
                    ..*slice
                };
                if certain.end > certain.start {
                    match pieces.last_mut().filter(|_| owner == last) {
                        Some(piece) => {
                            piece.end = certain.end;
                            piece.sums = piece.sums.saturating_add(slice.sums);
                        }
                        None => pieces.push(inside(at, &certain, named)),
                    }
                }
                if slice.end > host_from {
                    let perhaps = Slice {
                        start: host_from,
                        ..*slice
                    };
                    let piece = inside(at, &perhaps, named);
                    let confidence = match piece.confidence {
                        Confidence::High => Confidence::Medium,
                        lower => lower,
                    };
                    pieces.push(Piece {
                        confidence,
                        evidence: Evidence::LateInterruptInVm,
                        ..piece
                    });
                }
            }
            None => edge_pieces(&mut pieces, slice, named, costs, host),
        }
        last = owner;
    }
    Attribution {
        stall: stall.id,
        parts: parts(&pieces, stall, named, rate),
    }
}

fn inside(owner: u32, slice: &Slice, named: &Named<'_>) -> Piece {
    let frame = named.frame(owner);
    let nobodys = frame.class.is_root() && !frame.is_turn();
    let confidence = match (frame.class.is_endless(), frame.outcome) {
        _ if nobodys => Confidence::Low,
        (true, _) => Confidence::Medium,
        (false, Outcome::Closed) => Confidence::High,
        (false, _) => Confidence::Low,
    };
    let own = || (culprits::kind(frame.class).evidence.clone(), confidence);
    let (evidence, confidence) = named.basis(owner).unwrap_or_else(own);
    Piece {
        start: slice.start,
        end: slice.end,
        sums: slice.sums,
        culprit: named.culprit_no(owner),
        placement: Placement::Inside,
        confidence,
        evidence,
    }
}

/// Splits an edge into the part that its neighbour is granted, and the rest.
fn edge_pieces(
    pieces: &mut Vec<Piece>,
    slice: &Slice,
    named: &Named<'_>,
    costs: &EdgeCosts,
    host: Host,
) {
    // A folded slice also lies between records.
    let edge = edge_of(slice).unwrap_or(Edge::HoleOther);
    let neighbour = neighbour(edge, slice, named).filter(|_| !slice.is_folded());
    let granted = if neighbour.is_some() {
        costs.grant(edge, slice.length())
    } else {
        Ticks(0)
    };
    let placement = match edge {
        Edge::LeadInterrupt | Edge::LeadSwitch | Edge::LeadOther => Placement::Lead,
        Edge::HoleSwitch | Edge::HoleSoftirq | Edge::HoleOther => Placement::Hole,
        Edge::TrailInterrupt | Edge::TrailSwitch | Edge::TrailOther => Placement::Trail,
    };
    // The granted part is next to the neighbour: at the end of the edge, or at the beginning of a trail.
    let trailing = placement == Placement::Trail;
    let cut = if trailing {
        slice.start + granted
    } else {
        slice.end - granted
    };
    let (before, after) = ((slice.start, cut), (cut, slice.end));
    let (grant, rest) = if trailing {
        (before, after)
    } else {
        (after, before)
    };
    let granted = neighbour
        .filter(|_| grant.1 > grant.0)
        .map(|culprit| Piece {
            start: grant.0,
            end: grant.1,
            sums: slice.sums,
            culprit,
            placement,
            confidence: Confidence::Medium,
            evidence: Evidence::SmallestEdge,
        });
    let piece = |(start, end): (Ticks, Ticks), verdict: EdgeVerdict| Piece {
        start,
        end,
        sums: slice.sums,
        culprit: named.verdict(verdict.verdict),
        placement,
        confidence: verdict.confidence,
        evidence: verdict.evidence,
    };
    let length = named.rate.nanos(rest.1.since(rest.0));
    let whose = culprits::edge(edge, length, host);
    // From the due time of the interrupt on, the CPU stood still; before that, activity without a record may have run.
    let unresolved = whose.verdict.kind() == CulpritKind::Unresolved;
    let due = host
        .due
        .filter(|_| slice.start == named.window.from && edge == Edge::LeadInterrupt && unresolved);
    let due = due.map_or(rest.1, |due| due.clamp(rest.0, rest.1));
    let late = (due < rest.1).then(|| piece((due, rest.1), culprits::late_interrupt()));
    let rest = (due > rest.0).then(|| piece((rest.0, due), whose));
    let in_order = if trailing {
        [granted, rest, late]
    } else {
        [rest, late, granted]
    };
    in_order
        .into_iter()
        .flatten()
        .for_each(|piece| pieces.push(piece));
}

/// The frame that bears the entry or exit cost of an edge: the scheduler beside a switch, else the frame that opens
/// after it or closed before it.
fn neighbour(edge: Edge, slice: &Slice, named: &Named<'_>) -> Option<CulpritNo> {
    let mut frames = 0..named.window.frames.len() as u32;
    let outermost = |index: u32| named.counts(index) && named.outside(index).is_none();
    let opened = |index: &u32| named.frame(*index).start == slice.end && outermost(*index);
    let closed = |index: &u32| named.frame(*index).end == slice.start && outermost(*index);
    let index = match edge {
        Edge::LeadSwitch | Edge::HoleSwitch | Edge::TrailSwitch => {
            return Some(named.verdict(Verdict::ContextSwitch));
        }
        Edge::LeadInterrupt | Edge::LeadOther => frames.find(opened)?,
        Edge::HoleSoftirq | Edge::HoleOther => frames
            .clone()
            .find(opened)
            .or_else(|| frames.rev().find(closed))?,
        Edge::TrailInterrupt | Edge::TrailOther => frames.rev().find(closed)?,
    };
    let culprit = named.culprit_no(index);
    named.kind(culprit).is_explained().then_some(culprit)
}

/// Sums the pieces by culprit, in order of first appearance. Times are converted to nanoseconds at the pieces'
/// boundaries, so that rounding cancels and the parts sum to the stall exactly.
fn parts(pieces: &[Piece], stall: &Stall, named: &Named<'_>, rate: TickRate) -> Vec<Part> {
    let at = |t: Ticks| rate.nanos(t.since(stall.start));
    let usual = pieces.len().min(USUAL_PARTS);
    let mut parts: Vec<Part> = Vec::with_capacity(usual);
    // Each part's culprit, whether the host may have had that time, and the length of its longest piece.
    let mut places: Vec<((CulpritNo, bool), Ticks)> = Vec::with_capacity(usual);
    let (mut start, mut last) = (Nanos::ZERO, None);
    for piece in pieces {
        let end = at(piece.end);
        let net = end.saturating_sub(start);
        start = end;
        let length = piece.end.since(piece.start);
        let perhaps_host = piece.evidence == Evidence::LateInterruptInVm;
        let key = (piece.culprit, perhaps_host);
        let place = places
            .iter()
            .position(|(own, _)| *own == key)
            .unwrap_or_else(|| {
                parts.push(new_part(piece, named));
                places.push((key, Ticks(0)));
                places.len() - 1
            });
        let (part, (_, longest)) = (&mut parts[place], &mut places[place]);
        part.net += net;
        part.turns = part
            .turns
            .saturating_add(turns(piece.sums, last == Some(place)));
        last = Some(place);
        if piece.placement != Placement::Inside {
            part.gross += net;
        }
        if length > *longest {
            *longest = length;
            part.placement = piece.placement;
            part.confidence = piece.confidence;
            part.evidence = piece.evidence.clone();
        }
    }
    for index in (0..named.window.frames.len() as u32).filter(|index| named.counts(*index)) {
        let (frame, culprit) = (named.frame(index), named.culprit_no(index));
        let Some(place) = places.iter().position(|(own, _)| own.0 == culprit) else {
            continue;
        };
        let mut around = std::iter::successors(named.outside(index), |at| named.outside(*at));
        if !around.any(|outer| named.culprit_no(outer) == culprit) {
            parts[place].gross += at(frame.end).saturating_sub(at(frame.start));
        }
    }
    // Rounding at many boundaries can leave a gross one nanosecond below its net.
    for part in &mut parts {
        part.gross = part.gross.max(part.net);
    }
    parts
}

fn new_part(piece: &Piece, named: &Named<'_>) -> Part {
    let part = Part::inside(
        named.culprit_of(piece.culprit),
        Nanos::ZERO,
        piece.evidence.clone(),
    );
    Part {
        turns: 0,
        placement: piece.placement,
        confidence: piece.confidence,
        ..part
    }
}
