//! Renders a chart to pixels.

use super::outlines::Outlines;
use super::svg::Svg;
use super::{ChartError, theme};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

const ZOOM: f32 = 2.0;

pub(super) fn render(chart: Svg, title: &str) -> Result<Vec<u8>, ChartError> {
    let failed = |error: String| ChartError::Pixels(error);
    let outlines = Outlines::new().map_err(failed)?;
    let svg = chart.finish_with(&theme::outlined(), title, |text| outlines.of(text));
    let tree = Tree::from_str(&svg, &Options::default()).map_err(|e| failed(e.to_string()))?;
    let size = tree.size();
    let (width, height) = (
        (size.width() * ZOOM).ceil() as u32,
        (size.height() * ZOOM).ceil() as u32,
    );
    let mut pixels = Pixmap::new(width, height)
        .ok_or_else(|| failed(format!("it would be {width} x {height} pixels")))?;
    resvg::render(
        &tree,
        Transform::from_scale(ZOOM, ZOOM),
        &mut pixels.as_mut(),
    );
    pixels
        .encode_png()
        .map_err(|error| failed(error.to_string()))
}
