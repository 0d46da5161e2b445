//! The views of rollups, for the engines that read them.

use crate::problem::{Problem, ProblemKind};
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
///
/// # Errors
/// The engine cannot read such a place.
pub fn schema(dialect: Dialect, url: &str) -> Result<String, Problem> {
    let views = match dialect {
        Dialect::Duckdb => include_str!("sql/duckdb.sql"),
        Dialect::Clickhouse => include_str!("sql/clickhouse.sql"),
        Dialect::Spark => include_str!("sql/spark.sql"),
    };
    let url = url.trim_end_matches('/');
    let (scheme, rest) = url.split_once("://").unwrap_or(("file", url));
    let place = match (dialect, scheme) {
        // Its own name of the store.
        (Dialect::Spark, "s3") => format!("s3a://{rest}"),
        (Dialect::Duckdb | Dialect::Clickhouse, "file") => rest.to_owned(),
        (Dialect::Clickhouse, "az") => {
            let text = "ClickHouse names Azure's storage in another way: write the views for its function azureBlobStorage";
            return Err(Problem::new(ProblemKind::Unsupported, text));
        }
        _ => url.to_owned(),
    };
    let read = match scheme {
        "file" => "file",
        "gs" => "gcs",
        _ => "s3",
    };
    let mut text = String::from("-- Columns of the rollups:\n");
    for (name, _, meaning) in ROLLUPS.1 {
        text.push_str(&format!("--   {name}: {meaning}\n"));
    }
    // A quote in the URL would end the text in SQL.
    let place = place.replace('\'', "''");
    text.push_str(&views.replace("{read}", read).replace("{url}", &place));
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_gets_the_place_as_it_names_it() {
        for (dialect, url, part) in [
            (Dialect::Duckdb, "file:///f/x/", "'/f/x/v1/"),
            (Dialect::Duckdb, "s3://b/x", "'s3://b/x/v1/"),
            (Dialect::Clickhouse, "/f/x", "file('/f/x/v1/"),
            (Dialect::Clickhouse, "s3://b/it's", "s3('s3://b/it''s/v1/"),
            (Dialect::Clickhouse, "gs://b/x", "gcs('gs://b/x/v1/"),
            (Dialect::Spark, "s3://b/x", "s3a://b/x/v1/"),
        ] {
            let text = schema(dialect, url).unwrap();
            assert!(text.contains(part), "{dialect:?} {url}: {text}");
            assert!(!text.contains("{url}") && !text.contains("{read}"));
        }
        assert!(schema(Dialect::Clickhouse, "az://c/x").is_err());
    }
}
