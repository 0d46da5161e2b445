//! The values of one column for a batch of rows, and their form in Parquet.

use super::Column;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescriptor, Type};

/// The values of a column, in the order of the rows; `None` is null.
pub(crate) enum Cells {
    U64(Vec<Option<u64>>),
    U32(Vec<Option<u32>>),
    I32(Vec<Option<i32>>),
    Text(Vec<Option<Text>>),
}

/// A text of a file. Equal texts of a page share their bytes.
#[derive(Clone)]
pub(crate) struct Text(ByteArray);

impl Text {
    pub(crate) fn as_str(&self) -> &str {
        // Checked when it was made.
        self.0.as_utf8().unwrap_or_default()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.into())
    }
}

/// A type of value that columns have.
pub(crate) trait Cell: Sized {
    fn cells(values: Vec<Option<Self>>) -> Cells;
    /// The values; `None` if the column has another type.
    fn of(cells: &Cells) -> Option<&[Option<Self>]>;
}

impl Cell for u64 {
    fn cells(values: Vec<Option<u64>>) -> Cells {
        Cells::U64(values)
    }

    fn of(cells: &Cells) -> Option<&[Option<u64>]> {
        match cells {
            Cells::U64(values) => Some(values),
            _ => None,
        }
    }
}

impl Cell for u32 {
    fn cells(values: Vec<Option<u32>>) -> Cells {
        Cells::U32(values)
    }

    fn of(cells: &Cells) -> Option<&[Option<u32>]> {
        match cells {
            Cells::U32(values) => Some(values),
            _ => None,
        }
    }
}

impl Cell for i32 {
    fn cells(values: Vec<Option<i32>>) -> Cells {
        Cells::I32(values)
    }

    fn of(cells: &Cells) -> Option<&[Option<i32>]> {
        match cells {
            Cells::I32(values) => Some(values),
            _ => None,
        }
    }
}

impl Cell for Text {
    fn cells(values: Vec<Option<Text>>) -> Cells {
        Cells::Text(values)
    }

    fn of(cells: &Cells) -> Option<&[Option<Text>]> {
        match cells {
            Cells::Text(values) => Some(values),
            _ => None,
        }
    }
}

/// A column that has a value in each row.
pub(crate) fn all<C: Cell>(values: impl IntoIterator<Item = C>) -> Cells {
    C::cells(values.into_iter().map(Some).collect())
}

/// A column that may have nulls.
pub(crate) fn some<C: Cell>(values: impl IntoIterator<Item = Option<C>>) -> Cells {
    C::cells(values.into_iter().collect())
}

impl Cells {
    pub(crate) fn len(&self) -> usize {
        match self {
            Cells::U64(values) => values.len(),
            Cells::U32(values) => values.len(),
            Cells::I32(values) => values.len(),
            Cells::Text(values) => values.len(),
        }
    }

    /// Appends rows of a column of the same type; without one, nulls. `None` if the types differ, or a row is null and must
    /// not be.
    pub(crate) fn extend_from(
        &mut self,
        from: Option<&Cells>,
        rows: &[usize],
        may_be_null: bool,
    ) -> Option<()> {
        fn extend<C: Clone>(
            to: &mut Vec<Option<C>>,
            from: Option<&[Option<C>]>,
            rows: &[usize],
            may_be_null: bool,
        ) -> Option<()> {
            for row in rows {
                let value = from.and_then(|from| from[*row].clone());
                (may_be_null || value.is_some()).then(|| to.push(value))?;
            }
            Some(())
        }
        match self {
            Cells::U64(to) => extend(
                to,
                from.map_or(Some(None), |of| Cell::of(of).map(Some))?,
                rows,
                may_be_null,
            ),
            Cells::U32(to) => extend(
                to,
                from.map_or(Some(None), |of| Cell::of(of).map(Some))?,
                rows,
                may_be_null,
            ),
            Cells::I32(to) => extend(
                to,
                from.map_or(Some(None), |of| Cell::of(of).map(Some))?,
                rows,
                may_be_null,
            ),
            Cells::Text(to) => extend(
                to,
                from.map_or(Some(None), |of| Cell::of(of).map(Some))?,
                rows,
                may_be_null,
            ),
        }
    }

