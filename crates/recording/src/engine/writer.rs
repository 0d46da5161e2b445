//! A thread of its own for whoever takes the rows, so that the one that drains only reads, decodes and attributes.

use super::load::Load;
use super::takers::Takers;
use jitterscope_model::{AttributedStall, Nanos, Row, Sink, SinkError};
use jitterscope_platform::thread_usage;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Rows on their way at most, bytes: what comes in two thirds of a second or more where most comes, at half a million
/// events and 24,000 stalls a second (some 20 MB of pages and as much of attributions). A disk that is late by more
/// finds the drain waiting, and then the kernel's own buffers fill up, which are of this order.
pub(super) const MOST_UNDER_WAY: usize = 32 << 20;
/// Rows handed over at once, bytes: some hundred times a second where most comes, so that waking the thread costs little,
/// and it works while a long turn of the drain goes on.
const HAND_OVER: usize = 256 << 10;
/// Loads that are kept to be filled again.
const SPARE: usize = 8;

/// What the thread is asked.
#[derive(Default)]
struct Order {
    load: Load,
    /// A turn has ended.
    tick: bool,
    /// The measurement is over: CPU time from here on is not of the measured time.
    measured: bool,
}

/// What it answers to each order.
struct Report {
    /// Empty, to be filled again.
    load: Load,
    /// What it held.
    bytes: usize,
    measured: bool,
    /// CPU time that the thread has used.
    cpu_time: Nanos,
    stuck: bool,
    /// Outputs that have failed since the report before.
    failures: Vec<(String, SinkError)>,
    /// Why no more rows are taken.
    error: Option<SinkError>,
}

/// The thread, and what is on its way there.
pub(super) struct Writer<'s> {
    /// `None` once it has all of them.
    orders: Option<Sender<Order>>,
    reports: Receiver<Report>,
    /// `None` once it is joined.
    thread: Option<ScopedJoinHandle<'s, Option<Box<Takers<'s>>>>>,
    load: Load,
    spare: Vec<Load>,
    under_way: usize,
    /// Whether the measurement is over.
    over: bool,
    told: Told,
}

/// What was heard of the thread.
#[derive(Default)]
pub(super) struct Told {
    stuck: bool,
    /// Outputs that have failed, and were not reported to anybody yet.
    failures: Vec<(String, SinkError)>,
    /// CPU time of the thread; of the measured time once that is over.
    pub(super) cpu_time: Nanos,
    /// How long the drain has waited because too much was on its way.
    pub(super) waited: Duration,
    measured: bool,
    error: Option<SinkError>,
}

impl Told {
    /// Outputs that have failed since the last call, and why.
    pub(super) fn failures(&mut self) -> Vec<(String, SinkError)> {
        std::mem::take(&mut self.failures)
    }
}

