//! The views of rollups, for the engines that read them.

use clap::ValueEnum;
use jitterscope_store::rollup::ROLLUPS;

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    Duckdb,
    Clickhouse,
    Spark,
}

/// The statements that make the views of a fleet, with the columns as comments.
#[must_use]
pub fn schema(dialect: Dialect, url: &str) -> String {
    let views = match dialect {
        Dialect::Duckdb => include_str!("sql/duckdb.sql"),
        Dialect::Clickhouse => include_str!("sql/clickhouse.sql"),
        Dialect::Spark => include_str!("sql/spark.sql"),
    };
    let mut text = String::from("-- Columns of the rollups:\n");
    for (name, _, meaning) in ROLLUPS.1 {
        text.push_str(&format!("--   {name}: {meaning}\n"));
    }
    // A quote in the URL would end the text in SQL.
    text.push_str(&views.replace("{url}", &url.trim_end_matches('/').replace('\'', "''")));
    text
}
