//! The last minute of a watch by second, for a live screen: each CPU, each culprit, and the longest stalls.
//!
//! A stall belongs to the second in which it ends, whole. Memory is bounded: culprits beyond [`MOST_CULPRITS`] share a row
//! per kind, and [`MOST_STALLS`] stalls are kept.

use jitterscope_model::{
    Attribution, ClockReading, CpuId, CulpritSums, Delivery, KeyLevel, Nanos, PutInOrder, Row,
    RunFacts, RunManifest, Sink, SinkError, Stall, Subject, ThreadRef, TickRate, Ticks,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The seconds that are kept apart, besides the one that is not over.
pub const SECONDS: usize = 60;
const KEPT: usize = SECONDS + 1;
const MOST_CULPRITS: usize = 256;
const MOST_STALLS: usize = 64;
/// Seconds after which a stall is no longer listed.
const LISTED: u64 = 600;
/// Rows arrive this long after their time: a second is over for the screen once its rows are there.
const LATE: Duration = Duration::from_millis(200);

/// Stalls of some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSum {
    pub time: Nanos,
    pub count: u64,
    pub longest: Nanos,
}

impl LiveSum {
    fn add(&mut self, of: LiveSum) {
        self.time += of.time;
        self.count += of.count;
        self.longest = self.longest.max(of.longest);
    }
}

/// Stalls since the start, and in each of the last seconds.
#[derive(Clone, Debug)]
pub struct LiveSums {
    pub total: LiveSum,
    /// By second, modulo [`KEPT`]: the second, and its stalls.
    seconds: [(u64, LiveSum); KEPT],
}

impl Default for LiveSums {
    fn default() -> LiveSums {
        LiveSums {
            total: LiveSum::default(),
            seconds: [(0, LiveSum::default()); KEPT],
        }
    }
}

impl LiveSums {
    fn add(&mut self, second: u64, of: LiveSum) {
        self.total.add(of);
        let slot = &mut self.seconds[place(second)];
        if slot.0 != second {
            *slot = (second, LiveSum::default());
        }
        slot.1.add(of);
    }

    /// The stalls of one second; none if it is longer ago than [`SECONDS`].
    #[must_use]
    pub fn second(&self, second: u64) -> LiveSum {
        match self.seconds[place(second)] {
            (of, sum) if of == second => sum,
            _ => LiveSum::default(),
        }
    }

    /// The stalls of so many seconds before this one.
    #[must_use]
    pub fn before(&self, second: u64, seconds: u64) -> LiveSum {
        let mut sum = LiveSum::default();
        for of in second.saturating_sub(seconds)..second {
            sum.add(self.second(of));
        }
        sum
    }
}

fn place(second: u64) -> usize {
    // Below KEPT.
    (second % KEPT as u64) as usize
}

/// A CPU.
#[derive(Clone, Debug)]
pub struct LiveCpu {
    pub cpu: CpuId,
    /// The thread of its last stall, which is measured.
    pub victim: Option<ThreadRef>,
    pub sums: LiveSums,
}

/// A culprit.
#[derive(Clone, Debug)]
pub struct LiveCulprit {
    pub subject: Subject,
    /// The number of its threads or workers, as `SumRow::threads`.
    pub threads: u64,
    pub sums: LiveSums,
}

/// A long stall.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveStall {
    pub cpu: CpuId,
    /// Its start, nanoseconds since the epoch.
    pub realtime_ns: u64,
    pub length: Nanos,
    /// The culprits and their times, longest first; empty without an attribution.
    pub parts: Vec<(Subject, Nanos)>,
    second: u64,
}

/// What a screen shows.
#[derive(Clone, Debug, Default)]
pub struct LiveView {
    /// The second that is not over yet, counted from the start of the measurement.
    pub second: u64,
    pub cpus: Vec<LiveCpu>,
    /// In order of first appearance.
    pub culprits: Vec<LiveCulprit>,
    /// Longest first.
    pub stalls: Vec<LiveStall>,
}

#[derive(Debug)]
struct State {
    second: u64,
    /// When the measurement began.
    begun: Option<Instant>,
    cpus: BTreeMap<CpuId, (Option<ThreadRef>, LiveSums)>,
    culprits: CulpritSums<(), LiveSums>,
    stalls: Vec<LiveStall>,
}

/// The last minute, shared by the thread that takes the rows and the screen.
#[derive(Clone, Debug)]
pub struct Live(Arc<Mutex<State>>);

impl Default for Live {
    fn default() -> Live {
        Live(Arc::new(Mutex::new(State {
            second: 0,
            begun: None,
            cpus: BTreeMap::new(),
            culprits: CulpritSums::new(KeyLevel::Program, MOST_CULPRITS),
            stalls: Vec::new(),
        })))
    }
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of what is known now.
    #[must_use]
    pub fn look(&self) -> LiveView {
        let state = self.lock();
        let since = state.begun.map(|begun| begun.elapsed());
        let now = since.map_or(0, |since| since.saturating_sub(LATE).as_secs());
        let cpus = state.cpus.iter().map(|(cpu, (victim, sums))| LiveCpu {
            cpu: *cpu,
            victim: *victim,
            sums: sums.clone(),
        });
        let culprits = state.culprits.rows().map(|row| LiveCulprit {
            subject: row.subject.clone(),
            threads: row.threads(),
            sums: row.value.clone(),
        });
        LiveView {
            second: state.second.max(now),
            cpus: cpus.collect(),
            culprits: culprits.collect(),
            stalls: state.stalls.clone(),
        }
    }

