//! Shares of a whole as bars: the time of threads, or of watched CPUs.

use super::plot::{self, Sample};
use super::svg::{Anchor, Svg};
use super::theme::WIDTH;
use crate::number::percent_cell;
use crate::style::fit;

const LINE: f64 = 26.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = WIDTH - 24.0;
/// The largest width of a letter, in units of the view box.
const LETTER: f64 = 6.6;

/// A whole and its shares, one for each name of the key.
pub(crate) struct Whole {
    /// What the whole belongs to.
    pub(crate) name: String,
    /// In the order of the key; their sum is at most 1.
    pub(crate) shares: Vec<f64>,
}

/// The bars as SVG inside a page, which supplies the style.
pub(crate) fn inline(title: &str, remark: &str, names: &[&str], wholes: &[Whole]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut key = Svg::new(WIDTH, 0.0);
    let top = plot::key(&mut key, &names, Sample::Bar) + 14.0;
    let height = top + LINE * wholes.len() as f64 + 8.0;
    let mut svg = Svg::new(WIDTH, height);
    plot::heading(&mut svg, height, title, remark);
    plot::key(&mut svg, &names, Sample::Bar);
    for (at, whole) in wholes.iter().enumerate() {
        let y = top + LINE * at as f64;
        svg.text(
            "small",
            Anchor::End,
            [LEFT - 10.0, y + 14.0],
            &fit(&whole.name, 30),
        );
        let mut x = LEFT;
        for (series, share) in whole.shares.iter().enumerate() {
            let width = share.clamp(0.0, 1.0) * (RIGHT - LEFT);
            plot::piece(&mut svg, series, [x, y, width, LINE - 8.0]);
            // By name as well as by colour, if there is room, on its own background.
            let percent = percent_cell(*share);
            let named = names
                .get(series)
                .map_or_else(String::new, |name| format!("{name} {percent}"));
            let wide = |text: &str| LETTER * text.chars().count() as f64 + 8.0;
            if let Some(text) = [named, percent]
                .iter()
                .find(|text| wide(text) + 4.0 <= width)
            {
                let (middle, wide) = (x + width / 2.0, wide(text));
                svg.rect("paper", [middle - wide / 2.0, y + 2.0, wide, LINE - 12.0]);
                svg.text("small num", Anchor::Middle, [middle, y + 13.0], text);
            }
            x += width;
        }
    }
    svg.finish("", &format!("{title}: {remark}"))
}
