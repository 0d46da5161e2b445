//! The audit of the machine as the run stored it.

use super::markup::{Cell, Head, Markup};
use crate::lines::counted;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{KnobFinding, KnobVerdict};

/// What is wrong with one knob, and what that would win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What the run stored of it.
    pub finding: KnobFinding,
    /// What the knob is about.
    pub title: String,
    /// What setting it right would win of what was measured.
    pub gain: Gain,
}

/// What setting a knob right would win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gain {
    /// So much of what was measured, in words.
    Of(String),
    /// Nothing that was measured.
    Nothing,
    /// It cannot be said: nothing recorded whose the time was, or what did holds no proof.
    Unknown,
}

pub(super) fn render(body: &mut Markup, summary: &RunSummary, settings: &[Setting]) {
    body.section("settings", "Settings");
    let wrong: Vec<&Setting> = settings
        .iter()
        .filter(|s| s.finding.verdict == KnobVerdict::Wrong)
        .collect();
    match (summary.machine.as_ref(), wrong.is_empty()) {
        (None, _) => {
            body.note("The run did not store its machine's settings.");
        }
        (Some(_), true) => {
            body.note("Of the settings that the run stored, none is wrong for the measured CPUs.");
        }
        (Some(_), false) => {
            let heads = [
                Head::Text("setting"),
                Head::Text("what it would win"),
                Head::Text("it was"),
                Head::Text("wanted"),
            ];
            let mut wrong = wrong;
            wrong.sort_by_key(|setting| setting.gain == Gain::Nothing);
            let row = |setting: &&Setting| {
                let finding = &setting.finding;
                vec![
                    Cell::Lines(vec![setting.title.clone(), finding.knob.clone()]),
                    Cell::Text(match &setting.gain {
                        Gain::Of(text) => text.clone(),
                        Gain::Nothing => "nothing that was measured".into(),
                        Gain::Unknown => "not known: the run names nobody".into(),
                    }),
                    Cell::Text(finding.current.clone()),
                    Cell::Text(finding.wanted.clone()),
                ]
            };
            let won = wrong.partition_point(|setting| setting.gain != Gain::Nothing);
            let (winning, rest) = wrong.split_at(won);
            if !winning.is_empty() {
                body.table(
                    "As the run found them",
                    &heads,
                    winning.iter().map(row).collect(),
                );
            }
            if !rest.is_empty() {
                let summary = format!(
                    "{} more, which would win nothing of what was measured",
                    rest.len()
                );
                body.details(&summary, |body| {
                    body.table(
                        "As the run found them",
                        &heads,
                        rest.iter().map(row).collect(),
                    );
                });
            }
            let command = format!("jitterscope tune plan --run {}", summary.run.id);
            body.raw("<p class=\"note\">See what would change, on that machine: <code>")
                .text(&command)
                .raw("</code></p>\n");
        }
    }
    let unread: Vec<&Setting> = settings
        .iter()
        .filter(|setting| setting.finding.verdict == KnobVerdict::Unreadable)
        .collect();
    if !unread.is_empty() {
        body.details(
            &format!("{} could not be read", counted(unread.len(), "setting")),
            |body| {
                let row = |setting: &&Setting| {
                    vec![
                        Cell::Text(setting.title.clone()),
                        Cell::Text(setting.finding.reason.clone()),
                    ]
                };
                let rows = unread.iter().map(row).collect();
                body.table(
                    "Settings that could not be read",
                    &[Head::Text("setting"), Head::Text("why")],
                    rows,
                );
            },
        );
    }
    body.end();
}
