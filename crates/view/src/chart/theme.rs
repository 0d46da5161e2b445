//! The look of charts: colours that colour-blind readers can distinguish (after Okabe and Ito), each combined with a
//! shape or a dash, so that colour alone never carries meaning.

use base64::Engine;

/// The number of series with a different look.
pub(crate) const SERIES: usize = 7;

/// Steps of a heat map, without the empty one.
pub(super) const HEAT: usize = 8;

/// The width of a chart, in units of its view box.
pub(super) const WIDTH: f64 = 960.0;

/// The width of a chart beside another: half of a 1280-pixel window.
pub(super) const NARROW: f64 = 600.0;

const FONT: &[u8] = include_bytes!("font/jitterscope-chart.woff2");

/// The look of everything except colours; shared with pages.
const SHAPES: &str = "\
.chart text{font-family:'jitterscope chart','DejaVu Sans',sans-serif;font-size:12px}
.chart .title{font-size:15px;font-weight:bold}
.chart .small{font-size:11px}
.chart .num{font-variant-numeric:tabular-nums}
.chart path,.chart line{fill:none}
.chart .grid{stroke-width:1}
.chart .axis{stroke-width:1}
.chart .curve{stroke-width:2;stroke-linejoin:round}
.chart .stick{stroke-width:1.5}
.chart .mark{stroke-width:1.2;stroke-linejoin:round}
.chart .hatch{stroke-width:1.6}
.chart .d1{stroke-dasharray:9 4}
.chart .d2{stroke-dasharray:3 3}
.chart .d3{stroke-dasharray:11 3 2 3}
.chart .d4{stroke-dasharray:6 2}
.chart .d5{stroke-dasharray:2 5}
.chart .d6{stroke-dasharray:14 5}
";

/// Colours by class, on light and on dark paper.
struct Colours {
    paper: &'static str,
    text: &'static str,
    muted: &'static str,
    grid: &'static str,
    axis: &'static str,
    series: [&'static str; SERIES],
    heat: [&'static str; HEAT],
}

const LIGHT: Colours = Colours {
    paper: "#ffffff",
    text: "#1b1f24",
    muted: "#57606a",
    grid: "#e3e6ea",
    axis: "#8c959f",
    series: [
        "#0072b2", "#d55e00", "#009e73", "#b35c90", "#b57b00", "#3a93c9", "#6b7280",
    ],
    heat: [
        "#e4eef8", "#c3daef", "#98c1e2", "#68a3d2", "#3f84bf", "#2266a5", "#124a85", "#082f5f",
    ],
};

const DARK: Colours = Colours {
    paper: "#14181d",
    text: "#e6e9ed",
    muted: "#a3adb8",
    grid: "#2b323a",
    axis: "#6b7683",
    series: [
        "#4fa8e0", "#f08a4b", "#2fc49a", "#e39bc6", "#e8b23a", "#93d2f6", "#a8b0ba",
    ],
    heat: [
        "#1c2c3e", "#1f3f5f", "#22557f", "#2a6da0", "#3a88bf", "#5ca5d6", "#90c5ea", "#d0e8fa",
    ],
};

/// The style of a stand-alone image, with its font.
pub(super) fn standalone() -> String {
    let font = base64::engine::general_purpose::STANDARD.encode(FONT);
    format!(
        "<style>\n@font-face{{font-family:'jitterscope chart';src:url(data:font/woff2;base64,{font})}}\n{SHAPES}{}</style>\n",
        LIGHT.rules("")
    )
}

/// The style of all charts of a page, which follows the reader's theme: `data-theme` of the root if chosen, else the
/// browser's preference. Printed pages are white.
pub(crate) fn of_page() -> String {
    format!(
        "{SHAPES}{}@media screen and (prefers-color-scheme:dark){{\n{}}}\n@media screen{{\n{}{}}}\n",
        LIGHT.rules(""),
        DARK.rules(":root:not([data-theme=light]) "),
        LIGHT.rules(":root[data-theme=light] "),
        DARK.rules(":root[data-theme=dark] "),
    )
}

impl Colours {
    fn rules(&self, within: &str) -> String {
        let mut out = String::new();
        let mut rule = |classes: &str, what: &str, colour: &str| {
            // Each rule names its theme: a rule for any theme would override the other one's.
            let each: Vec<String> = classes
                .split(',')
                .map(|class| format!("{within}.chart {class}"))
                .collect();
            out.push_str(&format!("{}{{{what}:{colour}}}\n", each.join(",")));
        };
        rule(".paper", "fill", self.paper);
        rule("text", "fill", self.text);
        rule(".small,.muted", "fill", self.muted);
        rule(".grid", "stroke", self.grid);
        rule(".axis", "stroke", self.axis);
        rule(".hatch", "stroke", self.paper);
        rule(".beyond", "fill", self.grid);
        for (at, colour) in self.series.iter().enumerate() {
            rule(&format!(".s{at}"), "stroke", colour);
            rule(&format!(".f{at}"), "fill", colour);
        }
        for (at, colour) in self.heat.iter().enumerate() {
            rule(&format!("path.h{at},rect.h{at}"), "fill", colour);
        }
        // Bars of unexplained time are outlines.
        out.push_str(&format!(
            "{within}.chart .open{{fill:{};stroke:{};stroke-width:1.5;stroke-dasharray:4 2}}\n",
            self.paper, self.muted
        ));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_selector_of_a_theme_holds_in_that_theme_alone() {
        let mut seen = 0;
        for colours in [LIGHT, DARK] {
            for line in colours.rules(":root[data-theme=x] ").lines() {
                let (selectors, _) = line.split_once('{').unwrap();
                for selector in selectors.split(',') {
                    assert!(
                        selector.starts_with(":root[data-theme=x] .chart "),
                        "{line}"
                    );
                    seen += 1;
                }
            }
        }
        assert!(seen > 2 * (2 * SERIES + 2 * HEAT), "{seen}");
    }
}
