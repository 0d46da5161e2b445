//! The report of a check.

use super::{BOOT_LINE, Checked, Deviation, DeviationState};
use crate::lines::counted;
use crate::report::{Fact, Facts, Report};
use crate::style::Tone;

impl Checked {
    /// What deviates, in words; all of it.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = Report::default();
        let differ = self.count(DeviationState::Differs);
        let missing = self.count(DeviationState::NotHere);
        let unread = self.count(DeviationState::Unreadable);
        let settings = counted(self.declared, "setting");
        let file = &self.file;
        match differ + missing {
            0 if unread == 0 => {
                report.sentence(
                    Tone::Good,
                    format!("All {settings} are as {file} declares."),
                );
            }
            0 => report.sentence(
                None,
                format!(
                    "{} of {settings} are as {file} declares.",
                    self.declared - unread
                ),
            ),
            n => report.sentence(
                Tone::Bad,
                format!("{n} of {settings} are not as {file} declares."),
            ),
        }
        if self.other_type {
            report.sentence(
                Tone::Warning,
                format!(
                    "{file} describes another type of machine; much of it does not apply here."
                ),
            );
        }
        if unread > 0 {
            let text = format!(
                "{} could not be read: run as root.",
                counted(unread, "setting")
            );
            report.sentence(Tone::Warning, text);
        }
        report.facts(Facts {
            shown: self.deviations.iter().map(fact).collect(),
            ..Facts::default()
        });
        report
    }
}

/// A value, or a word for an empty one.
fn named(value: &str) -> &str {
    match value {
        "" => "nothing",
        value => value,
    }
}

fn fact(of: &Deviation) -> Fact {
    let (tone, text) = match (of.state, &of.here) {
        (DeviationState::Differs, Some(here)) if of.what == BOOT_LINE => {
            (Tone::Bad, parameters(&of.declared, here))
        }
        (DeviationState::Differs, here) => {
            let here = here.as_deref().unwrap_or_default();
            let text = format!("{} declared, {} here", named(&of.declared), named(here));
            (Tone::Bad, text)
        }
        (DeviationState::NotHere, _) => {
            let text = format!("{} declared; does not exist here", named(&of.declared));
            (Tone::Bad, text)
        }
        (DeviationState::Unreadable, _) => (
            Tone::Warning,
            format!("{} declared; unreadable here", named(&of.declared)),
        ),
    };
    Fact {
        name: of.what.clone(),
        tone: Some(tone),
        text,
    }
}

/// The parameters that only one boot line has.
fn parameters(declared: &str, here: &str) -> String {
    let only = |of: &str, other: &str| -> Vec<String> {
        let other = Vec::from_iter(other.split_whitespace());
        let only = of.split_whitespace().filter(|word| !other.contains(word));
        only.map(str::to_owned).collect()
    };
    let sides = [
        ("declared but missing here", only(declared, here)),
        ("only here", only(here, declared)),
    ];
    let said: Vec<String> = sides
        .into_iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(side, words)| format!("{side}: {}", words.join(" ")))
        .collect();
    match said.is_empty() {
        true => "the same parameters in another order".into(),
        false => said.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_lines_show_the_parameters_that_differ() {
        assert_eq!(
            parameters("quiet isolcpus=2,3", "quiet nosmt"),
            "declared but missing here: isolcpus=2,3; only here: nosmt"
        );
        assert_eq!(
            parameters("a b", "b a"),
            "the same parameters in another order"
        );
    }
}
