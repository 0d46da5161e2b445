//! When within a second, or a smaller unit, stalls begin: what comes regularly makes a line there.

use jitterscope_model::Nanos;

/// Columns at most: seconds, or groups of them.
const COLUMNS: u64 = 240;
/// Steps of the offset.
const ROWS: usize = 100;
/// Units, largest first. The first of which a run has ten is taken.
const UNITS: [u64; 3] = [1_000_000_000, 100_000_000, 10_000_000];
const ENOUGH: u64 = 10;

/// Starts of stalls by unit of time (across) and by offset within it (down).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetMap {
    /// A second, or less for a short run.
    pub unit: Nanos,
    /// Units that share a column.
    pub units_per_column: u64,
    /// How many columns.
    pub columns: usize,
    /// How many steps a unit is cut into.
    pub rows: usize,
    /// Column by column: how many stalls began there.
    pub counts: Vec<u64>,
}

impl OffsetMap {
    pub(super) fn new(duration: Nanos) -> OffsetMap {
        let smallest = UNITS[UNITS.len() - 1];
        let unit = UNITS.into_iter().find(|unit| duration.0 / unit >= ENOUGH).unwrap_or(smallest);
        let units = duration.0.div_ceil(unit).max(1);
        let units_per_column = units.div_ceil(COLUMNS);
        let columns = units.div_ceil(units_per_column) as usize;
        OffsetMap {
            unit: Nanos(unit),
            units_per_column,
            columns,
            rows: ROWS,
            counts: vec![0; columns * ROWS],
        }
    }

    pub(super) fn add(&mut self, start: Nanos) {
        let column = start.0 / self.unit.0 / self.units_per_column;
        let column = usize::try_from(column).unwrap_or(usize::MAX).min(self.columns - 1);
        // Below ROWS, for the remainder is below the unit.
        let row = (u128::from(start.0 % self.unit.0) * ROWS as u128 / u128::from(self.unit.0)) as usize;
        self.counts[column * ROWS + row] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_of_a_unit_is_one_row() {
        let mut map = OffsetMap::new(Nanos(20_000_000_000));
        for second in 0..20 {
            map.add(Nanos(second * 1_000_000_000 + 255_000_000));
        }
        assert_eq!((map.columns, map.unit), (20, Nanos(1_000_000_000)));
        assert!((0..20).all(|column| map.counts[column * ROWS + 25] == 1));
        assert_eq!(map.counts.iter().sum::<u64>(), 20);
    }

    #[test]
    fn long_and_short_runs_have_columns_that_fit() {
        let day = OffsetMap::new(Nanos(86_400_000_000_000));
        assert_eq!((day.columns, day.units_per_column), (240, 360));
        let brief = OffsetMap::new(Nanos(300_000_000));
        assert_eq!((brief.columns, brief.unit), (30, Nanos(10_000_000)));
        let mut none = OffsetMap::new(Nanos::ZERO);
        none.add(Nanos(u64::MAX));
        assert_eq!(none.counts.iter().sum::<u64>(), 1);
    }
}
