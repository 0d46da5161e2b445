//! Finds the stolen time of watched CPUs again.

use super::steps::StoredPages;
use super::threads::Found;
use super::{EachStall, ReplayError, Replayed};
use crate::passive::{take_in, watching};
use crate::threads::{EpisodeRows, InOrder, MakesRows, TakesRecords};
use jitterscope_attribute::{Belonging, NameResolver, PassiveWatch};
use jitterscope_model::{
    Attribution, Comm, CpuId, DrainTurn, IntervalRow, KernelEvent, PassiveCpu, Record, Setup, Sink,
    SinkError, Source, SourceTurn, Stall, ThreadRef, Ticks, Verdict,
};
use jitterscope_source::TraceContext;
use jitterscope_store::RunReader;
use std::collections::HashMap;

impl TakesRecords for PassiveWatch {
    fn measure(&mut self, from: Ticks, until: Ticks) {
        PassiveWatch::measure(self, from, until);
    }

    fn event(&mut self, event: &KernelEvent, names: &dyn NameResolver) {
        PassiveWatch::event(self, event, names);
    }

    fn lost(&mut self, cpu: CpuId, of: (Ticks, Ticks), why: Verdict, names: &dyn NameResolver) {
        PassiveWatch::lost(self, cpu, of, why, names);
    }

    fn senders_lost(&mut self, from: Ticks, to: Ticks) {
        PassiveWatch::senders_lost(self, from, to);
    }

    fn quotas(&mut self, turn: &DrainTurn) {
        PassiveWatch::quotas(self, turn);
    }

    fn take_newly_followed(&mut self) -> Vec<i32> {
        PassiveWatch::take_newly_followed(self)
    }

    fn set(&mut self, step: &Setup) {
        match step {
            Setup::Belongs {
                tid,
                comm,
                on,
                asleep,
            } => self.belongs(Belonging {
                thread: ThreadRef {
                    tid: *tid,
                    comm: Comm::new(comm),
                },
                on: *on,
                asleep: *asleep,
            }),
            Setup::Gone { cpu, at } => self.gone(*cpu, *at),
            _ => {}
        }
    }
}

impl MakesRows for PassiveWatch {
    fn make_rows(
        &mut self,
        rows: &mut EpisodeRows,
        now: Ticks,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        take_in(rows, self, now, sink)
    }
}

/// The results of a replay.
struct Again<'a> {
    source: StoredPages<'a>,
    cpus: Vec<PassiveCpu>,
    intervals: Vec<IntervalRow>,
}

/// Replays watched CPUs. If a part of the trace is missing, the stored stalls are used, and those that the replay finds
/// again get its verdict.
pub(super) fn passive(
    run: &RunReader,
    context: &TraceContext,
    each: EachStall<'_>,
) -> Result<Replayed, ReplayError> {
    let mut replayed = Replayed::default();
    if run.manifest().trace.complete {
        let mut whole = |stall: &Stall, attribution: &Attribution| {
            replayed.stalls += 1;
            each(stall, Some(attribution.clone()));
        };
        let again = watch(run, context, &mut whole)?;
        // The trace does not contain how each CPU was chosen.
        let chosen = |id: CpuId| {
            run.manifest()
                .passive
                .iter()
                .find(|cpu| cpu.cpu == id)?
                .chosen
                .clone()
        };
        let cpus = again.cpus.into_iter().map(|cpu| PassiveCpu {
            chosen: chosen(cpu.cpu),
            ..cpu
        });
        (replayed.passive, replayed.intervals) = (Some(cpus.collect()), Some(again.intervals));
        return Ok(replayed);
    }
    let mut found: HashMap<(CpuId, Ticks, Ticks), Attribution> = HashMap::new();
    let mut keep = |stall: &Stall, attribution: &Attribution| {
        found.insert((stall.cpu, stall.start, stall.end), attribution.clone());
    };
    let again = watch(run, context, &mut keep)?;
    for stall in run.stalls()? {
        let stall = stall?;
        let whole = !again.source.breaks.touch(None, stall.start, stall.end);
        let attribution = found
            .remove(&(stall.cpu, stall.start, stall.end))
            .filter(|_| whole);
        let attribution = attribution.map(|again| Attribution {
            stall: stall.id,
            ..again
        });
        replayed.stalls += 1;
        replayed.without_trace += u64::from(attribution.is_none());
        each(&stall, attribution);
    }
    Ok(replayed)
}

fn watch<'a>(
    run: &RunReader,
    context: &'a TraceContext,
    stall: &mut dyn FnMut(&Stall, &Attribution),
) -> Result<Again<'a>, ReplayError> {
    let manifest = run.manifest();
    let (rate, probe) = (manifest.rate, &manifest.probe);
    let source = StoredPages::new(run, context)?;
    let mut again = Again {
        source,
        cpus: Vec::new(),
        intervals: Vec::new(),
    };
    let kept = context
        .setup
        .iter()
        .find_map(|set| watching(&set.step, probe.threshold_ns, rate));
    let Some(settings) = kept else {
        return Ok(again);
    };
    let mut records = InOrder::of(PassiveWatch::new(settings));
    let mut found = Found {
        stall,
        intervals: Vec::new(),
    };
    // Stalls count from the start of the measurement.
    let (mut rows, mut until) = (None, Ticks(u64::MAX));
    let (mut last, mut ended) = (Ticks(0), false);
    loop {
        let mut take = |record: Record<'_>| {
            if let Record::Setup(Setup::Measure { from, until: end }) = record {
                until = *end;
                rows = Some(
                    EpisodeRows::new(probe.threshold_ns, rate, *from).every(probe.interval_ns),
                );
            }
            records.take(record);
        };
        let turn = match again.source.turn(&mut (), &mut take)? {
            // Its recorder was killed.
            None if !ended => {
                again.cpus = records
                    .follower
                    .finish(last.min(until), &again.source.names);
                break;
            }
            None => break,
            Some(SourceTurn::Kept(turn)) => turn,
            Some(SourceTurn::Open | SourceTurn::Cut | SourceTurn::Missing) => continue,
        };
        records.follower.quotas(&turn);
        records.hand_over(turn.now, &again.source.names);
        last = turn.now;
        if let Some(end) = turn.end {
            ended = true;
            again.cpus = records.follower.finish(end, &again.source.names);
        }
        if let Some(rows) = &mut rows {
            let now = turn.end.unwrap_or(turn.now).min(until);
            take_in(rows, &mut records.follower, now, &mut found)?;
            if let Some(end) = turn.end {
                rows.close_interval(end, &mut found)?;
            }
        }
    }
    again.intervals = found.intervals;
    Ok(again)
}
