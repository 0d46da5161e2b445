//! Texts as outlines of the embedded font. The machine's fonts are not used, so a picture looks the same everywhere.

use super::svg::{Anchor, Text};
use super::theme;
use std::fmt::Write;
use ttf_parser::{Face, OutlineBuilder};

const FONT: &[u8] = include_bytes!("font/jitterscope-chart.ttf");

pub(super) struct Outlines(Face<'static>);

impl Outlines {
    /// # Errors
    /// The embedded font cannot be read.
    pub(super) fn new() -> Result<Outlines, String> {
        Face::parse(FONT, 0)
            .map(Outlines)
            .map_err(|error| error.to_string())
    }

    /// The SVG element of a text. A letter that the font lacks is a frame.
    pub(super) fn of(&self, text: &Text) -> String {
        let scale = theme::font_size(&text.class) / f64::from(self.0.units_per_em());
        let mut path = Path {
            data: String::new(),
            left: 0.0,
            scale,
        };
        for letter in text.text.chars() {
            let Some(glyph) = self.0.glyph_index(letter) else {
                path.frame(f32::from(self.0.units_per_em()));
                continue;
            };
            // A blank has no outline.
            self.0.outline_glyph(glyph, &mut path);
            let width = self.0.glyph_hor_advance(glyph).unwrap_or_default();
            path.left += scale * f64::from(width);
        }
        let before = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => path.left / 2.0,
            Anchor::End => path.left,
        };
        format!(
            r#"<path class="outline {}" transform="{} translate({:.2} 0)" d="{}"/>"#,
            text.class,
            text.transform(),
            -before,
            path.data
        )
    }
}

/// Path data in units of the view box; a font's y axis points up.
struct Path {
    data: String,
    /// Where the next letter starts.
    left: f64,
    scale: f64,
}

impl Path {
    /// A frame in place of a letter.
    fn frame(&mut self, em: f32) {
        let corners = [[0.05, 0.0], [0.05, 0.7], [0.55, 0.7], [0.55, 0.0]];
        let mut inner = [[0.1, 0.05], [0.1, 0.65], [0.5, 0.65], [0.5, 0.05]];
        // The other direction cuts a hole.
        inner.reverse();
        for corners in [corners, inner] {
            let mut command = 'M';
            for [x, y] in corners {
                self.push(command, &[[x * em, y * em]]);
                command = 'L';
            }
            self.close();
        }
        self.left += 0.6 * f64::from(em) * self.scale;
    }

    fn push(&mut self, command: char, points: &[[f32; 2]]) {
        self.data.push(command);
        for [x, y] in points {
            let (x, y) = (f64::from(*x), f64::from(*y));
            // Writing to a string cannot fail.
            let _ = write!(
                self.data,
                "{:.2} {:.2} ",
                self.left + x * self.scale,
                -y * self.scale
            );
        }
    }
}

impl OutlineBuilder for Path {
    fn move_to(&mut self, x: f32, y: f32) {
        self.push('M', &[[x, y]]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push('L', &[[x, y]]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.push('Q', &[[x1, y1], [x, y]]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.push('C', &[[x1, y1], [x2, y2], [x, y]]);
    }

    fn close(&mut self) {
        self.push('Z', &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::svg::Svg;
    use super::*;

    fn drawn(anchor: Anchor, text: &str) -> String {
        let outlines = Outlines::new().unwrap();
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("small", anchor, [50.0, 20.0], text);
        svg.finish_with("", "", |text| outlines.of(text))
    }

    #[test]
    fn a_text_ends_or_starts_at_its_point() {
        // A digit of DejaVu Sans is 0.636 em wide.
        let shift = |anchor| {
            let svg = drawn(anchor, "11");
            let (_, after) = svg.split_once("translate(50 20) translate(").unwrap();
            after.split_once(' ').unwrap().0.parse::<f64>().unwrap()
        };
        let width = 2.0 * 0.636 * 11.0;
        assert_eq!(shift(Anchor::Start), 0.0);
        assert!((shift(Anchor::End) + width).abs() < 0.02);
        assert!((shift(Anchor::Middle) + width / 2.0).abs() < 0.02);
    }

    #[test]
    fn a_letter_that_the_font_lacks_is_a_frame_and_a_blank_is_nothing() {
        assert!(drawn(Anchor::Start, "\u{4e2d}").contains("d=\"M"));
        assert!(drawn(Anchor::Start, " ").contains("d=\"\""));
    }
}
