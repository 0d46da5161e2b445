//! Holes in a stored trace: parts that were not kept because the size limit was reached.

use jitterscope_model::{CpuId, Ticks};
use std::collections::BTreeMap;

/// Times in which a CPU's records are missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Breaks {
    closed: Vec<(CpuId, Ticks, Ticks)>,
    /// Start of a hole that lasts until the CPU's next page.
    open: BTreeMap<CpuId, Ticks>,
    missed: bool,
}

impl Breaks {
    /// Records are missing after these CPUs' last records.
    pub(super) fn miss(&mut self, last_records: impl Iterator<Item = (CpuId, Ticks)>) {
        self.missed = true;
        for (cpu, last) in last_records {
            self.open.entry(cpu).or_insert(last);
        }
    }

    /// A page of a CPU begins. Returns the hole that it ends; `None` without an earlier page, because then no known
    /// state can have changed in it.
    pub(super) fn page(&mut self, cpu: CpuId, first: Ticks) -> Option<(Ticks, Ticks)> {
        let from = self.open.remove(&cpu)?;
        self.closed.push((cpu, from, first));
        (from > Ticks(0)).then_some((from, first))
    }

    /// Whether any records are missing.
    pub(super) fn any(&self) -> bool {
        self.missed
    }

    /// Whether records of this CPU, or of any CPU, are missing between two times.
    pub(super) fn touch(&self, cpu: Option<CpuId>, from: Ticks, to: Ticks) -> bool {
        let meant = |of: &CpuId| cpu.is_none_or(|cpu| cpu == *of);
        let closed = self
            .closed
            .iter()
            .any(|(of, start, end)| meant(of) && *start <= to && from <= *end);
        closed
            || self
                .open
                .iter()
                .any(|(of, start)| meant(of) && *start <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_reaches_from_the_last_record_before_it_to_the_first_after_it() {
        let (near, far) = (CpuId(0), CpuId(1));
        let mut breaks = Breaks::default();
        assert!(!breaks.any() && !breaks.touch(None, Ticks(0), Ticks(u64::MAX)));
        breaks.miss([(near, Ticks(100)), (far, Ticks(0))].into_iter());
        breaks.miss([(near, Ticks(150))].into_iter());
        assert!(
            breaks.touch(Some(near), Ticks(500), Ticks(600)),
            "nothing has come since"
        );
        assert!(!breaks.touch(Some(near), Ticks(50), Ticks(99)));
        assert_eq!(
            breaks.page(near, Ticks(200)),
            Some((Ticks(100), Ticks(200)))
        );
        assert_eq!(breaks.page(near, Ticks(300)), None, "the hole has ended");
        assert_eq!(
            breaks.page(far, Ticks(250)),
            None,
            "nothing was known before"
        );
        assert!(breaks.touch(Some(near), Ticks(200), Ticks(210)));
        assert!(!breaks.touch(Some(near), Ticks(201), Ticks(249)));
        assert!(breaks.touch(None, Ticks(201), Ticks(249)) && breaks.any());
    }
}
