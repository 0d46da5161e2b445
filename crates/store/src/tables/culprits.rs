//! Culprits: one row for each culprit of a part and its trigger.

use super::facts::{FACTS, FactColumns};
use super::{Batch, CULPRITS, Cells, TableRows, Text, all, some};
use jitterscope_model::{
    CpuId, Culprit, CulpritId, ExecutionContext, FactForm, Name, Sender, Subject, SubjectFields,
};
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
    fn named(&mut self) -> Vec<(&'static str, Cells)> {
        let rows = std::mem::take(&mut self.0);
        let subjects: Vec<SubjectFields> = rows
            .iter()
            .map(|(_, culprit)| SubjectFields::from(&culprit.subject))
            .collect();
        let text = |text: &str| Text::from(text);
        let mut columns: Vec<(&'static str, Cells)> = vec![
            ("culprit_id", all(rows.iter().map(|(id, _)| id.0))),
            ("kind", all(subjects.iter().map(|of| text(&of.kind)))),
            ("name", all(subjects.iter().map(|of| text(&of.name)))),
        ];
        columns.extend(FACTS.iter().map(|fact| {
            let of = subjects.iter();
            let column = match fact.form {
                FactForm::Text(get, _) => some(of.map(|of| get(of).as_deref().map(text))),
                FactForm::I32(get, _) => some(of.map(get)),
                FactForm::U32(get, _) => some(of.map(get)),
                FactForm::U64(get, _) => some(of.map(get)),
            };
            (fact.name, column)
        }));
        let by = || rows.iter().map(|(_, culprit)| culprit.sender.as_ref());
        let word =
            |get: fn(&Sender) -> Option<&str>| some(by().map(|of| of.and_then(get).map(text)));
        columns.extend([
            ("sender_comm", word(|of| of.comm.as_deref())),
            ("sender_tid", some(by().map(|of| Some(of?.tid)))),
            ("sender_tgid", some(by().map(|of| of?.tgid))),
            ("sender_cpu", some(by().map(|of| Some(of?.cpu.0)))),
            ("sender_via", word(|of| of.via.as_deref())),
            ("sender_context", word(|of| Some(of.context.as_str()))),
            ("sender_beneath", word(|of| of.beneath.as_deref())),
        ]);
        columns
    }
}

impl TableRows for CulpritRows {
    const FILE: &'static str = CULPRITS;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn columns(&mut self) -> Vec<Cells> {
        self.named().into_iter().map(|(_, column)| column).collect()
    }
}

/// A column of texts that may be missing, or null in a row.
pub(super) struct Texts<'a>(pub(super) Option<&'a [Option<Text>]>);

impl Texts<'_> {
    pub(super) fn word(&self, row: usize) -> Option<&str> {
        self.0?[row].as_ref().map(Text::as_str)
    }

    fn name(&self, row: usize) -> Option<Name> {
        self.word(row).map(name)
    }
}

fn name(text: &str) -> Name {
    text[..text.floor_char_boundary(LONGEST_NAME)].into()
}

/// A number of a column that may be missing, or null in a row.
pub(super) fn number<N: Copy>(column: Option<&[Option<N>]>, row: usize) -> Option<N> {
    column?[row]
}

/// The culprits of a batch. Values that this version does not know become unknown; columns that it does not know are
/// skipped.
pub(crate) fn culprits(batch: &Batch) -> Result<Vec<(u32, Arc<Culprit>)>, String> {
    let id = batch.column::<u32>("culprit_id")?;
    let kind = batch.column::<Text>("kind")?;
    let called = batch.column::<Text>("name")?;
    let facts = FactColumns::of(batch)?;
    let sender = senders(batch)?;
    let culprit = |row: usize| {
        let mut fields = SubjectFields {
            kind: name(kind[row].as_str()),
            name: name(called[row].as_str()),
            ..SubjectFields::default()
        };
        facts.put(row, &mut fields, name);
        Arc::new(Culprit {
            subject: Subject::from(fields),
            sender: sender(row),
        })
    };
    Ok((0..batch.rows).map(|row| (id[row], culprit(row))).collect())
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
    let tid = batch.column_if_any::<i32>("sender_tid")?;
    let tgid = batch.column_if_any::<i32>("sender_tgid")?;
    let cpu = batch.column_if_any::<u32>("sender_cpu")?;
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
