//! CPUs side by side: one column each, as in sysjitter; with many CPUs first the worst, one row each.

use super::Page;
use crate::ended::ended_early;
use crate::number::{count, percent, rate, span};
use crate::style::Tone;
use jitterscope_analyze::{CpuSummary, FineNanos, Percentiles, RunSummary, TotalSummary};
use jitterscope_model::{CpuId, Nanos};

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
        cpus.sort_by(|a, b| {
            b.stolen_fraction
                .total_cmp(&a.stolen_fraction)
                .then(a.cpu.cmp(&b.cpu))
        });
        let shown = if page.style.all_cpus {
            all
        } else {
            RANKED.min(all)
        };
        ranking(page, summary, &cpus[..shown]);
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
    let mut columns: Vec<Column> = cpus[..shown].iter().map(|cpu| Column::of(cpu)).collect();
    columns.sort_by_key(|column| column.cpu);
    // The total fits in if the CPUs need no separate block.
    if all < RANKED_FROM {
        columns.push(Column::total(&summary.probe.total));
    }
    // A percentile that no CPU supports needs no row.
    let has_any = |row: &usize| columns.iter().any(|column| column.cells[*row] != "-");
    let rows: Vec<usize> = (0..NAMES.len()).filter(has_any).collect();
    for (at, block) in columns.chunks(per_block).enumerate() {
        if at > 0 {
            page.line("");
        }
        columns_of(page, block, &rows);
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

/// One row for each CPU, the worst first.
fn ranking(page: &mut Page, summary: &RunSummary, cpus: &[&CpuSummary]) {
    let all = summary.probe.cpus.len();
    let remark = match cpus.len() {
        n if n == all => format!("all {all}, the worst first"),
        n => format!("the {n} worst of {all}"),
    };
    page.heading("CPUS BY STOLEN TIME", &remark);
    let head = "    cpu     share    stolen     stalls   per sec   stall p99     worst     floor";
    page.line(&page.style.paint(Tone::Dim, head));
    let row = |name: String,
               share,
               stolen: Nanos,
               stalls,
               per_sec,
               p99: &Percentiles,
               max,
               floor: String| {
        format!(
            "{name:>7} {:>9} {:>9} {:>10} {:>9} {:>11} {:>9} {floor:>9}",
            percent(share),
            stolen.to_string(),
            count(stalls),
            rate(per_sec),
            fine(p99.get("99").copied().flatten()),
            whole(max),
        )
    };
    for cpu in cpus {
        let line = row(
            cpu.cpu.to_string(),
            cpu.stolen_fraction,
            cpu.stolen_ns,
            cpu.stalls,
            cpu.stalls_per_sec,
            &cpu.stall_percentiles_ns,
            cpu.max_ns,
            fine(cpu.floor_ns),
        );
        page.line(&line);
    }
    let total = &summary.probe.total;
    let line = row(
        "all".into(),
        total.stolen_fraction,
        total.stolen_ns,
        total.stalls,
        total.stalls_per_sec,
        &total.stall_percentiles_ns,
        total.max_ns,
        String::new(),
    );
    page.line(&page.style.paint(Tone::Strong, line.trim_end()));
}

fn whole(ns: Option<Nanos>) -> String {
    ns.map_or_else(|| "-".into(), |ns| ns.to_string())
}

fn fine(ns: Option<FineNanos>) -> String {
    ns.map_or_else(|| "-".into(), |ns| ns.to_string())
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
struct Column {
    /// `None` for the total.
    cpu: Option<CpuId>,
    cells: [String; NAMES.len()],
}

impl Column {
    fn of(cpu: &CpuSummary) -> Column {
        let p = |name| fine(cpu.stall_percentiles_ns.get(name).copied().flatten());
        Column {
            cpu: Some(cpu.cpu),
            cells: [
                few_digits(cpu.stalls),
                rate(cpu.stalls_per_sec),
                whole(cpu.stall_min_ns),
                p("50"),
                fine(cpu.stall_mean_ns),
                p("90"),
                p("99"),
                p("99.9"),
                p("99.99"),
                p("99.999"),
                // Without stalls there is no longest one.
                whole(cpu.max_ns.filter(|_| cpu.stalls > 0)),
                cpu.stolen_ns.to_string(),
                number_of(cpu.stolen_fraction),
                fine(cpu.floor_ns),
            ],
        }
    }

    fn total(total: &TotalSummary) -> Column {
        let p = |name| fine(total.stall_percentiles_ns.get(name).copied().flatten());
        Column {
            cpu: None,
            cells: [
                few_digits(total.stalls),
                rate(total.stalls_per_sec),
                whole(total.stall_min_ns),
                p("50"),
                fine(total.stall_mean_ns),
                p("90"),
                p("99"),
                p("99.9"),
                p("99.99"),
                p("99.999"),
                whole(total.max_ns.filter(|_| total.stalls > 0)),
                total.stolen_ns.to_string(),
                number_of(total.stolen_fraction),
                String::new(),
            ],
        }
    }
}

fn columns_of(page: &mut Page, columns: &[Column], rows: &[usize]) {
    let mut head = format!("{:>LABEL$}", "cpu");
    for column in columns {
        head += &format!(
            "{:>CELL$}",
            column
                .cpu
                .map_or_else(|| "all".into(), |cpu| cpu.to_string())
        );
    }
    page.line(&page.style.paint(Tone::Dim, &head));
    for row in rows {
        let mut line = page
            .style
            .paint(Tone::Dim, &format!("{:>LABEL$}", NAMES[*row]));
        for column in columns {
            line += &format!("{:>CELL$}", column.cells[*row]);
        }
        page.line(&line);
    }
}
