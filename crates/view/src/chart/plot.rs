//! A rectangle with axes, and the key of its series.

use super::scale::Scale;
use super::svg::{Anchor, Px, Svg};
use super::theme::SERIES;
use std::fmt::Write;

/// The position of the rectangle in its image.
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

/// An axis, and the names of its marks.
pub(super) struct Axis<'a> {
    pub(super) scale: Scale,
    pub(super) title: &'a str,
    pub(super) name: &'a dyn Fn(f64) -> String,
}

/// The largest width of a lower-case letter, and the margin at the right edge, in units of the view box.
const LETTER: f64 = 7.0;
const EDGE: f64 = 4.0;

/// Draws grid, marks and titles of both axes.
pub(super) fn axes(svg: &mut Svg, area: Area, x: &Axis<'_>, y: &Axis<'_>) {
    let most_down = ((area.bottom - area.top) / 28.0) as usize;
    let width = svg.width();
    let most_across = ((area.right - area.left) / 80.0) as usize;
    for mark in y.scale.marks(most_down) {
        let at = area.y(y.scale.share(mark));
        svg.line("grid", [area.left, at, area.right, at]);
        svg.text(
            "small num",
            Anchor::End,
            [area.left - 7.0, at + 4.0],
            &(y.name)(mark),
        );
    }
    for mark in x.scale.marks(most_across) {
        let at = area.x(x.scale.share(mark));
        svg.line("grid", [at, area.top, at, area.bottom]);
        // A long name of the last mark would leave the image.
        let name = (x.name)(mark);
        let beyond = at + LETTER / 2.0 * name.chars().count() as f64 > width - EDGE;
        let (anchor, at) = if beyond {
            (Anchor::End, width - EDGE)
        } else {
            (Anchor::Middle, at)
        };
        svg.text("small num", anchor, [at, area.bottom + 17.0], &name);
    }
    svg.line("axis", [area.left, area.bottom, area.right, area.bottom]);
    if !x.title.is_empty() {
        svg.text(
            "small",
            Anchor::Middle,
            [area.x(0.5), area.bottom + 36.0],
            x.title,
        );
    }
    if !y.title.is_empty() {
        svg.upwards("small", [area.left - 68.0, area.y(0.5)], y.title);
    }
}

/// An area after the end of the run.
pub(super) fn beyond(svg: &mut Svg, [x, y, width, height]: [f64; 4]) {
    svg.rect("beyond", [x, y, width, height]);
    let mut lines = String::new();
    let mut at = y + 3.0;
    while at < y + height {
        let _ = write!(lines, "M{} {}h{}", Px(x), Px(at), Px(width));
        at += 5.0;
    }
    svg.path("hatch", &lines);
}

/// Draws the title and the remarks below it.
pub(super) fn heading(svg: &mut Svg, height: f64, title: &str, remark: &str) {
    svg.rect("paper", [0.0, 0.0, svg.width(), height]);
    svg.text("title", Anchor::Start, [16.0, 26.0], title);
    svg.text("small", Anchor::Start, [16.0, 44.0], remark);
}

/// The sample of a series in the key.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    Line,
    Mark,
    /// A stick with its mark.
    Stick,
    /// A filled area with its hatching.
    Bar,
}

/// The height of a line of the key.
const KEY_LINE: f64 = 18.0;
/// The top of the key.
pub(super) const KEY_TOP: f64 = 62.0;

/// Draws the key of all series and returns its bottom.
pub(super) fn key(svg: &mut Svg, names: &[String], sample: Sample) -> f64 {
    let (mut x, mut y) = (16.0, KEY_TOP);
    let drawn = names
        .iter()
        .enumerate()
        .filter(|(_, name)| !name.is_empty());
    for (at, name) in drawn {
        let width = 40.0 + 7.3 * name.chars().count() as f64;
        if x + width > svg.width() - 10.0 && x > 16.0 {
            (x, y) = (16.0, y + KEY_LINE);
        }
        let middle = y - 4.0;
        match sample {
            Sample::Line => svg.line(&line_class(at), [x, middle, x + 24.0, middle]),
            Sample::Mark => svg.path(
                &format!("mark s{}", at % SERIES),
                &mark(at, x + 12.0, middle),
            ),
            Sample::Stick => {
                let x = x + 12.0;
                let (foot, end) = (middle + 7.0, middle - 8.0);
                let stick = format!("M{} {}V{}", Px(x), Px(foot), Px(end));
                svg.path(&format!("stick s{}", at % SERIES), &stick);
                svg.path(
                    &format!("mark s{}", at % SERIES),
                    &hanging(at, [x, end], foot),
                );
            }
            Sample::Bar => piece(svg, at, [x + 2.0, middle - 6.0, 20.0, 13.0]),
        }
        svg.text("small", Anchor::Start, [x + 29.0, y], name);
        x += width;
    }
    if names.is_empty() {
        KEY_TOP - KEY_LINE
    } else {
        y
    }
}

