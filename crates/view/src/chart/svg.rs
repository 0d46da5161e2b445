//! Writes SVG piece by piece. All texts are escaped here and nowhere else.

use crate::style::tame;
use std::fmt::Arguments;

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
    pieces: Vec<Piece>,
    width: f64,
    height: f64,
}

enum Piece {
    Markup(String),
    Text(Text),
}

/// A text, which is written as such or as the outlines of its letters.
pub(super) struct Text {
    pub(super) class: String,
    pub(super) anchor: Anchor,
    at: [f64; 2],
    /// Whether it reads upwards.
    upwards: bool,
    /// Only visible characters.
    pub(super) text: String,
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
            pieces: Vec::new(),
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
            all.pieces.extend(image.pieces);
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
        self.pieces.push(Piece::Text(Text {
            class: class.to_owned(),
            anchor,
            at: [x, y],
            upwards: false,
            text: tame(text),
        }));
    }

    /// A text that reads upwards.
    pub(super) fn upwards(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        self.pieces.push(Piece::Text(Text {
            class: class.to_owned(),
            anchor: Anchor::Middle,
            at: [x, y],
            upwards: true,
            text: tame(text),
        }));
    }

    fn push(&mut self, piece: Arguments<'_>) {
        self.pieces.push(Piece::Markup(piece.to_string()));
    }

    /// The finished image. `style` precedes its content; `title` is read out and shown on hovering.
    pub(super) fn finish(self, style: &str, title: &str) -> String {
        self.finish_with(style, title, Text::element)
    }

    /// The finished image, with `write` for its texts.
    pub(super) fn finish_with(
        self,
        style: &str,
        title: &str,
        write: impl Fn(&Text) -> String,
    ) -> String {
        let (width, height, title) = (Px(self.width), Px(self.height), escaped(title));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             {style}"
        );
        for piece in &self.pieces {
            match piece {
                Piece::Markup(markup) => out.push_str(markup),
                Piece::Text(text) => out.push_str(&write(text)),
            }
            out.push('\n');
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Text {
    fn element(&self) -> String {
        let anchor = match self.anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let class = &self.class;
        let text = escaped(&self.text);
        if self.upwards {
            let place = self.transform();
            return format!(r#"<text class="{class}"{anchor} transform="{place}">{text}</text>"#);
        }
        let [x, y] = self.at.map(Px);
        format!(r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#)
    }

    /// Moves something from the origin to the place of the text.
    pub(super) fn transform(&self) -> String {
        let [x, y] = self.at.map(Px);
        let turned = if self.upwards { " rotate(-90)" } else { "" };
        format!("translate({x} {y}){turned}")
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
