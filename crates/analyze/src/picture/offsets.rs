//! The offsets of stalls within a second or a smaller unit: periodic stalls form a line.

use jitterscope_model::Nanos;

/// The largest number of columns, each a unit or several.
const COLUMNS: u64 = 240;
/// The number of offset steps.
const ROWS: usize = 100;
/// Units in nanoseconds, largest first. The first that fits ten times into the run is used.
const UNITS: [u64; 3] = [1_000_000_000, 100_000_000, 10_000_000];
const ENOUGH: u64 = 10;

/// Counts of stalls by unit of time (across) and by offset within it (down).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetMap {
    /// A second, or less for a short run.
    pub unit: Nanos,
    /// The number of units in a column.
    pub units_per_column: u64,
    pub columns: usize,
    /// The number of steps in a unit.
    pub rows: usize,
    /// The number of stalls in each cell, column by column.
    pub counts: Vec<u64>,
}

impl OffsetMap {
    pub(super) fn new(duration: Nanos) -> OffsetMap {
        let smallest = UNITS[UNITS.len() - 1];
        let unit = UNITS
            .into_iter()
            .find(|unit| duration.0 / unit >= ENOUGH)
            .unwrap_or(smallest);
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

    /// The map with a larger unit, a multiple of this one; `None` if that is impossible, or a column has several units.
    #[must_use]
    pub fn in_unit(&self, unit: Nanos) -> Option<OffsetMap> {
        let of = unit.0 / self.unit.0.max(1);
        if of < 2 || !unit.0.is_multiple_of(self.unit.0) || self.units_per_column != 1 {
            return None;
        }
        let columns = (self.columns as u64).div_ceil(of).max(1) as usize;
        let mut map = OffsetMap {
            unit,
            units_per_column: 1,
            columns,
            rows: self.rows,
            counts: vec![0; columns * self.rows],
        };
        for (at, n) in self.counts.iter().enumerate() {
            let (column, row) = ((at / self.rows) as u64, (at % self.rows) as u64);
            // Each row of this map lies within one row of the result.
            let rows = self.rows as u64;
            let within = ((column % of) * rows + row) / of;
            map.counts[(column / of * rows + within) as usize] += n;
        }
        Some(map)
    }

    pub(super) fn add(&mut self, start: Nanos) {
        let column = start.0 / self.unit.0 / self.units_per_column;
        let column = usize::try_from(column)
            .unwrap_or(usize::MAX)
            .min(self.columns - 1);
        // Below ROWS, because the remainder is below the unit.
        let row =
            (u128::from(start.0 % self.unit.0) * ROWS as u128 / u128::from(self.unit.0)) as usize;
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
    fn a_larger_unit_has_the_same_stalls_where_they_were() {
        let starts: Vec<Nanos> = (0..700).map(|n| Nanos(n * 7_654_321)).collect();
        let map = |duration| {
            let mut map = OffsetMap::new(Nanos(duration));
            starts.iter().for_each(|start| map.add(*start));
            map
        };
        let fine = map(6_000_000_000);
        assert_eq!(fine.unit, Nanos(100_000_000));
        let coarse = fine.in_unit(Nanos(1_000_000_000)).unwrap();
        let mut wanted = map(10_000_000_000);
        wanted.counts.truncate(6 * ROWS);
        assert_eq!((coarse.columns, &coarse.counts), (6, &wanted.counts));
        assert_eq!(fine.in_unit(fine.unit), None);
        // A unit that is not a multiple, and columns of several units.
        assert_eq!(fine.in_unit(Nanos(250_000_000)), None);
        let day = OffsetMap::new(Nanos(86_400_000_000_000));
        assert_eq!(day.in_unit(Nanos(day.unit.0 * 10)), None);
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
