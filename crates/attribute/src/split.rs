//! Each nanosecond of a stall to somebody.

use crate::costs::{Edge, EdgeCosts};
use crate::culprits::{self, Scene};
use crate::timeline::Stretch;
use jitterscope_model::{
    Attribution, Confidence, Culprit, Evidence, KernelEvent, Nanos, Part, Placement, TickRate, Ticks,
};

/// A piece of a stall and whose it is. Pieces are in order, touch, and fill the stall.
#[derive(Clone, Debug)]
struct Piece {
    start: Ticks,
    end: Ticks,
    culprit: Culprit,
    placement: Placement,
    confidence: Confidence,
    evidence: Evidence,
}

/// The edges of a stall: stretches with no frame open, cut at every record in them.
fn edges(scene: &Scene<'_>) -> Vec<(Edge, Stretch)> {
    let events = &scene.timeline.events;
    let mut found = Vec::new();
    for stretch in scene.timeline.stretches.iter().filter(|s| s.frame.is_none()) {
        let mut since = stretch.start;
        let cuts = events.iter().map(|e| e.time).filter(|t| stretch.start < *t && *t < stretch.end);
        for cut in cuts.chain([stretch.end]) {
            if cut > since {
                let piece = Stretch { start: since, end: cut, frame: None };
                if let Some(edge) = classify(&piece, events) {
                    found.push((edge, piece));
                }
                since = cut;
            }
        }
    }
    found
}

/// The class of a frameless stretch between records; `None` when the stall has no records.
fn classify(piece: &Stretch, events: &[KernelEvent]) -> Option<Edge> {
    let (first, last) = (events.first()?, events.last()?);
    if piece.end <= first.time {
        return Some(Edge::lead(first));
    }
    if piece.start >= last.time {
        return Some(Edge::trail(last));
    }
    events.iter().find(|e| e.time >= piece.end).map(Edge::hole)
}

/// Teaches `costs` the edges of a stall.
pub(crate) fn learn(scene: &Scene<'_>, costs: &mut EdgeCosts) {
    for (edge, piece) in edges(scene) {
        costs.learn(edge, piece.end.since(piece.start));
    }
}

/// Splits a stall that has records inside.
pub(crate) fn split(
    scene: &Scene<'_>,
    costs: &EdgeCosts,
    virtual_machine: bool,
    rate: TickRate,
) -> Attribution {
    let mut pieces: Vec<Piece> = scene
        .timeline
        .stretches
        .iter()
        .filter_map(|stretch| {
            let frame = &scene.timeline.frames[stretch.frame?];
            let confidence = match (frame.rule.endless, frame.closed) {
                (true, _) => Confidence::Medium,
                (false, true) => Confidence::High,
                (false, false) => Confidence::Low,
            };
            Some(Piece {
                start: stretch.start,
                end: stretch.end,
                culprit: culprits::culprit_of(stretch.frame?, scene),
                placement: Placement::Inside,
                confidence,
                evidence: frame.rule.evidence.clone(),
            })
        })
        .collect();
    for (edge, stretch) in edges(scene) {
        pieces.extend(edge_pieces(edge, &stretch, scene, costs, virtual_machine));
    }
    pieces.sort_by_key(|p| p.start);
    Attribution { stall: scene.stall.id, parts: parts(&pieces, scene, rate) }
}

