//! Stalls of a stored run, frame by frame.

use super::{ReplayError, context};
use crate::kept_names::StoredNames;
use jitterscope_attribute::{Senders, TimelineOf, timeline_rows, with_calls, with_instants};
use jitterscope_model::{
    AppMark, CallRecord, CpuId, EventKind, KernelEvent, Nanos, PipelineRole, PutInOrder,
    RunManifest, Stall, ThreadAccount, Ticks, TimelineItem, TimelineRow,
};
use jitterscope_source::{
    AskedDecoder, AskedRecord, CallDecoder, ContextError, Decoder, TraceContext,
};
use jitterscope_store::{RunReader, StoredPage, TraceRole};

/// How far before a stall its senders and unfinished work are searched for.
const BEFORE: Nanos = Nanos(1_000_000_000);
/// Stretch of the trace that is decoded once for all stalls in it.
const TOGETHER: Nanos = Nanos(3_000_000_000);

/// The frames of a stall of a stored run.
///
/// # Errors
/// There is no raw trace of it, or it cannot be read.
pub fn stall_timeline(run: &RunReader, stall: &Stall) -> Result<Vec<TimelineRow>, ReplayError> {
    let context = context(run)?;
    let frames = Frames {
        manifest: run.manifest(),
        names: StoredNames::new(&context),
        marks: marks(run),
    };
    let (from, to) = frames.around(stall);
    let pages = Decoders::new(&context, run.manifest())?.decoded(run.trace_pages(from, to)?);
    frames.of(stall, &pages)
}

/// The frames of stalls of a stored run, each as in [`stall_timeline`], with the stall's index in the argument. Leaves
/// out stalls whose trace cannot be read. Reads the trace once for its index, and once for each group of neighbouring
/// stalls.
///
/// # Errors
/// There is no raw trace, or it cannot be read.
pub fn stall_timelines(
    run: &RunReader,
    stalls: &[Stall],
) -> Result<Vec<(usize, Vec<TimelineRow>)>, ReplayError> {
    timelines(run, stalls, TOGETHER)
}

fn timelines(
    run: &RunReader,
    stalls: &[Stall],
    together: Nanos,
) -> Result<Vec<(usize, Vec<TimelineRow>)>, ReplayError> {
    let context = context(run)?;
    let frames = Frames {
        manifest: run.manifest(),
        names: StoredNames::new(&context),
        marks: marks(run),
    };
    let mut decoders = Decoders::new(&context, run.manifest())?;
    let index = run.trace_index()?;
    let together = frames.manifest.rate.ticks(together);
    let mut order: Vec<usize> = (0..stalls.len()).collect();
    order.order_by_key(|at| stalls[*at].start);
    let mut found = Vec::new();
    let mut left = order.as_slice();
    while let Some(first) = left.first() {
        let (from, mut to) = frames.around(&stalls[*first]);
        let mut group = 1;
        for at in &left[1..] {
            let end = to.max(frames.around(&stalls[*at]).1);
            if end.since(from) > together {
                break;
            }
            (to, group) = (end, group + 1);
        }
        // A damaged part costs only the frames of its own stalls.
        if let Ok(pages) = index.pages(from, to) {
            let pages = decoders.decoded(pages);
            for at in &left[..group] {
                if let Ok(rows) = frames.of(&stalls[*at], &pages) {
                    found.push((*at, rows));
                }
            }
        }
        left = &left[group..];
    }
    found.order_by_key(|(at, _)| *at);
    Ok(found)
}

struct Decoded {
    role: TraceRole,
    cpu: CpuId,
    first: Ticks,
    last: Ticks,
    events: Vec<KernelEvent>,
    /// The records of a page of function calls.
    calls: Vec<CallRecord>,
    /// Those of the events that the user asked for.
    asked: Vec<AskedRecord>,
}

/// Decoders for the pages of a run.
struct Decoders {
    events: Decoder,
    calls: Option<CallDecoder>,
    asked: Option<AskedDecoder>,
}

impl Decoders {
    fn new(context: &TraceContext, manifest: &RunManifest) -> Result<Decoders, ContextError> {
        let asked = manifest.asked.iter().map(|asked| &asked.event);
        Ok(Decoders {
            events: Decoder::new(context)?,
            calls: CallDecoder::new(context)?,
            asked: AskedDecoder::new(context, asked)?,
        })
    }

