//! How much of a pipeline is measured.

use super::error::PipelineRecordError;
use super::settings::PipelineLength;
use jitterscope_model::Nanos;

/// Default iterations, warm-up iterations and records of perf-workshop, used if one of them is given.
const ITERATIONS: (u64, u64, u64) = (20, 10, 10_000);
/// Records in a generated input.
const INPUT_RECORDS: u64 = 10_000;
/// Messages of the warm-up without an interval, when its time implies no number.
const UNPACED_WARM_UP: u64 = 1_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleChoice {
    /// Iterations over the input, including the warm-up. If any of the first three fields is set, everything is counted
    /// as in perf-workshop.
    pub iterations: Option<u64>,
    /// Iterations of the warm-up.
    pub warm_up_iterations: Option<u64>,
    /// Records in an iteration.
    pub records: Option<u64>,
    /// Messages to measure, instead of `duration`.
    pub messages: Option<u64>,
    /// How long to measure.
    pub duration: Nanos,
    /// How long to send before the measurement.
    pub warm_up: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// How much is measured.
    pub length: PipelineLength,
    pub warm_up_messages: u64,
    /// Records of a generated input.
    pub records: u64,
}

impl ScheduleChoice {
    /// Resolves it for this time between publications.
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