    /// The consumer of a recording's rows that fills it.
    #[must_use]
    pub fn sink(&self) -> Box<dyn Sink + Send> {
        Box::new(LiveSink {
            live: self.clone(),
            facts: None,
        })
    }
}

struct LiveSink {
    live: Live,
    /// The rate and the start of the recording's clock.
    facts: Option<(TickRate, ClockReading)>,
}

impl State {
    /// The second of a time.
    fn at(&mut self, time: Ticks, rate: TickRate, clock: &ClockReading) -> u64 {
        let second = rate.nanos(time.since(clock.ticks)).0 / 1_000_000_000;
        self.second = self.second.max(second);
        second
    }

    fn stall(
        &mut self,
        stall: &Stall,
        attribution: Option<&Attribution>,
        (rate, clock): &(TickRate, ClockReading),
    ) {
        let second = self.at(stall.end, *rate, clock);
        let length = rate.nanos(stall.length());
        let one = |time| LiveSum {
            time,
            count: 1,
            longest: time,
        };
        let cpu = self.cpus.entry(stall.cpu).or_default();
        cpu.0 = Some(stall.victim);
        cpu.1.add(second, one(length));
        for part in attribution.iter().flat_map(|of| &of.parts) {
            let at = self.culprits.position_of((), &part.culprit);
            self.culprits.at(at).add(second, one(part.net));
        }
        let oldest = self.second.saturating_sub(LISTED);
        self.stalls.retain(|of| of.second >= oldest);
        let at = self.stalls.partition_point(|of| of.length >= length);
        if at >= MOST_STALLS {
            return;
        }
        let mut parts: Vec<(Subject, Nanos)> = attribution
            .iter()
            .flat_map(|of| &of.parts)
            .map(|part| (part.culprit.subject.clone(), part.net))
            .collect();
        parts.order_by_key(|(_, net)| std::cmp::Reverse(*net));
        let since = rate.nanos(stall.start.since(clock.ticks)).0;
        self.stalls.truncate(MOST_STALLS - 1);
        self.stalls.insert(
            at,
            LiveStall {
                cpu: stall.cpu,
                realtime_ns: clock.realtime_ns.saturating_add(since),
                length,
                parts,
                second,
            },
        );
    }
}

impl Sink for LiveSink {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.facts = Some((facts.rate, facts.clock));
        let mut state = self.live.lock();
        state.begun = Some(Instant::now());
        for cpu in facts.cpus.iter() {
            state.cpus.entry(cpu).or_default();
        }
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        let Some(facts) = &self.facts else {
            return Ok(());
        };
        let mut state = self.live.lock();
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => state.stall(stall, *attribution, facts),
                Row::Interval(row, _) => {
                    state.at(row.end, facts.0, &facts.1);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        Ok(0)
    }

    fn end(&mut self, _run: &RunManifest) -> Result<Delivery, SinkError> {
        Ok(Delivery::of(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(time: u64) -> LiveSum {
        LiveSum {
            time: Nanos(time),
            count: 1,
            longest: Nanos(time),
        }
    }

    #[test]
    fn sums_of_seconds_forget_only_what_is_older_than_a_minute() {
        let mut sums = LiveSums::default();
        for second in 0..200 {
            sums.add(second, one(second));
            sums.add(second, one(1));
        }
        assert_eq!(sums.total.count, 400);
        // The current second does not displace the oldest that is shown.
        let minute = sums.before(199, 60);
        assert_eq!(minute.count, 120);
        assert_eq!(minute.longest, Nanos(198));
        assert_eq!(minute.time, Nanos((139..199).sum::<u64>() + 60));
        assert_eq!(sums.second(199).time, Nanos(200));
        assert_eq!(sums.second(100), LiveSum::default());
        assert_eq!(sums.before(3, 60), LiveSum::default());
        assert_eq!(sums.before(400, 60), LiveSum::default());
    }

    fn stall(id: u64, cpu: u32, start: u64, length: u64) -> Stall {
        Stall {
            id: jitterscope_model::StallId(id),
            cpu: CpuId(cpu),
            victim: ThreadRef {
                tid: 1,
                comm: jitterscope_model::Comm::new("v"),
            },
            start: Ticks(start),
            end: Ticks(start + length),
        }
    }

    #[test]
    fn the_longest_stalls_stay_with_their_time_and_no_more_than_a_screen_needs() {
        let live = Live::default();
        let clock = ClockReading {
            ticks: Ticks(1000),
            monotonic_raw_ns: 0,
            realtime_ns: 5_000_000_000,
            boottime_ns: None,
            width_ticks: 0,
        };
        let facts = (TickRate::NANOSECONDS, clock);
        for n in 0..1000 {
            let stall = stall(n, 3, 1000 + n * 10_000_000, 1000 + n % 500);
            live.lock().stall(&stall, None, &facts);
        }
        let view = live.look();
        assert_eq!(view.stalls.len(), MOST_STALLS);
        assert_eq!(view.stalls[0].length, Nanos(1499));
        assert!(
            view.stalls
                .is_sorted_by_key(|of| std::cmp::Reverse(of.length))
        );
        assert_eq!(view.stalls[0].realtime_ns, 5_000_000_000 + 4_990_000_000);
        assert_eq!(view.second, 9);
        assert_eq!(view.cpus[0].sums.total.count, 1000);
        // Ten minutes later, a short one displaces all of them.
        live.lock()
            .stall(&stall(1, 3, 700_000_000_000, 10), None, &facts);
        assert_eq!(live.look().stalls.len(), 1);
    }
}
