//! The facts of a row's subject, as `model` lists them: their columns and how to read them.

use super::{Batch, Cell, Column, Text};
use jitterscope_model::{Fact, FactForm, Name, SubjectFields};

pub(super) const FACTS: &[Fact<SubjectFields>] = SubjectFields::FACTS;

/// The column of a fact.
pub(super) const fn column(form: &FactForm<SubjectFields>) -> Column {
    match form {
        FactForm::Text(..) => Column::TextOrNull,
        FactForm::I32(..) => Column::I32OrNull,
        FactForm::U32(..) => Column::U32OrNull,
        FactForm::U64(..) => Column::U64OrNull,
    }
}

/// The column of a fact in a batch, and the setter for its values.
enum Source<'a> {
    Text(&'a [Option<Text>], fn(&mut SubjectFields, Name)),
    I32(&'a [Option<i32>], fn(&mut SubjectFields, i32)),
    U32(&'a [Option<u32>], fn(&mut SubjectFields, u32)),
    U64(&'a [Option<u64>], fn(&mut SubjectFields, u64)),
}

/// The facts that a batch has.
pub(super) struct FactColumns<'a>(Vec<Source<'a>>);

impl<'a> FactColumns<'a> {
    /// The facts of a batch. An older version wrote fewer columns, and most batches have only nulls in most of them.
    pub(super) fn of(batch: &'a Batch) -> Result<FactColumns<'a>, String> {
        let mut found = Vec::new();
        for Fact {
            name: fact, form, ..
        } in FACTS
        {
            let source = match form {
                FactForm::Text(_, put) => {
                    column_of(batch, fact)?.map(|column| Source::Text(column, *put))
                }
                FactForm::I32(_, put) => {
                    column_of(batch, fact)?.map(|column| Source::I32(column, *put))
                }
                FactForm::U32(_, put) => {
                    column_of(batch, fact)?.map(|column| Source::U32(column, *put))
                }
                FactForm::U64(_, put) => {
                    column_of(batch, fact)?.map(|column| Source::U64(column, *put))
                }
            };
            found.extend(source);
        }
        Ok(FactColumns(found))
    }

    /// Puts the facts of a row into `fields`.
    pub(super) fn put(&self, row: usize, fields: &mut SubjectFields, name: impl Fn(&str) -> Name) {
        for source in &self.0 {
            match source {
                Source::Text(column, put) => {
                    set(&column[row], |text| put(fields, name(text.as_str())));
                }
                Source::I32(column, put) => set(&column[row], |number| put(fields, *number)),
                Source::U32(column, put) => set(&column[row], |number| put(fields, *number)),
                Source::U64(column, put) => set(&column[row], |number| put(fields, *number)),
            }
        }
    }
}

fn set<C>(cell: &Option<C>, put: impl FnOnce(&C)) {
    if let Some(value) = cell {
        put(value);
    }
}

/// A column that has a value in some row.
fn column_of<'a, C: Cell>(batch: &'a Batch, name: &str) -> Result<Option<&'a [Option<C>]>, String> {
    let column = batch.column_if_any::<C>(name)?;
    Ok(column.filter(|column| column.iter().any(Option::is_some)))
}
