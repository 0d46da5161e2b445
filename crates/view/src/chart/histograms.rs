//! Histograms of a pipeline: the number of messages by duration.

use super::plot::{self, Area, Axis};
use super::scale;
use super::shared::{Shared, bars, of_messages};
use super::svg::{Anchor, Svg};
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use crate::number::count;
use jitterscope_analyze::picture::{Curve, CurveOf};
use jitterscope_model::PutInOrder;

const PANEL: f64 = 240.0;
pub(super) fn draw(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    let mut curves: Vec<&Curve> = of_messages(run).collect();
    // The quantity of the headline comes first.
    curves.order_by_key(|curve| match curve.of {
        CurveOf::FromIntended(_) => 0,
        CurveOf::Inter(_) => 2,
        _ => 1,
    });
    if curves.is_empty() {
        let why = "only a pipeline measures messages (record pipeline)".into();
        return Err(ChartError::Nothing {
            chart: ChartKind::Histograms,
            why,
        });
    }
    let across = if shared.is_narrow() { 1 } else { 2 };
    let rows = curves.len().div_ceil(across);
    let height = 60.0 + PANEL * rows as f64;
    let mut svg = Svg::new(shared.width, height);
    plot::heading(
        &mut svg,
        height,
        "Messages by time",
        &words::subtitle_of_messages(run, shared.is_narrow()),
    );
    for (at, curve) in curves.iter().enumerate() {
        let (column, row) = ((at % across) as f64, (at / across) as f64);
        let wide = shared.width / across as f64;
        let left = 84.0 + column * wide;
        let top = 60.0 + PANEL * row;
        let area = Area {
            left,
            top: top + 36.0,
            right: left + wide - 100.0,
            bottom: top + PANEL - 44.0,
        };
        panel(&mut svg, area, curve, &words::curve(run, curve.of), shared);
    }
    Ok(svg)
}

fn panel(svg: &mut Svg, area: Area, curve: &Curve, name: &str, shared: &Shared) {
    let (x_scale, y_scale) = (shared.messages, shared.bars);
    let counts = bars(curve, x_scale);
    let x = Axis {
        scale: x_scale,
        title: "time, log scale",
        name: &scale::length,
    };
    let y = Axis {
        scale: y_scale,
        title: "messages, log scale",
        name: &|n| {
            if n < 0.9 {
                String::new()
            } else {
                count(n as u64)
            }
        },
    };
    plot::axes(svg, area, &x, &y);
    svg.text("small", Anchor::Start, [area.left, area.top - 22.0], name);
    let (median, longest) = (curve.quantile(0.5), curve.quantile(1.0));
    let caption = format!(
        "{} messages, median {median}, longest {longest}",
        count(curve.count)
    );
    svg.text(
        "small num",
        Anchor::Start,
        [area.left, area.top - 8.0],
        &caption,
    );
    let width = (area.right - area.left) / counts.len().max(1) as f64;
    for (at, n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
        let y = area.y(y_scale.share(*n as f64));
        svg.rect(
            "f0",
            [
                area.left + width * at as f64,
                y,
                (width - 0.6).max(0.6),
                area.bottom - y,
            ],
        );
    }
}
