//! What the tools answer.

use super::tools::{
    AuditArguments, CulpritsArguments, DiffArguments, DoctorArguments, ListArguments,
    MarksArguments, PartArguments, ReportArguments, StallArguments, Tool,
};
use crate::commands::compare_with::{answers, sides_of};
use crate::commands::report::{self, Level};
use crate::commands::stall::{self, Which};
use crate::commands::{audit, doctor};
use crate::excerpt::{Document, ExcerptArgs, SinceArgs};
use crate::exit::UsageError;
use crate::places::Places;
use crate::redact::Redact;
use jitterscope_analyze::compare::{DiffRules, Side, diff};
use jitterscope_analyze::periods::Effort;
use jitterscope_model::{visible, visible_json};
use jitterscope_source::Moment;
use jitterscope_store::{RunReader, StoreError, resolve_all_in, resolve_in};
use jitterscope_view::compare::diff_json;
use jitterscope_view::{list, load_by};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The longest stalls that a report lists: those that a run keeps summed.
const LISTED: usize = 10;
/// The last stall by rank that an answer can have: each rank up to it is kept while the run is read.
const MOST_RANK: u32 = 1000;
/// The most runs that are compared.
const MOST_RUNS: usize = 64;
/// Bytes of an answer around its text: the names of the protocol, and the id of the question.
const ENVELOPE: usize = 512;

/// Answers from the folder of runs and this machine.
pub(super) struct Answers {
    places: Places,
    dir: PathBuf,
    /// Runs elsewhere that the user named.
    named: Vec<PathBuf>,
    /// The longest text, bytes inside a JSON string.
    most: usize,
}

impl Answers {
    /// # Errors
    /// There is no folder of runs, or a named folder holds no run.
    pub(super) fn new(places: &Places, named: &[PathBuf], bytes: usize) -> anyhow::Result<Answers> {
        for run in named {
            RunReader::open(run)?;
        }
        Ok(Answers {
            places: places.clone(),
            dir: places.runs()?,
            named: named.to_vec(),
            most: bytes.saturating_sub(ENVELOPE),
        })
    }

    /// The answer of a tool, as text.
    ///
    /// # Errors
    /// What is asked for does not exist or cannot be read.
    pub(super) fn of(&self, tool: Tool, arguments: &Value) -> anyhow::Result<String> {
        let (document, whole, part) = match tool {
            Tool::List => self.list(read(tool, arguments)?)?,
            Tool::Report => self.report(read(tool, arguments)?)?,
            Tool::Culprits => self.culprits(read(tool, arguments)?)?,
            Tool::Marks => {
                let MarksArguments { run, part } = read(tool, arguments)?;
                self.fields_of(&run, Level::Program, part, &["marks"])?
            }
            Tool::Stall => self.stall(read(tool, arguments)?)?,
            Tool::Diff => self.diff(read(tool, arguments)?)?,
            Tool::Audit => self.audit(read(tool, arguments)?)?,
            Tool::Doctor => {
                let DoctorArguments { part } = read(tool, arguments)?;
                (Document::Doctor, doctor::document(&self.places)?, part)
            }
        };
        let excerpt = ExcerptArgs {
            top: part.top.map(|top| top.max(1)),
            fields: part.fields,
            cursor: part.cursor,
        };
        let mut bytes = self.most;
        loop {
            let part = excerpt.within(document, whole.clone(), bytes)?;
            let text = visible_json(&serde_json::to_string(&part)?).into_owned();
            // What is made visible takes more room than before.
            let carried = serde_json::to_string(&text)?.len();
            let smaller = bytes * self.most / carried.max(1);
            if carried <= self.most || smaller >= bytes {
                return Ok(text);
            }
            bytes = smaller;
        }
    }

    /// A message without what would make an answer longer than it may be.
    pub(super) fn shortened(&self, text: &str) -> String {
        let text = visible(text);
        // Each byte may need an escape.
        text[..text.floor_char_boundary(self.most / 2)].to_owned()
    }

    fn list(&self, args: ListArguments) -> anyhow::Result<(Document, Value, PartArguments)> {
        let (mut runs, problems) = jitterscope_store::list(&self.dir)?;
        runs.reverse();
        if let Some(label) = &args.label {
            runs.retain(|run| run.head.label == *label);
        }
        if let Some(since) = since(args.since)?.of_runs()? {
            runs.retain(|run| run.head.started_realtime_ns >= since);
        }
        let whole = serde_json::to_value(list::json(&runs, &problems))?;
        Ok((Document::List, whole, args.part))
    }

    fn report(&self, args: ReportArguments) -> anyhow::Result<(Document, Value, PartArguments)> {
        let (_, summary) = load_by(
            &self.run(&args.run)?,
            LISTED,
            Effort::BRIEF,
            Level::Program.into(),
        )?;
        let mut whole = report::document(&summary, &since(args.since)?)?;
        // As long as all the rest.
        if args.part.fields.is_empty()
            && args.part.cursor.is_none()
            && let Some(fields) = whole.as_object_mut()
        {
            fields.remove("machine");
        }
        Ok((Document::Report, whole, args.part))
    }

