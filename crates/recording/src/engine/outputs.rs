//! Where a recording's rows go, on whichever thread they are taken.

use super::takers::Takers;
use super::writer::{Panicked, Told, Writer};
use crate::error::RecordError;
use jitterscope_analyze::RowsOf;
use jitterscope_model::{
    AttributedStall, Delivery, Nanos, Row, RunFacts, RunManifest, Sink, SinkError, begin_all,
};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// How often is looked whether an output has begun.
const SOON: Duration = Duration::from_millis(5);

/// What a thread of its own took that took the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterUse {
    /// CPU time for the rows of the measured time.
    pub cpu_time: Nanos,
    /// How long the thread that drains waited for it, because too many rows were on their way.
    pub waited: Nanos,
}

/// Hands every row to those who take them: on the calling thread or, once that was started, on one of their own, in
/// the same order.
pub(crate) struct Outputs<'s> {
    id: String,
    place: Place<'s>,
    of_writer: Option<Told>,
}

enum Place<'s> {
    Here(Box<Takers<'s>>),
    There(Box<Writer<'s>>),
    /// Their thread panicked.
    Lost,
}

impl<'s> Outputs<'s> {
    /// To these, on the calling thread.
    pub(crate) fn new(takers: Takers<'s>) -> Outputs<'s> {
        Outputs {
            id: takers.store.id().to_owned(),
            place: Place::Here(Box::new(takers)),
            of_writer: None,
        }
    }

    /// The id that the run has, or will have.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// From now on rows are taken on a thread of its own; on this one where there can be none.
    pub(crate) fn write_beside<'env>(&mut self, scope: &'s Scope<'s, 'env>) {
        self.place = match std::mem::replace(&mut self.place, Place::Lost) {
            Place::Here(takers) => match Writer::start(scope, takers) {
                Ok(writer) => Place::There(Box::new(writer)),
                Err(takers) => Place::Here(takers),
            },
            other => other,
        };
    }

    /// Who takes the rows, on this thread: where they had one of their own, all rows are taken and it has ended.
    ///
    /// # Errors
    /// Rows were not taken there, or the thread panicked.
    pub(crate) fn takers(&mut self) -> Result<&mut Takers<'s>, SinkError> {
        if let Place::There(_) = self.place
            && let Place::There(writer) = std::mem::replace(&mut self.place, Place::Lost)
        {
            let (takers, told) = writer.finish()?;
            self.place = Place::Here(takers);
            self.of_writer = Some(told);
        }
        match &mut self.place {
            Place::Here(takers) => Ok(takers),
            Place::There(_) | Place::Lost => Err(SinkError::new(Panicked)),
        }
    }

    /// The measurement is over: CPU time from here on is not of the measured time.
    pub(crate) fn measured(&mut self) -> Result<(), SinkError> {
        match &mut self.place {
            Place::There(writer) => writer.measured(),
            Place::Here(_) | Place::Lost => Ok(()),
        }
    }

    /// What the thread took that took the rows; `None` before it has ended, and where there was none.
    pub(crate) fn of_writer(&self) -> Option<WriterUse> {
        let nanos = |time: Duration| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.of_writer.as_ref().map(|told| WriterUse {
            cpu_time: told.cpu_time,
            waited: nanos(told.waited),
        })
    }

    /// Sums the rows up as they come.
    pub(crate) fn sum_up(&mut self, of: RowsOf) -> Result<(), SinkError> {
        self.takers().map(|takers| takers.sum_up(of))
    }

    /// Begins what stands beside the store on a thread of its own, for it may wait for somebody; `meanwhile`
    /// empties the queues. The store itself is begun by [`Sink::begin`], after this.
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

    /// Whether there is no sense in going on.
    pub(crate) fn is_stuck(&self) -> bool {
        match &self.place {
            Place::Here(takers) => takers.is_stuck(),
            Place::There(writer) => writer.is_stuck(),
            Place::Lost => true,
        }
    }

    /// Outputs that have failed since the last call, and why.
    pub(crate) fn failures(&mut self) -> Vec<(String, SinkError)> {
        let mut failures = self
            .of_writer
            .as_mut()
            .map(Told::failures)
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
            // How many rows are out is asked at the end.
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
