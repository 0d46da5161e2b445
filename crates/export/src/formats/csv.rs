//! `csv`: one row a stall, or one an interval.
//!
//! The `series` variant has the same first two columns as the jitter sampler's file: the end of an interval, and the
//! longest stall in it.

use super::Format;
use crate::address::Address;
use crate::error::{DestinationError, ExportError};
use crate::exporter::Exporter;
use crate::largest_part::{FACTS, Fact, facts as culprit_facts, largest_part};
use crate::line_file::RowLines;
use jitterscope_model::{Attribution, IntervalRow, Row, RunFacts, Stall, visible};
use std::borrow::Cow;

pub(super) static FORMAT: Format = Format {
    schemes: &["csv"],
    usage: &[(
        "csv://FILE",
        "stalls; ?rows=intervals or ?rows=series for the intervals. With\n\
         ?formulas=escape a spreadsheet shows names like =1+1 as text",
    )],
    notes: "",
    read,
};

const OPTIONS: &str = "rows=stalls, rows=intervals and rows=series, and formulas=escape for a file that a spreadsheet opens";

fn read(address: &Address<'_>) -> Result<Exporter, DestinationError> {
    let path = address.path()?;
    let (mut rows, mut formulas) = (CsvRows::default(), Formulas::default());
    for (key, value) in &address.options {
        let found = match *key {
            "rows" => CsvRows::parse(value).map(|named| rows = named),
            "formulas" => Formulas::parse(value).map(|named| formulas = named),
            _ => return Err(address.unknown(key, OPTIONS)),
        };
        found.ok_or_else(|| address.unknown(&format!("{key}={value}"), OPTIONS))?;
    }
    Ok(Exporter::lines(path, move |on_terminal| Csv {
        rows,
        formulas,
        on_terminal,
    }))
}

/// The rows of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CsvRows {
    #[default]
    Stalls,
    /// One row an interval and CPU.
    Intervals,
    /// Only intervals with a stall.
    Series,
}

impl CsvRows {
    /// The rows of this name.
    fn parse(name: &str) -> Option<CsvRows> {
        match name {
            "stalls" => Some(CsvRows::Stalls),
            "intervals" => Some(CsvRows::Intervals),
            "series" => Some(CsvRows::Series),
            _ => None,
        }
    }

    fn header(self) -> &'static str {
        match self {
            CsvRows::Stalls => {
                "start_ns,duration_ns,cpu,tid,comm,stall_id,start_ticks,end_ticks,explained_ns,culprit_kind,culprit,culprit_ns,culprit_tid,culprit_tgid,culprit_comm,culprit_class,culprit_priority,culprit_uid,culprit_cgroup,culprit_function,culprit_workqueue,culprit_irq,phase,moved_from_cpu\n"
            }
            CsvRows::Intervals | CsvRows::Series => "end_ns,max_ns,cpu,start_ns,count,stolen_ns\n",
        }
    }
}

/// The treatment of a name that a spreadsheet would evaluate as a formula.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Formulas {
    /// Leaves the name unchanged, for programs that read the file.
    #[default]
    Keep,
    /// Puts an apostrophe before the name: a spreadsheet then shows it as text.
    Escape,
}

impl Formulas {
    /// The choice of this name.
    fn parse(name: &str) -> Option<Formulas> {
        match name {
            "keep" => Some(Formulas::Keep),
            "escape" => Some(Formulas::Escape),
            _ => None,
        }
    }
}

/// Makes the lines of one file.
struct Csv {
    rows: CsvRows,
    formulas: Formulas,
    on_terminal: bool,
}

impl Csv {
    /// A name as a field: unchanged for a program, with control characters escaped for a terminal.
    fn name(&self, text: &str) -> String {
        let shown = if self.on_terminal {
            visible(text)
        } else {
            text.into()
        };
        field(&shown, self.formulas).into_owned()
    }

