//! The stacks of followed threads that go to sleep, during a recording.

use jitterscope_model::SourceReport;
use jitterscope_source::{SleepStacks, StackSettings, TraceContext, TraceError, Tracefs};

/// Whose stacks to record.
pub(crate) struct StackChoice {
    pub(crate) settings: StackSettings,
    /// Whether threads are also followed because of their names. Otherwise the kernel itself adds each thread that
    /// begins to be followed.
    pub(crate) by_name: bool,
}

/// A recording of stacks, with the threads that it does not have yet. Dropping it ends the recording.
pub(crate) struct FollowedStacks {
    pub(crate) stacks: SleepStacks,
    waiting: Vec<i32>,
    by_name: bool,
    /// Why the kernel refused a thread.
    refused: Option<TraceError>,
}

impl FollowedStacks {
    /// Makes the instance, and adds the record's format to the recorder's `context`.
    pub(crate) fn start(
        tracefs: &Tracefs,
        context: &mut TraceContext,
        choice: &StackChoice,
    ) -> Result<FollowedStacks, TraceError> {
        let stacks = SleepStacks::start(tracefs, &choice.settings)?;
        stacks.describe(context);
        Ok(FollowedStacks {
            stacks,
            waiting: Vec::new(),
            by_name: choice.by_name,
            refused: None,
        })
    }

    /// The user or the recorder follows a thread.
    pub(crate) fn follow(&mut self, tid: i32) {
        self.waiting.push(tid);
    }

    /// A record shows that a thread is followed.
    pub(crate) fn found(&mut self, tid: i32) {
        if self.by_name {
            self.waiting.push(tid);
        }
    }

    /// Hands the threads to the kernel, all at once: it waits for every CPU after each list.
    pub(crate) fn hand_over(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if let Err(error) = self.stacks.follow(&self.waiting) {
            self.refused = Some(error);
        }
        self.waiting.clear();
    }

    /// The source report. Called after the last drain.
    pub(crate) fn report(&self) -> SourceReport {
        match &self.refused {
            Some(error) => SleepStacks::refused(error),
            None => self.stacks.report(),
        }
    }
}