impl<'s> Writer<'s> {
    /// Starts the thread, where the calling one may run and in its scheduling class. Gives `takers` back where there can
    /// be no thread.
    pub(super) fn start<'env>(
        scope: &'s Scope<'s, 'env>,
        takers: Box<Takers<'s>>,
    ) -> Result<Writer<'s>, Box<Takers<'s>>> {
        let (orders, to_do) = channel();
        let (answers, reports) = channel();
        // What a thread that cannot be started was to have is lost: it is given its own once it runs.
        let (hand, given) = channel();
        let run = move || {
            given
                .recv()
                .ok()
                .map(|takers| take_all(takers, &to_do, &answers))
        };
        match std::thread::Builder::new()
            .name("js-writer".into())
            .spawn_scoped(scope, run)
        {
            Ok(thread) => {
                hand.send(takers).map_err(|unsent| unsent.0)?;
                Ok(Writer {
                    orders: Some(orders),
                    reports,
                    thread: Some(thread),
                    load: Load::default(),
                    spare: Vec::new(),
                    under_way: 0,
                    over: false,
                    told: Told::default(),
                })
            }
            Err(_) => Err(takers),
        }
    }

    pub(super) fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        self.load.rows(batch);
        self.hand_over_if_large()
    }

    pub(super) fn stalls(&mut self, stalls: &mut Vec<AttributedStall>) -> Result<(), SinkError> {
        self.load.stalls(stalls);
        self.hand_over_if_large()
    }

    /// A turn has ended: what was gathered goes out.
    pub(super) fn tick(&mut self) -> Result<(), SinkError> {
        self.order(Order {
            tick: true,
            ..Order::default()
        })
    }

    /// The measurement is over; rows may still come.
    pub(super) fn measured(&mut self) -> Result<(), SinkError> {
        self.over = true;
        self.order(Order {
            measured: true,
            ..Order::default()
        })
    }

    fn hand_over_if_large(&mut self) -> Result<(), SinkError> {
        if self.load.bytes() < HAND_OVER {
            Ok(())
        } else {
            self.order(Order::default())
        }
    }

    /// Hands over what was gathered, with this.
    fn order(&mut self, order: Order) -> Result<(), SinkError> {
        let bytes = self.load.bytes();
        while let Ok(report) = self.reports.try_recv() {
            self.hear(report);
        }
        if self.is_full(bytes) {
            let began = Instant::now();
            while self.is_full(bytes) {
                let report = self.reports.recv().map_err(|_| SinkError::new(Panicked))?;
                self.hear(report);
            }
            // When nothing is measured any more it costs no records.
            if !self.over {
                self.told.waited += began.elapsed();
            }
        }
        if let Some(error) = &self.told.error {
            return Err(error.clone());
        }
        let load = std::mem::replace(&mut self.load, self.spare.pop().unwrap_or_default());
        self.under_way += bytes;
        let sent = self
            .orders
            .as_ref()
            .and_then(|orders| orders.send(Order { load, ..order }).ok());
        sent.ok_or_else(|| SinkError::new(Panicked))
    }

    /// Whether so many bytes more are too many. One load may always be on its way, however large.
    fn is_full(&self, bytes: usize) -> bool {
        self.under_way > 0 && self.under_way + bytes > MOST_UNDER_WAY
    }

    fn hear(&mut self, report: Report) {
        let Report {
            load,
            bytes,
            measured,
            cpu_time,
            stuck,
            failures,
            error,
        } = report;
        self.under_way -= bytes;
        if self.spare.len() < SPARE {
            self.spare.push(load);
        }
        let told = &mut self.told;
        if !told.measured {
            told.cpu_time = cpu_time;
        }
        told.measured |= measured;
        told.stuck |= stuck;
        told.failures.extend(failures);
        told.error = told.error.take().or(error);
    }

    /// Whether there is no sense in going on, as far as is known.
    pub(super) fn is_stuck(&self) -> bool {
        self.told.stuck
    }

    /// Outputs that are known to have failed since the last call, and why.
    pub(super) fn failures(&mut self) -> Vec<(String, SinkError)> {
        self.told.failures()
    }

    /// Waits until all of it is taken, and ends the thread.
    ///
    /// # Errors
    /// Rows were not taken, or the thread panicked.
    pub(super) fn finish(mut self) -> Result<(Box<Takers<'s>>, Told), SinkError> {
        let ordered = self.order(Order::default());
        self.orders = None;
        while let Ok(report) = self.reports.recv() {
            self.hear(report);
        }
        let takers = self
            .thread
            .take()
            .and_then(|thread| thread.join().ok().flatten());
        let takers = takers.ok_or_else(|| SinkError::new(Panicked))?;
        let told = std::mem::take(&mut self.told);
        match &told.error {
            Some(error) => Err(error.clone()),
            None => ordered.map(|()| (takers, told)),
        }
    }
}

impl Drop for Writer<'_> {
    /// Of a recording that failed: what is on its way is of no use any more.
    fn drop(&mut self) {
        self.orders = None;
        self.reports = channel().1;
        if let Some(thread) = self.thread.take() {
            // A panic was already printed.
            let _ = thread.join();
        }
    }
}

/// Does as ordered until no more orders come, or nobody hears of it.
fn take_all<'s>(
    mut takers: Box<Takers<'s>>,
    orders: &Receiver<Order>,
    reports: &Sender<Report>,
) -> Box<Takers<'s>> {
    let mut failed = false;
    for Order {
        mut load,
        tick,
        measured,
    } in orders
    {
        let error = if failed {
            None
        } else {
            take(&mut takers, &load, tick).err()
        };
        failed |= error.is_some();
        let bytes = load.bytes();
        load.clear();
        let report = Report {
            load,
            bytes,
            measured,
            cpu_time: thread_usage().cpu_time,
            stuck: takers.is_stuck(),
            failures: takers.failures(),
            error,
        };
        if reports.send(report).is_err() {
            break;
        }
    }
    takers
}

fn take(takers: &mut Takers<'_>, load: &Load, tick: bool) -> Result<(), SinkError> {
    let rows = load.lend();
    if !rows.is_empty() {
        takers.rows(&rows)?;
    }
    if tick {
        takers.tick()?;
    }
    Ok(())
}

#[derive(Debug, thiserror::Error)]
#[error("the thread that takes the rows panicked; this is a bug")]
pub(super) struct Panicked;
