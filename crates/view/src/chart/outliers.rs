//! Individual stalls, time across and length up: as sticks over time, and as a scatter plot.

use super::plot::{self, Area, Axis, Sample};
use super::scale::{self, Scale};
use super::shared::Shared;
use super::svg::{Anchor, Px, Svg};
use super::theme::SERIES;
use super::{ChartError, ChartKind, words};
use crate::drawn::Drawn;
use jitterscope_analyze::picture::DrawnStall;
use jitterscope_model::PutInOrder;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

const HEIGHT: f64 = 460.0;
/// The height of one lane's sticks.
const PANEL: f64 = 150.0;
/// The largest number of marks in a scatter plot.
const MOST_MARKS: usize = 1_500;
/// The distance between marks of one series on sticks, in units of the view box.
const MARK_APART: f64 = 14.0;
/// The number of lanes with their own sticks.
const PANELS: usize = 6;

fn nothing(chart: ChartKind) -> ChartError {
    ChartError::Nothing {
        chart,
        why: "nothing was recorded".into(),
    }
}

fn seconds(shared: &Shared) -> Scale {
    Scale::Linear(0.0, shared.longest.as_secs_f64().max(1e-6))
}

/// Marks the time after the end of a shorter run: it is not quiet time.
fn ended(svg: &mut Svg, area: Area, x: Scale, run: &Drawn) {
    let from = area.x(x.share(run.picture.duration.as_secs_f64()));
    if area.right - from >= 1.0 {
        plot::beyond(
            svg,
            [from, area.top, area.right - from, area.bottom - area.top],
        );
        if area.right - from > 90.0 {
            svg.text(
                "small",
                Anchor::Start,
                [from + 6.0, area.top + 14.0],
                "after the end",
            );
        }
    }
}

fn second(at: f64) -> String {
    scale::length(at * 1e9)
}

/// Every stall as a mark, by its largest culprit.
pub(super) fn scatter(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    let stalls = &run.picture.stalls;
    if stalls.is_empty() {
        return Err(nothing(ChartKind::Outliers));
    }
    let shown = &shared.shown;
    let series_of = shown.of_run(run);
    let mut svg = Svg::new(shared.width, HEIGHT);
    plot::heading(
        &mut svg,
        HEIGHT,
        &match words::slow_messages(run) {
            Some(_) => "Recorded slow messages, by the culprit with the largest part".to_owned(),
            None => format!(
                "Every {}, by the culprit with the largest part",
                words::noun(run).one
            ),
        },
        &words::subtitle_of_culprits(run, shared.is_narrow()),
    );
    let end = plot::key(&mut svg, &shown.names, Sample::Mark);
    let area = Area {
        left: 84.0,
        top: end + 18.0,
        right: shared.width - 24.0,
        bottom: HEIGHT - 50.0,
    };
    let x = Axis {
        scale: seconds(shared),
        title: "time since the start",
        name: &second,
    };
    let y = Axis {
        scale: shared.lengths,
        title: "length, log scale",
        name: &scale::length,
    };
    plot::axes(&mut svg, area, &x, &y);
    ended(&mut svg, area, x.scale, run);
    let spots: Vec<(usize, [f64; 2])> = stalls
        .iter()
        .map(|stall| {
            let x = area.x(x.scale.share(stall.start.as_secs_f64()));
            (
                series_of.stall(run, stall),
                [x, area.y(y.scale.share(stall.length.0 as f64))],
            )
        })
        .collect();
    let mut marks = vec![String::new(); shown.names.len()];
    for (series, [x, y]) in thinned(&spots) {
        marks[series].push_str(&plot::mark(series, x, y));
    }
    // The rarest are drawn last, on top.
    for (series, path) in marks.iter().enumerate() {
        svg.path(&format!("mark s{}", series % SERIES), path);
    }
    Ok(svg)
}

/// Merges overlapping marks of one series; if there are still too many, nearby ones too.
fn thinned(spots: &[(usize, [f64; 2])]) -> Vec<(usize, [f64; 2])> {
    let mut cell = 2.5;
    loop {
        let mut taken = HashSet::new();
        let near = |(series, [x, y]): &&(usize, [f64; 2])| {
            taken.insert((*series, (x / cell) as i32, (y / cell) as i32))
        };
        let left: Vec<_> = spots.iter().filter(near).copied().collect();
        if left.len() <= MOST_MARKS {
            return left;
        }
        cell *= 1.5;
    }
}

