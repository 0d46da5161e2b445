//! `--fail-if`: conditions that a run must not meet, and their exit code.

use crate::exit::{Exit, UsageError};
use crate::output;
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::gate::{
    Condition, GateResult, GateVerdict, Limit, Operator, Quantity, evaluate, parse,
};
use jitterscope_export::WholeFile;
use jitterscope_model::Nanos;
use jitterscope_view::junit::junit;
use jitterscope_view::{gate_note, gate_reason, gate_value};
use std::path::PathBuf;

/// What makes a run fail.
#[derive(Args, Clone, Debug, Default)]
pub struct Gates {
    /// End with code 3 if one of these is met, with code 4 if that cannot be decided:
    /// 'wait.p99.9>50us, max>1ms, culprit(kworker)>0.1%'; may be repeated
    #[arg(long, value_name = "CONDITIONS", value_parser = conditions)]
    fail_if: Vec<Conditions>,
    /// Write how they came out to this file, as JUnit's XML
    #[arg(long, value_name = "FILE", requires = "fail_if", value_hint = clap::ValueHint::FilePath)]
    junit: Option<PathBuf>,
}

/// A list of conditions from one argument.
#[derive(Clone, Debug)]
pub struct Conditions(Vec<Condition>);

fn conditions(text: &str) -> Result<Conditions, String> {
    parse(text)
        .map(Conditions)
        .map_err(|error| error.to_string())
}

impl Gates {
    pub fn all(&self) -> Vec<Condition> {
        self.fail_if
            .iter()
            .flat_map(|list| list.0.iter().cloned())
            .collect()
    }

    /// Refuses conditions about changes, before any measurement.
    ///
    /// # Errors
    /// There is one.
    pub fn of_one_run(&self) -> Result<(), UsageError> {
        match self
            .all()
            .into_iter()
            .find(|condition| matches!(condition.quantity, Quantity::Worse(_)))
        {
            Some(condition) => Err(UsageError(format!(
                "--fail-if {condition}: only diff compares runs"
            ))),
            None => Ok(()),
        }
    }

    /// Evaluates the conditions and `--fail-above` on a run, prints the outcomes, and returns the exit code:
    /// `otherwise` if all are kept.
    ///
    /// # Errors
    /// The file of `--junit` cannot be written.
    pub fn hold(
        &self,
        fail_above: Option<Nanos>,
        summary: &RunSummary,
        otherwise: Exit,
    ) -> anyhow::Result<Exit> {
        let mut results = evaluate(&self.all(), summary);
        if let Some(limit) = fail_above {
            let short = Condition {
                quantity: Quantity::Max,
                limit: Some((Operator::Above, Limit::Time(limit))),
            };
            let above = evaluate(&[short], summary).into_iter();
            results.extend(above.map(|result| GateResult {
                condition: format!("--fail-above {limit}"),
                ..result
            }));
        }
        let suite = format!("jitterscope {} {}", summary.run.label, summary.run.id);
        Ok(match self.tell(&suite, &results)? {
            Exit::Ok => otherwise,
            gate => gate,
        })
    }

    /// Prints the outcomes and returns the exit code: exceeded takes precedence over undecided.
    ///
    /// # Errors
    /// The file of `--junit` cannot be written.
    pub fn tell(&self, suite: &str, results: &[GateResult]) -> anyhow::Result<Exit> {
        for result in results {
            let value = gate_value(result.value);
            output::talk(match result.verdict {
                GateVerdict::Kept => match &result.note {
                    None => format!("{}: {value}, kept", result.condition),
                    Some(note) => {
                        format!("{}: {value}, kept: {}", result.condition, gate_note(note))
                    }
                },
                GateVerdict::Exceeded => format!("{}: {value}, exceeded", result.condition),
                GateVerdict::Undecided => format!(
                    "{}: {value}, cannot be decided: {}",
                    result.condition,
                    result.why.as_ref().map(gate_reason).unwrap_or_default()
                ),
            });
        }
        if let Some(path) = &self.junit {
            let text = junit(suite, results)?;
            let failed = || format!("--junit {}", path.display());
            WholeFile::open(path)
                .and_then(|file| file.write(text.as_bytes()))
                .with_context(failed)?;
        }
        Ok(match GateResult::worst(results) {
            GateVerdict::Kept => Exit::Ok,
            GateVerdict::Exceeded => Exit::Exceeded,
            GateVerdict::Undecided => Exit::Unavailable,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_analyze::SummaryBuilder;
    use jitterscope_store::RunReader;
    use std::path::Path;

    /// Events show what took a watched CPU: if some were lost, the longest is unknown.
    #[test]
    fn the_short_form_does_not_pass_a_watched_cpu_of_which_events_were_lost() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/passive");
        let mut manifest = RunReader::open(&folder).unwrap().manifest().clone();
        let held = |manifest: &_, limit| {
            let summary = SummaryBuilder::new(manifest).finish();
            Gates::default()
                .hold(Some(Nanos(limit)), &summary, Exit::Ok)
                .unwrap()
        };
        let (hour, least) = (3_600_000_000_000, 1);
        assert_eq!(
            (held(&manifest, hour), held(&manifest, least)),
            (Exit::Ok, Exit::Exceeded)
        );
        let events = manifest
            .sources
            .iter_mut()
            .find(|source| source.name == "tracefs")
            .unwrap();
        events.lost = 50;
        assert_eq!(
            (held(&manifest, hour), held(&manifest, least)),
            (Exit::Unavailable, Exit::Exceeded)
        );
    }
}
