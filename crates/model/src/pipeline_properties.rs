//! perf-workshop's properties file: the CPUs of its threads, and whether there is a journaller.

use crate::{CpuId, PipelineRole};

const PREFIX: &str = "perf.workshop.";
const JOURNALLER: &str = "journaller.enabled";

/// The values of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineProperties {
    /// The CPUs of the threads that have one.
    cpus: Vec<(PipelineRole, CpuId)>,
    /// Whether there is a journaller, if the file has this key.
    pub journaller: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: '{value}' for {key} is not a CPU: leave it empty, or write one number, for example 3"
)]
pub struct BadProperty {
    line: usize,
    key: String,
    value: String,
}

impl PipelineProperties {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// A thread's CPU is not a number.
    pub fn parse(text: &str) -> Result<PipelineProperties, BadProperty> {
        let mut properties = PipelineProperties::default();
        for (line, key, value) in pairs(text) {
            let Some(name) = key.strip_prefix(PREFIX) else {
                continue;
            };
            if name == JOURNALLER {
                // Like Java's Boolean.valueOf: any other text is false.
                properties.journaller = Some(value.eq_ignore_ascii_case("true"));
            }
            let role = ROLES
                .into_iter()
                .find(|role| name.strip_prefix("affinity.") == Some(role.as_str()));
            let Some(role) = role else { continue };
            // The last value of a key wins.
            properties.cpus.retain(|(of, _)| *of != role);
            match value.trim() {
                "" => {}
                number => {
                    let cpu = number.parse().map_err(|_| BadProperty {
                        line,
                        key,
                        value: value.clone(),
                    })?;
                    properties.cpus.push((role, CpuId(cpu)));
                }
            }
        }
        Ok(properties)
    }

    #[must_use]
    pub fn cpu(&self, role: PipelineRole) -> Option<CpuId> {
        self.cpus
            .iter()
            .find(|(of, _)| *of == role)
            .map(|(_, cpu)| *cpu)
    }

    /// The text of a file that pins no thread and has no journaller, like the one that perf-workshop makes.
    #[must_use]
    pub fn template() -> String {
        let mut text = String::from(
            "# Where the pipeline's threads run: one CPU each, or nothing to leave it to the scheduler.\n",
        );
        for role in ROLES {
            text.push_str(&format!("{PREFIX}affinity.{role}=\n"));
        }
        text.push_str(&format!(
            "# Whether there is a journaller.\n{PREFIX}{JOURNALLER}=false\n"
        ));
        text
    }
}

const ROLES: [PipelineRole; 3] = [
    PipelineRole::Producer,
    PipelineRole::Journaller,
    PipelineRole::Accumulator,
];

/// Keys and values with their line numbers, by the rules of `java.util.Properties`: comments begin with `#` or `!`, a
/// key ends at `=`, `:` or white space, a backslash at the end of a line continues it, and before any other character
/// it makes that literal (except `\t`, `\n`, `\r`, `\f` and `\uXXXX`).
fn pairs(text: &str) -> Vec<(usize, String, String)> {
    let mut pairs = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let mut whole = line.trim_start_matches(is_blank).to_owned();
        if whole.is_empty() || whole.starts_with(['#', '!']) {
            continue;
        }
        while ends_in_continuation(&whole) {
            whole.pop();
            let Some((_, next)) = lines.next() else { break };
            whole.push_str(next.trim_start_matches(is_blank));
        }
        let (key, value) = split(&whole);
        pairs.push((at + 1, unescape(key), unescape(value)));
    }
    pairs
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// An odd number of backslashes continues the line; an even one is half as many literal backslashes.
fn ends_in_continuation(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.char_indices().find(|(_, c)| {
        let ends = !escaped && (is_blank(*c) || matches!(c, '=' | ':'));
        escaped = *c == '\\' && !escaped;
        ends
    });
    let Some((end, _)) = end else {
        return (line, "");
    };
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(is_blank))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.clone().take(4).collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .filter(|_| digits.len() == 4);
                if code.is_some() {
                    chars.nth(3);
                }
                // Half of a surrogate pair, or not a number: no key and no CPU contains it.
                out.push(
                    code.and_then(char::from_u32)
                        .unwrap_or(char::REPLACEMENT_CHARACTER),
                );
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ancestors_file_is_understood() {
        let text = "#override properties for perf workshop\n#Thu Sep 24 14:17:31 BST 2015\n\
                    perf.workshop.affinity.journaller=\nperf.workshop.affinity.producer=1\n\
                    perf.workshop.journaller.enabled=true\nperf.workshop.affinity.accumulator=3\n";
        let read = PipelineProperties::parse(text).unwrap();
        assert_eq!(read.cpu(PipelineRole::Producer), Some(CpuId(1)));
        assert_eq!(read.cpu(PipelineRole::Accumulator), Some(CpuId(3)));
        assert_eq!(
            (read.cpu(PipelineRole::Journaller), read.journaller),
            (None, Some(true))
        );
    }

    #[test]
    fn javas_syntax_is_understood() {
        let text = "! a comment\n\n  perf.workshop.affinity.producer : 2 \nperf.workshop.affinity.\\\n    \
                    accumulator 4\nperf.workshop.journaller\\u002eenabled=TRUE\nother=x\n\
                    perf.workshop.affinity.producer=5\n";
        let read = PipelineProperties::parse(text).unwrap();
        assert_eq!(
            read.cpu(PipelineRole::Producer),
            Some(CpuId(5)),
            "the last one counts"
        );
        assert_eq!(read.cpu(PipelineRole::Accumulator), Some(CpuId(4)));
        assert_eq!(read.journaller, Some(true));
        let read = PipelineProperties::parse("perf.workshop.journaller.enabled=yes").unwrap();
        assert_eq!(read.journaller, Some(false));
    }

    #[test]
    fn what_is_no_cpu_is_named_with_its_line() {
        let bad = PipelineProperties::parse("\nperf.workshop.affinity.producer=1,2\n").unwrap_err();
        assert_eq!((bad.line, bad.value.as_str()), (2, "1,2"));
        assert!(
            bad.to_string()
                .contains("line 2: '1,2' for perf.workshop.affinity.producer"),
            "{bad}"
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,300}") {
            let _ = PipelineProperties::parse(&text);
        }

        #[test]
        fn no_line_noise_panics(parts in proptest::collection::vec(
            prop_oneof![
                Just("perf.workshop."), Just("affinity.producer"), Just("="), Just(":"), Just("\\"), Just("\n"),
                Just("\\u"), Just("00e9"), Just("7"), Just("#"), Just(" "), Just("true"), Just("\u{e9}"),
            ],
            0..60,
        )) {
            let _ = PipelineProperties::parse(&parts.concat());
        }

        #[test]
        fn what_is_written_is_read(producer in proptest::option::of(0u32..5000), accumulator in 0u32..5000, journaller: bool) {
            let producer_text = producer.map_or(String::new(), |cpu| cpu.to_string());
            let text = format!(
                "perf.workshop.affinity.producer={producer_text}\nperf.workshop.affinity.accumulator = {accumulator}\n\
                 perf.workshop.journaller.enabled={journaller}\n"
            );
            let read = PipelineProperties::parse(&text).unwrap();
            prop_assert_eq!(read.cpu(PipelineRole::Producer), producer.map(CpuId));
            prop_assert_eq!(read.cpu(PipelineRole::Accumulator), Some(CpuId(accumulator)));
            prop_assert_eq!(read.journaller, Some(journaller));
        }
    }
}
