//! JSON of a comparison for programs: the data, and words for the differences of the sides and their machines.

use super::conditions::{both_sides, condition, machine_value};
use jitterscope_analyze::compare::{Against, ConditionDifference, Diff, SideSummary};
use jitterscope_analyze::{DifferenceClass, MachineDifference};
use serde::Serialize;

#[must_use]
pub fn diff_json(of: &Diff) -> impl Serialize {
    let Diff {
        schema_version,
        sides,
        against,
    } = of;
    DiffJson {
        schema_version: *schema_version,
        sides,
        against: against.iter().map(AgainstJson::of).collect(),
    }
}

#[derive(Serialize)]
struct DiffJson<'d> {
    schema_version: u32,
    sides: &'d [SideSummary],
    against: Vec<AgainstJson<'d>>,
}

#[derive(Serialize)]
struct AgainstJson<'d> {
    #[serde(flatten)]
    of: &'d Against,
    conditions: Vec<ConditionJson>,
    machine: Vec<MachineJson<'d>>,
}

impl AgainstJson<'_> {
    fn of(of: &Against) -> AgainstJson<'_> {
        AgainstJson {
            of,
            conditions: of.conditions.iter().map(ConditionJson::of).collect(),
            machine: of.machine.iter().map(MachineJson::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct ConditionJson {
    what: &'static str,
    before: String,
    after: String,
    incomparable: bool,
}

impl ConditionJson {
    fn of(of: &ConditionDifference) -> ConditionJson {
        let [before, after] = both_sides(of);
        ConditionJson {
            what: condition(of.what),
            before,
            after,
            incomparable: of.incomparable,
        }
    }
}

#[derive(Serialize)]
struct MachineJson<'d> {
    class: DifferenceClass,
    what: &'d str,
    before: Option<String>,
    after: Option<String>,
}

impl MachineJson<'_> {
    fn of(of: &MachineDifference) -> MachineJson<'_> {
        let [before, after] = [&of.before, &of.after].map(|side| side.as_ref().map(machine_value));
        MachineJson {
            class: of.class,
            what: &of.what,
            before,
            after,
        }
    }
}
