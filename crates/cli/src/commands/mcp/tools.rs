//! The tools: their names, what they say of themselves, and their arguments.

use crate::commands::report::Level;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};

/// What an assistant reads first.
pub(super) const INSTRUCTIONS: &str = "jitterscope measures how long CPUs keep threads from running, and names what took \
the time (culprits). Start with list, then report of a run ('latest' is the newest). Times are nanoseconds. Read 'trust' and \
'warnings' of a report before you draw conclusions: unexplained time has no culprit. Answers are short: 'left_out' states \
what they lack, and a cursor for its next page. An option --x in an error is the argument x; --worst is rank.";

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    List,
    Report,
    Culprits,
    Marks,
    Stall,
    Diff,
    Audit,
    Doctor,
}

const ALL: [Tool; 8] = [
    Tool::List,
    Tool::Report,
    Tool::Culprits,
    Tool::Marks,
    Tool::Stall,
    Tool::Diff,
    Tool::Audit,
    Tool::Doctor,
];

impl Tool {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Tool::List => "list",
            Tool::Report => "report",
            Tool::Culprits => "culprits",
            Tool::Marks => "marks",
            Tool::Stall => "stall",
            Tool::Diff => "diff",
            Tool::Audit => "audit",
            Tool::Doctor => "doctor",
        }
    }

    fn says(self) -> &'static str {
        match self {
            Tool::List => {
                "The stored runs, newest first: id, label, CPUs, length, stolen share, worst stall."
            }
            Tool::Report => {
                "The report of a run: stolen time, culprits by total time, the worst stalls with their parts, periods, \
                 and how far the verdicts can be trusted. The settings of its machine only with fields: machine."
            }
            Tool::Culprits => {
                "Who took the time in a run, most time first: share, number of stalls, mean and maximum, who sent or \
                 woke it; and the time without a culprit."
            }
            Tool::Marks => {
                "An application's own log (a collector's pauses, slow requests) against a run that has one: which stalls \
                 lay in which mark, whose they were, and how often chance gives as much."
            }
            Tool::Stall => {
                "One stall of a run, moment by moment: what had the CPU, in order. Name it by its number (stall), by its \
                 rank (1 is the longest), or by a moment (at)."
            }
            Tool::Diff => {
                "Compares settings: each label or run against the first one, with the noise between runs: better, \
                 worse, equivalent or inconclusive, and the culprits that changed."
            }
            Tool::Audit => {
                "The settings of this machine that matter for CPUs that must not be disturbed: which are wrong, and \
                 what would be right. It changes nothing."
            }
            Tool::Doctor => {
                "What a recording can show on this machine, what not, and the narrowest way to get it."
            }
        }
    }

    /// The form of its arguments.
    pub(super) fn arguments(self) -> Value {
        let schema = match self {
            Tool::List => schema_for!(ListArguments),
            Tool::Report => schema_for!(ReportArguments),
            Tool::Culprits => schema_for!(CulpritsArguments),
            Tool::Marks => schema_for!(MarksArguments),
            Tool::Stall => schema_for!(StallArguments),
            Tool::Diff => schema_for!(DiffArguments),
            Tool::Audit => schema_for!(AuditArguments),
            Tool::Doctor => schema_for!(DoctorArguments),
        };
        let mut schema = schema.to_value();
        if let Some(fields) = schema.as_object_mut() {
            fields.remove("$schema");
            fields.remove("title");
            fields.insert("additionalProperties".into(), false.into());
        }
        schema
    }
}

/// The tool of this name.
pub(super) fn named(name: &str) -> Option<Tool> {
    ALL.into_iter().find(|tool| tool.as_str() == name)
}

/// All names, in a sentence.
pub(super) fn names() -> String {
    ALL.map(Tool::as_str).join(", ")
}

/// The tools as the protocol lists them.
pub(super) fn described() -> Vec<Value> {
    let described = |tool: Tool| {
        json!({
            "name": tool.as_str(),
            "description": tool.says(),
            "inputSchema": tool.arguments(),
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        })
    };
    ALL.into_iter().map(described).collect()
}

/// Which part of an answer.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct PartArguments {
    /// At most so many entries of each list
    #[schemars(range(min = 1))]
    pub(super) top: Option<u32>,
    /// Only these fields, such as worst.duration_ns (in lists: of each entry)
    #[serde(default)]
    pub(super) fields: Vec<String>,
    /// The next page of one list: a cursor that an earlier answer with the same other arguments gave in left_out
    pub(super) cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ListArguments {
    /// Only runs with this label
    pub(super) label: Option<String>,
    /// Only runs that began at this moment or later: a date and time, a time of the last day, or an epoch
    pub(super) since: Option<String>,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReportArguments {
    /// Id, label (the newest run with it) or 'latest'
    pub(super) run: String,
    /// Of lists that state when each entry began, only the entries since this moment
    pub(super) since: Option<String>,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct CulpritsArguments {
    /// Id, label (the newest run with it) or 'latest'
    pub(super) run: String,
    /// How culprits are told apart [default: program]
    #[schemars(with = "Option<String>", extend("enum" = ["program", "process", "thread", "executable", "user", "unit", "pod", "cgroup"]))]
    pub(super) by: Option<Level>,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct MarksArguments {
    /// Id, label (the newest run with it) or 'latest'
    pub(super) run: String,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StallArguments {
    /// Id, label (the newest run with it) or 'latest'
    pub(super) run: String,
    /// The number of the stall, as reports state it
    pub(super) stall: Option<u64>,
    /// 1 is the longest stall
    #[schemars(range(min = 1))]
    pub(super) rank: Option<u32>,
    /// The longest stall of a moment: a time of day, a date and time, or an epoch
    pub(super) at: Option<String>,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DiffArguments {
    /// Two or more: labels (all runs with it), ids, 'latest', or several of them: a,b,c; with @CPUS behind it, of these
    /// CPUs only. Each is compared with the first.
    #[schemars(length(min = 2))]
    pub(super) runs: Vec<String>,
    /// Only runs that began at this moment or later: a date and time, a time of the last day, or an epoch
    pub(super) since: Option<String>,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct AuditArguments {
    /// CPUs that must not be disturbed: 1-3,5 or all or isolated [default: those of the run, else the isolated ones,
    /// else the highest]
    pub(super) cpus: Option<String>,
    /// Rank by what this run measured: id, label or 'latest'
    pub(super) run: Option<String>,
    #[serde(flatten)]
    pub(super) part: PartArguments,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DoctorArguments {
    #[serde(flatten)]
    pub(super) part: PartArguments,
}
