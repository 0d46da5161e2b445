//! A diff as text: the figures, the culprits, the individual CPUs, and the other differences.

use super::conditions::{both_machines, both_sides, condition};
use super::words::{
    became, change, figure, figure_name, headline, interval, levels, moved_elsewhere,
    next_to_maximum, unproven, verdict,
};
use crate::lines::{counted, cpus_text};
use crate::number;
use crate::style::{Style, Tone, fit, pad};
use crate::words::kind_and_name;
use jitterscope_analyze::DifferenceClass;
use jitterscope_analyze::compare::{
    Against, Comparison, ConditionKind, CulpritDiff, Diff, FigureKind, FigureRow, FigureUnit,
    SideSummary, Verdict,
};
use jitterscope_model::Nanos;

/// The number of undecided culprits shown, for predicted ones and for others.
const UNDECIDED: usize = 8;
/// Columns of a figure's or CPU's name.
const NAME: usize = 18;
/// Columns of a culprit's name.
const CULPRIT: usize = 24;
/// Columns of a culprit's change, with a blank after the longest word.
const BECAME: usize = 10;
/// The mark of a percentile that too few values lie above.
const NEXT_TO_MAXIMUM: &str = " ^";
/// Beyond this number of values of one side, only their middle is shown.
const FEW: usize = 3;

/// The whole diff, each line within `style`'s width.
#[must_use]
pub fn render(diff: &Diff, style: Style) -> String {
    let mut page = Page {
        style,
        out: String::new(),
    };
    for (at, side) in diff.sides.iter().enumerate() {
        page.side(at, side);
    }
    if diff.sides.len() > 2 {
        page.all(diff);
    }
    for against in &diff.against {
        if diff.sides.len() > 2 {
            page.heading(&format!("{} AGAINST {}", letter(against.side), letter(0)));
        }
        page.against(diff, against);
    }
    page.out
}

/// A, B, C: short names of the sides.
pub(crate) fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .filter(|at| *at < 26)
        .map_or_else(|| at.to_string(), |at| char::from(b'A' + at).into())
}

