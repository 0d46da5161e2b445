//! The takers of a recording's rows: the stored run, its sums, and the requested outputs.

use super::output::{Beside, Delivered, Output};
use jitterscope_analyze::{RowSummer, RowSums, RowsOf};
use jitterscope_model::{Delivery, Row, RunFacts, RunManifest, Sink, SinkError};
use jitterscope_store::{Room, StoreSink};

/// Hands every row to the stored run and, once the measurement has begun, to every other output. A failing output does
/// not end the recording: it is skipped, and its lost rows are counted.
pub(crate) struct FanOut<'a> {
    pub(crate) store: StoreSink,
    beside: Vec<Beside<'a>>,
    /// The sums of the rows, stored with the run.
    sums: Option<RowSummer>,
    begun: bool,
}

impl<'a> FanOut<'a> {
    /// The stored run alone.
    pub(crate) fn of_store(store: StoreSink) -> FanOut<'a> {
        Opened(Vec::new()).with(store)
    }

    /// Sums the rows up as they arrive.
    pub(crate) fn sum_up(&mut self, of: RowsOf) {
        self.sums = Some(RowSummer::stored(of));
    }

    /// The sums of all rows; `None` if some rows were not stored, or if the facts assumed before the first row do not
    /// match the run.
    pub(crate) fn sums(&mut self, run: &RunManifest, kernel_hz: Option<u32>) -> Option<RowSums> {
        let summer = self.sums.take()?;
        let whole = !matches!(self.store.room(), Room::None { .. });
        (whole && summer.of() == RowsOf::run(run)).then(|| summer.finish(run, kernel_hz))
    }

    /// Whether the recording cannot usefully go on.
    pub(crate) fn is_stuck(&self) -> bool {
        self.store.is_stuck() || self.beside.iter().any(Beside::is_stuck)
    }

    /// Outputs that have failed since the last call, with their errors.
    pub(crate) fn failures(&mut self) -> Vec<(String, SinkError)> {
        self.beside.iter_mut().filter_map(Beside::failure).collect()
    }

    /// Takes the outputs besides the store; the caller must give them back. They miss rows that arrive meanwhile.
    pub(super) fn take_beside(&mut self) -> Vec<Beside<'a>> {
        std::mem::take(&mut self.beside)
    }

    pub(super) fn give_back(&mut self, beside: Vec<Beside<'a>>) {
        self.beside = beside;
    }

    /// Ends every output except the run, which is closed last because it states what the others lost.
    pub(crate) fn end_beside(&mut self, run: &RunManifest) -> Vec<Delivered> {
        self.beside
            .drain(..)
            .map(|output| output.end(run))
            .collect()
    }
}

/// Open outputs that wait for the store.
pub(crate) struct Opened<'a>(Vec<Beside<'a>>);

impl<'a> Opened<'a> {
    /// Opens the outputs besides the store.
    pub(super) fn open(outputs: Vec<Output<'a>>) -> Result<Opened<'a>, SinkError> {
        Ok(Opened(
            outputs
                .into_iter()
                .map(Beside::open)
                .collect::<Result<_, _>>()?,
        ))
    }

    pub(super) fn with(self, store: StoreSink) -> FanOut<'a> {
        FanOut {
            store,
            beside: self.0,
            sums: None,
            begun: false,
        }
    }
}

impl Sink for FanOut<'_> {
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
