//! A rectangle with axes, and the key of its series.

use super::scale::Scale;
use super::svg::{Anchor, Svg};
use super::theme::{SERIES, WIDTH};

/// Where the rectangle lies in its image.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    pub(super) fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// An axis and how its marks are named.
pub(super) struct Axis<'a> {
    pub(super) scale: Scale,
    pub(super) title: &'a str,
    pub(super) name: &'a dyn Fn(f64) -> String,
}

/// Width of a small letter at most, and what is kept free at the right edge, units of the view box.
const LETTER: f64 = 7.0;
const EDGE: f64 = 4.0;

/// Draws grid, marks and titles of both axes.
pub(super) fn axes(svg: &mut Svg, area: Area, x: &Axis<'_>, y: &Axis<'_>) {
    let most_down = ((area.bottom - area.top) / 28.0) as usize;
    let most_across = ((area.right - area.left) / 80.0) as usize;
    for mark in y.scale.marks(most_down) {
        let at = area.y(y.scale.share(mark));
        svg.line("grid", [area.left, at, area.right, at]);
        svg.text("small num", Anchor::End, [area.left - 7.0, at + 4.0], &(y.name)(mark));
    }
    for mark in x.scale.marks(most_across) {
        let at = area.x(x.scale.share(mark));
        svg.line("grid", [at, area.top, at, area.bottom]);
        // A long name of the last mark would go beyond the image.
        let name = (x.name)(mark);
        let beyond = at + LETTER / 2.0 * name.chars().count() as f64 > WIDTH - EDGE;
        let (anchor, at) = if beyond { (Anchor::End, WIDTH - EDGE) } else { (Anchor::Middle, at) };
        svg.text("small num", anchor, [at, area.bottom + 17.0], &name);
    }
    svg.line("axis", [area.left, area.bottom, area.right, area.bottom]);
    if !x.title.is_empty() {
        svg.text("small", Anchor::Middle, [area.x(0.5), area.bottom + 36.0], x.title);
    }
    if !y.title.is_empty() {
        svg.upwards("small", [16.0, area.y(0.5)], y.title);
    }
}

/// Title, and beneath it what is told beside it.
pub(super) fn heading(svg: &mut Svg, height: f64, title: &str, remark: &str) {
    svg.rect("paper", [0.0, 0.0, WIDTH, height]);
    svg.text("title", Anchor::Start, [16.0, 26.0], title);
    svg.text("small", Anchor::Start, [16.0, 44.0], remark);
}

/// How a series shows in the key.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    Line,
    Mark,
    Bar,
}

/// Height of a line of the key.
const KEY_LINE: f64 = 18.0;
/// Where the key begins.
pub(super) const KEY_TOP: f64 = 62.0;

/// Draws the key of series, from the first on, and returns where it ends.
pub(super) fn key(svg: &mut Svg, names: &[String], sample: Sample) -> f64 {
    let (mut x, mut y) = (16.0, KEY_TOP);
    for (at, name) in names.iter().enumerate() {
        let width = 40.0 + 7.3 * name.chars().count() as f64;
        if x + width > WIDTH - 10.0 && x > 16.0 {
            (x, y) = (16.0, y + KEY_LINE);
        }
        let middle = y - 4.0;
        match sample {
            Sample::Line => svg.line(&line_class(at), [x, middle, x + 24.0, middle]),
            Sample::Mark => svg.path(&format!("mark s{}", at % SERIES), &mark(at, x + 12.0, middle)),
            Sample::Bar => svg.rect(&format!("f{}", at % SERIES), [x + 6.0, middle - 5.0, 12.0, 10.0]),
        }
        svg.text("small", Anchor::Start, [x + 29.0, y], name);
        x += width;
    }
    if names.is_empty() { KEY_TOP - KEY_LINE } else { y }
}

/// The classes of a line of a series: colour and dash.
pub(super) fn line_class(series: usize) -> String {
    format!("curve s{} d{}", series % SERIES, series % SERIES)
}

/// The mark of a series around a point: circle, square, triangle, diamond, cross, saltire, bar.
pub(super) fn mark(series: usize, x: f64, y: f64) -> String {
    use super::svg::Px;
    let (l, r, t, b) = (Px(x - 3.0), Px(x + 3.0), Px(y - 3.0), Px(y + 3.0));
    let (x, y) = (Px(x), Px(y));
    match series % SERIES {
        0 => format!("M{l} {y}a3 3 0 1 0 6 0a3 3 0 1 0-6 0"),
        1 => format!("M{l} {t}h6v6h-6z"),
        2 => format!("M{x} {t}L{r} {b}H{l}z"),
        3 => format!("M{x} {t}L{r} {y}L{x} {b}L{l} {y}z"),
        4 => format!("M{l} {y}h6M{x} {t}v6"),
        5 => format!("M{l} {t}l6 6M{l} {b}l6-6"),
        _ => format!("M{l} {y}h6"),
    }
}
