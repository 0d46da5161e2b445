//! Culprits: one row for each culprit of a part and its trigger.

use super::facts::{FACTS, FactColumns};
use super::{Batch, CULPRITS, TableRows};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, Int32Array, PrimitiveArray, StringArray, StringViewArray,
    UInt32Array, UInt64Array,
};
use jitterscope_model::{
    CpuId, Culprit, CulpritId, ExecutionContext, FactForm, Name, Sender, Subject, SubjectFields,
};
use std::borrow::Cow;
use std::sync::Arc;

/// The longest stored name, bytes. The longest names that this program writes are paths of at most 512 bytes.
const LONGEST_NAME: usize = 1024;

#[derive(Default)]
pub(crate) struct CulpritRows(Vec<(CulpritId, Arc<Culprit>)>);

impl CulpritRows {
    pub(crate) fn push(&mut self, id: CulpritId, culprit: Arc<Culprit>) {
        self.0.push((id, culprit));
    }

    /// The columns with their names, in the order of the schema.
    fn named(&mut self) -> Vec<(&'static str, ArrayRef)> {
        let rows = std::mem::take(&mut self.0);
        let subjects: Vec<SubjectFields> = rows
            .iter()
            .map(|(_, culprit)| SubjectFields::from(&culprit.subject))
            .collect();
        let id: UInt32Array = rows.iter().map(|(id, _)| Some(id.0)).collect();
        let mut columns: Vec<(&'static str, ArrayRef)> = vec![
            ("culprit_id", Arc::new(id)),
            ("kind", text(&subjects, |of| Some(of.kind[..].into()))),
            ("name", text(&subjects, |of| Some(of.name[..].into()))),
        ];
        columns.extend(FACTS.iter().map(|fact| {
            let column: ArrayRef = match fact.form {
                FactForm::Text(get, _) => text(&subjects, get),
                FactForm::I32(get, _) => Arc::new(subjects.iter().map(get).collect::<Int32Array>()),
                FactForm::U32(get, _) => {
                    Arc::new(subjects.iter().map(get).collect::<UInt32Array>())
                }
                FactForm::U64(get, _) => {
                    Arc::new(subjects.iter().map(get).collect::<UInt64Array>())
                }
            };
            (fact.name, column)
        }));
        let by = || rows.iter().map(|(_, culprit)| culprit.sender.as_ref());
        let i32s = |get: fn(&Sender) -> Option<i32>| -> ArrayRef {
            Arc::new(by().map(|of| of.and_then(get)).collect::<Int32Array>())
        };
        let cpu: UInt32Array = by().map(|of| Some(of?.cpu.0)).collect();
        columns.extend([
            (
                "sender_comm",
                text(by(), |of| Some(of?.comm.as_deref()?.into())),
            ),
            ("sender_tid", i32s(|of| Some(of.tid))),
            ("sender_tgid", i32s(|of| of.tgid)),
            ("sender_cpu", Arc::new(cpu) as ArrayRef),
            (
                "sender_via",
                text(by(), |of| Some(of?.via.as_deref()?.into())),
            ),
            (
                "sender_context",
                text(by(), |of| Some(of?.context.as_str().into())),
            ),
            (
                "sender_beneath",
                text(by(), |of| Some(of?.beneath.as_deref()?.into())),
            ),
        ]);
        columns
    }
}

/// A column of texts.
pub(super) fn text<'v, V: 'v>(
    values: impl IntoIterator<Item = V>,
    get: impl Fn(V) -> Option<Cow<'v, str>>,
) -> ArrayRef {
    Arc::new(values.into_iter().map(get).collect::<StringArray>())
}

impl TableRows for CulpritRows {
    const FILE: &'static str = CULPRITS;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn columns(&mut self) -> Vec<ArrayRef> {
        self.named().into_iter().map(|(_, column)| column).collect()
    }
}

/// A column of texts that may be missing, or null in a row.
pub(super) struct Texts<'a>(pub(super) Option<&'a StringViewArray>);

impl Texts<'_> {
    pub(super) fn word(&self, row: usize) -> Option<&str> {
        self.0
            .filter(|column| column.is_valid(row))
            .map(|column| column.value(row))
    }

    fn name(&self, row: usize) -> Option<Name> {
        self.word(row).map(name)
    }
}

fn name(text: &str) -> Name {
    text[..text.floor_char_boundary(LONGEST_NAME)].into()
}

/// A number of a column that may be missing, or null in a row.
pub(super) fn number<T: ArrowPrimitiveType>(
    column: Option<&PrimitiveArray<T>>,
    row: usize,
) -> Option<T::Native> {
    column
        .filter(|column| column.is_valid(row))
        .map(|column| column.value(row))
}

/// The culprits of a batch. Values that this version does not know become unknown; columns that it does not know are
/// skipped.
pub(crate) fn culprits(batch: &Batch) -> Result<Vec<(u32, Arc<Culprit>)>, String> {
    let id = batch.column::<UInt32Array>("culprit_id")?;
    let kind = batch.column::<StringViewArray>("kind")?;
    let called = batch.column::<StringViewArray>("name")?;
    let facts = FactColumns::of(batch)?;
    let sender = senders(batch)?;
    let culprit = |row| {
        let mut fields = SubjectFields {
            kind: name(kind.value(row)),
            name: name(called.value(row)),
            ..SubjectFields::default()
        };
        facts.put(row, &mut fields, name);
        Arc::new(Culprit {
            subject: Subject::from(fields),
            sender: sender(row),
        })
    };
    Ok((0..batch.len())
        .map(|row| (id.value(row), culprit(row)))
        .collect())
}

/// The triggers of the culprits, by row.
fn senders(batch: &Batch) -> Result<impl Fn(usize) -> Option<Sender> + '_, String> {
    let texts = |name| batch.column_if_any(name).map(Texts);
    let (comm, via, context) = (
        texts("sender_comm")?,
        texts("sender_via")?,
        texts("sender_context")?,
    );
    let beneath = texts("sender_beneath")?;
    let tid = batch.column_if_any::<Int32Array>("sender_tid")?;
    let tgid = batch.column_if_any::<Int32Array>("sender_tgid")?;
    let cpu = batch.column_if_any::<UInt32Array>("sender_cpu")?;
    Ok(move |row| {
        let known = |word| ExecutionContext::parse(word).unwrap_or(ExecutionContext::Unknown);
        let sender = Sender {
            tid: number(tid, row)?,
            context: context.word(row).map_or(ExecutionContext::Unknown, known),
            comm: comm.name(row),
            tgid: number(tgid, row),
            cpu: CpuId(number(cpu, row).unwrap_or_default()),
            via: via.name(row),
            beneath: beneath.name(row),
        };
        Some(sender.as_recorded_now())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::SCHEMA;

    #[test]
    fn the_columns_stand_in_the_order_of_the_schema() {
        let listed = SCHEMA.iter().find(|(file, _)| *file == CULPRITS).unwrap().1;
        let listed: Vec<&str> = listed.iter().map(|(name, ..)| *name).collect();
        let made = CulpritRows::default().named();
        let made: Vec<&str> = made.iter().map(|(name, _)| *name).collect();
        assert_eq!(made, listed);
    }
}
