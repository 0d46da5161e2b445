//! `query`, and the questions of docs/queries.md: each is asked again, and the answers in pandas and Polars are the same.

use crate::readme;

use jitterscope_testing::python;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PACKAGES: [&str; 4] = [
    "duckdb-cli==1.5.6",
    "pandas==3.1.1",
    "polars==2.1.0",
    "pyarrow==26.0.1",
];

pub fn tools() -> Option<PathBuf> {
    python(Path::new(env!("CARGO_TARGET_TMPDIR")), &PACKAGES)
}

/// `query` with only this folder on the path.
fn query(runs: &Path, path: &Path, args: &[&OsStr]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(["--runs".as_ref(), runs.as_os_str(), "query".as_ref()])
        .args(args)
        .env("PATH", path)
        .env("HOME", runs)
        // Not the run's folder.
        .current_dir("/")
        .output()
        .unwrap()
}

fn answer(runs: &Path, tools: &Path, run: &str, sql: &str, format: &str) -> String {
    let args = [run, sql, "--format", format].map(OsStr::new);
    let output = query(runs, &tools.join("bin"), &args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && error.is_empty(),
        "{sql}: {error}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// A question of the page.
struct Question {
    sql: String,
    answer: String,
    python: Option<String>,
}

/// The text between the next such line and the next fence.
fn block(text: &str, language: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("```{language}\n"))?;
    rest.split_once("```").map(|(block, _)| block.to_owned())
}

fn questions(page: &str) -> Vec<Question> {
    let parts = page.split("\n## ").skip(1);
    parts
        .map(|part| Question {
            sql: block(part, "sql").unwrap(),
            answer: block(part, "text").unwrap(),
            python: block(part, "python"),
        })
        .collect()
}

/// A number, which DuckDB writes as a string if it has 64 bits.
fn number(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

/// Whether the values are equal, but for the rounding of floating-point sums.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.keys().eq(b.keys()) && a.values().zip(b.values()).all(|(a, b)| alike(a, b))
        }
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs(),
            _ => a == b,
        },
    }
}

#[test]
fn the_questions_of_the_page_have_its_answers_in_three_libraries() {
    let Some(tools) = tools() else { return };
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/queries.md");
    let mut text = fs::read_to_string(&page).unwrap();
    let questions = questions(&text);
    assert_eq!(questions.len(), 20);
    let dir = tempfile::tempdir().unwrap();
    let folder = readme::copied(dir.path(), readme::RUN);
    let mut libraries = 0;
    for Question {
        sql,
        answer: shown,
        python,
    } in questions
    {
        let answered = answer(dir.path(), &tools, readme::RUN, &sql, "table");
        if std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some() {
            let [old, new] =
                [&shown, &answered].map(|text| format!("{sql}```\n\n```text\n{text}```"));
            text = text.replace(&old, &new);
        } else {
            assert_eq!(
                answered, shown,
                "{sql}: JITTERSCOPE_WRITE_DOCS=1 rewrites the page"
            );
        }
        let Some(code) = python else { continue };
        libraries += 1;
        let output = Command::new(tools.join("bin/python"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/rows.py"))
            .args([folder.as_os_str(), code.as_ref()])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{code}: {error}");
        let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of_sql = answer(dir.path(), &tools, readme::RUN, &sql, "json");
        let of_sql: Value = serde_json::from_str(&of_sql).unwrap();
        assert!(alike(&rows, &of_sql), "{code}: {rows}\n{of_sql}");
    }
    assert_eq!(libraries, 4);
    if std::env::var_os("JITTERSCOPE_WRITE_DOCS").is_some() {
        fs::write(page, text).unwrap();
    }
}

#[test]
fn a_query_prints_every_row_in_each_format_and_fails_as_duckdb_does() {
    let Some(tools) = tools() else { return };
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    let sql = "select stall_id from stalls";
    let csv = answer(dir.path(), &tools, readme::RUN, sql, "csv");
    assert_eq!(csv.lines().count(), 34_594);
    let sql = "select count(*) as stalls from stalls";
    let markdown = answer(dir.path(), &tools, readme::RUN, sql, "markdown");
    assert!(markdown.contains("| 34593  |"), "{markdown}");
    // The user's settings change nothing.
    fs::write(dir.path().join(".duckdbrc"), ".mode line\n").unwrap();
    assert_eq!(
        answer(dir.path(), &tools, readme::RUN, sql, "csv"),
        "stalls\n34593\n"
    );
    let args = [readme::RUN, "select nothing from nowhere"].map(OsStr::new);
    let output = query(dir.path(), &tools.join("bin"), &args);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("nowhere"),
        "{output:?}"
    );
}

#[test]
fn without_duckdb_a_query_says_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    let args = [readme::RUN, "select 1"].map(OsStr::new);
    let output = query(dir.path(), dir.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: duckdb is not on the path: pip install duckdb-cli, or see https://duckdb.org/install\n"
    );
}

#[test]
fn the_views_of_a_run_that_somebody_else_made_are_not_executed() {
    let Some(tools) = tools() else { return };
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("it's a folder");
    fs::create_dir(&runs).unwrap();
    let run = readme::copied(&runs, readme::RUN);
    let created = dir.path().join("created");
    fs::write(
        run.join("views.sql"),
        format!(".shell touch {}\n", created.display()),
    )
    .unwrap();
    let sql = "select count(*) as parts from attributions";
    assert_eq!(
        answer(&runs, &tools, readme::RUN, sql, "csv"),
        "parts\n44041\n"
    );
    assert!(!created.exists());
}
