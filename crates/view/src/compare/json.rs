//! JSON of a comparison for programs: the data, and words for the differences of the sides and their machines.

use super::conditions::{both_sides, condition, machine_value};
use crate::json::Worded;
use jitterscope_analyze::MachineDifference;
use jitterscope_analyze::compare::{Against, ConditionDifference, Diff, SideSummary};
use schemars::JsonSchema;
use serde::Serialize;

#[must_use]
pub fn diff_json(of: &Diff) -> impl Serialize + JsonSchema {
    DiffWithWords::of(of)
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct DiffWithWords<'d> {
    /// Version of this structure.
    schema_version: u32,
    sides: &'d [SideSummary],
    /// The comparison of each further side with the first.
    against: Vec<AgainstWithWords<'d>>,
}

impl DiffWithWords<'_> {
    pub(crate) fn of(diff: &Diff) -> DiffWithWords<'_> {
        DiffWithWords {
            schema_version: diff.schema_version,
            sides: &diff.sides,
            against: diff.against.iter().map(AgainstWithWords::of).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct AgainstWithWords<'d> {
    #[serde(flatten)]
    of: &'d Against,
    /// The differing conditions. If one makes the sides incomparable, there are no verdicts.
    conditions: Vec<Worded<'d, ConditionDifference, Condition>>,
    /// The other differences between the machines.
    machine: Vec<Worded<'d, MachineDifference, Values>>,
}

impl AgainstWithWords<'_> {
    fn of(of: &Against) -> AgainstWithWords<'_> {
        AgainstWithWords {
            of,
            conditions: of.conditions.iter().map(with_condition).collect(),
            machine: of.machine.iter().map(with_values).collect(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Condition {
    /// The condition in words.
    what: &'static str,
    /// In the runs of the first side, in words.
    before: String,
    /// In the runs of the other side, in words.
    after: String,
}

fn with_condition(fact: &ConditionDifference) -> Worded<'_, ConditionDifference, Condition> {
    let what = condition(fact.what);
    let [before, after] = both_sides(fact);
    Worded {
        fact,
        words: Condition {
            what,
            before,
            after,
        },
    }
}

#[derive(Serialize, JsonSchema)]
struct Values {
    /// In the runs of the first side, in words; null if they did not have the property.
    before: Option<String>,
    /// In the runs of the other side, in words; null if they did not have the property.
    after: Option<String>,
}

fn with_values(fact: &MachineDifference) -> Worded<'_, MachineDifference, Values> {
    let [before, after] = [&fact.before, &fact.after].map(|side| side.as_ref().map(machine_value));
    Worded {
        fact,
        words: Values { before, after },
    }
}
