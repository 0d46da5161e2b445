//! Asks the user's own DuckDB for the sums of a fleet, and judges them.

mod copy;
mod duckdb;

pub use copy::Copied;
pub use duckdb::NoDuckdb;

use crate::location::Location;
use crate::problem::Problem;
use crate::schema::{Dialect, schema};
use copy::copy;
use duckdb::Duckdb;
use jitterscope_analyze::fleet::{FleetFindings, FleetHost, HostCulprit, NewCulprit, judge};

const HOSTS: &str = include_str!("../sql/report/hosts.sql");
const CULPRITS: &str = include_str!("../sql/report/culprits.sql");
const NEW: &str = include_str!("../sql/report/new.sql");

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum NoReport {
    #[error(transparent)]
    Store(#[from] Problem),
    #[error(transparent)]
    Duckdb(#[from] NoDuckdb),
    #[error("there are no rollups from {from} to {to}")]
    Empty { from: String, to: String },
}

/// Judges the days from `from` to `to` (`2026-11-28`, both included), of one cluster or of all.
///
/// # Errors
/// There is no DuckDB, the store fails, or it has nothing of these days.
pub fn judge_days(
    location: &Location,
    from: &str,
    to: &str,
    cluster: Option<&str>,
) -> Result<(FleetFindings, Copied), NoReport> {
    // A program that is missing is cheaper to find than a day of rollups.
    let duckdb = Duckdb::find()?;
    let folder = tempfile::tempdir().map_err(Problem::local)?;
    let copied = copy(location, folder.path(), from, to, cluster)?;
    if copied.files == 0 {
        return Err(NoReport::Empty {
            from: from.to_owned(),
            to: to.to_owned(),
        });
    }
    let views = schema(Dialect::Duckdb, &folder.path().to_string_lossy())?;
    let ask = |query: &str| query.replace("{from}", from).replace("{to}", to);
    let hosts: Vec<FleetHost> = duckdb.rows(&views, &ask(HOSTS))?;
    let culprits: Vec<HostCulprit> = duckdb.rows(&views, &ask(CULPRITS))?;
    let new: Vec<NewCulprit> = duckdb.rows(&views, &ask(NEW))?;
    Ok((judge(hosts, &culprits, new), copied))
}
