//! A thread that takes the rows, so that the draining thread only reads, decodes and attributes.

use super::fan_out::FanOut;
use super::load::Load;
use super::section::Border;
use jitterscope_model::{AttributedStall, Nanos, Row, Sink, SinkError};
use jitterscope_platform::thread_usage;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Maximum of bytes in flight: at the highest load, 500,000 events and 24,000 stalls a second, this is what arrives in
/// two thirds of a second or more (about 20 MB of pages and as much of attributions). If a disk is later than that, the
/// drain waits, and then the kernel's own buffers fill up, which are about as large.
pub(super) const MOST_UNDER_WAY: usize = 32 << 20;
/// Bytes handed over at once: about 100 times a second at the highest load. Waking the thread then costs little, and it
/// works during a long turn of the drain.
const HAND_OVER: usize = 256 << 10;
/// Loads kept for reuse.
const SPARE: usize = 8;

/// A message to the thread.
#[derive(Default)]
struct Order {
    load: Load,
    /// Whether a turn has ended.
    tick: bool,
    /// Whether the measurement is over: later CPU time does not count.
    measured: bool,
    /// The run ends after the load, and another one begins.
    border: Option<Box<Border>>,
}

/// The reply to each order.
struct Report {
    load: Load,
    /// How many bytes it held.
    bytes: usize,
    measured: bool,
    /// CPU time of the thread so far.
    cpu_time: Nanos,
    stuck: bool,
    /// Outputs that have failed since the previous report.
    failures: Vec<(String, SinkError)>,
    /// Why no more rows are taken.
    error: Option<SinkError>,
}

/// The thread and its rows in flight.
pub(super) struct Writer<'s> {
    /// `None` once the last order was sent.
    orders: Option<Sender<Order>>,
    reports: Receiver<Report>,
    /// `None` once it is joined.
    thread: Option<ScopedJoinHandle<'s, Option<Box<FanOut<'s>>>>>,
    load: Load,
    spare: Vec<Load>,
    under_way: usize,
    /// Whether the measurement is over.
    over: bool,
    status: WriterStatus,
}

/// What the thread has reported so far.
#[derive(Default)]
pub(super) struct WriterStatus {
    stuck: bool,
    /// Outputs that have failed and were not reported yet.
    failures: Vec<(String, SinkError)>,
    /// CPU time of the thread; once the measurement is over, of the measured time.
    pub(super) cpu_time: Nanos,
    /// How long the drain has waited because too much was in flight.
    pub(super) waited: Duration,
    measured: bool,
    error: Option<SinkError>,
}

impl WriterStatus {
    /// Outputs that have failed since the last call, with their errors.
    pub(super) fn failures(&mut self) -> Vec<(String, SinkError)> {
        std::mem::take(&mut self.failures)
    }
}

impl<'s> Writer<'s> {
    /// Starts the thread with the affinity and scheduling class of the caller. Returns `takers` if it cannot be
    /// started.
    pub(super) fn start<'env>(
        scope: &'s Scope<'s, 'env>,
        takers: Box<FanOut<'s>>,
    ) -> Result<Writer<'s>, Box<FanOut<'s>>> {
        let (orders, to_do) = channel();
        let (answers, reports) = channel();
        // A closure that fails to start drops its captures, so the thread gets the takers only once it runs.
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
                    status: WriterStatus::default(),
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

    /// A turn has ended: sends the collected rows.
    pub(super) fn tick(&mut self) -> Result<(), SinkError> {
        self.order(Order {
            tick: true,
            ..Order::default()
        })
    }

    /// The measurement is over; rows may still arrive.
    pub(super) fn measured(&mut self) -> Result<(), SinkError> {
        self.over = true;
        self.order(Order {
            measured: true,
            ..Order::default()
        })
    }

    /// The run ends after the collected rows.
    pub(super) fn border(&mut self, border: Border) -> Result<(), SinkError> {
        self.order(Order {
            border: Some(Box::new(border)),
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

    /// Sends the collected rows with this order.
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
            // After the measurement, waiting costs no records.
            if !self.over {
                self.status.waited += began.elapsed();
            }
        }
        if let Some(error) = &self.status.error {
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

    /// Whether `bytes` more would exceed the limit. One load may always be in flight, however large.
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
        let status = &mut self.status;
        if !status.measured {
            status.cpu_time = cpu_time;
        }
        status.measured |= measured;
        status.stuck |= stuck;
        status.failures.extend(failures);
        status.error = status.error.take().or(error);
    }

    /// Whether the recording cannot usefully go on, from the reports so far.
    pub(super) fn is_stuck(&self) -> bool {
        self.status.stuck
    }

    /// Outputs reported as failed since the last call, with their errors.
    pub(super) fn failures(&mut self) -> Vec<(String, SinkError)> {
        self.status.failures()
    }

    /// Waits until all rows are taken, and ends the thread.
    ///
    /// # Errors
    /// Rows were not taken, or the thread panicked.
    pub(super) fn finish(mut self) -> Result<(Box<FanOut<'s>>, WriterStatus), SinkError> {
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
        let status = std::mem::take(&mut self.status);
        match &status.error {
            Some(error) => Err(error.clone()),
            None => ordered.map(|()| (takers, status)),
        }
    }
}

impl Drop for Writer<'_> {
    /// The recording failed: rows in flight are of no use.
    fn drop(&mut self) {
        self.orders = None;
        self.reports = channel().1;
        if let Some(thread) = self.thread.take() {
            // A panic was already printed.
            let _ = thread.join();
        }
    }
}

/// Executes orders until the sender is gone or nothing receives the reports.
fn take_all<'s>(
    mut takers: Box<FanOut<'s>>,
    orders: &Receiver<Order>,
    reports: &Sender<Report>,
) -> Box<FanOut<'s>> {
    let mut failed = false;
    for Order {
        mut load,
        tick,
        measured,
        border,
    } in orders
    {
        let error = if failed {
            None
        } else {
            take(&mut takers, &load, tick).err()
        };
        failed |= error.is_some();
        if let Some(border) = border {
            takers.border(*border);
        }
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

fn take(takers: &mut FanOut<'_>, load: &Load, tick: bool) -> Result<(), SinkError> {
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