struct Page {
    style: Style,
    out: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        let text = self.style.paint(Tone::Heading, text);
        self.line("");
        self.line(&text);
    }

    fn wrapped(&mut self, tone: Tone, text: &str) {
        for line in self.style.prose(Some(tone), 0, text) {
            self.line(&line);
        }
    }

    fn side(&mut self, at: usize, side: &SideSummary) {
        let runs = match side.runs.as_slice() {
            [one] => format!("run {}, {}", one.id, number::utc(one.started_realtime_ns)),
            many => format!(
                "{} runs, {} to {}",
                many.len(),
                many[0].id,
                many[many.len() - 1].id
            ),
        };
        let cpus = if side.cpus.is_empty() {
            String::new()
        } else {
            format!(", {}", cpus_text(&side.cpus))
        };
        let text = format!(
            "{}  {}  {runs}{cpus}, {}",
            letter(at),
            side.name,
            number::span(side.measured_ns)
        );
        let text = self
            .style
            .paint(Tone::Strong, &fit(&text, self.style.columns()));
        self.line(&text);
        if let ([one], Some(within)) = (side.runs.as_slice(), side.runs[0].within_run) {
            let text = format!(
                "   stolen within run {}: {} to {} at 95 %; another run may be elsewhere",
                one.id,
                number::percent(within.low),
                number::percent(within.high)
            );
            self.wrapped(Tone::Dim, &text);
        }
        let lost: u64 = side.runs.iter().map(|run| run.lost_records).sum();
        if lost > 0 {
            self.wrapped(
                Tone::Warning,
                &format!(
                    "   {} records were lost: culprits of {} are undercounted",
                    number::count(lost),
                    letter(at)
                ),
            );
        }
        if let Some(why) = unproven(side) {
            self.wrapped(Tone::Bad, &format!("   {}: {why}", letter(at)));
        }
    }

    /// The middles of more than two sides.
    fn all(&mut self, diff: &Diff) {
        self.heading("ALL SIDES");
        let width = ((self.style.columns() - 20) / diff.sides.len()).clamp(8, 12);
        let mut head = pad("", 20);
        for at in 0..diff.sides.len() {
            head.push_str(&format!("{:>width$}", letter(at)));
        }
        self.line(&head);
        for row in diff
            .against
            .first()
            .map_or(&[][..], |against| &against.figures)
        {
            let mut line = pad(&figure_name(row.kind), 20);
            line.push_str(&format!(
                "{:>width$}",
                figure(of_side(row.kind, &row.first), row.unit)
            ));
            for against in &diff.against {
                let same = against.figures.iter().find(|other| other.kind == row.kind);
                let value = same.and_then(|other| of_side(row.kind, &other.second));
                line.push_str(&format!("{:>width$}", figure(value, row.unit)));
            }
            self.line(&line);
        }
    }

    fn against(&mut self, diff: &Diff, against: &Against) {
        let (first, second) = (&diff.sides[0], &diff.sides[against.side]);
        let names = [letter(0), letter(against.side)];
        for difference in against.told_conditions() {
            let [before, after] = both_sides(difference);
            let what = condition(difference.what);
            let text = format!("{what}: {before} in {}, {after} in {}", names[0], names[1]);
            if difference.incomparable {
                let given = match difference.what {
                    ConditionKind::Threshold => " Record both with the same --threshold.",
                    ConditionKind::EventGrain => " Record both with the same --events.",
                    _ => "",
                };
                self.wrapped(
                    Tone::Bad,
                    &format!("NOT COMPARABLE: {text}. Nothing is judged.{given}"),
                );
            } else {
                let counted = match difference.what {
                    ConditionKind::Threshold => "; stalls of both are counted from the longer one",
                    _ => "",
                };
                self.wrapped(
                    Tone::Warning,
                    &format!("measured differently: {text}{counted}"),
                );
            }
        }
        for difference in against
            .machine
            .iter()
            .filter(|d| d.class == DifferenceClass::Incomparable)
        {
            let [before, after] = both_machines(difference);
            let text = format!(
                "OTHER MACHINES: {} is {before} in {}, {after} in {}. The figures do not tell what a setting did.",
                difference.what, names[0], names[1]
            );
            self.wrapped(Tone::Bad, &text);
        }
        self.figures(against, &names, [first, second]);
        self.culprits(against, &names);
        self.cpus(against, &names);
        self.machine(against, &names);
    }

    fn figures(&mut self, against: &Against, names: &[String; 2], sides: [&SideSummary; 2]) {
        let run = length(sides[0], sides[1]);
        for row in against.figures.iter().filter(|row| row.is_total) {
            let Some([observed, said]) = headline(row, names, sides, run) else {
                continue;
            };
            self.line("");
            self.wrapped(Tone::Strong, &observed);
            let verdict = row.comparison.as_ref().map(|c| c.verdict);
            self.wrapped(verdict.map_or(Tone::Dim, tone), &said);
        }
        self.heading(&format!(
            "{}{:>9}{:>9}{:>8}{:>14}{:>8}  VERDICT",
            pad("FIGURE", NAME),
            names[0],
            names[1],
            "CHANGE",
            "INTERVAL",
            "MARGIN"
        ));
        if against.figures.is_empty() {
            self.line("Runs of this probe have no figures.");
        }
        for row in &against.figures {
            self.figure(row, sides);
        }
        if let Some(level) = levels(&against.figures) {
            let text = format!(
                "interval: of the change, at {level}; margin: what counts as no difference. Less is better everywhere. \
                 Figures without a verdict are shown only.",
            );
            self.wrapped(Tone::Dim, &text);
        }
        if let Some(text) = next_to_maximum(&against.figures, run) {
            self.wrapped(Tone::Dim, &format!("{} {text}", NEXT_TO_MAXIMUM.trim()));
        }
    }

    fn figure(&mut self, row: &FigureRow, sides: [&SideSummary; 2]) {
        let side = |values: &[Option<f64>]| figure(of_side(row.kind, values), row.unit);
        let mark = match row.supported_from_ns {
            Some(_) => NEXT_TO_MAXIMUM,
            None => "",
        };
        let name = pad(&format!("{}{mark}", figure_name(row.kind)), NAME);
        let name = if row.is_total {
            self.style.paint(Tone::Strong, &name)
        } else {
            name
        };
        let (a, b) = (side(&row.first), side(&row.second));
        let mut line = format!("{name}{:>9}{:>9}", format!(" {a}"), format!(" {b}"));
        if let Some(c) = &row.comparison {
            let shown = c
                .change
                .map_or_else(|| "-".into(), |of| change(of, c.scale, row.unit));
            let margin = match c.margin {
                0.0 => "-".into(),
                margin => change(margin, c.scale, row.unit),
            };
            line.push_str(&format!(
                "{:>8}{:>14}{:>8}  {}",
                format!(" {shown}"),
                fit(&interval(c.interval, c.scale, row.unit), 13),
                fit(margin.trim_start_matches('+'), 7),
                self.verdict(c.verdict)
            ));
        } else if row.kind == FigureKind::Worst {
            // The longest value grows with the time of observation.
            let [a, b] = sides.map(|side| number::span(side.measured_ns));
            line.push_str(&format!("  in {a} and {b}"));
        }
        self.line(&line);
        if row.first.len().max(row.second.len()) <= FEW
            && row.first.len().max(row.second.len()) > 1
            && row.is_total
        {
            let all = |values: &[Option<f64>]| {
                values
                    .iter()
                    .map(|value| figure(*value, row.unit))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            self.wrapped(
                Tone::Dim,
                &format!("  runs: {}; {}", all(&row.first), all(&row.second)),
            );
        }
        if let Some([a, b]) = row
            .comparison
            .as_ref()
            .and_then(|c| c.not_seen_below_per_sec)
        {
            let text = format!(
                "  not seen: below {}/s and {}/s (3 / time)",
                number::rate(a),
                number::rate(b)
            );
            self.wrapped(Tone::Dim, &text);
        }
    }

    fn verdict(&self, of: Verdict) -> String {
        self.style.paint(tone(of), verdict(of))
    }

    fn culprits(&mut self, against: &Against, names: &[String; 2]) {
        let Some(culprits) = &against.culprits else {
            if !against
                .conditions
                .iter()
                .any(|difference| difference.incomparable)
            {
                self.heading("CULPRITS");
                self.wrapped(Tone::Dim, "Not every run recorded kernel events, or what it says of culprits does not hold: nobody is named.");
            }
            return;
        };
        let [a, b] = names;
        self.heading(&format!(
            "{}{:>7}{:>7}{:>9}{:>9} {}VERDICT",
            pad("CULPRIT", CULPRIT),
            format!("{a}/s"),
            format!("{b}/s"),
            format!("{a} stolen"),
            format!("{b} stolen"),
            pad("", BECAME)
        ));
        let (mut undecided, mut predicted_undecided) = (0, 0);
        let mut left_out = 0;
        for row in culprits {
            // The verdict rests on every decided prediction.
            let decided = matches!(row.verdict, Verdict::Better | Verdict::Worse)
                || row.predicted && row.verdict != Verdict::Inconclusive;
            if !decided {
                let shown = if row.predicted {
                    &mut predicted_undecided
                } else {
                    &mut undecided
                };
                *shown += 1;
                if *shown > UNDECIDED {
                    left_out += 1;
                    continue;
                }
            }
            self.culprit(row);
        }
        if left_out > 0 {
            self.wrapped(
                Tone::Dim,
                &format!("and {left_out} more, none of them better or worse (--json has them)"),
            );
        }
        let predicted = culprits.iter().any(|row| row.predicted);
        if predicted {
            self.wrapped(
                Tone::Dim,
                &format!(
                    "* predicted by the knobs that differ ({}): decided by themselves",
                    against.knobs.join(", ")
                ),
            );
        } else if !against.knobs.is_empty() {
            let text = format!(
                "knobs that differ: {}; nothing that they answer was seen",
                against.knobs.join(", ")
            );
            self.wrapped(Tone::Dim, &text);
        }
    }

    fn culprit(&mut self, row: &CulpritDiff) {
        let mark = if row.predicted { "* " } else { "  " };
        let name = kind_and_name(&row.subject);
        let rate =
            |c: &Comparison, of: fn(&Comparison) -> Option<f64>| number::rate(of(c).unwrap_or(0.0));
        let share = |of: Option<f64>| number::percent(of.unwrap_or(0.0));
        // The figure with the verdict, if only one has it.
        let of = match (
            row.verdict == row.events.verdict,
            row.verdict == row.stolen.verdict,
        ) {
            _ if row.verdict == Verdict::Inconclusive => "",
            (true, false) => ", count",
            (false, true) if row.events.verdict != Verdict::Inconclusive => ", time",
            _ => "",
        };
        let figures = [
            (rate(&row.events, |c| c.first), 7),
            (rate(&row.events, |c| c.second), 7),
            (share(row.stolen.first), 9),
            (share(row.stolen.second), 9),
        ];
        let line = format!(
            "{} {}{}{of}",
            columns(&format!("{mark}{name}"), CULPRIT, &figures),
            pad(became(row.became), BECAME),
            // The full text would not fit beside that.
            if row.verdict == Verdict::Equivalent && !of.is_empty() {
                "equiv.".to_owned()
            } else {
                self.verdict(row.verdict)
            },
        );
        self.line(&line);
    }

    fn cpus(&mut self, against: &Against, names: &[String; 2]) {
        if !against.cpus.is_empty() {
            self.heading(&format!(
                "{}{:>9}{:>9}{:>8}{:>14}  VERDICT",
                pad("CPU", NAME),
                names[0],
                names[1],
                "CHANGE",
                "INTERVAL"
            ));
        }
        let unit = unit_of_cpus(against);
        for row in &against.cpus {
            let c = &row.comparison;
            let shown = c
                .change
                .map_or_else(|| "-".into(), |of| change(of, c.scale, unit));
            let line = format!(
                "{}{:>9}{:>9}{:>8}{:>14}  {}",
                pad(&row.cpu.to_string(), NAME),
                format!(" {}", figure(c.first, unit)),
                format!(" {}", figure(c.second, unit)),
                format!(" {shown}"),
                fit(&interval(c.interval, c.scale, unit), 13),
                self.verdict(c.verdict)
            );
            self.line(&line);
        }
        let decided: Vec<_> = against
            .cpus
            .iter()
            .map(|row| (row.cpu, row.comparison.verdict))
            .collect();
        if let Some(text) = moved_elsewhere(&decided) {
            self.wrapped(Tone::Warning, &text);
        }
        if let Some(text) = of_other_cpus(against) {
            self.wrapped(Tone::Dim, &text);
        }
    }

    fn machine(&mut self, against: &Against, names: &[String; 2]) {
        self.heading("WHAT ELSE DIFFERS");
        if against.machine_unknown {
            self.wrapped(
                Tone::Warning,
                "The machine of one of the runs is not known: nothing can be said.",
            );
            return;
        }
        let mut informational = 0;
        let mut any = false;
        for difference in &against.machine {
            match difference.class {
                DifferenceClass::Informational => informational += 1,
                DifferenceClass::Matters | DifferenceClass::Incomparable => {
                    any = true;
                    let [before, after] = both_machines(difference);
                    let text = format!(
                        "{}: {before} in {}, {after} in {}",
                        difference.what, names[0], names[1]
                    );
                    let tone = if difference.class == DifferenceClass::Incomparable {
                        Tone::Bad
                    } else {
                        Tone::Warning
                    };
                    self.wrapped(tone, &text);
                }
            }
        }
        if !any {
            self.line("Nothing that bears on stalls.");
        }
        if informational > 0 {
            let (do_, them) = if informational == 1 {
                ("does", "it")
            } else {
                ("do", "them")
            };
            let text = format!(
                "and {} that hardly {do_} (--json has {them})",
                counted(informational, "thing")
            );
            self.wrapped(Tone::Dim, &text);
        }
    }
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::Equivalent | Verdict::NotSeen => Tone::Strong,
        Verdict::Inconclusive => Tone::Warning,
    }
}

