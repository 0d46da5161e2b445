//! When within a second stalls begin: what comes regularly is a line across.

use super::plot::{self, Area, Axis};
use super::scale::{self, Scale};
use super::shared::Shared;
use super::svg::{Anchor, Px, Svg};
use super::theme::{HEAT, WIDTH};
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use crate::number::count;
use std::fmt::Write;

const HEIGHT: f64 = 520.0;

pub(super) fn draw(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    let map = &run.picture.offsets;
    let most = shared.offsets;
    if map.counts.iter().all(|n| *n == 0) {
        return Err(ChartError::Nothing { chart: ChartKind::Offsets, why: "no stall was recorded".into() });
    }
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let unit = scale::length(map.unit.0 as f64);
    plot::heading(
        &mut svg,
        HEIGHT,
        &format!("When within each {unit} stalls begin"),
        &words::subtitle(&[run]),
    );
    let area = Area { left: 84.0, top: 82.0, right: WIDTH - 24.0, bottom: HEIGHT - 50.0 };
    let across = (map.columns as u64 * map.units_per_column) as f64 * map.unit.as_secs_f64();
    let x = Axis {
        scale: Scale::Linear(0.0, across),
        title: "time since the start",
        name: &|s| scale::length(s * 1e9),
    };
    // Down the page, as time goes there.
    let y = Axis {
        scale: Scale::Linear(0.0, map.unit.0 as f64),
        title: "offset",
        name: &|ns| scale::length(map.unit.0 as f64 - ns),
    };
    let (width, height) =
        ((area.right - area.left) / map.columns as f64, (area.bottom - area.top) / map.rows as f64);
    let step = |n: u64| {
        let share = (n as f64).ln_1p() / (most as f64).ln_1p();
        ((share * HEAT as f64).ceil() as usize).clamp(1, HEAT) - 1
    };
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
            // Neighbours that look alike are one piece.
            while column < map.columns && heat(column, row) == here {
                column += 1;
            }
            let Some(here) = here else { continue };
            let (x, y) = (area.left + width * from as f64, area.top + height * row as f64);
            let wide = Px(width * (column - from) as f64 + 0.1);
            let _ = write!(paths[here], "M{} {}h{wide}v{}h-{wide}z", Px(x), Px(y), Px(height + 0.1));
        }
    }
    plot::axes(&mut svg, area, &x, &y);
    for (heat, path) in paths.iter().enumerate() {
        svg.path(&format!("h{heat}"), path);
    }
    // The key: from one to the most.
    svg.text("small", Anchor::End, [WIDTH - 24.0 - 18.0 * HEAT as f64 - 52.0, 70.0], "stalls: 1");
    for heat in 0..HEAT {
        svg.rect(&format!("h{heat}"), [WIDTH - 24.0 - 46.0 - 18.0 * (HEAT - heat) as f64, 60.0, 17.0, 11.0]);
    }
    svg.text("small", Anchor::End, [WIDTH - 24.0, 70.0], &count(most));
    Ok(svg)
}
