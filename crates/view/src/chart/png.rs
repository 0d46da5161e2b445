//! Renders a chart to pixels.

use super::ChartError;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};
use std::sync::Arc;

const ZOOM: f32 = 2.0;

/// The embedded font. The machine's fonts are not used, so that a chart looks the same everywhere.
const FONT: &[u8] = include_bytes!("font/jitterscope-chart.ttf");

pub(super) fn render(svg: &str) -> Result<Vec<u8>, ChartError> {
    let failed = |error: String| ChartError::Pixels(error);
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    let options = Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".into(),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
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
