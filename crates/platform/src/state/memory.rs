//! Memory, from `/proc/meminfo` and `/sys/kernel/mm`.

use super::{chosen, missing, number, text};
use crate::machine::Machine;
use jitterscope_model::{HugePages, MemoryState, Reading};

const HUGE: &str = "/sys/kernel/mm/hugepages";
const THP: &str = "/sys/kernel/mm/transparent_hugepage";

pub(super) fn read(machine: &Machine) -> MemoryState {
    let meminfo = machine.read("/proc/meminfo");
    let field = |name: &str| -> Reading<u64> {
        match &meminfo {
            Ok(text) => text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
                .into(),
            Err(error) => missing(error),
        }
    };
    MemoryState {
        total_kib: field("MemTotal"),
        swap_kib: field("SwapTotal"),
        huge_pages: huge_pages(machine),
        transparent_huge_pages: text(machine, &format!("{THP}/enabled")).map(chosen),
        transparent_defrag: text(machine, &format!("{THP}/defrag")).map(chosen),
        same_page_merging: text(machine, "/sys/kernel/mm/ksm/run"),
    }
}

fn huge_pages(machine: &Machine) -> Reading<Vec<HugePages>> {
    let mut sizes: Vec<HugePages> = machine
        .list(HUGE)
        .iter()
        .filter_map(|name| {
            let size_kib = name
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            Some(HugePages {
                size_kib,
                pages: number(machine, &format!("{HUGE}/{name}/nr_hugepages")),
            })
        })
        .collect();
    sizes.sort_by_key(|size| size.size_kib);
    if sizes.is_empty() {
        Reading::Absent
    } else {
        Reading::Value(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fake;

    #[test]
    fn sizes_and_choices_are_read() {
        let (_dir, machine) = fake::machine(&[
            (
                "/proc/meminfo",
                "MemTotal:       16000000 kB\nSwapTotal:      0 kB\n",
            ),
            (
                "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages",
                "4\n",
            ),
            (
                "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
                "512\n",
            ),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
        ]);
        let memory = read(&machine);
        assert_eq!(
            (memory.total_kib, memory.swap_kib),
            (Reading::Value(16_000_000), Reading::Value(0))
        );
        assert_eq!(
            memory.huge_pages.value().unwrap()[0].pages,
            Reading::Value(512)
        );
        assert_eq!(
            memory.transparent_huge_pages,
            Reading::Value("madvise".into())
        );
        assert_eq!(memory.transparent_defrag, Reading::Absent);
    }
}
