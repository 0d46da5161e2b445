//! How much of a pipeline is measured.

use super::error::PipelineRecordError;
use super::settings::PipelineLength;
use jitterscope_model::Nanos;

/// Iterations, warm-up iterations and records of the ancestor, where one of them is given.
const ITERATIONS: (u64, u64, u64) = (20, 10, 10_000);
/// Records in an input that is made.
const INPUT_RECORDS: u64 = 10_000;
/// Messages of the warm-up where no interval tells how many a time has.
const UNPACED_WARM_UP: u64 = 1_000_000;

/// How much is sent, as it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleChoice {
    /// Iterations over the input, warm-up included. With any of the first three, all is counted as
    /// perf-workshop does.
    pub iterations: Option<u64>,
    /// Iterations of the warm-up.
    pub warm_up_iterations: Option<u64>,
    /// Records in an iteration.
    pub records: Option<u64>,
    /// Messages to measure, in place of `duration`.
    pub messages: Option<u64>,
    /// How long to measure.
    pub duration: Nanos,
    /// How long to send before that.
    pub warm_up: Nanos,
}

/// What that comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// How much is measured.
    pub length: PipelineLength,
    /// Messages of the warm-up.
    pub warm_up_messages: u64,
    /// Records of an input that is made.
    pub records: u64,
}

impl ScheduleChoice {
    /// With this time between publications.
    ///
    /// # Errors
    /// Nothing is left to measure.
    pub fn plan(&self, interval: Nanos) -> Result<Schedule, PipelineRecordError> {
        let (iterations, warm_up, records) = ITERATIONS;
        let counted = [self.iterations, self.warm_up_iterations, self.records];
        if counted.iter().any(Option::is_some) {
            let iterations = self.iterations.unwrap_or(iterations);
            let warm_up = self
                .warm_up_iterations
                .unwrap_or(warm_up.min(iterations / 2));
            let records = self.records.unwrap_or(records);
            let measured = iterations.saturating_sub(warm_up);
            let messages = measured.checked_mul(records).filter(|n| *n > 0);
            let (Some(messages), Some(warm_up_messages)) = (messages, warm_up.checked_mul(records))
            else {
                return Err(PipelineRecordError::NothingLeft {
                    iterations,
                    warm_up,
                });
            };
            return Ok(Schedule {
                length: PipelineLength::Messages(messages),
                warm_up_messages,
                records,
            });
        }
        let warm_up_messages = match interval {
            Nanos::ZERO if self.warm_up == Nanos::ZERO => 0,
            Nanos::ZERO => UNPACED_WARM_UP,
            Nanos(interval) => self.warm_up.0 / interval,
        };
        let length = self.messages.map_or(
            PipelineLength::Time(self.duration),
            PipelineLength::Messages,
        );
        Ok(Schedule {
            length,
            warm_up_messages,
            records: INPUT_RECORDS,
        })
    }
}
