//! The file of a declared state: TOML with the tables `machine` and `knobs`, one line per setting.

use super::{BOOT_LINE, Declared, Expected, is_known, words};
use crate::toml_file;
use jitterscope_analyze::{KNOBS, MachineFact, MachineValue};
use jitterscope_model::{Compared, DifferenceClass, MACHINE_SETTINGS};
use jitterscope_tune::catalogue;
use std::fmt::Write;
use toml::de::{DeTable, DeValue};

const MACHINE: &str = "machine";
const OF_KNOBS: &str = "knobs";
const VERSION: &str = "version";
/// The version of the file that this program reads and writes.
const CURRENT: i64 = 1;
const HEAD: &str = "\
# The state of a machine, for `jitterscope audit --expect`.
# A line that is removed is not checked. Values are compared as text.
";

/// Why a file declares no state.
#[derive(Debug, thiserror::Error)]
pub enum ExpectedError {
    #[error("line {line}: {says}")]
    NoToml { line: usize, says: String },
    #[error("it has no line `version = {CURRENT}`; `jitterscope audit --write FILE` makes a file")]
    NoVersion,
    #[error("line {line}: version {found} is unknown; this program reads version {CURRENT}")]
    Version { line: usize, found: String },
    #[error(
        "line {line}: there is no setting '{what}'; `jitterscope audit --write FILE` lists all"
    )]
    UnknownSetting { line: usize, what: String },
    #[error("line {line}: there is no knob '{id}'{hint}", hint = did_you_mean(similar))]
    UnknownKnob {
        line: usize,
        id: String,
        similar: Vec<&'static str>,
    },
    #[error("line {line}: unknown key '{key}'; the tables are [{MACHINE}] and [{OF_KNOBS}]")]
    UnknownKey { line: usize, key: String },
    #[error("line {line}: '{what}' must be a text, a number, true or false")]
    NoValue { line: usize, what: String },
    #[error("it declares no setting")]
    Empty,
}

fn did_you_mean(similar: &[&str]) -> String {
    match similar {
        [] => "; `jitterscope audit --all` lists them".into(),
        some => format!("; did you mean {}?", some.join(", ")),
    }
}

/// The file that declares the state of a machine: its settings that matter for stalls, and its knobs. A setting that
/// could not be read is a comment.
#[must_use]
pub fn written(facts: &[MachineFact]) -> String {
    let is_declared =
        |fact: &&MachineFact| fact.class != DifferenceClass::Informational && knob(fact).is_none();
    let machine = facts.iter().filter(is_declared);
    let machine = machine.map(|fact| (fact.what.as_str(), fact));
    let knobs = facts.iter().filter_map(|fact| Some((knob(fact)?, fact)));
    format!(
        "{HEAD}{VERSION} = {CURRENT}\n{}{}",
        table(MACHINE, machine),
        table(OF_KNOBS, knobs)
    )
}

/// A table of the file, with a line for each key and its fact.
fn table<'f>(name: &str, facts: impl Iterator<Item = (&'f str, &'f MachineFact)>) -> String {
    let mut out = format!("\n[{name}]\n");
    for (key, fact) in facts {
        let key = quoted(key);
        match &fact.value {
            MachineValue::Absent => {}
            value if is_known(value) => {
                if fact.what == BOOT_LINE {
                    out += "# Without what names this host's disks and addresses.\n";
                }
                let _ = writeln!(out, "{key} = {}", quoted(&words(fact)));
            }
            _ => {
                let _ = writeln!(out, "# {key} could not be read");
            }
        }
    }
    out
}

/// The id of the knob that a fact is about.
fn knob(fact: &MachineFact) -> Option<&str> {
    fact.what.strip_prefix(KNOBS)?.strip_prefix('.')
}

/// A string of TOML: one of JSON, in which one control character less stands for itself.
fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.replace('\u{7f}', "\\u007f")
}

impl Expected {
    /// Reads a file.
    ///
    /// # Errors
    /// It is no TOML, of another version, or has a key or value that declares nothing.
    pub fn parse(text: &str) -> Result<Expected, ExpectedError> {
        let line = |at: usize| toml_file::line(text, at);
        let file =
            toml_file::table(text).map_err(|(line, says)| ExpectedError::NoToml { line, says })?;
        let mut expected = Expected::default();
        let mut version = false;
        for (key, value) in file.get_ref() {
            let at = line(key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                (VERSION, value) => {
                    let found = scalar(value).unwrap_or_else(|| "of another type".into());
                    if found != CURRENT.to_string() {
                        return Err(ExpectedError::Version { line: at, found });
                    }
                    version = true;
                }
                (table @ (MACHINE | OF_KNOBS), DeValue::Table(of)) => {
                    flatten(of, "", &line, &mut |what, value, line| {
                        let what = known(table, what, line)?;
                        expected.declared.push(Declared { what, value, line });
                        Ok(())
                    })?;
                }
                (key, _) => {
                    let key = key.to_owned();
                    return Err(ExpectedError::UnknownKey { line: at, key });
                }
            }
        }
        match (version, expected.declared.is_empty()) {
            (false, _) => Err(ExpectedError::NoVersion),
            (_, true) => Err(ExpectedError::Empty),
            _ => Ok(expected),
        }
    }
}

