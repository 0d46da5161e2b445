//! Stolen time and the worst stall of each step of the run, a pair of rows for each CPU.

use super::Page;
use crate::number::percent;
use crate::style::Tone;
use jitterscope_analyze::{CpuHistory, RunSummary};
use jitterscope_model::{CpuId, Nanos, PutInOrder};

/// With more CPUs than this only those with the worst steps are shown.
const MANY: usize = 8;
/// The number of those.
const WORST: usize = 4;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let history = &summary.history;
    let scale = Scale::of(page, summary);
    if history.stolen_ns.len() < 2 || scale.worst == Nanos::ZERO {
        return;
    }
    let mut cpus: Vec<&CpuHistory> = history.cpus.iter().collect();
    let all = cpus.len();
    if all > MANY {
        let burst = |of: &CpuHistory| of.stolen_ns.iter().max().copied();
        cpus.order_by(|a, b| burst(b).cmp(&burst(a)).then(a.cpu.cmp(&b.cpu)));
        cpus.truncate(WORST);
        cpus.order_by_key(|of| of.cpu);
    }
    let step = format!("{} a step", history.step_ns);
    let remark = match all - cpus.len() {
        0 => step,
        left => format!("{step}; the {WORST} CPUs with the worst steps, {left} left out"),
    };
    page.heading("OVER TIME", &remark);
    let control = summary
        .wakeup
        .as_ref()
        .and_then(|wakeup| Some(wakeup.idle_control.as_ref()?.cpu));
    let name = |cpu: CpuId| {
        if Some(cpu) == control {
            format!("idle{cpu}")
        } else {
            cpu.to_string()
        }
    };
    for of in cpus {
        scale.rows(page, &name(of.cpu), 1, &of.stolen_ns, &of.max_ns);
    }
    let summed = all - usize::from(control.is_some());
    if summed > 1 {
        scale.rows(page, "all", summed, &history.stolen_ns, &history.max_ns);
    }
    page.prose(Some(Tone::Dim), 2, &scale.legend(summary));
}

/// The meaning of the characters, the same for all rows.
struct Scale {
    ramp: &'static [char],
    /// The largest stolen time of one CPU in a step.
    stolen: Nanos,
    /// The start of the levels of the worst stall.
    low: Nanos,
    worst: Nanos,
    sleeper: bool,
}

impl Scale {
    fn of(page: &Page, summary: &RunSummary) -> Scale {
        let most = |of: fn(&CpuHistory) -> &[Nanos]| {
            summary
                .history
                .cpus
                .iter()
                .flat_map(of)
                .max()
                .copied()
                .unwrap_or_default()
        };
        let ramp: &[char] = if page.style.unicode {
            &[
                '\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}',
                '\u{2588}',
            ]
        } else {
            &['.', ':', '-', '=', '+', '*', '%', '@']
        };
        let worst = most(|cpu| &cpu.max_ns);
        Scale {
            ramp,
            stolen: most(|cpu| &cpu.stolen_ns),
            low: low(summary, worst),
            worst,
            sleeper: summary.wakeup.is_some(),
        }
    }

    fn rows(&self, page: &mut Page, name: &str, cpus: usize, stolen: &[Nanos], worst: &[Nanos]) {
        let what = if self.sleeper { "late" } else { "stolen" };
        let linear: String = stolen
            .iter()
            .map(|ns| self.linear(ns.0 as f64 / cpus as f64))
            .collect();
        page.line(&format!(
            "{name:>5} {what:<6} [{}]",
            page.style.paint(Tone::Strong, &linear)
        ));
        let logarithmic: String = worst.iter().map(|ns| self.logarithmic(*ns)).collect();
        page.line(&format!(
            "      worst  [{}]",
            page.style.paint(Tone::Strong, &logarithmic)
        ));
    }

    fn level(&self, level: f64) -> char {
        self.ramp[(level.ceil() as usize).clamp(1, self.ramp.len()) - 1]
    }

    fn linear(&self, ns: f64) -> char {
        if ns == 0.0 {
            ' '
        } else {
            self.level(ns / self.stolen.0 as f64 * self.ramp.len() as f64)
        }
    }

    /// Levels from the lowest to the worst, in equal factors.
    fn logarithmic(&self, ns: Nanos) -> char {
        if ns == Nanos::ZERO {
            return ' ';
        }
        let height = |ns: Nanos| (ns.0 as f64 / self.low.0 as f64).max(1.0).ln();
        let whole = height(self.worst);
        let share = if whole > 0.0 { height(ns) / whole } else { 1.0 };
        self.level(share * self.ramp.len() as f64)
    }

    fn legend(&self, summary: &RunSummary) -> String {
        let (low, high) = (self.ramp[0], self.ramp[self.ramp.len() - 1]);
        let first = if self.sleeper {
            format!("late: {high} is {} of lateness in a step", self.stolen)
        } else {
            let share = self.stolen.0 as f64 / summary.history.step_ns.0.max(1) as f64;
            format!(
                "stolen: {high} is {} of a step, {}",
                percent(share),
                self.stolen
            )
        };
        let factor = (self.worst.0 as f64 / self.low.0 as f64)
            .max(1.0)
            .powf(1.0 / self.ramp.len() as f64);
        // Only if it matters: a step cannot lose more than all of its time.
        let ends = if self.stolen > summary.history.step_ns {
            "; a stall counts where it ends"
        } else {
            ""
        };
        format!(
            "{first}{ends}, in equal levels. worst: {low} is from {}, {high} to {}, each level {factor:.1} times the \
             one before. Blank: nothing.",
            self.low, self.worst
        )
    }
}

/// The smallest worst stall of any step, but far enough below the largest that levels do not magnify small differences.
fn low(summary: &RunSummary, worst: Nanos) -> Nanos {
    const LEAST_RANGE: u64 = 10;
    let all = summary.history.cpus.iter().flat_map(|cpu| &cpu.max_ns);
    let smallest = all
        .filter(|ns| **ns > Nanos::ZERO)
        .min()
        .copied()
        .unwrap_or_default();
    Nanos(
        smallest
            .0
            .min(worst.0 / LEAST_RANGE)
            .max(summary.probe.threshold_ns.0)
            .max(1),
    )
}