/// The classes of a series' line: colour and dash.
pub(super) fn line_class(series: usize) -> String {
    format!("curve s{} d{}", series % SERIES, series % SERIES)
}

/// The mark of a series at a point: circle, square, triangle, diamond, cross, saltire, triangle on its tip, bow tie,
/// bar.
pub(super) fn mark(series: usize, x: f64, y: f64) -> String {
    let (l, r, t, b) = (Px(x - 3.0), Px(x + 3.0), Px(y - 3.0), Px(y + 3.0));
    let (x, y) = (Px(x), Px(y));
    match series % SERIES {
        0 => format!("M{l} {y}a3 3 0 1 0 6 0a3 3 0 1 0-6 0"),
        1 => format!("M{l} {t}h6v6h-6z"),
        2 => format!("M{x} {t}L{r} {b}H{l}z"),
        3 => format!("M{x} {t}L{r} {y}L{x} {b}L{l} {y}z"),
        4 => format!("M{l} {y}h6M{x} {t}v6"),
        5 => format!("M{l} {t}l6 6M{l} {b}l6-6"),
        6 => format!("M{l} {t}H{r}L{x} {b}z"),
        7 => format!("M{l} {t}V{b}L{r} {t}V{b}z"),
        _ => format!("M{l} {y}h6"),
    }
}

/// Half the size of a mark with its line, and the shortest stick that can hold its mark, in units of the view box.
const HALF: f64 = 3.6;
const ROOM: f64 = 14.0;

/// The mark of a stick from `foot` to a point. The mark lies inside the stick, because above its end it would make the
/// stick look longer; if there is no room, it lies below the foot.
pub(super) fn hanging(series: usize, [x, end]: [f64; 2], foot: f64) -> String {
    mark(series, x, middle_of(end, foot))
}

/// A paper-coloured background on both sides of a stick's mark, so that it shows among others of its colour.
pub(super) fn behind([x, end]: [f64; 2], foot: f64) -> String {
    let top = Px(middle_of(end, foot) - 3.0);
    format!(
        "M{} {top}h1.8v6h-1.8zM{} {top}h1.8v6h-1.8z",
        Px(x - 3.6),
        Px(x + 1.8)
    )
}

fn middle_of(end: f64, foot: f64) -> f64 {
    if foot - end < ROOM {
        foot + 1.0 + HALF
    } else {
        end + HALF
    }
}

/// A filled area of a series: its colour, and a hatching for readers without colour.
pub(super) fn piece(svg: &mut Svg, series: usize, area: [f64; 4]) {
    svg.rect(&format!("f{}", series % SERIES), area);
    svg.path("hatch", &hatching(series, area));
}

/// The hatching by series: none, rising, falling, vertical, horizontal, rising and falling, vertical and horizontal,
/// rising and vertical, falling and horizontal.
fn hatching(series: usize, [x, y, width, height]: [f64; 4]) -> String {
    const STEP: f64 = 7.0;
    let (right, bottom) = (x + width, y + height);
    let mut out = String::new();
    let mut line = |[x1, y1, x2, y2]: [f64; 4]| {
        out.push_str(&format!("M{} {}L{} {}", Px(x1), Px(y1), Px(x2), Px(y2)));
    };
    let steps = |length: f64| (1..(length / STEP).ceil() as usize).map(|at| STEP * at as f64);
    let kind = series % SERIES;
    if matches!(kind, 1 | 5 | 7) {
        for at in steps(width + height) {
            line([
                x + (at - height).max(0.0),
                y + at.min(height),
                x + at.min(width),
                y + (at - width).max(0.0),
            ]);
        }
    }
    if matches!(kind, 2 | 5 | 8) {
        for at in steps(width + height) {
            line([
                x + (at - height).max(0.0),
                bottom - at.min(height),
                x + at.min(width),
                bottom - (at - width).max(0.0),
            ]);
        }
    }
    if matches!(kind, 3 | 6 | 7) {
        for at in steps(width) {
            line([x + at, y, x + at, bottom]);
        }
    }
    if matches!(kind, 4 | 6 | 8) {
        for at in steps(height) {
            line([x, y + at, right, y + at]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_reported_without_its_colour() {
        let area = [10.0, 20.0, 30.0, 18.0];
        let all: Vec<String> = (0..SERIES).map(|series| hatching(series, area)).collect();
        for (at, lines) in all.iter().enumerate() {
            assert!(!all[..at].contains(lines), "{at}");
            for number in lines.split(['M', 'L']).filter(|point| !point.is_empty()) {
                let (x, y) = number.split_once(' ').unwrap();
                let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                assert!(
                    (10.0..=40.0).contains(&x) && (20.0..=38.0).contains(&y),
                    "{at}: {number}"
                );
            }
        }
    }
}