/// The path of a setting or knob that exists.
fn known(table: &str, what: &str, line: usize) -> Result<String, ExpectedError> {
    if table == OF_KNOBS {
        return match catalogue::find(what) {
            Some(knob) => Ok(format!("{KNOBS}.{}", knob.id)),
            None => Err(ExpectedError::UnknownKnob {
                line,
                id: what.to_owned(),
                similar: catalogue::similar(what),
            }),
        };
    }
    let exists = MACHINE_SETTINGS.iter().any(|setting| {
        let rest = what.strip_prefix(setting.name);
        match setting.compared {
            Compared::Not | Compared::Mean(_) => false,
            Compared::Whole(_) => rest == Some(""),
            Compared::ByName(_) | Compared::ByNameIfBoth(_) => {
                rest.is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
            }
        }
    });
    match exists {
        true => Ok(what.to_owned()),
        false => Err(ExpectedError::UnknownSetting {
            line,
            what: what.to_owned(),
        }),
    }
}

/// Calls `each` with the dotted path, the text and the line of each value: `kernel.release` may be written with and
/// without quotation marks.
fn flatten(
    table: &DeTable<'_>,
    above: &str,
    line: &impl Fn(usize) -> usize,
    each: &mut impl FnMut(&str, String, usize) -> Result<(), ExpectedError>,
) -> Result<(), ExpectedError> {
    for (key, value) in table {
        let at = line(key.span().start);
        let what = match above {
            "" => key.get_ref().to_string(),
            above => format!("{above}.{}", key.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(below) => flatten(below, &what, line, each)?,
            value => match scalar(value) {
                Some(text) => each(&what, text, at)?,
                None => return Err(ExpectedError::NoValue { line: at, what }),
            },
        }
    }
    Ok(())
}

/// A value in the words that comparisons use.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str();
            i64::from_str_radix(digits, number.radix())
                .ok()
                .map(|n| n.to_string())
        }
        DeValue::Boolean(on) => Some(if *on { "yes" } else { "no" }.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(class: DifferenceClass, what: &str, value: MachineValue) -> MachineFact {
        MachineFact {
            class,
            what: what.into(),
            value,
        }
    }

    #[test]
    fn a_written_file_declares_what_was_read() {
        use DifferenceClass::{Informational, Matters};
        let text = |text: &str| MachineValue::Text(text.into());
        let facts = [
            fact(Matters, "kernel.release", text("6.1.0 \"x\" \\ \u{7f}")),
            fact(Matters, BOOT_LINE, text("root=UUID=1 isolcpus=2,3 quiet")),
            fact(Informational, "kernel.version", text("#1")),
            fact(Matters, "processors.smt.active", MachineValue::Switch(true)),
            fact(Matters, "kernel.realtime", MachineValue::Absent),
            fact(Matters, "kernel.preemption", MachineValue::Denied),
            fact(Matters, "tuning.settings.vmstat", text("1")),
        ];
        let file = written(&facts);
        assert!(
            file.contains("# \"kernel.preemption\" could not be read\n"),
            "{file}"
        );
        let expected = Expected::parse(&file).unwrap();
        let declared: Vec<(&str, &str)> = expected
            .declared
            .iter()
            .map(|of| (of.what.as_str(), of.value.as_str()))
            .collect();
        let mut sorted = declared.clone();
        sorted.sort_unstable();
        assert_eq!(
            sorted,
            [
                (BOOT_LINE, "isolcpus=2,3 quiet"),
                ("kernel.release", "6.1.0 \"x\" \\ \u{7f}"),
                ("processors.smt.active", "yes"),
                ("tuning.settings.vmstat", "1"),
            ]
        );
        for of in &expected.declared {
            let line = file.lines().nth(of.line - 1).unwrap();
            let key = of.what.trim_start_matches("tuning.settings.");
            assert!(line.contains(key), "{line} is not of {}", of.what);
        }
    }

    #[test]
    fn keys_need_no_quotation_marks_and_numbers_are_values() {
        let text = "version = 1\n[machine]\nkernel.realtime = false\nmemory.swap_kib = 0\n[machine.kernel]\n";
        assert!(matches!(
            Expected::parse(text),
            Err(ExpectedError::NoToml { line: 5, .. })
        ));
        let text = "version = 1\n[machine]\nkernel.realtime = false\nmemory.swap_kib = 0x10\n";
        let expected = Expected::parse(text).unwrap();
        let declared: Vec<(&str, &str, usize)> = expected
            .declared
            .iter()
            .map(|of| (of.what.as_str(), of.value.as_str(), of.line))
            .collect();
        assert_eq!(
            declared,
            [("kernel.realtime", "no", 3), ("memory.swap_kib", "16", 4)]
        );
    }

    #[test]
    fn a_file_that_declares_nothing_names_the_line() {
        for (text, says) in [
            (
                "version = 1\n[machine]\nkernel.relase = 'x'\n",
                "line 3: there is no setting 'kernel.relase'",
            ),
            (
                "version = 1\n[machine]\nload.busy = '1'\n",
                "line 3: there is no setting",
            ),
            (
                "version = 1\n[knobs]\n\nvmsta = '1'\n",
                "line 4: there is no knob 'vmsta'; did you mean vmstat",
            ),
            ("version = 2\n", "line 1: version 2 is unknown"),
            (
                "[machine]\nkernel.arch = 'x86_64'\n",
                "it has no line `version = 1`",
            ),
            (
                "version = 1\nmachines = 3\n",
                "line 2: unknown key 'machines'",
            ),
            (
                "version = 1\n[machine]\nkernel.arch = [1]\n",
                "line 3: 'kernel.arch' must be",
            ),
            ("version = 1\n[machine\n", "line 2: "),
            ("version = 1\n", "it declares no setting"),
        ] {
            let error = Expected::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{text:?}: {error}");
        }
    }
}
