//! Replays followed threads: attached ones, and the pipeline's with its slow messages.

use super::steps::StoredPages;
use super::{EachStall, ReplayError, Replayed};
use crate::pipeline::split;
use crate::threads::{EpisodeRows, InOrder};
use jitterscope_attribute::FollowerSettings;
use jitterscope_model::{
    Attribution, Comm, Delivery, DrainTurn, IntervalRow, PipelineRole, PipelineVia, Record, Row,
    RunFacts, RunManifest, Setup, Sink, SinkError, Source, SourceTurn, Stall, ThreadAccount,
    TickRate, Ticks,
};
use jitterscope_source::TraceContext;
use jitterscope_store::RunReader;
use std::collections::HashMap;

/// Threads as their recorder followed them.
struct Followed<'a> {
    source: StoredPages<'a>,
    records: InOrder,
    rate: TickRate,
    /// Start of the measured time.
    from: Ticks,
    until: Ticks,
    producer: Option<i32>,
    /// How messages travelled; over the ring if the recorder was killed before it stored that.
    via: PipelineVia,
    /// When the last turn was.
    now: Ticks,
    /// Whether a turn said that it was the last.
    ended: bool,
    accounts: Vec<ThreadAccount>,
}

impl<'a> Followed<'a> {
    fn new(run: &RunReader, context: &'a TraceContext) -> Result<Followed<'a>, ReplayError> {
        let rate = run.manifest().rate;
        Ok(Followed {
            source: StoredPages::new(run, context)?,
            records: InOrder::new(settings(context, run.manifest())),
            rate,
            from: Ticks(0),
            until: Ticks(u64::MAX),
            producer: None,
            via: (run.manifest().pipeline.as_ref())
                .map(|pipeline| pipeline.setup.via)
                .unwrap_or_default(),
            now: Ticks(0),
            ended: false,
            accounts: Vec::new(),
        })
    }

    /// The next turn that its recorder ended, with what remains to do; `None` after the last one.
    fn turn(&mut self) -> Result<Option<DrainTurn>, ReplayError> {
        loop {
            let Followed {
                source,
                records,
                from,
                until,
                producer,
                ..
            } = self;
            let mut take = |record: Record<'_>| {
                match record {
                    Record::Setup(Setup::Measure {
                        from: begins,
                        until: ends,
                    }) => {
                        (*from, *until) = (*begins, *ends);
                    }
                    Record::Setup(Setup::Follow {
                        tid,
                        role: Some(PipelineRole::Producer),
                        ..
                    }) => {
                        *producer = Some(*tid);
                    }
                    _ => {}
                }
                records.take(record);
            };
            match source.turn(&mut (), &mut take)? {
                // Its recorder was killed.
                None if !self.ended => {
                    self.ended = true;
                    let (follower, names) = (&mut self.records.follower, &self.source.names);
                    self.accounts = follower.finish(self.now.min(self.until), names);
                    return Ok(None);
                }
                None => return Ok(None),
                Some(SourceTurn::Kept(turn)) => {
                    self.records.follower.quotas(&turn);
                    self.records.hand_over(turn.now, &self.source.names);
                    self.now = turn.now;
                    if let Some(end) = turn.end {
                        self.ended = true;
                        self.accounts = self.records.follower.finish(end, &self.source.names);
                    }
                    return Ok(Some(*turn));
                }
                Some(SourceTurn::Open | SourceTurn::Cut | SourceTurn::Missing) => {}
            }
        }
    }
}

fn settings(context: &TraceContext, manifest: &RunManifest) -> FollowerSettings {
    let rate = manifest.rate;
    let virtual_machine = manifest.host.hypervisor.is_some();
    let kept = context.setup.iter().find_map(|set| match &set.step {
        Setup::Following {
            join_within,
            remember,
            new_threads,
            children,
            names,
            user,
            most_threads,
            stacks,
            switches,
        } => Some(FollowerSettings {
            rate,
            join_within: *join_within,
            remember: *remember,
            new_threads: *new_threads,
            children: *children,
            names: names.iter().map(|name| Comm::new(name)).collect(),
            user: *user,
            most_threads: usize::try_from(*most_threads).unwrap_or(usize::MAX),
            virtual_machine,
            stacks: *stacks,
            switches: switches.clone(),
        }),
        _ => None,
    });
    kept.unwrap_or(FollowerSettings {
        rate,
        join_within: Ticks(0),
        remember: Ticks(0),
        new_threads: false,
        children: false,
        names: Vec::new(),
        user: None,
        most_threads: 0,
        virtual_machine,
        stacks: false,
        switches: None,
    })
}

