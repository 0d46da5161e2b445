//! `--fail-if`: conditions that a run must not meet, and their exit code.

use crate::exit::{Exit, UsageError};
use crate::output;
use anyhow::Context;
use clap::Args;
use jitterscope_analyze::RunSummary;
use jitterscope_analyze::compare::Diff;
use jitterscope_analyze::gate::{
    Condition, GateReason, GateResult, GateVerdict, Limit, Operator, Quantity, evaluate,
    evaluate_changes, parse,
};
use jitterscope_export::WholeFile;
use jitterscope_model::{CpuSet, Nanos};
use jitterscope_platform::{Machine, hostname};
use jitterscope_view::compare::load_of_cpus;
use jitterscope_view::junit::{Outcome, Tested, junit};
use jitterscope_view::{gate_outcome, load};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// What makes a run fail.
#[derive(Args, Clone, Debug, Default)]
#[command(group = clap::ArgGroup::new(Gates::CONDITIONS).multiple(true))]
pub struct Gates {
    /// End with code 3 if one of these is met, with code 4 if that cannot be decided:
    /// 'wait.p99.9>50us, max>1ms, culprit(kworker)>0.1%'; may be repeated
    #[arg(long, value_name = "CONDITIONS", value_parser = conditions, group = Gates::CONDITIONS)]
    fail_if: Vec<Conditions>,
    /// Write how they came out to this file, as JUnit's XML
    #[arg(long, value_name = "FILE", requires = Gates::CONDITIONS, value_hint = clap::ValueHint::FilePath)]
    junit: Option<PathBuf>,
    /// The outcomes so far, of each run of `--repeat`.
    #[arg(skip)]
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

/// A list of conditions from one argument.
#[derive(Clone, Debug)]
pub struct Conditions(Vec<Condition>);

fn conditions(text: &str) -> Result<Conditions, String> {
    parse(text)
        .map(Conditions)
        .map_err(|error| error.to_string())
}

/// A run that conditions are about.
pub struct OfRun<'a> {
    /// Its label and id.
    pub name: String,
    pub path: &'a Path,
    /// If not all of its CPUs are meant.
    pub only: Option<&'a CpuSet>,
}

impl Gates {
    /// The options that state conditions: `--junit` needs one of them.
    pub const CONDITIONS: &str = "conditions";

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
        let run = &summary.run;
        let tested = Tested {
            name: format!("jitterscope {} {}", run.label, run.id),
            hostname: run.hostname.clone(),
            started_realtime_ns: run.started_realtime_ns,
            took: run.duration_ns,
        };
        Ok(match self.tell(&tested, &results)? {
            Exit::Ok => otherwise,
            gate => gate,
        })
    }

    /// Evaluates conditions about changes on each comparison, and the others on each of `runs`. Without a comparison
    /// nothing is decided.
    ///
    /// # Errors
    /// A run cannot be read.
    pub fn of_changes(
        &self,
        found: Option<&Diff>,
        runs: &[OfRun<'_>],
    ) -> anyhow::Result<Vec<GateResult>> {
        let Some(found) = found else {
            let undecided = |condition: Condition| GateResult {
                condition: condition.to_string(),
                verdict: GateVerdict::Undecided,
                value: None,
                why: Some(GateReason::NothingCompared),
                note: None,
            };
            return Ok(self.all().into_iter().map(undecided).collect());
        };
        let (changes, of_runs): (Vec<_>, Vec<_>) = self
            .all()
            .into_iter()
            .partition(|condition| matches!(condition.quantity, Quantity::Worse(_)));
        let named = |name: &str, results: Vec<GateResult>| {
            let named = move |result: GateResult| GateResult {
                condition: format!("{name}: {}", result.condition),
                ..result
            };
            results.into_iter().map(named).collect::<Vec<_>>()
        };
        let mut results = Vec::new();
        for against in &found.against {
            let name = &found.sides[against.side].name;
            results.extend(named(name, evaluate_changes(&changes, against)));
        }
        for run in runs.iter().filter(|_| !of_runs.is_empty()) {
            let summary = match run.only {
                Some(cpus) => load_of_cpus(run.path, cpus)?,
                None => load(run.path)?.1,
            };
            results.extend(named(&run.name, evaluate(&of_runs, &summary)));
        }
        Ok(results)
    }

    /// Prints the outcomes and returns the exit code: exceeded takes precedence over undecided.
    ///
    /// # Errors
    /// The file of `--junit` cannot be written.
    pub fn tell(&self, tested: &Tested, results: &[GateResult]) -> anyhow::Result<Exit> {
        for result in results {
            output::talk(format!("{}: {}", result.condition, gate_outcome(result)));
        }
        if let Some(path) = &self.junit {
            let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
            outcomes.push((tested.clone(), results.to_vec()));
            let text = junit(&outcomes)?;
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

/// What conditions about a comparison are about.
pub fn tested(name: &str, found: Option<&Diff>) -> Tested {
    let sides = found.iter().flat_map(|found| &found.sides);
    let runs: Vec<_> = sides.flat_map(|side| &side.runs).collect();
    // Without a run that counts, this machine, now.
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_nanos().try_into().unwrap_or(u64::MAX))
    };
    let last = runs.last().map(|run| run.hostname.clone());
    let first = runs.iter().map(|run| run.started_realtime_ns).min();
    Tested {
        name: name.to_owned(),
        hostname: last.unwrap_or_else(|| hostname(&Machine::host())),
        started_realtime_ns: first.unwrap_or_else(now),
        took: runs.iter().map(|run| run.duration_ns).sum(),
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
