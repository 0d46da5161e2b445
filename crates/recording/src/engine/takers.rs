//! Who takes a recording's rows: the run that is stored, its sums, and whatever else was asked for.

use super::output::{Beside, Delivered, Output};
use jitterscope_analyze::{RowSummer, RowSums, RowsOf};
use jitterscope_model::{Delivery, Row, RunFacts, RunManifest, Sink, SinkError};
use jitterscope_store::{Room, StoreSink};

/// Tells every row to the run that is stored and, once the measurement has begun, to every other output.
/// None of them ends it by failing: what fails is passed over, and what it loses is counted.
pub(crate) struct Takers<'a> {
    pub(crate) store: StoreSink,
    beside: Vec<Beside<'a>>,
    /// What the rows come to, for the run to keep.
    sums: Option<RowSummer>,
    begun: bool,
}

impl<'a> Takers<'a> {
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

    /// Whether there is no sense in going on.
    pub(crate) fn is_stuck(&self) -> bool {
        self.store.is_stuck() || self.beside.iter().any(Beside::is_stuck)
    }

    /// Outputs that have failed since the last call, and why.
    pub(crate) fn failures(&mut self) -> Vec<(String, SinkError)> {
        self.beside.iter_mut().filter_map(Beside::failure).collect()
    }

    /// What stands beside the store: it is to be given back. Rows that come meanwhile it is not told.
    pub(super) fn take_beside(&mut self) -> Vec<Beside<'a>> {
        std::mem::take(&mut self.beside)
    }

    pub(super) fn give_back(&mut self, beside: Vec<Beside<'a>>) {
        self.beside = beside;
    }

    /// Everything out but the run itself, which is closed last: it says what the others lost.
    pub(crate) fn end_beside(&mut self, run: &RunManifest) -> Vec<Delivered> {
        self.beside
            .drain(..)
            .map(|output| output.end(run))
            .collect()
    }
}

/// Outputs that are open and wait for the store.
pub(crate) struct Opened<'a>(Vec<Beside<'a>>);

impl<'a> Opened<'a> {
    /// Opens what stands beside the store.
    pub(super) fn open(outputs: Vec<Output<'a>>) -> Result<Opened<'a>, SinkError> {
        Ok(Opened(
            outputs
                .into_iter()
                .map(Beside::open)
                .collect::<Result<_, _>>()?,
        ))
    }

    pub(super) fn with(self, store: StoreSink) -> Takers<'a> {
        Takers {
            store,
            beside: self.0,
            sums: None,
            begun: false,
        }
    }
}

impl Sink for Takers<'_> {
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
