//! The sections of an endless recording.
//!
//! Where a recording has no end, its rows go into a chain of runs. At a border the run that is being written is closed
//! and the next one takes the rows, between two turns of the drain: nothing that measures or records notices, so no
//! time is missing between two sections. Each names its own culprits, and has the trace of its own stalls.

use super::fan_out::FanOut;
use super::{Running, Stage};
use jitterscope_model::{RunFacts, RunManifest, SinkError, SourceReport, Ticks};
use jitterscope_platform::clock;
use jitterscope_source::Mark;
use jitterscope_store::{RunWriter, StoreError, StoreSink};
use std::path::PathBuf;
use std::sync::mpsc::Sender;

/// Decides when a section ends, and receives the closed ones.
pub(crate) trait Sections {
    /// The measurement begins; `manifest` is what is known of the first section.
    fn begun(&mut self, manifest: &RunManifest);

    /// Whether it wants to know now what the sources lost so far.
    fn wants_sources(&self) -> bool {
        false
    }

    /// The sources, with what they lost since the beginning of the measurement.
    fn sources(&mut self, _sources: &[SourceReport]) {}

    /// A turn of the drain is over. `marks`: what was written into the trace since the last one.
    fn turn(&mut self, now: Ticks, marks: &[Mark]) -> Next;

    /// Receives what became of a border. The thread that takes the rows sends it, at most a few turns after the border.
    fn tell(&self) -> Sender<SectionEnd>;

    /// The recording is over; its last section is closed.
    fn over(&mut self, last: PathBuf);
}

/// What follows a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    GoOn,
    /// The section ends here, and the next one begins.
    Border,
    /// The recording ends.
    Stop,
}

/// The outcome of a border.
#[derive(Debug)]
pub(crate) struct SectionEnd {
    /// The border, on the measuring clock.
    pub(crate) at: Ticks,
    /// The run of the section that ended. `Err`: it is lost, or the next one could not begin and the section goes on.
    pub(crate) closed: Result<PathBuf, StoreError>,
    /// Whether the section goes on: the next one could not begin.
    pub(crate) goes_on: bool,
}

/// What the takers of rows need at a border.
pub(crate) struct Border {
    at: Ticks,
    ended: RunManifest,
    begins: RunManifest,
    facts: RunFacts,
    runs_dir: PathBuf,
    trace_limit: u64,
    tell: Sender<SectionEnd>,
}

/// Ends the current section and begins the next one.
///
/// # Errors
/// Rows were not taken.
pub(super) fn border<R: Running>(
    running: &mut R,
    stage: &mut Stage<'_, '_>,
    sections: &mut dyn Sections,
) -> Result<(), SinkError> {
    let clocks = clock::read_all(stage.clock.kind);
    let so_far = running.sources();
    let ended = RunManifest {
        clock_end: clocks,
        sources: since(&stage.sections_lost, &so_far),
        ..stage
            .section
            .take()
            .unwrap_or_else(|| stage.manifest(clocks))
    };
    stage.sections_lost = so_far;
    stage.next_section(clocks);
    let mut begins = stage.manifest(clocks);
    running.beginning(&mut begins);
    running.next_section(&mut begins, clocks.ticks);
    begins.warnings.extend(stage.warnings.iter().cloned());
    stage.section = Some(begins.clone());
    let border = Border {
        at: clocks.ticks,
        ended,
        begins,
        facts: stage.facts(),
        runs_dir: stage.run().runs_dir.clone(),
        trace_limit: stage.run().trace_limit_bytes,
        tell: sections.tell(),
    };
    stage.outputs.border(border)
}

/// The sources with what they lost since an earlier look.
fn since(before: &[SourceReport], now: &[SourceReport]) -> Vec<SourceReport> {
    let earlier = |name: &str| before.iter().find(|of| of.name == name);
    now.iter()
        .map(|source| SourceReport {
            lost: source
                .lost
                .saturating_sub(earlier(&source.name).map_or(0, |of| of.lost)),
            ..source.clone()
        })
        .collect()
}

impl FanOut<'_> {
    /// Closes the run and goes on with another one. If the disk has no room for that, the run goes on.
    pub(super) fn border(&mut self, border: Border) {
        let Border {
            at,
            mut ended,
            begins,
            facts,
            runs_dir,
            trace_limit,
            tell,
        } = border;
        let send = |closed, goes_on| {
            // Nobody listens any more at the end.
            let _ = tell.send(SectionEnd {
                at,
                closed,
                goes_on,
            });
        };
        let realtime = begins.clock_start.realtime_ns;
        let next = RunWriter::create(&runs_dir, &begins.label, realtime).and_then(|mut writer| {
            writer.limit_trace(trace_limit);
            let mut next = StoreSink::new(writer);
            next.begin_at(&facts)?;
            next.beginning(&begins);
            Ok(next)
        });
        let next = match next {
            Ok(next) => next,
            Err(error) => return send(Err(error), true),
        };
        let mut old = std::mem::replace(&mut self.store, next);
        send(old.close(&mut ended), false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_the_losses_of_its_own_time() {
        let of = |name: &str, lost| SourceReport {
            lost,
            ..SourceReport::available(name)
        };
        let before = [of("tracefs", 5), of("senders", 7)];
        let now = [of("tracefs", 5), of("senders", 9), of("symbols", 1)];
        let lost: Vec<u64> = since(&before, &now)
            .iter()
            .map(|source| source.lost)
            .collect();
        assert_eq!(lost, [0, 2, 1]);
    }
}
