//! Stolen time by culprit, as bars.

use super::plot;
use super::shared::{Shared, of_its_time};
use super::svg::{Anchor, Svg};
use super::theme::WIDTH;
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use crate::number::{percent, percent_cell};

/// Bars, without that of the rest.
const BARS: usize = 14;
const LINE: f64 = 24.0;
const LEFT: f64 = 340.0;
const RIGHT: f64 = WIDTH - 250.0;

pub(super) fn draw(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    let culprits: Vec<_> = run.picture.culprits.iter().filter(|culprit| culprit.total.0 > 0).collect();
    if culprits.is_empty() {
        let why = match run.summary.attribution {
            None => "stalls were only counted: nothing recorded what ran instead",
            Some(_) => "no stall was recorded",
        };
        return Err(ChartError::Nothing { chart: ChartKind::Culprits, why: why.into() });
    }
    let all: u64 = culprits.iter().map(|culprit| culprit.total.0).sum();
    let more = culprits.len().saturating_sub(BARS);
    let height = 76.0 + LINE * (culprits.len().min(BARS) + usize::from(more > 0)) as f64;
    let mut svg = Svg::new(WIDTH, height);
    // What is beside it is as much of its run's time where the bars are equally long.
    let title = match shared.several {
        true => format!("{}, as shares of the time that was measured", words::stolen_by(run)),
        false => words::stolen_by(run).to_owned(),
    };
    plot::heading(&mut svg, height, &title, &words::subtitle_of_culprits(run));
    let share = |total: u64| match shared.several {
        true => percent(of_its_time(run, total)),
        false => percent_cell(total as f64 / all.max(1) as f64),
    };
    let mut row = |at: usize, name: &str, class: &str, total: u64, told: String| {
        let y = 60.0 + LINE * at as f64;
        let length = shared.of_the_largest(run, total).min(1.0) * (RIGHT - LEFT);
        svg.text("small", Anchor::End, [LEFT - 10.0, y + 13.0], name);
        svg.rect(class, [LEFT, y, length.max(1.0), LINE - 8.0]);
        svg.text("small num", Anchor::Start, [LEFT + length + 8.0, y + 13.0], &told);
    };
    for (at, culprit) in culprits.iter().take(BARS).enumerate() {
        let class = if culprit.subject.kind().is_explained() { "f0" } else { "open" };
        let share = share(culprit.total.0);
        let told = format!("{share}, {} in {}", culprit.total, words::stalls(culprit.count));
        row(at, &words::culprit(&culprit.subject, 48), class, culprit.total.0, told);
    }
    if more > 0 {
        let rest: u64 = culprits[BARS..].iter().map(|culprit| culprit.total.0).sum();
        let share = share(rest);
        let told = format!("{share}, {}", jitterscope_model::Nanos(rest));
        row(BARS, &format!("{more} more"), "f6", rest, told);
    }
    Ok(svg)
}
