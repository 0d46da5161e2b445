//! Tables as no writer of this program makes them.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, DataType};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// The values of a column; `None` is null.
#[derive(Clone)]
pub enum Values {
    U64(Vec<Option<u64>>),
    U32(Vec<Option<u32>>),
    I32(Vec<Option<i32>>),
    Text(Vec<Option<ByteArray>>),
}

/// Columns with their names.
pub type Columns = Vec<(String, Values)>;

/// A column without nulls.
pub fn u64s(values: impl IntoIterator<Item = u64>) -> Values {
    Values::U64(values.into_iter().map(Some).collect())
}

pub fn u32s(values: impl IntoIterator<Item = u32>) -> Values {
    Values::U32(values.into_iter().map(Some).collect())
}

/// The same text in each row. As one buffer, it is as small in memory as in the file.
pub fn texts(count: usize, text: &str) -> Values {
    Values::Text(vec![Some(ByteArray::from(text)); count])
}

pub fn schema(fields: Vec<TypePtr>) -> TypePtr {
    let row = Type::group_type_builder("row").with_fields(fields);
    Arc::new(row.build().unwrap())
}

impl Values {
    pub fn field(&self, name: &str) -> TypePtr {
        let unsigned = |bits| Some(LogicalType::integer(bits, false));
        let (physical, logical) = match self {
            Values::U64(_) => (Physical::INT64, unsigned(64)),
            Values::U32(_) => (Physical::INT32, unsigned(32)),
            Values::I32(_) => (Physical::INT32, None),
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Arc::new(field.build().unwrap())
    }

    fn write(&self, to: &mut ColumnWriter<'_>) {
        fn split<T, U>(of: &[Option<T>], map: impl Fn(&T) -> U) -> (Vec<U>, Vec<i16>) {
            let levels = of.iter().map(|of| i16::from(of.is_some())).collect();
            (of.iter().flatten().map(map).collect(), levels)
        }
        let written = match (self, to) {
            (Values::U64(of), ColumnWriter::Int64ColumnWriter(to)) => {
                let (values, levels) = split(of, |n| n.cast_signed());
                to.write_batch(&values, Some(&levels), None)
            }
            (Values::U32(of), ColumnWriter::Int32ColumnWriter(to)) => {
                let (values, levels) = split(of, |n| n.cast_signed());
                to.write_batch(&values, Some(&levels), None)
            }
            (Values::I32(of), ColumnWriter::Int32ColumnWriter(to)) => {
                let (values, levels) = split(of, |n| *n);
                to.write_batch(&values, Some(&levels), None)
            }
            (Values::Text(of), ColumnWriter::ByteArrayColumnWriter(to)) => {
                let (values, levels) = split(of, Clone::clone);
                to.write_batch(&values, Some(&levels), None)
            }
            _ => panic!("the column has another type"),
        };
        written.unwrap();
    }

    fn read(field: &Type, from: &mut ColumnReader, rows: usize) -> Values {
        fn join<T: DataType, U>(
            from: &mut ColumnReaderImpl<T>,
            rows: usize,
            map: impl Fn(T::T) -> U,
        ) -> Vec<Option<U>> {
            let (mut levels, mut values) = (Vec::new(), Vec::new());
            from.read_records(rows, Some(&mut levels), None, &mut values)
                .unwrap();
            let mut values = values.into_iter().map(map);
            if levels.is_empty() {
                return values.map(Some).collect();
            }
            let value = |level| (level > 0).then(|| values.next().unwrap());
            levels.into_iter().map(value).collect()
        }
        let unsigned = field.get_basic_info().logical_type_ref().is_some();
        match from {
            ColumnReader::Int64ColumnReader(from) => {
                Values::U64(join(from, rows, i64::cast_unsigned))
            }
            ColumnReader::Int32ColumnReader(from) if unsigned => {
                Values::U32(join(from, rows, i32::cast_unsigned))
            }
            ColumnReader::Int32ColumnReader(from) => Values::I32(join(from, rows, |n| n)),
            ColumnReader::ByteArrayColumnReader(from) => Values::Text(join(from, rows, |of| of)),
            _ => panic!("the column has another type"),
        }
    }
}

/// Writes a table of `groups` row groups, whose columns `of` makes.
pub fn table(
    path: &Path,
    groups: usize,
    of: impl Fn(usize) -> Columns,
    properties: WriterProperties,
) {
    let mut writer = None;
    for group in 0..groups {
        let columns = of(group);
        let writer = writer.get_or_insert_with(|| {
            let fields = columns.iter().map(|(name, values)| values.field(name));
            let (file, schema) = (File::create(path).unwrap(), schema(fields.collect()));
            SerializedFileWriter::new(file, schema, Arc::new(properties.clone())).unwrap()
        });
        let mut rows = writer.next_row_group().unwrap();
        for (_, values) in &columns {
            let mut column = rows.next_column().unwrap().unwrap();
            values.write(column.untyped());
            column.close().unwrap();
        }
        rows.close().unwrap();
    }
    writer.unwrap().close().unwrap();
}

/// The names of a table's columns.
pub fn names(path: &Path) -> Vec<String> {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let fields = file.metadata().file_metadata().schema().get_fields();
    fields.iter().map(|field| field.name().to_owned()).collect()
}

/// The columns of a table's first row group.
pub fn read(path: &Path) -> Columns {
    let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let group = file.get_row_group(0).unwrap();
    let rows = usize::try_from(group.metadata().num_rows()).unwrap();
    let fields = file.metadata().file_metadata().schema().get_fields();
    let column = |(at, field): (usize, &TypePtr)| {
        let mut column = group.get_column_reader(at).unwrap();
        (
            field.name().to_owned(),
            Values::read(field, &mut column, rows),
        )
    };
    fields.iter().enumerate().map(column).collect()
}
