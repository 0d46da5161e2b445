//! Counts of short deltas.

/// Tables of counters, which successive deltas use in turn: increments of one counter are then this many steps apart,
/// and the store-to-load forwarding between them is off the critical path.
const TABLES: usize = 8;

/// How often each delta below a threshold occurred, one counter per tick, in the caller's memory.
#[derive(Debug)]
pub struct ShortDeltas<'a> {
    threshold: usize,
    /// [`TABLES`] tables of `threshold` counters, one after the other.
    tables: &'a mut [u64],
}

impl<'a> ShortDeltas<'a> {
    /// How many counters a threshold of this many ticks needs.
    #[must_use]
    pub fn counters(threshold: usize) -> usize {
        threshold.saturating_mul(TABLES)
    }

    /// Continues counting in `tables`, from their current counts. The length of `tables` sets the threshold
    /// ([`ShortDeltas::counters`]).
    #[must_use]
    pub fn within(tables: &'a mut [u64]) -> ShortDeltas<'a> {
        ShortDeltas {
            threshold: tables.len() / TABLES,
            tables,
        }
    }

    /// Counts the delta of a step of the loop; false if the delta is too long and is not counted.
    #[inline(always)]
    pub(crate) fn count(&mut self, step: usize, delta: u64) -> bool {
        if delta < self.threshold as u64 {
            let table = step % TABLES;
            // SAFETY: `delta < threshold` was just tested, `table < TABLES`, and `tables` holds at least
            // `TABLES * threshold` counters.
            unsafe {
                *self
                    .tables
                    .get_unchecked_mut(table * self.threshold + delta as usize) += 1
            };
            true
        } else {
            false
        }
    }

    /// (length, count) of every delta that occurred, ascending.
    pub fn seen(tables: &[u64]) -> impl Iterator<Item = (u32, u64)> {
        let threshold = tables.len() / TABLES;
        (0..threshold).filter_map(move |delta| {
            let count: u64 = (0..TABLES)
                .map(|step| tables[step * threshold + delta])
                .sum();
            (count > 0).then_some((delta as u32, count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_add_up_and_a_long_delta_is_refused() {
        let mut memory = vec![0; ShortDeltas::counters(100)];
        let mut deltas = ShortDeltas::within(&mut memory);
        let mut refused = 0;
        for delta in [0, 7, 7, 99, 100, 5_000_000, u64::MAX] {
            refused += (0..TABLES)
                .filter(|step| !deltas.count(*step, delta))
                .count();
        }
        assert_eq!(refused, 3 * TABLES);
        assert_eq!(
            ShortDeltas::seen(&memory).collect::<Vec<_>>(),
            [(0, 8), (7, 16), (99, 8)]
        );
    }

    #[test]
    fn memory_that_is_no_whole_number_of_tables_is_not_overrun() {
        for length in 0..3 * TABLES {
            let mut memory = vec![0; length];
            let mut deltas = ShortDeltas::within(&mut memory);
            let fits = (0..4)
                .filter(|delta| deltas.count(TABLES - 1, *delta))
                .count();
            assert_eq!(fits, length / TABLES);
        }
    }
}
