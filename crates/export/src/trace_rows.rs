//! The stored trace of a run as rows, in step with the run's stalls: pages before the stalls that were attributed from
//! them, as in a recording.

use crate::error::ExportError;
use jitterscope_model::{DrainTurn, StallId};
use jitterscope_source::TraceContext;
use jitterscope_store::{RunReader, StoreError, StoredPage, TracePiece};

/// A row of the trace, as it was read.
pub(crate) enum TraceRow {
    /// What is needed to decode the pages, as JSON.
    Context(Vec<u8>),
    Page(StoredPage),
    Turn(Box<DrainTurn>),
}

type Pieces = Box<dyn Iterator<Item = Result<TracePiece, StoreError>>>;

/// Passes the rows of a stored trace.
pub(crate) struct TraceRows {
    context: Option<Vec<u8>>,
    pieces: Pieces,
    /// Stalls with lower numbers were attributed from the pages so far.
    attributed: u64,
}

impl TraceRows {
    /// The trace of a run; `None` if the run has none.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn of(run: &RunReader) -> Result<Option<TraceRows>, ExportError> {
        let Some(context) = run.trace_context::<TraceContext>()? else {
            return Ok(None);
        };
        let context = serde_json::to_vec(&context)
            .map_err(|error| ExportError::TraceContext(error.to_string()))?;
        Ok(Some(TraceRows {
            context: Some(context),
            pieces: Box::new(run.trace_pieces()?),
            attributed: 0,
        }))
    }

    /// Passes the rows that a stall was attributed from; all that are left if there is no further stall.
    ///
    /// # Errors
    /// The trace cannot be read, or `take` fails.
    pub(crate) fn until<E: From<ExportError>>(
        &mut self,
        stall: Option<StallId>,
        mut take: impl FnMut(TraceRow) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(context) = self.context.take() {
            take(TraceRow::Context(context))?;
        }
        while stall.is_none_or(|stall| self.attributed <= stall.0) {
            let Some(piece) = self.pieces.next() else {
                self.attributed = u64::MAX;
                break;
            };
            match piece.map_err(ExportError::Store)? {
                TracePiece::Page(page) => take(TraceRow::Page(page))?,
                TracePiece::Turn(turn) => {
                    self.attributed = self.attributed.max(turn.stalls);
                    take(TraceRow::Turn(turn))?;
                }
                // The manifest says whether the trace is complete.
                TracePiece::Missing => {}
            }
        }
        Ok(())
    }
}