    fn decoded(&mut self, pages: Vec<StoredPage>) -> Vec<Decoded> {
        pages.into_iter().map(|page| self.page(page)).collect()
    }

    fn page(&mut self, page: StoredPage) -> Decoded {
        let (mut events, mut calls, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        // Damaged pages end early; what was read of them counts.
        match (page.role, &self.calls) {
            (TraceRole::Graph, Some(decoder)) => {
                let _ = decoder.page(page.cpu, &page.bytes, |call| calls.push(call));
            }
            (TraceRole::Graph, None) | (TraceRole::Stacks, _) => {}
            (TraceRole::Local | TraceRole::Senders, _) => {
                let _ = self
                    .events
                    .page(page.cpu, &page.bytes, |event| events.push(event));
                if let Some(decoder) = &self.asked {
                    let _ = decoder.page(&page.bytes, |record| asked.push(record));
                }
            }
        }
        let StoredPage {
            role,
            cpu,
            first,
            last,
            ..
        } = page;
        Decoded {
            role,
            cpu,
            first,
            last,
            events,
            calls,
            asked,
        }
    }
}

/// A record of an event that the user asked for, for a timeline.
fn item(cpu: CpuId, record: &AskedRecord) -> (CpuId, Ticks, TimelineItem) {
    let item = TimelineItem::Asked {
        event: record.event.clone(),
        tid: record.tid,
        fields: record.fields.clone(),
    };
    (cpu, record.time, item)
}

/// The common data for the frames of all stalls of a run.
struct Frames<'r> {
    manifest: &'r RunManifest,
    names: StoredNames,
    /// Those of the application's logs.
    marks: Vec<AppMark>,
}

/// The marks of all logs of a run. A damaged file is reported with the run's summary.
fn marks(run: &RunReader) -> Vec<AppMark> {
    let logs = run.marks().unwrap_or_default();
    logs.into_iter().flat_map(|log| log.marks).collect()
}