/// An edge as one or two pieces: what its neighbour is granted, and the rest.
fn edge_pieces(
    edge: Edge,
    stretch: &Stretch,
    scene: &Scene<'_>,
    costs: &EdgeCosts,
    virtual_machine: bool,
) -> Vec<Piece> {
    let length = stretch.end.since(stretch.start);
    let neighbour = neighbour(edge, stretch, scene);
    let granted = if neighbour.is_some() { costs.grant(edge, length) } else { Ticks(0) };
    let trailing = matches!(edge, Edge::TrailInterrupt | Edge::TrailSwitch | Edge::TrailOther);
    let placement = match edge {
        Edge::LeadInterrupt | Edge::LeadSwitch | Edge::LeadOther => Placement::Lead,
        Edge::HoleSwitch | Edge::HoleSoftirq | Edge::HoleOther => Placement::Hole,
        Edge::TrailInterrupt | Edge::TrailSwitch | Edge::TrailOther => Placement::Trail,
    };
    // What is granted lies beside the neighbour: before it, unless this is a trail.
    let (grant, rest) = if trailing {
        let cut = stretch.start + granted;
        ((stretch.start, cut), (cut, stretch.end))
    } else {
        let cut = stretch.end - granted;
        ((cut, stretch.end), (stretch.start, cut))
    };
    let mut pieces = Vec::with_capacity(2);
    if rest.1 > rest.0 {
        let verdict = culprits::edge(edge, virtual_machine);
        pieces.push(Piece {
            start: rest.0,
            end: rest.1,
            culprit: verdict.culprit,
            placement,
            confidence: verdict.confidence,
            evidence: verdict.evidence,
        });
    }
    if let Some(culprit) = neighbour.filter(|_| granted > Ticks(0)) {
        pieces.push(Piece {
            start: grant.0,
            end: grant.1,
            culprit,
            placement,
            confidence: Confidence::Medium,
            evidence: Evidence::SmallestEdge,
        });
    }
    pieces
}

/// Who bears the entry or exit cost of an edge: the scheduler beside a switch, else the frame that opens
/// after it or closed before it.
fn neighbour(edge: Edge, stretch: &Stretch, scene: &Scene<'_>) -> Option<Culprit> {
    let frames = &scene.timeline.frames;
    let opened = || frames.iter().position(|f| f.start == stretch.end && f.depth == 0);
    let closed = || frames.iter().rposition(|f| f.end == stretch.start && f.depth == 0);
    let index = match edge {
        Edge::LeadSwitch | Edge::HoleSwitch | Edge::TrailSwitch => return Some(culprits::context_switch()),
        Edge::LeadInterrupt | Edge::LeadOther => opened()?,
        Edge::HoleSoftirq | Edge::HoleOther => opened().or_else(closed)?,
        Edge::TrailInterrupt | Edge::TrailOther => closed()?,
    };
    let culprit = culprits::culprit_of(index, scene);
    culprit.kind().is_explained().then_some(culprit)
}

/// Sums the pieces a culprit, in order of first appearance. Times become nanoseconds at the pieces'
/// boundaries, so that rounding cancels and the parts sum to the stall exactly.
fn parts(pieces: &[Piece], scene: &Scene<'_>, rate: TickRate) -> Vec<Part> {
    let at = |t: Ticks| rate.nanos(t.since(scene.stall.start));
    let mut parts: Vec<(Part, Ticks)> = Vec::new();
    for piece in pieces {
        let net = at(piece.end).saturating_sub(at(piece.start));
        let length = piece.end.since(piece.start);
        let index = parts.iter().position(|(part, _)| part.culprit == piece.culprit).unwrap_or_else(|| {
            parts.push((new_part(piece), Ticks(0)));
            parts.len() - 1
        });
        let (part, longest) = &mut parts[index];
        part.net += net;
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
    for (index, frame) in scene.timeline.frames.iter().enumerate() {
        let culprit = culprits::culprit_of(index, scene);
        let nested_in_own =
            ancestors(index, scene).any(|ancestor| culprits::culprit_of(ancestor, scene) == culprit);
        if let Some((part, _)) = parts.iter_mut().find(|(p, _)| p.culprit == culprit && !nested_in_own) {
            part.gross += at(frame.end).saturating_sub(at(frame.start));
        }
    }
    let mut parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
    // Rounding at many boundaries can leave a gross a nanosecond under its net.
    for part in &mut parts {
        part.gross = part.gross.max(part.net);
    }
    parts
}

fn new_part(piece: &Piece) -> Part {
    let part = Part::inside(piece.culprit.clone(), Nanos::ZERO, piece.evidence.clone());
    Part { placement: piece.placement, confidence: piece.confidence, ..part }
}

fn ancestors(index: usize, scene: &Scene<'_>) -> impl Iterator<Item = usize> {
    let frames = &scene.timeline.frames;
    std::iter::successors(frames[index].parent, move |i| frames[*i].parent)
}
