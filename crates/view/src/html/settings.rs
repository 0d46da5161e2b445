//! The audit of the machine, as stored with the run.

use super::markup::Markup;
use crate::lines::counted;
use crate::report::{Column, Links, Row, Table};
use crate::tuning::won;
use jitterscope_analyze::RunSummary;
use jitterscope_model::{KnobFinding, KnobVerdict, Nanos, PutInOrder};
use jitterscope_tune::{Effect, Win};
use std::cmp::Reverse;

/// A wrong knob, and the gain of setting it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub finding: KnobFinding,
    /// The topic of the knob.
    pub title: String,
    /// The gain of setting it right, from the measured time.
    pub gain: Gain,
}

/// The gain of setting a knob right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gain {
    /// This much of the measured time. It names no culprits in a redacted page.
    Of(Win),
    Nothing,
    /// Unknown: there is no attribution, or it fails its proof.
    Unknown,
}

/// The number of culprits named with a gain.
const FEW: usize = 3;

/// The gain and its culprits: the first few, and the number of others.
fn gain(win: &Win) -> String {
    let culprits = &win.culprits[..win.culprits.len().min(FEW)];
    let more = match win.culprits.len().saturating_sub(FEW) {
        0 => String::new(),
        n => format!(", {n} more"),
    };
    match culprits.is_empty() {
        true => won(win),
        false => format!("{}: {}{more}", won(win), culprits.join(", ")),
    }
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
            table(wrong).html(body, &Links::default());
            let command = format!("jitterscope tune plan --run {}", summary.run.id);
            body.raw("<p class=\"note\">See what would change, on that machine: <code>")
                .text(&command)
                .raw("</code></p>\n");
        }
    }
    let unread = settings
        .iter()
        .filter(|setting| setting.finding.verdict == KnobVerdict::Unreadable);
    let row =
        |of: &Setting| Row::from([of.title.as_str().into(), of.finding.reason.as_str().into()]);
    let unread: Vec<Row> = unread.map(row).collect();
    if !unread.is_empty() {
        let summary = format!("{} could not be read", counted(unread.len(), "setting"));
        let table = Table {
            title: "Settings that could not be read".into(),
            columns: ["setting", "why"].map(Column::text).into(),
            rows: unread,
            ..Table::default()
        };
        body.details(&summary, |body| table.html(body, &Links::default()));
    }
    body.end();
}

/// The wrong settings, those first whose change would win most.
fn table(mut wrong: Vec<&Setting>) -> Table {
    wrong.order_by_key(|setting| match &setting.gain {
        Gain::Of(win) => (
            win.effect == Effect::Perhaps,
            Reverse(win.total_ns),
            win.effect == Effect::Lessens,
        ),
        Gain::Unknown => (true, Reverse(Nanos::ZERO), false),
        Gain::Nothing => (true, Reverse(Nanos::ZERO), true),
    });
    let row = |setting: &&Setting| {
        let finding = &setting.finding;
        let gain = match &setting.gain {
            Gain::Of(win) => gain(win),
            Gain::Nothing => "nothing that was measured".into(),
            Gain::Unknown => "not known: the run names nobody".into(),
        };
        Row {
            aside: setting.gain == Gain::Nothing,
            remarks: vec![finding.knob.clone()],
            ..Row::from([
                setting.title.as_str().into(),
                gain.into(),
                finding.current.as_str().into(),
                finding.wanted.as_str().into(),
            ])
        }
    };
    Table {
        title: "As the run found them".into(),
        columns: ["setting", "what it would win", "it was", "wanted"]
            .map(Column::text)
            .into(),
        rows: wrong.iter().map(row).collect(),
        aside: "which would win nothing of what was measured",
        ..Table::default()
    }
}
