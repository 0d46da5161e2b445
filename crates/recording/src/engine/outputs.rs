//! Where a recording's rows go: the run that is stored, and whatever else was asked for.

use crate::error::RecordError;
use jitterscope_analyze::{RowSummer, RowSums, RowsOf};
use jitterscope_model::{Delivery, Row, RunFacts, RunManifest, Sink, SinkError, begin_all};
use jitterscope_store::{Room, StoreSink};
use std::time::Instant;

type Opener<'a> = Box<dyn FnOnce() -> Result<Box<dyn Sink + Send + 'a>, SinkError> + 'a>;

/// A place for a recording's rows beside the run that is stored.
pub struct Output<'a> {
    name: String,
    open: Opener<'a>,
    essential: bool,
}

impl<'a> Output<'a> {
    /// Called `name` where it must be spoken of. It is opened when our own threads have left the measured
    /// CPUs, so that threads which it starts keep off them, too, and before anything is measured.
    pub fn new(
        name: impl Into<String>,
        open: impl FnOnce() -> Result<Box<dyn Sink + Send + 'a>, SinkError> + 'a,
    ) -> Output<'a> {
        Output { name: name.into(), open: Box::new(open), essential: false }
    }

    /// A sink that is there already.
    pub fn to(name: impl Into<String>, sink: &'a mut (dyn Sink + Send + 'a)) -> Output<'a> {
        Output::new(name, move || Ok(Box::new(sink) as Box<dyn Sink + Send + 'a>))
    }

    /// Without it there is no sense in going on: when it fails, the recording ends with what it has.
    #[must_use]
    pub fn essential(mut self) -> Output<'a> {
        self.essential = true;
        self
    }
}

/// What became of an output's rows.
#[derive(Debug)]
pub struct Delivered {
    /// The output's name.
    pub name: String,
    /// Rows delivered and lost.
    pub delivery: Delivery,
    /// Why it failed, if it did. Rows that came after that are among those lost.
    pub error: Option<SinkError>,
}

/// An output that is open.
struct Beside<'a> {
    name: String,
    sink: Box<dyn Sink + Send + 'a>,
    essential: bool,
    /// Rows that became something there, or would have.
    taken: u64,
    /// How many of them were out for good when last asked.
    out: u64,
    error: Option<SinkError>,
    /// Whether its failure was reported.
    reported: bool,
}

impl Beside<'_> {
    fn rows(&mut self, batch: &[Row<'_>]) {
        self.taken += batch.iter().filter(|row| self.sink.takes(row)).count() as u64;
        if self.error.is_none() {
            self.error = self.sink.rows(batch).err();
        }
    }

    fn tick(&mut self) {
        if self.error.is_some() {
            return;
        }
        match self.sink.tick() {
            Ok(out) => self.out = out,
            Err(error) => self.error = Some(error),
        }
    }

    fn end(mut self, run: &RunManifest) -> Delivered {
        let ended = match self.error.take() {
            Some(error) => Err(error),
            None => self.sink.end(run),
        };
        let (delivery, error) = match ended {
            Ok(delivery) => (delivery, None),
            Err(error) => {
                let (delivered, lost) = (self.out, self.taken.saturating_sub(self.out));
                let problem = Some(error.to_string());
                (Delivery { delivered, lost, confirmed: true, problem, ..Delivery::default() }, Some(error))
            }
        };
        Delivered { name: self.name, delivery, error }
    }
}

/// Tells every row to the run that is stored and, once the measurement has begun, to every other output.
/// None of them ends it by failing: what fails is passed over, and what it loses is counted.
pub(crate) struct Outputs<'a> {
    pub(crate) store: StoreSink,
    beside: Vec<Beside<'a>>,
    /// What the rows come to, for the run to keep.
    sums: Option<RowSummer>,
    begun: bool,
}

impl<'a> Outputs<'a> {
    /// Opens what stands beside the store.
    pub(crate) fn open(outputs: Vec<Output<'a>>) -> Result<Opened<'a>, SinkError> {
        let mut opened = Vec::new();
        for Output { name, open, essential } in outputs {
            let sink = open()?;
            opened.push(Beside { name, sink, essential, taken: 0, out: 0, error: None, reported: false });
        }
        Ok(Opened(opened))
    }

    /// Sums the rows up as they come.
    pub(crate) fn sum_up(&mut self, of: RowsOf) {
        self.sums = Some(RowSummer::stored(of));
    }

    /// What all rows came to; `None` where not all were stored, or what was thought of them before does not
    /// hold of the run.
    pub(crate) fn sums(&mut self, run: &RunManifest, kernel_hz: Option<u32>) -> Option<RowSums> {
        let summer = self.sums.take()?;
        let whole = !matches!(self.store.room(), Room::None { .. });
        (whole && summer.of() == RowsOf::run(run)).then(|| summer.finish(run, kernel_hz))
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
        let mut beside = std::mem::take(&mut self.beside);
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
                std::thread::sleep(super::SOON);
                if Instant::now() >= next {
                    drained = meanwhile(self);
                    next = Instant::now() + super::DRAIN_EVERY;
                }
            }
            let begun = thread.join().unwrap_or_else(|_| Err(SinkError::new(Panicked)));
            drained.and(begun)
        })
        .map_err(RecordError::Output)?;
        self.beside = beside;
        Ok(())
    }

    /// Whether there is no sense in going on.
    pub(crate) fn is_stuck(&self) -> bool {
        self.store.is_stuck() || self.beside.iter().any(|output| output.essential && output.error.is_some())
    }

    /// Outputs that have failed since the last call, and why.
    pub(crate) fn failures(&mut self) -> impl Iterator<Item = (&str, &SinkError)> {
        self.beside.iter_mut().filter_map(|output| {
            let error = output.error.as_ref().filter(|_| !output.reported)?;
            output.reported = true;
            Some((&*output.name, error))
        })
    }

    /// Everything out but the run itself, which is closed last: it says what the others lost.
    pub(crate) fn end_beside(&mut self, run: &RunManifest) -> Vec<Delivered> {
        self.beside.drain(..).map(|output| output.end(run)).collect()
    }
}

/// Outputs that are open and wait for the store.
pub(crate) struct Opened<'a>(Vec<Beside<'a>>);

impl<'a> Opened<'a> {
    pub(crate) fn with(self, store: StoreSink) -> Outputs<'a> {
        Outputs { store, beside: self.0, sums: None, begun: false }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the thread that opens the outputs panicked; this is a bug")]
struct Panicked;

impl Sink for Outputs<'_> {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        self.begun = true;
        self.store.begin(facts)
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        self.store.rows(batch)?;
        if self.begun {
            if let Some(sums) = &mut self.sums {
                sums.rows(batch)?;
            }
            self.beside.iter_mut().for_each(|output| output.rows(batch));
        }
        Ok(())
    }

    fn takes(&self, _row: &Row<'_>) -> bool {
        true
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.beside.iter_mut().for_each(Beside::tick);
        self.store.tick()
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        self.end_beside(run);
        self.store.end(run)
    }
}