    /// Takes the first rows away.
    pub(crate) fn split_front(&mut self, count: usize) -> Cells {
        fn front<C>(of: &mut Vec<Option<C>>, count: usize) -> Vec<Option<C>> {
            let rest = of.split_off(count.min(of.len()));
            std::mem::replace(of, rest)
        }
        match self {
            Cells::U64(of) => Cells::U64(front(of, count)),
            Cells::U32(of) => Cells::U32(front(of, count)),
            Cells::I32(of) => Cells::I32(front(of, count)),
            Cells::Text(of) => Cells::Text(front(of, count)),
        }
    }

    /// An upper bound of their bytes in a file, without compression.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Cells::U64(values) => 8 * values.len(),
            Cells::U32(values) => 4 * values.len(),
            Cells::I32(values) => 4 * values.len(),
            // Each text has its length before it.
            Cells::Text(values) => {
                let texts: usize = values.iter().flatten().map(|text| text.0.len()).sum();
                4 * values.len() + texts
            }
        }
    }

    /// Appends them to a column.
    ///
    /// # Errors
    /// The column has another type, or its pages cannot be written.
    pub(crate) fn write(&self, to: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        match (self, to) {
            (Cells::U64(cells), ColumnWriter::Int64ColumnWriter(to)) => {
                write(cells, to, |value| value.cast_signed())
            }
            (Cells::U32(cells), ColumnWriter::Int32ColumnWriter(to)) => {
                write(cells, to, |value| value.cast_signed())
            }
            (Cells::I32(cells), ColumnWriter::Int32ColumnWriter(to)) => {
                write(cells, to, |value| *value)
            }
            (Cells::Text(cells), ColumnWriter::ByteArrayColumnWriter(to)) => {
                write(cells, to, |text| text.0.clone())
            }
            _ => Err(ParquetError::General("a column has another type".into())),
        }
    }
}

fn write<C, T: DataType>(
    cells: &[Option<C>],
    to: &mut ColumnWriterImpl<'_, T>,
    stored: impl Fn(&C) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.iter().flatten().map(stored).collect();
    let nullable = to.get_descriptor().max_def_level() > 0;
    let levels: Option<Vec<i16>> = nullable.then(|| {
        let present = |cell: &Option<C>| i16::from(cell.is_some());
        cells.iter().map(present).collect()
    });
    to.write_batch(&values, levels.as_deref(), None).map(drop)
}

impl Column {
    /// No rows.
    pub(crate) fn empty(self) -> Cells {
        match self {
            Column::U64 | Column::U64OrNull => Cells::U64(Vec::new()),
            Column::U32 | Column::U32OrNull => Cells::U32(Vec::new()),
            Column::I32 | Column::I32OrNull => Cells::I32(Vec::new()),
            Column::Text | Column::TextOrNull => Cells::Text(Vec::new()),
        }
    }

    /// Whether a row may have no value.
    pub(crate) fn is_nullable(self) -> bool {
        match self {
            Column::U64 | Column::U32 | Column::I32 | Column::Text => false,
            Column::U64OrNull | Column::U32OrNull | Column::I32OrNull | Column::TextOrNull => true,
        }
    }

    /// The type in Parquet's words.
    fn types(self) -> (Physical, Option<LogicalType>) {
        let unsigned = |bits| Some(LogicalType::integer(bits, false));
        match self {
            Column::U64 | Column::U64OrNull => (Physical::INT64, unsigned(64)),
            Column::U32 | Column::U32OrNull => (Physical::INT32, unsigned(32)),
            Column::I32 | Column::I32OrNull => (Physical::INT32, None),
            Column::Text | Column::TextOrNull => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        }
    }

    /// Whether its values repeat so little that readers look for ranges of them: ids, times and lengths.
    pub(crate) fn is_ranged(self) -> bool {
        self.types().0 == Physical::INT64
    }