    fn culprits(
        &self,
        args: CulpritsArguments,
    ) -> anyhow::Result<(Document, Value, PartArguments)> {
        let level = args.by.unwrap_or(Level::Program);
        self.fields_of(
            &args.run,
            level,
            args.part,
            &["attribution", "trust.doubts"],
        )
    }

    /// A report of which only some fields answer, unless others are asked for.
    fn fields_of(
        &self,
        run: &str,
        level: Level,
        mut part: PartArguments,
        fields: &[&str],
    ) -> anyhow::Result<(Document, Value, PartArguments)> {
        let (_, summary) = load_by(&self.run(run)?, LISTED, Effort::BRIEF, level.into())?;
        let whole = report::document(&summary, &SinceArgs::default())?;
        if part.fields.is_empty() {
            let of_run = ["run.id", "run.label"].iter();
            part.fields = of_run.chain(fields).map(|of| (*of).to_owned()).collect();
        }
        Ok((Document::Report, whole, part))
    }

    fn stall(&self, args: StallArguments) -> anyhow::Result<(Document, Value, PartArguments)> {
        let at = args.at.as_deref().map(moment).transpose()?;
        let which = match (args.stall, args.rank, at) {
            (Some(id), None, None) => Which::Id(id),
            (None, Some(rank), None) if rank <= MOST_RANK => Which::Rank(rank as usize),
            (None, Some(_), None) => {
                let text = format!("rank: at most {MOST_RANK}; name other stalls by stall or at");
                return Err(UsageError(text).into());
            }
            (None, None, Some(at)) => Which::At(at),
            _ => {
                let text = "name the stall by one of stall, rank and at";
                return Err(UsageError(text.into()).into());
            }
        };
        let seen = stall::look(&self.run(&args.run)?, &which, Redact { on: false })?;
        let whole = serde_json::to_value(seen.document())?;
        Ok((Document::Stall, whole, args.part))
    }

    fn diff(&self, args: DiffArguments) -> anyhow::Result<(Document, Value, PartArguments)> {
        if !(2..=MOST_RUNS).contains(&args.runs.len()) {
            let text = format!("runs: name 2 to {MOST_RUNS} to compare");
            return Err(UsageError(text).into());
        }
        let since = since(args.since)?.of_runs()?;
        let sides = sides_of(&|name| self.runs(name), since, &args.runs, &mut None)?;
        Side::apart(&sides).map_err(|error| UsageError(error.to_string()))?;
        let found = diff(&sides, DiffRules::default(), &[], &answers);
        let whole = serde_json::to_value(diff_json(&found))?;
        Ok((Document::Diff, whole, args.part))
    }

    fn audit(&self, args: AuditArguments) -> anyhow::Result<(Document, Value, PartArguments)> {
        let cpus = args.cpus.as_deref().map(|list| {
            let wrong = |why| UsageError(format!("cpus: {why}"));
            list.parse().map_err(wrong)
        });
        let run = args.run.as_deref().map(|run| self.run(run)).transpose()?;
        let whole = audit::document(cpus.transpose()?, run.as_deref())?;
        Ok((Document::Audit, whole, args.part))
    }

    /// The folder of a run: one that the user named, or one in the folder of runs.
    fn run(&self, name: &str) -> Result<PathBuf, StoreError> {
        match self
            .named
            .iter()
            .find(|run| run.as_path() == Path::new(name))
        {
            Some(run) => Ok(run.clone()),
            None => resolve_in(&self.dir, name),
        }
    }

    /// All runs of a name.
    fn runs(&self, name: &str) -> Result<Vec<PathBuf>, StoreError> {
        match self
            .named
            .iter()
            .find(|run| run.as_path() == Path::new(name))
        {
            Some(run) => Ok(vec![run.clone()]),
            None => resolve_all_in(&self.dir, name),
        }
    }
}

/// The arguments, all of them known.
fn read<T: DeserializeOwned>(tool: Tool, arguments: &Value) -> anyhow::Result<T> {
    let schema = tool.arguments();
    let known = schema["properties"].as_object();
    for name in arguments.as_object().into_iter().flat_map(|of| of.keys()) {
        if known.is_none_or(|known| !known.contains_key(name)) {
            let names: Vec<&str> = known
                .into_iter()
                .flat_map(|of| of.keys())
                .map(String::as_str)
                .collect();
            let text = format!(
                "{} has no argument '{}'; it has {}",
                tool.as_str(),
                visible(name),
                names.join(", ")
            );
            return Err(UsageError(text).into());
        }
    }
    let wrong = |error| UsageError(format!("{}: {error}", tool.as_str()));
    Ok(serde_json::from_value(arguments.clone()).map_err(wrong)?)
}

fn moment(text: &str) -> Result<Moment, UsageError> {
    text.parse().map_err(UsageError)
}

fn since(text: Option<String>) -> Result<SinceArgs, UsageError> {
    let since = text.as_deref().map(moment).transpose()?;
    Ok(SinceArgs { since })
}
