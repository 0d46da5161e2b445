//! CPUs side by side: one column each, as in sysjitter; with many CPUs first the worst, one row each.

use super::Page;
use crate::ended::ended_early;
use crate::number::{count, percent, rate, span};
use crate::report::{Cell, Column, Row, Table};
use crate::style::Tone;
use jitterscope_analyze::{CpuSummary, RunSummary, TotalSummary};
use jitterscope_model::{CpuId, PutInOrder};

/// From this many CPUs on, the worst are ranked in rows.
const RANKED_FROM: usize = 8;
/// The number of rows of that ranking.
const RANKED: usize = 8;
/// With more CPUs than this only the worst have a column.
const MOST_COLUMNS: usize = 16;
/// The width of a label, and of a CPU, in characters.
const LABEL: usize = 8;
const CELL: usize = 9;

pub(super) fn render(page: &mut Page, summary: &RunSummary) {
    let mut cpus: Vec<&CpuSummary> = summary.probe.cpus.iter().collect();
    let all = cpus.len();
    if all < 2 {
        return;
    }
    if all >= RANKED_FROM {
        cpus.order_by(|a, b| {
            b.stolen_fraction
                .total_cmp(&a.stolen_fraction)
                .then(a.cpu.cmp(&b.cpu))
        });
        let few = if page.style.all_cpus { all } else { RANKED };
        page.heading("CPUS BY STOLEN TIME", "the worst first");
        let of_each: Vec<OfCpu> = cpus.iter().map(|cpu| OfCpu::of(cpu)).collect();
        page.table(ranking(&of_each, &OfCpu::total(&summary.probe.total), few));
    }
    let per_block = (page.style.columns() - LABEL) / CELL;
    let shown = if all > MOST_COLUMNS && !page.style.all_cpus {
        per_block.min(all)
    } else {
        all
    };
    let remark = match all - shown {
        0 => format!(
            "statistics of the stalls of {} or longer",
            summary.probe.threshold_ns
        ),
        left => format!("{left} CPUs left out: report --all-cpus"),
    };
    page.heading("CPU BY CPU", &remark);
    let mut columns: Vec<OfCpu> = cpus[..shown].iter().map(|cpu| OfCpu::of(cpu)).collect();
    columns.order_by_key(|column| column.cpu);
    // The total fits in if the CPUs need no separate block.
    if all < RANKED_FROM {
        columns.push(OfCpu::total(&summary.probe.total));
    }
    // A percentile that no CPU supports needs no row.
    let has_any = |row: &usize| columns.iter().any(|column| column.cells[*row] != "-");
    let rows: Vec<usize> = (0..NAMES.len()).filter(has_any).collect();
    for block in columns.chunks(per_block) {
        page.table(columns_of(block, &rows));
    }
    for cpu in &cpus {
        if let Some(why) = &cpu.ended_early {
            let text = format!(
                "CPU {} ended early, after {}: {}",
                cpu.cpu,
                span(cpu.measured_ns),
                ended_early(why)
            );
            page.prose(Some(Tone::Warning), 2, &text);
        }
    }
}

/// One row for each CPU, the worst first, and the sum; short views show `few` CPUs.
fn ranking(cpus: &[OfCpu], total: &OfCpu, few: usize) -> Table {
    let row = |of: &OfCpu| {
        let cell = |name: &str| {
            let at = NAMES.iter().position(|known| *known == name);
            Cell::from(at.map_or("", |at| of.cells[at].as_str()))
        };
        let share = format!("{} %", cell("total %").text);
        let [stolen, stalls, per_sec] = ["total", "stalls", "per sec"].map(cell);
        let [p99, worst, floor] = ["99 %", "max", "floor"].map(cell);
        let name = of.name().into();
        Row::from([
            name,
            share.into(),
            stolen,
            stalls,
            per_sec,
            p99,
            worst,
            floor,
        ])
    };
    let rows = cpus.iter().enumerate().map(|(at, of)| Row {
        aside: at >= few,
        ..row(of)
    });
    let heads = [
        "cpu",
        "share",
        "stolen",
        "stalls",
        "per sec",
        "stall p99",
        "worst",
        "floor",
    ];
    Table {
        title: "CPUs by stolen time".into(),
        columns: heads.map(Column::number).into(),
        rows: rows.chain([row(total).total()]).collect(),
        aside: "which lost less",
        ..Table::default()
    }
}

/// The names of the statistics, in order.
const NAMES: [&str; 14] = [
    "stalls", "per sec", "min", "median", "mean", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %",
    "max", "total", "total %", "floor",
];

/// A count that fits a cell.
fn few_digits(n: u64) -> String {
    if n < 1_000_000 {
        count(n)
    } else {
        rate(n as f64)
    }
}

/// A percentage whose unit is in the label.
fn number_of(share: f64) -> String {
    percent(share).trim_end_matches(" %").to_owned()
}

/// A column of the table.
struct OfCpu {
    /// `None` for the total.
    cpu: Option<CpuId>,
    cells: [String; NAMES.len()],
}

impl OfCpu {
    fn name(&self) -> String {
        self.cpu.map_or_else(|| "all".into(), |cpu| cpu.to_string())
    }

    fn of(cpu: &CpuSummary) -> OfCpu {
        let p = |name: &str| known(cpu.stall_percentiles_ns.get(name).copied().flatten());
        OfCpu {
            cpu: Some(cpu.cpu),
            cells: [
                few_digits(cpu.stalls),
                rate(cpu.stalls_per_sec),
                known(cpu.stall_min_ns),
                p("50"),
                known(cpu.stall_mean_ns),
                p("90"),
                p("99"),
                p("99.9"),
                p("99.99"),
                p("99.999"),
                // Without stalls there is no longest one.
                known(cpu.max_ns.filter(|_| cpu.stalls > 0)),
                cpu.stolen_ns.to_string(),
                number_of(cpu.stolen_fraction),
                known(cpu.floor_ns),
            ],
        }
    }

    fn total(total: &TotalSummary) -> OfCpu {
        let p = |name: &str| known(total.stall_percentiles_ns.get(name).copied().flatten());
        OfCpu {
            cpu: None,
            cells: [
                few_digits(total.stalls),
                rate(total.stalls_per_sec),
                known(total.stall_min_ns),
                p("50"),
                known(total.stall_mean_ns),
                p("90"),
                p("99"),
                p("99.9"),
                p("99.99"),
                p("99.999"),
                known(total.max_ns.filter(|_| total.stalls > 0)),
                total.stolen_ns.to_string(),
                number_of(total.stolen_fraction),
                String::new(),
            ],
        }
    }
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

fn columns_of(of: &[OfCpu], rows: &[usize]) -> Table {
    let row = |row: &usize| {
        let cells = of.iter().map(|of| Cell::from(of.cells[*row].as_str()));
        Row::from(
            [NAMES[*row].into()]
                .into_iter()
                .chain(cells)
                .collect::<Vec<_>>(),
        )
    };
    Table {
        title: "CPU by CPU".into(),
        columns: [Column::text("cpu")]
            .into_iter()
            .chain(Column::numbers(of.iter().map(OfCpu::name)))
            .collect(),
        rows: rows.iter().map(row).collect(),
        ..Table::default()
    }
}