    pub(crate) fn is_text(self) -> bool {
        self.types().0 == Physical::BYTE_ARRAY
    }

    /// The column in a schema.
    ///
    /// # Errors
    /// The library refuses the name.
    pub(super) fn described(self, name: &str) -> Result<Type, ParquetError> {
        let (physical, logical) = self.types();
        let repetition = if self.is_nullable() {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }

    /// Whether a file's column has this type. Nulls may stand in either kind of file.
    pub(crate) fn matches(self, found: &ColumnDescriptor) -> bool {
        let (physical, logical) = self.types();
        found.physical_type() == physical
            && found.logical_type_ref() == logical.as_ref()
            && found.max_rep_level() == 0
            && found.max_def_level() <= 1
    }

    /// Reads up to `count` values of a column that [`Column::matches`].
    ///
    /// # Errors
    /// The library cannot read them, or a text is not UTF-8.
    pub(crate) fn read(self, from: &mut ColumnReader, count: usize) -> Result<Cells, ParquetError> {
        let unsigned = |value: i64| Ok(value.cast_unsigned());
        match (self.types().0, from) {
            (Physical::INT64, ColumnReader::Int64ColumnReader(from)) => {
                read(from, count, unsigned).map(Cells::U64)
            }
            (Physical::INT32, ColumnReader::Int32ColumnReader(from)) => match self {
                Column::I32 | Column::I32OrNull => read(from, count, Ok).map(Cells::I32),
                _ => read(from, count, |value| Ok(value.cast_unsigned())).map(Cells::U32),
            },
            (Physical::BYTE_ARRAY, ColumnReader::ByteArrayColumnReader(from)) => {
                let text = |bytes: ByteArray| bytes.as_utf8().is_ok().then(|| Text(bytes));
                let utf8 = || ParquetError::General("a text is not UTF-8".into());
                read(from, count, |bytes| text(bytes).ok_or_else(utf8)).map(Cells::Text)
            }
            _ => Err(ParquetError::General("a column has another type".into())),
        }
    }
}

fn read<T: DataType, C>(
    from: &mut ColumnReaderImpl<T>,
    count: usize,
    value: impl Fn(T::T) -> Result<C, ParquetError>,
) -> Result<Vec<Option<C>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (rows, ..) = from.read_records(count, Some(&mut levels), None, &mut values)?;
    let mut values = values.into_iter().map(value);
    if levels.is_empty() {
        return values.map(|value| value.map(Some)).collect();
    }
    levels.truncate(rows);
    levels
        .into_iter()
        .map(|level| match level {
            0 => Ok(None),
            _ => values.next().transpose(),
        })
        .collect()
}

/// A batch of rows read back. Columns are found by name.
pub(crate) struct Batch {
    pub(crate) rows: usize,
    /// The columns that this version knows and the file has; `None` where one has another type.
    pub(crate) columns: Vec<(&'static str, Option<Cells>)>,
}

impl Batch {
    /// A column that has a value in each row.
    ///
    /// # Errors
    /// It is missing, has another type, or has no value in some row.
    pub(crate) fn column<C: Cell + Clone>(&self, name: &str) -> Result<Vec<C>, String> {
        let cells = self
            .column_if_any::<C>(name)?
            .ok_or_else(|| format!("it has no column '{name}'"))?;
        let values: Option<Vec<C>> = cells.iter().cloned().collect();
        values.ok_or_else(|| format!("column '{name}' is null in some row"))
    }

    /// A column that older versions did not write, or that may have nulls; `None` if it is missing.
    ///
    /// # Errors
    /// It has another type.
    pub(crate) fn column_if_any<C: Cell>(
        &self,
        name: &str,
    ) -> Result<Option<&[Option<C>]>, String> {
        let found = self.columns.iter().find(|(known, _)| *known == name);
        let Some((_, cells)) = found else {
            return Ok(None);
        };
        let typed = cells.as_ref().and_then(C::of);
        typed
            .map(Some)
            .ok_or_else(|| format!("column '{name}' has another type"))
    }
}