    fn stall(&self, facts: &RunFacts, stall: &Stall, attribution: Option<&Attribution>) -> String {
        let mut line = format!(
            "{},{},{},{},{},{},{},{},",
            facts.epoch_ns(stall.start),
            facts.rate.nanos(stall.length()).0,
            stall.cpu,
            stall.victim.tid,
            self.name(&stall.victim.comm.to_string()),
            stall.id.0,
            stall.start.0,
            stall.end.0,
        );
        match (attribution, largest_part(attribution)) {
            (Some(attribution), Some(part)) => {
                line.push_str(&attribution.explained().0.to_string());
                for (_, fact) in culprit_facts(part) {
                    line.push(',');
                    match fact {
                        Some(Fact::Number(number)) => line.push_str(&number.to_string()),
                        Some(Fact::Text(text)) => line.push_str(&self.name(&text)),
                        None => {}
                    }
                }
            }
            _ => line.push_str(&",".repeat(FACTS)),
        }
        line.push('\n');
        line
    }
}

fn interval(facts: &RunFacts, row: &IntervalRow) -> String {
    format!(
        "{},{},{},{},{},{}\n",
        facts.epoch_ns(row.end),
        row.max.0,
        row.cpu,
        facts.epoch_ns(row.start),
        row.count,
        row.stolen.0,
    )
}

impl RowLines for Csv {
    fn head(&mut self, _facts: &RunFacts) -> Result<Vec<u8>, ExportError> {
        Ok(self.rows.header().into())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        match (self.rows, row) {
            (CsvRows::Stalls, Row::Stall(..)) | (CsvRows::Intervals, Row::Interval(..)) => true,
            (CsvRows::Series, Row::Interval(row, _)) => row.count > 0,
            _ => false,
        }
    }

    fn line(&mut self, facts: &RunFacts, row: &Row<'_>) -> Result<Vec<u8>, ExportError> {
        Ok(match row {
            Row::Stall(stall, attribution) => self.stall(facts, stall, *attribution),
            Row::Interval(row, _) => interval(facts, row),
            Row::Whole(..) | Row::Page(_) | Row::Turn(_) | Row::Context(_) => String::new(),
        }
        .into_bytes())
    }
}

/// A field in the syntax of RFC 4180.
fn field(text: &str, formulas: Formulas) -> Cow<'_, str> {
    if formulas == Formulas::Escape && is_formula(text) {
        // Always quoted: otherwise some readers drop the tab or carriage return after an apostrophe.
        return format!("\"'{}\"", text.replace('"', "\"\"")).into();
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

/// Whether a spreadsheet would evaluate the text as a formula. Some skip leading blanks, and accept the full-width
/// forms of East Asian keyboards.
fn is_formula(text: &str) -> bool {
    let first = text.trim_start_matches(' ').chars().next();
    first.is_some_and(|c| {
        matches!(
            c,
            '=' | '+'
                | '-'
                | '@'
                | '\t'
                | '\r'
                | '\n'
                | '\u{ff1d}'
                | '\u{ff0b}'
                | '\u{ff0d}'
                | '\u{ff20}'
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_of_a_stall_are_the_facts_of_its_largest_part() {
        let part = jitterscope_model::Part::inside(
            jitterscope_model::Subject::PageFault { user: true },
            jitterscope_model::Nanos(1),
            jitterscope_model::Evidence::Nothing,
        );
        let names: Vec<&str> = culprit_facts(&part).iter().map(|(name, _)| *name).collect();
        let header = CsvRows::Stalls.header().trim_end();
        assert!(
            header.ends_with(&format!(",explained_ns,{}", names.join(","))),
            "{header}"
        );
    }

    #[test]
    fn formulas_are_neutralised_on_request_only() {
        for name in [
            "=cmd|'/c calc'!A1",
            "+1",
            "-1",
            "@x",
            "\tx",
            "\rx",
            "\nx",
            " =1",
            "\u{ff1d}1",
            "=\"a\",1",
        ] {
            let escaped = field(name, Formulas::Escape);
            assert_eq!(escaped, format!("\"'{}\"", name.replace('"', "\"\"")));
            let kept = field(name, Formulas::Keep).into_owned();
            assert_eq!(
                kept.trim_start_matches('"').chars().next(),
                name.chars().next()
            );
        }
        for name in ["kworker/0:1-events", "a=1", "", "x@y", "'"] {
            assert_eq!(field(name, Formulas::Escape), name);
        }
    }
}