/// Rows as a replay finds them.
pub(super) struct Found<'a> {
    pub(super) stall: &'a mut dyn FnMut(&Stall, &Attribution),
    pub(super) intervals: Vec<IntervalRow>,
}

impl Sink for Found<'_> {
    fn begin(&mut self, _facts: &RunFacts) -> Result<(), SinkError> {
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        for row in batch {
            match row {
                Row::Stall(stall, Some(attribution)) => (self.stall)(stall, attribution),
                Row::Interval(row, _) => self.intervals.push(**row),
                _ => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::default())
    }
}

/// Replays attached threads and finds their stalls again. If a part of the trace is missing, the stored stalls are
/// used, and those that the replay finds again get its verdict.
pub(super) fn attach(
    run: &RunReader,
    context: &TraceContext,
    each: EachStall<'_>,
) -> Result<Replayed, ReplayError> {
    if run.manifest().trace.complete {
        let mut count = 0;
        let mut whole = |stall: &Stall, attribution: &Attribution| {
            count += 1;
            each(stall, Some(attribution.clone()));
        };
        let (followed, intervals) = episodes(run, context, &mut whole)?;
        return Ok(Replayed {
            stalls: count,
            threads: Some(followed.accounts),
            intervals: Some(intervals),
            ..Replayed::default()
        });
    }
    let mut found: HashMap<(i32, Ticks, Ticks), Attribution> = HashMap::new();
    let mut keep = |stall: &Stall, attribution: &Attribution| {
        found.insert(
            (stall.victim.tid, stall.start, stall.end),
            attribution.clone(),
        );
    };
    let (followed, _) = episodes(run, context, &mut keep)?;
    let mut replayed = Replayed::default();
    for stall in run.stalls()? {
        let stall = stall?;
        let whole = !followed.source.breaks.touch(None, stall.start, stall.end);
        let again = found
            .remove(&(stall.victim.tid, stall.start, stall.end))
            .filter(|_| whole);
        let attribution = again.map(|again| Attribution {
            stall: stall.id,
            ..again
        });
        replayed.stalls += 1;
        replayed.without_trace += u64::from(attribution.is_none());
        each(&stall, attribution);
    }
    Ok(replayed)
}

fn episodes<'a>(
    run: &RunReader,
    context: &'a TraceContext,
    stall: &mut dyn FnMut(&Stall, &Attribution),
) -> Result<(Followed<'a>, Vec<IntervalRow>), ReplayError> {
    let mut followed = Followed::new(run, context)?;
    let mut found = Found {
        stall,
        intervals: Vec::new(),
    };
    let mut rows = None;
    while let Some(turn) = followed.turn()? {
        let threshold = run.manifest().probe.threshold_ns;
        let (rate, from, until) = (followed.rate, followed.from, followed.until);
        let rows = rows.get_or_insert_with(|| EpisodeRows::new(threshold, rate, from));
        let now = turn.end.unwrap_or(turn.now).min(until);
        rows.take_in(&mut followed.records.follower, now, &mut found)?;
        if let Some(end) = turn.end {
            rows.close_interval(end, &mut found)?;
        }
    }
    Ok((followed, found.intervals))
}

pub(super) fn pipeline(
    run: &RunReader,
    context: &TraceContext,
    each: EachStall<'_>,
) -> Result<Replayed, ReplayError> {
    let mut followed = Followed::new(run, context)?;
    let mut replayed = Replayed::default();
    let mut stalls = run.stalls()?;
    let mut hand_over =
        |replayed: &mut Replayed, stall: &Stall, attribution: Option<Attribution>| {
            replayed.stalls += 1;
            replayed.without_trace += u64::from(attribution.is_none());
            each(stall, attribution);
        };
    while let Some(turn) = followed.turn()? {
        // They are not reported as episodes; the threads' sums include them.
        followed.records.follower.take_episodes();
        for times in &turn.messages {
            for stall in stalls.by_ref() {
                let stall = stall?;
                if stall.id < times.stall {
                    hand_over(&mut replayed, &stall, None);
                    continue;
                }
                let whole = !followed.source.breaks.touch(None, stall.start, stall.end);
                let producer = followed
                    .producer
                    .filter(|_| whole && stall.id == times.stall);
                let (follower, names) = (&followed.records.follower, &followed.source.names);
                let via = followed.via;
                let again =
                    producer.map(|producer| split(follower, (producer, via), &stall, times, names));
                hand_over(&mut replayed, &stall, again);
                break;
            }
        }
    }
    for stall in stalls {
        hand_over(&mut replayed, &stall?, None);
    }
    replayed.threads = (!followed.source.breaks.any()).then_some(followed.accounts);
    Ok(replayed)
}
