//! SQL views on the tables, for people.

use super::{CULPRITS, INTERVALS, PARTS, REMARKS, SCHEMA, STALLS};

/// The file of the views in a run.
pub const VIEWS: &str = "views.sql";

/// The SQL statements of the views, for DuckDB. They name the run by a variable, so that a moved run works and any
/// folder can be the current one.
#[must_use]
pub fn views() -> String {
    let table = |file: &str| format!("read_parquet(getvariable('run') || '/{file}')");
    let columns = |file: &str, of: &str, key: &str| {
        let listed = SCHEMA.iter().find(|(name, _)| *name == file);
        let names = listed.map_or(&[][..], |(_, columns)| columns).iter();
        let names = names.map(|(name, ..)| *name).filter(|name| *name != key);
        let names: Vec<String> = names.map(|name| format!("{of}.{name}")).collect();
        names.join(", ")
    };
    format!(
        "-- The rows of a run for people, in DuckDB. `attributions` has one row a (stall, culprit). The run is the folder that
-- the variable `run` names, or else the current one:
--   duckdb -cmd \"set variable run = 'RUN'\" -cmd \".read 'RUN/{VIEWS}'\"

set variable run = coalesce(getvariable('run'), '.');
create or replace view stalls as from {stalls};
create or replace view intervals as from {intervals};
create or replace view culprits as from {culprits};
create or replace view attributions as
select p.stall_id, p.net_ns, coalesce(p.gross_ns, p.net_ns) as gross_ns, coalesce(p.turns, 1) as turns,
  {of_remark},
  p.culprit_id, {of_culprit}
from {parts} p
join {culprits} c using (culprit_id)
join {remarks} r using (remark_id);
",
        stalls = table(STALLS),
        intervals = table(INTERVALS),
        parts = table(PARTS),
        culprits = table(CULPRITS),
        remarks = table(REMARKS),
        of_remark = columns(REMARKS, "r", "remark_id"),
        of_culprit = columns(CULPRITS, "c", "culprit_id"),
    )
}
