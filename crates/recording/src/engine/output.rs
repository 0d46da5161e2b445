//! Outputs besides the stored run.

use jitterscope_model::{Delivery, Row, RunManifest, Sink, SinkError};

type Opener<'a> = Box<dyn FnOnce() -> Result<Box<dyn Sink + Send + 'a>, SinkError> + 'a>;

/// A destination for rows besides the stored run.
pub struct Output<'a> {
    name: String,
    open: Opener<'a>,
    essential: bool,
}

impl<'a> Output<'a> {
    /// `name` is used in messages. The output is opened when our own threads have left the measured CPUs and before
    /// anything is measured, so that threads which it starts avoid those CPUs, too.
    pub fn new(
        name: impl Into<String>,
        open: impl FnOnce() -> Result<Box<dyn Sink + Send + 'a>, SinkError> + 'a,
    ) -> Output<'a> {
        Output {
            name: name.into(),
            open: Box::new(open),
            essential: false,
        }
    }

    /// An output to an existing sink.
    pub fn to(name: impl Into<String>, sink: &'a mut (dyn Sink + Send + 'a)) -> Output<'a> {
        Output::new(
            name,
            move || Ok(Box::new(sink) as Box<dyn Sink + Send + 'a>),
        )
    }

    /// Marks the output as essential: when it fails, the recording ends with what it has.
    #[must_use]
    pub fn essential(mut self) -> Output<'a> {
        self.essential = true;
        self
    }
}

/// The delivery state of an output.
#[derive(Debug)]
pub struct Delivered {
    pub name: String,
    /// Rows delivered and lost.
    pub delivery: Delivery,
    /// The error, if it failed. Later rows are counted as lost.
    pub error: Option<SinkError>,
}

/// An output that is open.
pub(super) struct Beside<'a> {
    name: String,
    pub(super) sink: Box<dyn Sink + Send + 'a>,
    essential: bool,
    /// Rows written there, plus those that would have been.
    taken: u64,
    /// How many of them were final at the last query.
    out: u64,
    error: Option<SinkError>,
    /// Whether its failure was reported.
    reported: bool,
}

impl<'a> Beside<'a> {
    pub(super) fn open(output: Output<'a>) -> Result<Beside<'a>, SinkError> {
        let Output {
            name,
            open,
            essential,
        } = output;
        Ok(Beside {
            name,
            sink: open()?,
            essential,
            taken: 0,
            out: 0,
            error: None,
            reported: false,
        })
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.essential && self.error.is_some()
    }

    /// Its name and error, returned once.
    pub(super) fn failure(&mut self) -> Option<(String, SinkError)> {
        let error = self.error.as_ref().filter(|_| !self.reported)?;
        self.reported = true;
        Some((self.name.clone(), error.clone()))
    }

    pub(super) fn rows(&mut self, batch: &[Row<'_>]) {
        self.taken += batch.iter().filter(|row| self.sink.takes(row)).count() as u64;
        if self.error.is_none() {
            self.error = self.sink.rows(batch).err();
        }
    }

    pub(super) fn tick(&mut self) {
        if self.error.is_some() {
            return;
        }
        match self.sink.tick() {
            Ok(out) => self.out = out,
            Err(error) => self.error = Some(error),
        }
    }

    pub(super) fn end(mut self, run: &RunManifest) -> Delivered {
        let ended = match self.error.take() {
            Some(error) => Err(error),
            None => self.sink.end(run),
        };
        let (delivery, error) = match ended {
            Ok(delivery) => (delivery, None),
            Err(error) => {
                let (delivered, lost) = (self.out, self.taken.saturating_sub(self.out));
                let problem = Some(error.to_string());
                (
                    Delivery {
                        delivered,
                        lost,
                        confirmed: true,
                        problem,
                        ..Delivery::default()
                    },
                    Some(error),
                )
            }
        };
        Delivered {
            name: self.name,
            delivery,
            error,
        }
    }
}