/// The longest stall of each time step as a stick, one panel for each lane.
pub(super) fn series(run: &Drawn, shared: &Shared) -> Result<Svg, ChartError> {
    let picture = &run.picture;
    if picture.stalls.is_empty() {
        return Err(nothing(ChartKind::Series));
    }
    let shown = &shared.shown;
    let series_of = shown.of_run(run);
    let mut longest = vec![0u64; picture.lanes.len()];
    for stall in &picture.stalls {
        longest[stall.lane] = longest[stall.lane].max(stall.length.0);
    }
    let mut lanes: Vec<usize> = (0..longest.len())
        .filter(|lane| longest[*lane] > 0)
        .collect();
    lanes.order_by_key(|lane| std::cmp::Reverse(longest[*lane]));
    let hidden = lanes.len().saturating_sub(PANELS);
    lanes.truncate(PANELS);
    lanes.sort_unstable();
    let mut key = Svg::new(shared.width, 0.0);
    let top = plot::key(&mut key, &shown.names, Sample::Stick) + 16.0;
    let height = top + PANEL * lanes.len() as f64 + 34.0;
    let mut svg = Svg::new(shared.width, height);
    let noun = words::noun(run);
    let lanes_hidden = if hidden == 1 {
        "1 lane".to_owned()
    } else {
        format!("{hidden} lanes")
    };
    let more = match shared.is_narrow() {
        _ if hidden == 0 => String::new(),
        true => format!("; {lanes_hidden} left out"),
        false => format!("; without {lanes_hidden} of shorter {}", noun.many),
    };
    let remark = format!(
        "{}{more}",
        words::subtitle_of_culprits(run, shared.is_narrow())
    );
    let title = match words::slow_messages(run) {
        Some(_) => "The longest recorded slow message of each moment".to_owned(),
        None => format!("The longest {} of each moment", noun.one),
    };
    plot::heading(&mut svg, height, &title, &remark);
    plot::key(&mut svg, &shown.names, Sample::Stick);
    let y_scale = shared.lengths;
    let x_scale = seconds(shared);
    for (at, lane) in lanes.iter().enumerate() {
        let base = top + PANEL * at as f64;
        let area = Area {
            left: 84.0,
            top: base + 20.0,
            right: shared.width - 24.0,
            bottom: base + PANEL - 26.0,
        };
        let last = at + 1 == lanes.len();
        let x = Axis {
            scale: x_scale,
            title: if last { "time since the start" } else { "" },
            name: &second,
        };
        let y = Axis {
            scale: y_scale,
            title: "",
            name: &scale::length,
        };
        plot::axes(&mut svg, area, &x, &y);
        ended(&mut svg, area, x_scale, run);
        svg.text(
            "small",
            Anchor::Start,
            [area.left, area.top - 6.0],
            &words::lane(&picture.lanes[*lane]),
        );
        // One stick for each unit of width.
        let mut sticks: HashMap<i32, &DrawnStall> = HashMap::new();
        for stall in picture.stalls.iter().filter(|stall| stall.lane == *lane) {
            let column = (area.x(x_scale.share(stall.start.as_secs_f64())) / 1.5) as i32;
            let stick = sticks.entry(column).or_insert(stall);
            if stall.length > stick.length {
                *stick = stall;
            }
        }
        let mut paths = vec![String::new(); shown.names.len()];
        // A mark also shows the series of a stick; within a group of close sticks, the highest has it.
        let mut tops: BTreeMap<(usize, i32), [f64; 2]> = BTreeMap::new();
        let mut sticks: Vec<_> = sticks.into_iter().collect();
        sticks.order_by_key(|(column, _)| *column);
        for (_, stall) in sticks {
            let x = area.x(x_scale.share(stall.start.as_secs_f64()));
            let y = area.y(y_scale.share(stall.length.0 as f64));
            let series = series_of.stall(run, stall);
            let top = tops
                .entry((series, (x / MARK_APART) as i32))
                .or_insert([x, y]);
            if y < top[1] {
                *top = [x, y];
            }
            let _ = write!(
                paths[series],
                "M{} {}V{}",
                Px(x),
                Px(area.bottom),
                Px(y.min(area.bottom - 1.0))
            );
        }
        for (series, path) in paths.iter().enumerate() {
            svg.path(&format!("stick s{}", series % SERIES), path);
        }
        let mut marks = vec![String::new(); shown.names.len()];
        let mut behind = String::new();
        for ((series, _), top) in tops {
            behind.push_str(&plot::behind(top, area.bottom));
            marks[series].push_str(&plot::hanging(series, top, area.bottom));
        }
        svg.path("paper", &behind);
        for (series, path) in marks.iter().enumerate() {
            svg.path(&format!("mark s{}", series % SERIES), path);
        }
    }
    Ok(svg)
}