/// The unit of the CPUs' figures.
pub(crate) fn unit_of_cpus(against: &Against) -> FigureUnit {
    let fractions = against
        .figures
        .iter()
        .any(|row| row.is_total && row.unit == FigureUnit::Fraction);
    if fractions {
        FigureUnit::Fraction
    } else {
        FigureUnit::Ns
    }
}

/// What the rows of CPUs do not show; `None` if they show everything.
pub(crate) fn of_other_cpus(against: &Against) -> Option<String> {
    let of_cpus = |kind| matches!(kind, FigureKind::Stolen | FigureKind::StallsOver { .. });
    if !against.cpus_of_one.is_empty() {
        return Some(format!(
            "Measured in one of the two only: {}",
            cpus_text(&against.cpus_of_one)
        ));
    }
    let probed = against.figures.iter().any(|row| of_cpus(row.kind));
    // Without a verdict there are no rows of CPUs, however many were measured.
    (against.cpus.is_empty() && probed && against.conditions.is_empty()).then(|| {
        "One CPU was measured: what moved to another CPU does not show here. Measure --cpus all to see that.".into()
    })
}

/// A name with figures to its right, each after a blank. A figure that is wider than its column takes room from the
/// name.
fn columns(name: &str, width: usize, figures: &[(String, usize)]) -> String {
    let marks: String = figures
        .iter()
        .map(|(figure, width)| format!("{:>width$}", format!(" {figure}")))
        .collect();
    let all: usize = width + figures.iter().map(|(_, width)| width).sum::<usize>();
    format!(
        "{}{marks}",
        pad(name, all.saturating_sub(marks.chars().count()))
    )
}

/// A side's value of a figure: the worst of its runs, or their middle.
fn of_side(kind: FigureKind, values: &[Option<f64>]) -> Option<f64> {
    match kind {
        FigureKind::Worst => values.iter().copied().flatten().reduce(f64::max),
        _ => middle(values),
    }
}

/// The middle of a side's known values, as in the comparison.
pub(crate) fn middle(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().flatten().collect();
    (known.len() == values.len() && !known.is_empty()).then(|| {
        let scale = jitterscope_analyze::compare::Scale::of(known.iter().copied());
        jitterscope_analyze::compare::middle(scale, &known)
    })
}

/// The length of a run of these sides.
pub(crate) fn length(first: &SideSummary, second: &SideSummary) -> Nanos {
    let mut all: Vec<Nanos> = first
        .runs
        .iter()
        .chain(&second.runs)
        .map(|run| run.duration_ns)
        .collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}
