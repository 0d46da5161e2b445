//! Hands a recording's rows to their takers, on whichever thread those run.

use super::fan_out::FanOut;
use super::section::Border;
use super::writer::{Panicked, Writer, WriterStatus};
use crate::error::RecordError;
use jitterscope_analyze::RowsOf;
use jitterscope_model::{
    AttributedStall, Delivery, Nanos, Row, RunFacts, RunManifest, Sink, SinkError, begin_all,
};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How often an output is checked for having begun.
const SOON: Duration = Duration::from_millis(5);

/// The use of the writer thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterUse {
    /// CPU time spent on the rows of the measured time.
    pub cpu_time: Nanos,
    /// How long the draining thread waited for it because too many rows were in flight.
    pub waited: Nanos,
}

/// Hands every row to the takers in order: on the calling thread or, once it was started, on the writer thread.
pub(crate) struct Outputs<'s> {
    id: String,
    place: Place<'s>,
    of_writer: Option<WriterStatus>,
}

enum Place<'s> {
    Here(Box<FanOut<'s>>),
    There(Box<Writer<'s>>),
    /// The writer thread panicked.
    Lost,
}

impl<'s> Outputs<'s> {
    /// Outputs whose takers run on the calling thread.
    pub(crate) fn new(takers: FanOut<'s>) -> Outputs<'s> {
        Outputs {
            id: takers.store.id().to_owned(),
            place: Place::Here(Box::new(takers)),
            of_writer: None,
        }
    }

    /// The id of the run.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Moves the takers to a thread of their own; they stay here if it cannot be started.
    pub(crate) fn write_beside<'env>(&mut self, scope: &'s Scope<'s, 'env>) {
        self.place = match std::mem::replace(&mut self.place, Place::Lost) {
            Place::Here(takers) => match Writer::start(scope, takers) {
                Ok(writer) => Place::There(Box::new(writer)),
                Err(takers) => Place::Here(takers),
            },
            other => other,
        };
    }

    /// Brings the takers back to this thread: waits until the writer thread has taken all rows and has ended.
    ///
    /// # Errors
    /// Rows were not taken, or the thread panicked.
    pub(crate) fn takers(&mut self) -> Result<&mut FanOut<'s>, SinkError> {
        if let Place::There(_) = self.place
            && let Place::There(writer) = std::mem::replace(&mut self.place, Place::Lost)
        {
            let (takers, reported) = writer.finish()?;
            self.place = Place::Here(takers);
            self.of_writer = Some(reported);
        }
        match &mut self.place {
            Place::Here(takers) => Ok(takers),
            Place::There(_) | Place::Lost => Err(SinkError::new(Panicked)),
        }
    }

    /// Closes the run after the rows so far, and goes on with another one.
    ///
    /// # Errors
    /// Rows were not taken.
    pub(super) fn border(&mut self, border: Border) -> Result<(), SinkError> {
        match &mut self.place {
            Place::Here(takers) => {
                takers.border(border);
                Ok(())
            }
            Place::There(writer) => writer.border(border),
            Place::Lost => Err(SinkError::new(Panicked)),
        }
    }

    /// The measurement is over: later CPU time does not count.
    pub(crate) fn measured(&mut self) -> Result<(), SinkError> {
        match &mut self.place {
            Place::There(writer) => writer.measured(),
            Place::Here(_) | Place::Lost => Ok(()),
        }
    }

    /// The use of the writer thread; `None` before it has ended, or if there was none.
    pub(crate) fn of_writer(&self) -> Option<WriterUse> {
        let nanos = |time: Duration| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.of_writer.as_ref().map(|reported| WriterUse {
            cpu_time: reported.cpu_time,
            waited: nanos(reported.waited),
        })
    }

    /// Sums the rows up as they arrive.
    pub(crate) fn sum_up(&mut self, of: RowsOf) -> Result<(), SinkError> {
        self.takers().map(|takers| takers.sum_up(of))
    }

    /// Begins the outputs besides the store on another thread, because they may wait for a reader; `meanwhile` empties
    /// the queues. [`Sink::begin`] begins the store itself, after this.
    ///
    /// # Errors
    /// An output refuses, or emptying the queues failed.
    pub(crate) fn begin_beside(
        &mut self,
        facts: &RunFacts,
        mut meanwhile: impl FnMut(&mut Self) -> Result<(), SinkError>,
    ) -> Result<(), RecordError> {
        let mut beside = self.takers().map_err(RecordError::Output)?.take_beside();
        let mut sinks: Vec<&mut (dyn Sink + Send)> = Vec::new();
        for output in &mut beside {
            sinks.push(output.sink.as_mut());
        }
        if sinks.is_empty() {
            return Ok(());
        }
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| begin_all(&mut sinks, facts));
            let mut next = Instant::now() + super::DRAIN_EVERY;
            let mut drained = Ok(());
            while !thread.is_finished() && drained.is_ok() {
                std::thread::sleep(SOON);
                if Instant::now() >= next {
                    drained = meanwhile(self);
                    next = Instant::now() + super::DRAIN_EVERY;
                }
            }
            let begun = thread
                .join()
                .unwrap_or_else(|_| Err(SinkError::new(OpenerPanicked)));
            drained.and(begun)
        })
        .and_then(|()| self.takers().map(|takers| takers.give_back(beside)))
        .map_err(RecordError::Output)
    }

    /// Whether the recording cannot usefully go on.
    pub(crate) fn is_stuck(&self) -> bool {
        match &self.place {
            Place::Here(takers) => takers.is_stuck(),
            Place::There(writer) => writer.is_stuck(),
            Place::Lost => true,
        }
    }

    /// Outputs that have failed since the last call, with their errors.
    pub(crate) fn failures(&mut self) -> Vec<(String, SinkError)> {
        let mut failures = self
            .of_writer
            .as_mut()
            .map(WriterStatus::failures)
            .unwrap_or_default();
        failures.extend(match &mut self.place {
            Place::Here(takers) => takers.failures(),
            Place::There(writer) => writer.failures(),
            Place::Lost => Vec::new(),
        });
        failures
    }
}

impl Sink for Outputs<'_> {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.takers()?.begin(facts)
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        match &mut self.place {
            Place::Here(takers) => takers.rows(batch),
            Place::There(writer) => writer.rows(batch),
            Place::Lost => Err(SinkError::new(Panicked)),
        }
    }

    fn stalls(&mut self, stalls: &mut Vec<AttributedStall>) -> Result<(), SinkError> {
        match &mut self.place {
            Place::Here(takers) => takers.stalls(stalls),
            Place::There(writer) => writer.stalls(stalls),
            Place::Lost => Err(SinkError::new(Panicked)),
        }
    }

    fn takes(&self, _row: &Row<'_>) -> bool {
        true
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        match &mut self.place {
            Place::Here(takers) => takers.tick(),
            // The number of final rows is queried at the end.
            Place::There(writer) => writer.tick().map(|()| 0),
            Place::Lost => Err(SinkError::new(Panicked)),
        }
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        self.takers()?.end(run)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the thread that opens the outputs panicked; this is a bug")]
struct OpenerPanicked;
