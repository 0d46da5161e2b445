//! Stalls and their parts as slices, and stolen time as counters.

use super::clock::BootClock;
use super::senders::{Senders, Sent};
use super::stream::Stream;
use super::track_events::{Track, TrackEvent, Tracks};
use crate::error::ExportError;
use crate::largest_part::facts;
use jitterscope_model::{Attribution, CpuId, IntervalRow, Part, RunFacts, Stall, Ticks};
use std::collections::{BTreeMap, HashMap};

/// The largest number of a CPU's stalls that overlap.
const MOST_LANES: usize = 256;

/// The tracks of stalls.
pub(super) struct Stalls {
    tracks: Tracks,
    /// By CPU: until when each lane is taken.
    lanes: HashMap<CpuId, Vec<u64>>,
    /// By CPU: the end of its latest interval.
    ended: BTreeMap<CpuId, Ticks>,
    last_flow: u64,
    /// Stalls that overlap too many others.
    crowded: u64,
}

impl Stalls {
    pub(super) fn new(facts: &RunFacts) -> Stalls {
        Stalls {
            tracks: Tracks::new(facts),
            lanes: HashMap::new(),
            ended: BTreeMap::new(),
            last_flow: 0,
            crowded: 0,
        }
    }

    pub(super) fn tracks(&self) -> &Tracks {
        &self.tracks
    }

    /// Stalls that have no lane.
    pub(super) fn crowded(&self) -> u64 {
        self.crowded
    }

    /// The first lane that is free at the beginning of a stall; `None` if all are taken.
    fn lane(&mut self, cpu: CpuId, begin: u64, end: u64) -> Option<u32> {
        let lanes = self.lanes.entry(cpu).or_default();
        let free = lanes.iter().position(|until| *until <= begin);
        let lane = free.or((lanes.len() < MOST_LANES).then_some(lanes.len()))?;
        if lane == lanes.len() {
            lanes.push(end);
        }
        lanes[lane] = end;
        u32::try_from(lane).ok()
    }

    /// Writes a stall. Returns whether it had room.
    pub(super) fn stall(
        &mut self,
        stream: &mut Stream,
        clock: &BootClock,
        (stall, attribution): (&Stall, Option<&Attribution>),
        senders: Option<&Senders>,
    ) -> Result<bool, ExportError> {
        let (begin, length) = (clock.ns(stall.start), clock.length(stall.length()));
        let end = begin.saturating_add(length.0);
        let Some(lane) = self.lane(stall.cpu, begin, end) else {
            self.crowded += 1;
            return Ok(false);
        };
        let track = self.tracks.number(stream, Track::Stalls(stall.cpu, lane))?;
        stream.slice(begin, track, |slice| {
            slice.name("stall");
            slice.number("stall_id", stall.id.0);
            slice.number("length_ns", length.0);
            slice.text("victim_comm", &stall.victim.comm.to_string());
            slice.number("victim_tid", stall.victim.tid.max(0) as u64);
            if let Some(attribution) = attribution {
                slice.number("explained_ns", attribution.explained().0);
            }
        })?;
        let mut at = begin;
        for part in attribution.iter().flat_map(|of| &of.parts) {
            let sent = senders.and_then(|senders| senders.of(stall, part));
            let flow = match sent {
                Some(sent) => Some(self.sent(stream, clock, sent, stall)?),
                None => None,
            };
            stream.slice(at, track, |slice| describe(slice, part, flow))?;
            at = at.saturating_add(part.net.0);
            stream.slice_ends(at, track)?;
        }
        stream.slice_ends(end, track)?;
        Ok(true)
    }

    /// Writes the beginning of an arrow. Returns its number.
    fn sent(
        &mut self,
        stream: &mut Stream,
        clock: &BootClock,
        sent: Sent,
        stall: &Stall,
    ) -> Result<u64, ExportError> {
        let track = self.tracks.number(stream, Track::Sent(sent.from))?;
        self.last_flow += 1;
        let flow = self.tracks.root() + self.last_flow;
        stream.instant(clock.ns(sent.at), track, |instant| {
            instant.name(sent.what.name());
            instant.number("sender_tid", sent.tid.max(0) as u64);
            instant.number("target_cpu", stall.cpu.0.into());
            instant.number("stall_id", stall.id.0);
            instant.flow(flow);
        })?;
        Ok(flow)
    }

    /// Writes the time that was stolen in an interval.
    pub(super) fn interval(
        &mut self,
        stream: &mut Stream,
        clock: &BootClock,
        row: &IntervalRow,
    ) -> Result<(), ExportError> {
        let track = self.tracks.number(stream, Track::Stolen(row.cpu))?;
        self.ended.insert(row.cpu, row.end);
        stream.counter(clock.ns(row.start), track, row.stolen.0)
    }

    /// Ends the counters.
    pub(super) fn end(
        &mut self,
        stream: &mut Stream,
        clock: &BootClock,
    ) -> Result<(), ExportError> {
        for (cpu, end) in std::mem::take(&mut self.ended) {
            let track = self.tracks.number(stream, Track::Stolen(cpu))?;
            stream.counter(clock.ns(end), track, 0)?;
        }
        Ok(())
    }
}

fn describe(slice: &mut TrackEvent<'_>, part: &Part, flow: Option<u64>) {
    let subject = &part.culprit.subject;
    slice.name(&format!("{} {}", subject.kind_word(), subject.name()));
    for (name, fact) in facts(part) {
        if let Some(fact) = fact {
            slice.fact(name, &fact);
        }
    }
    slice.number("gross_ns", part.gross.0);
    slice.number("turns", part.turns.into());
    slice.text("placement", part.placement.as_str());
    slice.text("confidence", part.confidence.as_str());
    slice.text("evidence", part.evidence.as_str());
    if let Some(sender) = &part.culprit.sender {
        slice.text("sender_context", sender.context.as_str());
        slice.number("sender_cpu", sender.cpu.0.into());
        slice.number("sender_tid", sender.tid.max(0) as u64);
        for (name, text) in [("sender_comm", &sender.comm), ("sender_via", &sender.via)] {
            if let Some(text) = text {
                slice.text(name, text);
            }
        }
    }
    if let Some(flow) = flow {
        slice.last_of_flow(flow);
    }
}
