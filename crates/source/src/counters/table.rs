//! `/proc/interrupts` and `/proc/softirqs`: one row per counter, one column per CPU.

use super::CounterRow;
use jitterscope_model::CpuId;

/// Parses the table. Its first line names the CPUs, possibly with gaps. Skips rows without a number for each CPU
/// (`ERR`, `MIS`: one for the whole machine), and malformed rows.
#[must_use]
pub fn parse_table(text: &str) -> Vec<CounterRow> {
    parse_rows(text, |_| true)
}

/// [`parse_table`], restricted to rows with `wanted` names.
#[must_use]
pub fn parse_rows(text: &str, wanted: impl Fn(&str) -> bool) -> Vec<CounterRow> {
    let mut lines = text.lines();
    let cpus: Vec<CpuId> = lines
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| Some(CpuId(word.strip_prefix("CPU")?.parse().ok()?)))
        .collect();
    if cpus.is_empty() {
        return Vec::new();
    }
    lines
        .filter(|line| {
            line.split_once(':')
                .is_some_and(|(name, _)| wanted(name.trim()))
        })
        .filter_map(|line| row(line, &cpus))
        .collect()
}

fn row(line: &str, cpus: &[CpuId]) -> Option<CounterRow> {
    let (name, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace();
    let mut values = Vec::with_capacity(cpus.len());
    for cpu in cpus {
        values.push((*cpu, words.next()?.parse().ok()?));
    }
    let description: Vec<&str> = words.collect();
    Some(CounterRow {
        name: name.trim().into(),
        description: description.join(" ").into(),
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "           CPU0       CPU2       \n\
        \x2024:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
        LOC:     102451     105414   Local timer interrupts\n\
        ERR:          0\nMIS:          0\nPIN:   3  x  Posted-interrupt notification event\n";

    #[test]
    fn columns_belong_to_the_cpus_that_the_header_names() {
        let rows = parse_table(TEXT);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (&*rows[0].name, &*rows[0].description),
            ("24", "IO-APIC 5-edge ACPI:Ged")
        );
        assert_eq!(rows[1].values, [(CpuId(0), 102_451), (CpuId(2), 105_414)]);
        assert_eq!(&*rows[1].description, "Local timer interrupts");
        assert!(parse_table("LOC: 1 2\n").is_empty());
        let wanted = parse_rows(TEXT, |name| name == "LOC");
        assert_eq!(wanted, rows[1..]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(CPU[0-9]{0,12}|[A-Z]{3}|:|[0-9]{0,22}| |\n|\\PC){0,80}") {
            let _ = parse_table(&text);
        }
    }
}
