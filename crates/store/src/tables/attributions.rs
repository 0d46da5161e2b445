//! Attributions read back: one row a part.

use super::Batch;
use super::facts::FactColumns;
use crate::legacy::{self, Wording};
use arrow_array::{Array, Int32Array, StringArray, UInt32Array, UInt64Array};
use jitterscope_model::{
    Confidence, CpuId, Culprit, CulpritPool, Evidence, ExecutionContext, KeyedMap, Name, Nanos,
    Part, Phase, Placement, Sender, StallId, Subject, SubjectFields,
};
use std::cell::RefCell;
use std::sync::Arc;

/// Names repeat from row to row.
#[derive(Default)]
struct Names(RefCell<KeyedMap<Box<str>, Name>>);

impl Names {
    fn get(&self, text: &str) -> Name {
        if let Some(known) = self.0.borrow().get(text) {
            return known.clone();
        }
        let name = Name::from(text);
        self.0.borrow_mut().insert(text.into(), name.clone());
        name
    }
}

/// A column that may be missing, or null in a row.
struct Texts<'a>(Option<&'a StringArray>, &'a Names);
struct Signed<'a>(Option<&'a Int32Array>);
struct Unsigned<'a>(Option<&'a UInt32Array>);

impl Texts<'_> {
    fn word(&self, row: usize) -> Option<&str> {
        self.0
            .filter(|column| !column.is_null(row))
            .map(|column| column.value(row))
    }

    fn at(&self, row: usize) -> Option<Name> {
        self.word(row).map(|text| self.1.get(text))
    }
}

impl Signed<'_> {
    fn at(&self, row: usize) -> Option<i32> {
        self.0
            .filter(|column| !column.is_null(row))
            .map(|column| column.value(row))
    }
}

impl Unsigned<'_> {
    fn at(&self, row: usize) -> Option<u32> {
        self.0
            .filter(|column| !column.is_null(row))
            .map(|column| column.value(row))
    }
}

/// The columns of a batch that may be missing.
struct Columns<'a> {
    batch: &'a Batch,
    names: &'a Names,
}

impl<'a> Columns<'a> {
    fn text(&self, name: &str) -> Result<Texts<'a>, String> {
        Ok(Texts(self.batch.column_if_any(name)?, self.names))
    }

    fn i32(&self, name: &str) -> Result<Signed<'a>, String> {
        Ok(Signed(self.batch.column_if_any(name)?))
    }

    fn u32(&self, name: &str) -> Result<Unsigned<'a>, String> {
        Ok(Unsigned(self.batch.column_if_any(name)?))
    }
}

/// (stall, part) rows of a batch. What this version does not know is kept as unknown; columns that it does not
/// know are passed over.
pub(crate) fn parts(batch: &Batch) -> Result<Vec<(StallId, Part)>, String> {
    let names = Names::default();
    let columns = Columns {
        batch,
        names: &names,
    };
    let id = batch.column::<UInt64Array>("stall_id")?;
    let text = |name| batch.column::<StringArray>(name);
    let (net, gross) = (
        batch.column::<UInt64Array>("net_ns")?,
        batch.column::<UInt64Array>("gross_ns")?,
    );
    let (placement, confidence) = (text("placement")?, text("confidence")?);
    let evidence = text("evidence")?;
    let (phase, moved_from) = (columns.text("phase")?, columns.u32("moved_from_cpu")?);
    let others_stalled = columns.u32("others_stalled")?;
    let (subject, sender) = (subjects(batch, &columns)?, senders(&columns)?);
    let mut culprits = CulpritPool::default();
    let mut part = |row| Part {
        culprit: culprits.share(Culprit {
            subject: subject(row),
            sender: sender(row),
        }),
        phase: phase.word(row).map(Phase::from_word),
        moved_from: moved_from.at(row).map(CpuId),
        net: Nanos(net.value(row)),
        gross: Nanos(gross.value(row)),
        placement: Placement::from_word(placement.value(row)),
        confidence: Confidence::from_word(confidence.value(row)),
        evidence: Evidence::from_word(evidence.value(row)),
        others_stalled: others_stalled.at(row),
    };
    Ok((0..batch.len())
        .map(|row| (StallId(id.value(row)), part(row)))
        .collect())
}

/// The subject of a row.
fn subjects<'a>(
    batch: &'a Batch,
    of: &Columns<'a>,
) -> Result<impl Fn(usize) -> Subject + use<'a>, String> {
    let text = |name| batch.column::<StringArray>(name);
    let (kind, name, names) = (text("kind")?, text("name")?, of.names);
    let facts = FactColumns::of(batch)?;
    Ok(move |row| {
        let (kind, name) = (names.get(kind.value(row)), names.get(name.value(row)));
        let mut fields = SubjectFields {
            kind,
            name,
            ..SubjectFields::default()
        };
        facts.put(row, &mut fields, |text| names.get(text));
        Subject::from(fields)
    })
}

/// Who triggered a row's culprit.
fn senders<'a>(of: &Columns<'a>) -> Result<impl Fn(usize) -> Option<Sender> + use<'a>, String> {
    let (comm, via) = (of.text("sender_comm")?, of.text("sender_via")?);
    let (tid, tgid, cpu) = (
        of.i32("sender_tid")?,
        of.i32("sender_tgid")?,
        of.u32("sender_cpu")?,
    );
    let context = of.text("sender_context")?;
    Ok(move |row| {
        // Runs of before this column name the thread, whatever was on top of it.
        let known = |word| ExecutionContext::parse(word).unwrap_or(ExecutionContext::Unknown);
        Some(Sender {
            tid: tid.at(row)?,
            context: context.word(row).map_or(ExecutionContext::Thread, known),
            comm: comm.at(row),
            tgid: tgid.at(row),
            cpu: CpuId(cpu.at(row).unwrap_or_default()),
            via: via.at(row),
        })
    })
}

/// (stall, part) rows of a batch of version 1, whose culprits are described in words.
pub(crate) fn legacy_parts(
    batch: &Batch,
    wording: Wording,
) -> Result<Vec<(StallId, Part)>, String> {
    let text = |name| batch.column::<StringArray>(name);
    let (kind, name, detail) = (text("kind")?, text("name")?, text("detail")?);
    let evidence = text("evidence")?;
    let mut parts = parts(batch)?;
    for (row, (_, part)) in parts.iter_mut().enumerate() {
        Arc::make_mut(&mut part.culprit).subject =
            legacy::subject(kind.value(row), name.value(row), detail.value(row));
        wording.rest(evidence.value(row), part);
    }
    Ok(parts)
}
