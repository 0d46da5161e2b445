//! Stolen time by culprit, as bars.

use super::plot;
use super::shared::{Shared, of_its_time};
use super::svg::{Anchor, Svg};
use super::theme::SERIES;
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use crate::number::{percent, percent_cell};
use jitterscope_model::Nanos;

/// The number of bars, without that of the rest.
const BARS: usize = 14;
const LINE: f64 = 24.0;
/// The width of a lower-case letter, in units of the view box.
const LETTER: f64 = 6.6;

pub(super) fn draw(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    // The column of names, the minimum for the text at the right, and the letters of a name.
    let (left, least, letters) = if shared.is_narrow() {
        (200.0, 190.0, 28)
    } else {
        (340.0, 250.0, 48)
    };
    let named = run
        .picture
        .culprits
        .iter()
        .zip(words::culprits(run, letters));
    let culprits: Vec<_> = named.filter(|(culprit, _)| culprit.total.0 > 0).collect();
    if culprits.is_empty() {
        let why = match run.summary.attribution {
            None => "stalls were only counted: nothing recorded what ran instead",
            Some(_) => "nothing was recorded",
        };
        return Err(ChartError::Nothing {
            chart: ChartKind::Culprits,
            why: why.into(),
        });
    }
    let all: u64 = culprits.iter().map(|(culprit, _)| culprit.total.0).sum();
    let more = culprits.len().saturating_sub(BARS);
    let height = 76.0 + LINE * (culprits.len().min(BARS) + usize::from(more > 0)) as f64;
    let noun = words::noun(run);
    let mut svg = Svg::new(shared.width, height);
    // In charts side by side, equally long bars are equal shares of their run's time.
    let (title, remark) = (
        words::stolen_by(run),
        words::subtitle_of_culprits(run, shared.is_narrow()),
    );
    let (title, remark) = match (shared.several, shared.is_narrow()) {
        (false, _) => (title.to_owned(), remark),
        (true, false) => (
            format!("{title}, as shares of {}", words::shares_of(run)),
            remark,
        ),
        (true, true) => (
            title.to_owned(),
            format!("shares of {}; {remark}", words::shares_of(run)),
        ),
    };
    plot::heading(&mut svg, height, &title, &remark);
    let share = |total: u64| match shared.several {
        true => percent(of_its_time(run, total)),
        false => percent_cell(total as f64 / all.max(1) as f64),
    };
    let caption = |total: Nanos, count: u64| {
        format!("{}, {total} in {}", share(total.0), noun.counted(count))
    };
    let longest = culprits
        .iter()
        .take(BARS)
        .map(|(of, _)| caption(of.total, of.count).chars().count())
        .max();
    let right = shared.width - (LETTER * longest.unwrap_or(0) as f64 + 12.0).max(least);
    let mut row = |at: usize, name: &str, class: &str, total: u64, caption: String| {
        let y = 60.0 + LINE * at as f64;
        let length = shared.of_the_largest(run, total).min(1.0) * (right - left);
        svg.text("small", Anchor::End, [left - 10.0, y + 13.0], name);
        svg.rect(class, [left, y, length.max(1.0), LINE - 8.0]);
        svg.text(
            "small num",
            Anchor::Start,
            [left + length + 8.0, y + 13.0],
            &caption,
        );
    };
    for (at, (culprit, name)) in culprits.iter().take(BARS).enumerate() {
        let class = if culprit.subject.kind().is_explained() {
            "f0"
        } else {
            "open"
        };
        row(
            at,
            name,
            class,
            culprit.total.0,
            caption(culprit.total, culprit.count),
        );
    }
    if more > 0 {
        let rest: u64 = culprits[BARS..]
            .iter()
            .map(|(culprit, _)| culprit.total.0)
            .sum();
        let share = share(rest);
        let caption = format!("{share}, {}", Nanos(rest));
        let others = format!("f{}", SERIES - 1);
        row(BARS, &format!("{more} more"), &others, rest, caption);
    }
    Ok(svg)
}