impl Frames<'_> {
    /// The time range of records that matter for a stall.
    fn around(&self, stall: &Stall) -> (Ticks, Ticks) {
        (stall.start - self.manifest.rate.ticks(BEFORE), stall.end)
    }

    /// If threads are followed, all wake-ups are recorded; otherwise only those of the measured CPUs.
    fn senders(&self) -> Senders {
        let manifest = self.manifest;
        if !manifest.threads.is_empty() {
            return Senders::new(manifest.rate);
        }
        let mut senders = Senders::of_some_wakings(manifest.rate);
        let cpus = manifest.probe.cpus.iter();
        cpus.for_each(|cpu| senders.records_wakings_of(cpu));
        senders
    }

    /// The begins of marks within a stall, and the ends of those that began before it.
    fn marks_in(&self, stall: &Stall) -> Vec<(CpuId, Ticks, TimelineItem)> {
        let from = self.manifest.realtime_ns(stall.start);
        let within = from..=self.manifest.realtime_ns(stall.end);
        let item = |mark: &AppMark| {
            let begins = within.contains(&mark.start_realtime_ns);
            let at = match begins {
                true => mark.start_realtime_ns,
                false => Some(mark.end_realtime_ns()).filter(|end| within.contains(end))?,
            };
            let after = self.manifest.rate.ticks(Nanos(at - from));
            let item = TimelineItem::Mark {
                name: mark.name.as_str().into(),
                length_ns: mark.length_ns,
                ends: !begins,
            };
            // Times of the day are rounded.
            Some((stall.cpu, (stall.start + after).min(stall.end), item))
        };
        self.marks.iter().filter_map(item).collect()
    }

    /// `pages`: at least those around the stall, in time order.
    fn of(&self, stall: &Stall, pages: &[Decoded]) -> Result<Vec<TimelineRow>, ReplayError> {
        let manifest = self.manifest;
        let (from, to) = self.around(stall);
        let mut senders = self.senders();
        if manifest.wakeups.is_empty() {
            manifest
                .results
                .iter()
                .for_each(|result| senders.spins(result.tid));
        }
        let measures = |tid| manifest.results.iter().any(|result| result.tid == tid);
        let produces = |account: &&ThreadAccount| {
            account.role.as_deref() == Some(PipelineRole::Producer.as_str())
        };
        let of = TimelineOf {
            stall,
            spins: manifest.wakeups.is_empty() && measures(stall.victim.tid),
            producer: manifest
                .threads
                .iter()
                .find(produces)
                .map(|account| account.tid),
        };
        let mut events: Vec<&KernelEvent> = Vec::new();
        let mut calls: Vec<CallRecord> = Vec::new();
        let mut instants: Vec<(CpuId, Ticks, TimelineItem)> = Vec::new();
        let mut kept = false;
        for page in pages
            .iter()
            .filter(|page| page.first <= to && from <= page.last)
        {
            page.events.iter().for_each(|event| senders.note(event));
            calls.extend(&page.calls);
            instants.extend(page.asked.iter().map(|record| item(page.cpu, record)));
            if page.role == TraceRole::Local {
                events.extend(&page.events);
                // Pages of the time before show who sent, not what ran.
                let inside = page.first <= stall.end && stall.start <= page.last;
                kept |= inside && page.cpu == stall.cpu;
            } else {
                let renames =
                    |event: &&KernelEvent| matches!(event.kind, EventKind::TaskRename { .. });
                events.extend(page.events.iter().filter(renames));
            }
        }
        if !kept && !manifest.trace.complete {
            return Err(ReplayError::NotKept {
                limit: manifest.trace.limit_bytes,
            });
        }
        events.sort_by_key(|event| event.time);
        let mut rows = timeline_rows(
            &of,
            events.iter().copied(),
            &senders,
            manifest.rate,
            &self.names,
        );
        instants.extend(self.marks_in(stall));
        if !instants.is_empty() {
            rows = with_instants(rows, stall, instants, manifest.rate);
        }
        if calls.is_empty() {
            return Ok(rows);
        }
        calls.sort_by_key(|call| call.time);
        Ok(with_calls(
            rows,
            &of,
            &events,
            &calls,
            manifest.rate,
            &self.names,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_stall_whose_own_pages_are_gone_has_no_frames_whatever_is_left_around_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/spin");
        let run = RunReader::open(&folder).unwrap();
        let context: TraceContext = run.trace_context().unwrap().unwrap();
        let mut manifest = run.manifest().clone();
        manifest.trace.complete = false;
        let frames = Frames {
            manifest: &manifest,
            names: StoredNames::new(&context),
            marks: Vec::new(),
        };
        let pages = run.trace_pages(Ticks(0), Ticks(u64::MAX)).unwrap();
        let mut pages = Decoders::new(&context, run.manifest())
            .unwrap()
            .decoded(pages);
        let inside = |page: &Decoded, stall: &Stall| {
            page.cpu == stall.cpu && page.first <= stall.end && stall.start <= page.last
        };
        let before = |page: &Decoded, stall: &Stall| {
            page.cpu == stall.cpu && page.last < stall.start && frames.around(stall).0 < page.last
        };
        let mut stalls = run.stalls().unwrap().map(Result::unwrap);
        let shown = |stall: &Stall| {
            pages.iter().any(|page| before(page, stall))
                && frames.of(stall, &pages).is_ok_and(|rows| !rows.is_empty())
        };
        let stall = stalls.find(shown).unwrap();
        pages.retain(|page| !inside(page, &stall));
        let gone = frames.of(&stall, &pages);
        assert!(matches!(gone, Err(ReplayError::NotKept { .. })), "{gone:?}");
    }

    #[test]
    fn the_frames_of_many_stalls_are_those_of_each() {
        for kind in ["spin", "wakeup", "attach", "pipeline", "passive"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/fixtures")
                .join(kind);
            let run = RunReader::open(&folder).unwrap();
            let all: Vec<Stall> = run.stalls().unwrap().map(Result::unwrap).collect();
            // In reverse order, and some of them twice.
            let mut some: Vec<Stall> = all
                .iter()
                .step_by((all.len() / 24).max(1))
                .copied()
                .collect();
            some.reverse();
            some.push(all[0]);
            let alone: Vec<_> = some
                .iter()
                .map(|stall| stall_timeline(&run, stall).unwrap())
                .collect();
            assert!(alone.iter().any(|rows| !rows.is_empty()), "{kind}");
            // All at once, a few at a time, and one by one.
            for together in [TOGETHER, BEFORE + Nanos(20_000_000), Nanos(0)] {
                let found = timelines(&run, &some, together).unwrap();
                let places: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
                assert_eq!(places, (0..some.len()).collect::<Vec<_>>(), "{kind}");
                for (at, rows) in found {
                    assert!(rows == alone[at], "{kind}: stall {}", some[at].id.0);
                }
            }
        }
    }
}
