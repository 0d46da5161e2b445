//! The look of charts: colours that colour-blind readers can distinguish (after Okabe and Ito), each combined with a
//! shape or a dash, so that colour alone never carries meaning.

use base64::Engine;

/// The number of series with a different look.
pub(crate) const SERIES: usize = 9;

/// Steps of a heat map, without the empty one.
pub(super) const HEAT: usize = 8;

/// The width of a chart, in units of its view box.
pub(super) const WIDTH: f64 = 960.0;

/// The width of a chart beside another: half of a 1280-pixel window.
pub(super) const NARROW: f64 = 600.0;

const FONT: &[u8] = include_bytes!("font/jitterscope-chart.woff2");

/// The look of everything except colours; shared with pages.
const SHAPES: &str = "\
.chart text{font-family:'jitterscope chart','DejaVu Sans',sans-serif}
.chart .title{font-weight:bold}
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
.chart .d7{stroke-dasharray:9 3 2 3 2 3}
.chart .d8{stroke-dasharray:1 3}
";

/// Font sizes of classes, in units of the view box.
const SIZES: [(&str, f64); 2] = [("title", 15.0), ("small", 11.0)];
/// The font size of other texts.
const SIZE: f64 = 12.0;

/// Colours by name, on light and on dark paper.
struct Colours {
    paper: &'static str,
    ink: &'static str,
    muted: &'static str,
    grid: &'static str,
    axis: &'static str,
    series: [&'static str; SERIES],
    heat: [&'static str; HEAT],
}

const LIGHT: Colours = Colours {
    paper: "#ffffff",
    ink: "#1b1f24",
    muted: "#57606a",
    grid: "#e3e6ea",
    axis: "#8c959f",
    series: [
        "#0072b2", "#d55e00", "#009e73", "#cc5aa8", "#7a5c00", "#3d1a99", "#660f2b", "#1f3a08",
        "#737985",
    ],
    heat: [
        "#e4eef8", "#c3daef", "#98c1e2", "#68a3d2", "#3f84bf", "#2266a5", "#124a85", "#082f5f",
    ],
};

const DARK: Colours = Colours {
    paper: "#14181d",
    ink: "#e6e9ed",
    muted: "#a3adb8",
    grid: "#2b323a",
    axis: "#6b7683",
    series: [
        "#4fa8e0", "#f08a4b", "#2fc49a", "#f0a8d8", "#e8d03a", "#8a5cf6", "#e02f5a", "#d6f5b8",
        "#98a1ac",
    ],
    heat: [
        "#1c2c3e", "#1f3f5f", "#22557f", "#2a6da0", "#3a88bf", "#5ca5d6", "#90c5ea", "#d0e8fa",
    ],
};

/// The font size of a text with these classes, in units of the view box.
#[cfg(feature = "png")]
pub(super) fn font_size(classes: &str) -> f64 {
    let of = |class| SIZES.iter().find(|(known, _)| *known == class);
    classes
        .split(' ')
        .find_map(of)
        .map_or(SIZE, |(_, size)| *size)
}

/// The style of a stand-alone image, with its font.
pub(super) fn standalone() -> String {
    let font = base64::engine::general_purpose::STANDARD.encode(FONT);
    format!(
        "<style>\n@font-face{{font-family:'jitterscope chart';src:url(data:font/woff2;base64,{font})}}\n{}</style>\n",
        on_paper()
    )
}

/// The style of an image whose texts are outlines. Bold letters are regular ones with a border.
#[cfg(feature = "png")]
pub(super) fn outlined() -> String {
    format!(
        "<style>\n{}.chart .outline.title{{stroke:{};stroke-width:0.6}}\n</style>\n",
        on_paper(),
        LIGHT.ink
    )
}

/// Shapes, and their colours on white paper.
fn on_paper() -> String {
    let colours: Vec<(String, &str)> = LIGHT.by_name().collect();
    let colour = |name: &str| {
        let known = colours.iter().find(|(known, _)| known == name);
        known.map_or_else(String::new, |(_, colour)| (*colour).to_owned())
    };
    format!("{SHAPES}{}", rules(colour))
}

/// The style of all charts of a page. The colours are variables, which the page's script reads too; those that the
/// page's own style has already are not repeated. They follow the reader's theme: `data-theme` of the root if chosen,
/// else the browser's preference. Printed pages are white.
pub(crate) fn of_page() -> String {
    let variables = |of: &Colours| -> String {
        let own = of
            .by_name()
            .filter(|(name, _)| !matches!(&**name, "paper" | "ink" | "muted"));
        own.map(|(name, colour)| format!("--{name}:{colour};"))
            .collect()
    };
    let (light, dark) = (variables(&LIGHT), variables(&DARK));
    format!(
        "{SHAPES}{}:root{{{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n",
        rules(|name| format!("var(--{name})")),
    )
}

impl Colours {
    /// All colours, with their names.
    fn by_name(&self) -> impl Iterator<Item = (String, &'static str)> {
        let Colours {
            paper,
            ink,
            muted,
            grid,
            axis,
            series,
            heat,
        } = *self;
        let named = [
            ("paper", paper),
            ("ink", ink),
            ("muted", muted),
            ("grid", grid),
            ("axis", axis),
        ];
        let numbered = |letter: char, colours: &[&'static str]| -> Vec<(String, &'static str)> {
            let colours = colours.iter().enumerate();
            colours
                .map(|(at, colour)| (format!("{letter}{at}"), *colour))
                .collect()
        };
        let named = named.map(|(name, colour)| (name.to_owned(), colour));
        named
            .into_iter()
            .chain(numbered('s', &series))
            .chain(numbered('h', &heat))
    }
}

/// The colour of each class; `colour` writes the colour of a name.
fn rules(colour: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rule = |selectors: &str, what: &str, name: &str| {
        out.push_str(&format!("{selectors}{{{what}:{}}}\n", colour(name)));
    };
    rule(".chart .paper", "fill", "paper");
    rule(".chart text,.chart .outline", "fill", "ink");
    rule(".chart .small,.chart .muted", "fill", "muted");
    rule(".chart .grid", "stroke", "grid");
    rule(".chart .axis", "stroke", "axis");
    rule(".chart .hatch", "stroke", "paper");
    rule(".chart .beyond", "fill", "grid");
    for at in 0..SERIES {
        rule(&format!(".chart .s{at}"), "stroke", &format!("s{at}"));
        rule(&format!(".chart .f{at}"), "fill", &format!("s{at}"));
    }
    for at in 0..HEAT {
        let selectors = format!(".chart path.h{at},.chart rect.h{at}");
        rule(&selectors, "fill", &format!("h{at}"));
    }
    out.push_str(&format!(".chart text{{font-size:{SIZE}px}}\n"));
    for (class, size) in SIZES {
        out.push_str(&format!(".chart .{class}{{font-size:{size}px}}\n"));
    }
    // Bars of unexplained time are outlines.
    out.push_str(&format!(
        ".chart .open{{fill:{};stroke:{};stroke-width:1.5;stroke-dasharray:4 2}}\n",
        colour("paper"),
        colour("muted")
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colour in CIE L*a*b*, as a reader sees it.
    fn lab([r, g, b]: [f64; 3]) -> [f64; 3] {
        let of = |t: f64| {
            if t > 0.008856 {
                t.cbrt()
            } else {
                7.787 * t + 16.0 / 116.0
            }
        };
        let x = of((0.41246 * r + 0.35758 * g + 0.18044 * b) / 0.95047);
        let y = of(0.21267 * r + 0.71515 * g + 0.07218 * b);
        let z = of((0.01933 * r + 0.11919 * g + 0.9503 * b) / 1.08883);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn linear(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|at| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    /// What full colour vision sees, and what readers without long-wave or middle-wave cones see (Machado 2009).
    const EYES: [([[f64; 3]; 3], f64); 3] = [
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 25.0),
        (
            [
                [0.152286, 1.052583, -0.204868],
                [0.114503, 0.786281, 0.099216],
                [-0.003882, -0.048116, 1.051998],
            ],
            8.0,
        ),
        (
            [
                [0.367322, 0.860646, -0.227968],
                [0.280085, 0.672501, 0.047413],
                [-0.01182, 0.04294, 0.968881],
            ],
            8.0,
        ),
    ];

    #[test]
    fn series_differ_in_colour_from_each_other_and_from_the_paper() {
        for colours in [LIGHT, DARK] {
            for (eye, least) in EYES {
                let seen = |colour: &str| {
                    let light = linear(colour);
                    lab(eye.map(|row| {
                        let sum: f64 = row.iter().zip(light).map(|(a, b)| a * b).sum();
                        sum.clamp(0.0, 1.0)
                    }))
                };
                let apart = |a: &str, b: &str| {
                    let square = |(a, b): (f64, f64)| (a - b) * (a - b);
                    let sum: f64 = seen(a).into_iter().zip(seen(b)).map(square).sum();
                    sum.sqrt()
                };
                for (at, one) in colours.series.iter().enumerate() {
                    for other in &colours.series[..at] {
                        assert!(apart(one, other) > least, "{one} {other}");
                    }
                    // WCAG asks for a contrast of 3 for graphics.
                    let light = |colour: &str| {
                        let [r, g, b] = linear(colour);
                        0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
                    };
                    let (a, b) = (light(one), light(colours.paper));
                    assert!(a.max(b) / a.min(b) >= 3.0, "{one}");
                }
            }
        }
    }

    #[test]
    fn every_colour_of_a_page_has_a_value_in_each_theme() {
        let style = of_page();
        let page = include_str!("../html/page.css");
        for (name, _) in LIGHT.by_name() {
            let defined = format!("--{name}:#");
            let in_themes = style.matches(&defined).count() + page.matches(&defined).count();
            assert_eq!(in_themes, 3, "{name}");
        }
        assert!(!standalone().contains("var("));
    }
}
