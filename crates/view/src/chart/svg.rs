//! Writes SVG piece by piece. All texts are escaped here and nowhere else.

use crate::style::tame;
use std::fmt::Write;

/// The position of a text relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An image under construction, in units of its view box. Only classes define its look ([`super::theme`]), so that a
/// page can apply its own colours.
pub(super) struct Svg {
    out: String,
    width: f64,
    height: f64,
}

/// A coordinate rounded to a tenth of a unit, which is below visibility.
pub(super) struct Px(pub(super) f64);

impl std::fmt::Display for Px {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        let tenths = if tenths.is_finite() { tenths } else { 0.0 };
        if tenths % 10.0 == 0.0 {
            write!(f, "{:.0}", tenths / 10.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg {
            out: String::new(),
            width,
            height,
        }
    }

    /// The width, in units of the view box.
    pub(super) fn width(&self) -> f64 {
        self.width
    }

    /// Several images, one below the other.
    pub(super) fn stacked(images: Vec<Svg>) -> Svg {
        let mut all = Svg::new(0.0, 0.0);
        for image in images {
            let y = Px(all.height);
            all.push(format_args!(r#"<g transform="translate(0 {y})">"#));
            all.out.push_str(&image.out);
            all.push(format_args!("</g>"));
            all.height += image.height;
            all.width = all.width.max(image.width);
        }
        all
    }

    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4]) {
        let (x, y, width, height) = (Px(x), Px(y), Px(width.max(0.0)), Px(height.max(0.0)));
        self.push(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        ));
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
        let (x1, y1, x2, y2) = (Px(x1), Px(y1), Px(x2), Px(y2));
        self.push(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// `data`: path commands, which this program generates.
    pub(super) fn path(&mut self, class: &str, data: &str) {
        if !data.is_empty() {
            self.push(format_args!(r#"<path class="{class}" d="{data}"/>"#));
        }
    }

    pub(super) fn text(&mut self, class: &str, anchor: Anchor, [x, y]: [f64; 2], text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y) = (Px(x), Px(y));
        self.push(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{}</text>"#,
            escaped(text)
        ));
    }

    /// A text that reads upwards.
    pub(super) fn upwards(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let (x, y) = (Px(x), Px(y));
        self.push(format_args!(
            r#"<text class="{class}" text-anchor="middle" transform="translate({x} {y}) rotate(-90)">{}</text>"#,
            escaped(text)
        ));
    }

    fn push(&mut self, piece: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(piece);
        self.out.push('\n');
    }

    /// The finished image. `style` precedes its content; `title` is read out and shown on hovering.
    pub(super) fn finish(self, style: &str, title: &str) -> String {
        let (width, height, title) = (Px(self.width), Px(self.height), escaped(title));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             {style}{}</svg>\n",
            self.out
        )
    }
}

/// A text for markup: only visible characters, with markup escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in tame(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_markup() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("t", Anchor::Start, [1.0, 2.25], "<script>\"&'\u{1b}");
        let text = svg.finish("", "</title><script>");
        assert!(!text.contains("<script"), "{text}");
        assert!(
            text.contains("&lt;script&gt;&quot;&amp;&#39;\\x1b"),
            "{text}"
        );
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let shown = [1.0, 1.04, 1.06, -0.01, f64::NAN, f64::INFINITY].map(|v| Px(v).to_string());
        assert_eq!(shown, ["1", "1", "1.1", "-0", "0", "0"]);
    }
}
