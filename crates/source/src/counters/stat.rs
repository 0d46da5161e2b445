//! `/proc/stat`: clock ticks of each CPU, by activity.

use super::CounterRow;
use jitterscope_model::CpuId;

/// The kernel's columns, in order.
const COLUMNS: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];

/// Parses the per-CPU lines; old kernels have fewer columns.
#[must_use]
pub fn parse_stat(text: &str) -> Vec<CounterRow> {
    let row = |name: &&str| CounterRow {
        name: (*name).into(),
        description: "clock ticks of 10 ms".into(),
        values: Vec::new(),
    };
    let mut rows: Vec<CounterRow> = COLUMNS.iter().map(row).collect();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        // Skips the line `cpu`, without a number, which is the sum.
        let cpu = words
            .next()
            .and_then(|word| word.strip_prefix("cpu"))
            .and_then(|n| n.parse().ok());
        let Some(cpu) = cpu else { continue };
        for (row, word) in rows.iter_mut().zip(words) {
            let Ok(value) = word.parse() else { break };
            row.values.push((CpuId(cpu), value));
        }
    }
    rows.retain(|row| !row.values.is_empty());
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_cpu_has_its_ticks() {
        let rows = parse_stat(
            "cpu  9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 80 9 10\nintr 5 6\n",
        );
        let steal = rows.iter().find(|row| &*row.name == "steal").unwrap();
        assert_eq!(steal.values, [(CpuId(0), 8), (CpuId(1), 80)]);
        assert_eq!(parse_stat("cpu0 1 2 3\n").len(), 3);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(cpu[0-9]{0,12}|[0-9]{0,22}| |\n|\\PC){0,80}") {
            let _ = parse_stat(&text);
        }
    }
}
