//! The offsets of stalls within a second: periodic stalls form a horizontal line.

use super::plot::{self, Area, Axis};
use super::scale::{self, Scale};
use super::shared::{Shared, across, has_periods};
use super::svg::{Anchor, Px, Svg};
use super::theme::HEAT;
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use crate::number::count;
use crate::timeline::Noun;
use std::fmt::Write;

const HEIGHT: f64 = 520.0;
/// The count with the strongest colour if no cell has more, so that cells with one stall each stay faint. As in
/// `web/src/offsets.ts`.
const FEW: u64 = 6;
/// The width of a lower-case letter of the key.
const LETTER: f64 = 6.8;

pub(super) fn draw(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    let map = shared.map(run);
    let most = shared.offsets.max(FEW);
    if map.counts.iter().all(|n| *n == 0) {
        return Err(ChartError::Nothing {
            chart: ChartKind::Offsets,
            why: "nothing was recorded".into(),
        });
    }
    let duration = run.picture.duration;
    if !has_periods(duration, map.unit) {
        let why = format!(
            "the run of {duration} is too short for a period of {}",
            map.unit
        );
        return Err(ChartError::Nothing {
            chart: ChartKind::Offsets,
            why,
        });
    }
    let mut svg = Svg::new(shared.width, HEIGHT);
    let noun = words::noun(run);
    let unit = scale::length(map.unit.0 as f64);
    plot::heading(
        &mut svg,
        HEIGHT,
        &format!("When within each {unit} {} begin", noun.many),
        &words::subtitle(&[run]),
    );
    let area = Area {
        left: 84.0,
        top: 82.0,
        right: shared.width - 24.0,
        bottom: HEIGHT - 50.0,
    };
    let own = across(&map).as_secs_f64();
    // As wide as the longest run beside it.
    let across = own.max(shared.across.as_secs_f64());
    let x = Axis {
        scale: Scale::Linear(0.0, across),
        title: "time since the start",
        name: &|s| scale::length(s * 1e9),
    };
    // Time within the unit runs down the page.
    let y = Axis {
        scale: Scale::Linear(0.0, map.unit.0 as f64),
        title: "offset",
        name: &|ns| scale::length(map.unit.0 as f64 - ns),
    };
    let (width, height) = (
        (area.right - area.left) * own / across / map.columns as f64,
        (area.bottom - area.top) / map.rows as f64,
    );
    let step = |n: u64| shade(n, most);
    // Time after the end of the run is not quiet time.
    let last = duration
        .0
        .saturating_sub((map.columns as u64 - 1) * map.units_per_column * map.unit.0);
    let after = (last as f64 / map.unit.0 as f64).min(1.0);
    let end = area.left + width * map.columns as f64;
    if after < 1.0 {
        let top = area.top + after * (area.bottom - area.top);
        plot::beyond(&mut svg, [end - width, top, width, area.bottom - top]);
    }
    if area.right - end >= 1.0 {
        plot::beyond(
            &mut svg,
            [end, area.top, area.right - end, area.bottom - area.top],
        );
    }
    let mut paths = vec![String::new(); HEAT];
    let heat = |column: usize, row: usize| {
        let n = map.counts[column * map.rows + row];
        (n > 0).then(|| step(n))
    };
    for row in 0..map.rows {
        let mut column = 0;
        while column < map.columns {
            let from = column;
            let here = heat(from, row);
            // Equal neighbours are drawn as one piece.
            while column < map.columns && heat(column, row) == here {
                column += 1;
            }
            let Some(here) = here else { continue };
            let (x, y) = (
                area.left + width * from as f64,
                area.top + height * row as f64,
            );
            let wide = Px(width * (column - from) as f64 + 0.1);
            let _ = write!(
                paths[here],
                "M{} {}h{wide}v{}h-{wide}z",
                Px(x),
                Px(y),
                Px(height + 0.1)
            );
        }
    }
    plot::axes(&mut svg, area, &x, &y);
    for (heat, path) in paths.iter().enumerate() {
        svg.path(&format!("h{heat}"), path);
    }
    key(
        &mut svg,
        noun,
        map.counts.iter().copied(),
        most,
        after < 1.0 || area.right - end >= 1.0,
    );
    Ok(svg)
}

/// The shade for a number of stalls.
fn shade(n: u64, most: u64) -> usize {
    let share = (n as f64).ln_1p() / (most as f64).ln_1p();
    ((share * HEAT as f64).ceil() as usize).clamp(1, HEAT) - 1
}

/// The smallest number of stalls with at least this shade.
fn fewest(wanted: usize, most: u64) -> u64 {
    let (mut low, mut high) = (1, most.saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if shade(middle, most) < wanted {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

/// The shades in use, each with its number of stalls, from the right edge.
fn key(svg: &mut Svg, noun: Noun, counts: impl Iterator<Item = u64>, most: u64, is_cut: bool) {
    let mut used = [false; HEAT];
    for n in counts.filter(|n| *n > 0) {
        used[shade(n, most)] = true;
    }
    let mut x = svg.width() - 24.0;
    let mut before = |text: &str| {
        x -= LETTER * text.chars().count() as f64 + 6.0;
        svg.text("small num", Anchor::Start, [x, 70.0], text);
        x -= 22.0;
        x
    };
    let mut swatches = Vec::new();
    if is_cut {
        swatches.push((None, before("after the end")));
    }
    for heat in (0..HEAT).rev().filter(|heat| used[*heat]) {
        let (from, to) = (
            fewest(heat, most),
            fewest(heat + 1, most).saturating_sub(1).min(most),
        );
        let text = if from >= to {
            count(from)
        } else {
            format!("{}\u{2013}{}", count(from), count(to))
        };
        swatches.push((Some(heat), before(&text)));
    }
    svg.text(
        "small",
        Anchor::End,
        [x - 8.0, 70.0],
        &format!("{} in a field:", noun.many),
    );
    for (heat, x) in swatches {
        let area = [x, 60.0, 17.0, 11.0];
        match heat {
            Some(heat) => svg.rect(&format!("h{heat}"), area),
            None => plot::beyond(svg, area),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_part_all_numbers_between_them() {
        for most in [FEW, 7, 40, 1_000, 123_456] {
            let mut next = 1;
            for heat in 0..HEAT {
                let (from, to) = (fewest(heat, most), fewest(heat + 1, most) - 1);
                assert_eq!(from, next, "{heat} of {most}");
                for n in [from, to].into_iter().filter(|_| from <= to) {
                    assert_eq!(shade(n, most), heat, "{n} of {most}");
                }
                next = to + 1;
            }
            assert_eq!(next, most + 1);
        }
        assert!(shade(1, FEW) < 4, "one alone is faint");
    }
}
