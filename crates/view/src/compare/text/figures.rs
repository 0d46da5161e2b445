//! The table of figures.

use super::super::words::{
    change, figure, figure_name, headline, interval, levels, next_to_maximum,
};
use super::{NAME, Page, length, of_side, tone};
use crate::number;
use crate::style::{Tone, fit, pad};
use jitterscope_analyze::compare::{Against, FigureKind, FigureRow, SideSummary};

/// The mark of a percentile that too few values lie above.
const NEXT_TO_MAXIMUM: &str = " ^";
/// Beyond this number of values of one side, only their middle is shown.
const FEW: usize = 3;

impl Page {
    pub(super) fn figures(
        &mut self,
        against: &Against,
        names: &[String; 2],
        sides: [&SideSummary; 2],
    ) {
        let run = length(sides[0], sides[1]);
        for row in against.figures.iter().filter(|row| row.is_total) {
            let Some([observed, said]) = headline(row, names, sides, run) else {
                continue;
            };
            self.line("");
            self.wrapped(Tone::Strong, &observed);
            let verdict = row.comparison.as_ref().map(|c| c.verdict);
            self.wrapped(verdict.map_or(Tone::Dim, tone), &said);
        }
        self.heading(&format!(
            "{}{:>9}{:>9}{:>8}{:>14}{:>8}  VERDICT",
            pad("FIGURE", NAME),
            names[0],
            names[1],
            "CHANGE",
            "INTERVAL",
            "MARGIN"
        ));
        if against.figures.is_empty() {
            self.line("Runs of this probe have no figures.");
        }
        for row in &against.figures {
            self.figure(row, sides);
        }
        if let Some(level) = levels(&against.figures) {
            let text = format!(
                "interval: of the change, at {level}; margin: what counts as no difference. Less is better everywhere. \
                 Figures without a verdict are shown only.",
            );
            self.wrapped(Tone::Dim, &text);
        }
        if let Some(text) = next_to_maximum(&against.figures, run) {
            self.wrapped(Tone::Dim, &format!("{} {text}", NEXT_TO_MAXIMUM.trim()));
        }
    }

    fn figure(&mut self, row: &FigureRow, sides: [&SideSummary; 2]) {
        let side = |values: &[Option<f64>]| figure(of_side(row.kind, values), row.unit);
        let mark = match row.supported_from_ns {
            Some(_) => NEXT_TO_MAXIMUM,
            None => "",
        };
        let name = pad(&format!("{}{mark}", figure_name(row.kind)), NAME);
        let name = if row.is_total {
            self.style.paint(Tone::Strong, &name)
        } else {
            name
        };
        let (a, b) = (side(&row.first), side(&row.second));
        let mut line = format!("{name}{:>9}{:>9}", format!(" {a}"), format!(" {b}"));
        if let Some(c) = &row.comparison {
            let shown = c
                .change
                .map_or_else(|| "-".into(), |of| change(of, c.scale, row.unit));
            let margin = match c.margin {
                0.0 => "-".into(),
                margin => change(margin, c.scale, row.unit),
            };
            line.push_str(&format!(
                "{:>8}{:>14}{:>8}  {}",
                format!(" {shown}"),
                fit(&interval(c.interval, c.scale, row.unit), 13),
                fit(margin.trim_start_matches('+'), 7),
                self.verdict(c.verdict)
            ));
        } else if row.kind == FigureKind::Worst {
            // The longest value grows with the time of observation.
            let [a, b] = sides.map(|side| number::span(side.measured_ns));
            line.push_str(&format!("  in {a} and {b}"));
        }
        self.line(&line);
        if row.first.len().max(row.second.len()) <= FEW
            && row.first.len().max(row.second.len()) > 1
            && row.is_total
        {
            let all = |values: &[Option<f64>]| {
                values
                    .iter()
                    .map(|value| figure(*value, row.unit))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            self.wrapped(
                Tone::Dim,
                &format!("  runs: {}; {}", all(&row.first), all(&row.second)),
            );
        }
        if let Some([a, b]) = row
            .comparison
            .as_ref()
            .and_then(|c| c.not_seen_below_per_sec)
        {
            let text = format!(
                "  not seen: below {}/s and {}/s (3 / time)",
                number::rate(a),
                number::rate(b)
            );
            self.wrapped(Tone::Dim, &text);
        }
    }
}
