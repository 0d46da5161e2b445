//! Attributions: one row a part.

use super::{ATTRIBUTIONS, Batch, TableRows};
use crate::legacy::{self, Wording};
use arrow_array::builder::{Int32Builder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{Array, ArrayRef, Int32Array, StringArray, UInt32Array, UInt64Array};
use jitterscope_model::{
    Attribution, Confidence, CpuId, Culprit, Evidence, ExecutionContext, Name, Nanos, Part, Phase, Placement,
    Sender, StallId, Subject, SubjectFields, TimerSource,
};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Stands between the names in `untraced`.
const SEPARATOR: char = ',';

/// Makes the builders, and the columns from them in the order of the schema.
macro_rules! attribution_rows {
    ($($column:ident: $builder:ident,)*) => {
        #[derive(Default)]
        pub(crate) struct AttributionRows {
            $($column: $builder,)*
            flat: Flat,
        }

        impl TableRows for AttributionRows {
            const FILE: &'static str = ATTRIBUTIONS;

            fn len(&self) -> usize {
                arrow_array::builder::ArrayBuilder::len(&self.stall_id)
            }

            fn columns(&mut self) -> Vec<ArrayRef> {
                vec![$(Arc::new(self.$column.finish()),)*]
            }
        }

        #[cfg(test)]
        const COLUMNS: &[&str] = &[$(stringify!($column),)*];
    };
}

attribution_rows! {
    stall_id: UInt64Builder,
    kind: StringBuilder,
    name: StringBuilder,
    tid: Int32Builder,
    tgid: Int32Builder,
    process: StringBuilder,
    comm: StringBuilder,
    class: StringBuilder,
    priority: UInt32Builder,
    nice: Int32Builder,
    uid: UInt32Builder,
    space: StringBuilder,
    cgroup: StringBuilder,
    quota_us: UInt64Builder,
    period_us: UInt64Builder,
    function: StringBuilder,
    workqueue: StringBuilder,
    irq: UInt32Builder,
    vector: StringBuilder,
    softirq: UInt32Builder,
    timer: StringBuilder,
    bank: UInt32Builder,
    idle_state: UInt32Builder,
    meanwhile: StringBuilder,
    untraced: StringBuilder,
    unseen_cpu: UInt32Builder,
    frame: StringBuilder,
    detail: StringBuilder,
    sender_comm: StringBuilder,
    sender_tid: Int32Builder,
    sender_tgid: Int32Builder,
    sender_cpu: UInt32Builder,
    sender_via: StringBuilder,
    sender_context: StringBuilder,
    phase: StringBuilder,
    moved_from_cpu: UInt32Builder,
    net_ns: UInt64Builder,
    gross_ns: UInt64Builder,
    placement: StringBuilder,
    confidence: StringBuilder,
    evidence: StringBuilder,
    others_stalled: UInt32Builder,
}

/// Subjects whose flat form is kept.
const FLAT: usize = 32;

/// The flat forms of the subjects seen last: the same few have a part in stall after stall.
#[derive(Default)]
struct Flat {
    seen: Vec<(Subject, SubjectFields)>,
    /// The one that goes next.
    oldest: usize,
}

impl Flat {
    fn position(&mut self, subject: &Subject) -> usize {
        if let Some(at) = self.seen.iter().position(|(seen, _)| seen == subject) {
            return at;
        }
        let entry = (subject.clone(), SubjectFields::from(subject));
        if self.seen.len() < FLAT {
            self.seen.push(entry);
            return self.seen.len() - 1;
        }
        let at = self.oldest;
        self.oldest = (at + 1) % FLAT;
        self.seen[at] = entry;
        at
    }
}

impl AttributionRows {
    pub(crate) fn push(&mut self, attribution: &Attribution) {
        for part in &attribution.parts {
            self.stall_id.append_value(attribution.stall.0);
            let at = self.flat.position(&part.culprit.subject);
            self.subject(at);
            self.sender(part.culprit.sender.as_ref());
            self.phase.append_option(part.phase.as_ref().map(Phase::as_str));
            self.moved_from_cpu.append_option(part.moved_from.map(|cpu| cpu.0));
            self.net_ns.append_value(part.net.0);
            self.gross_ns.append_value(part.gross.0);
            self.placement.append_value(part.placement.as_str());
            self.confidence.append_value(part.confidence.as_str());
            self.evidence.append_value(part.evidence.as_str());
            self.others_stalled.append_option(part.others_stalled);
        }
    }

    fn subject(&mut self, at: usize) {
        let Some((_, fields)) = self.flat.seen.get(at) else { return };
        self.kind.append_value(&fields.kind);
        self.name.append_value(&fields.name);
        self.tid.append_option(fields.tid);
        self.tgid.append_option(fields.tgid);
        self.process.append_option(fields.process.as_deref());
        self.comm.append_option(fields.comm.as_deref());
        self.class.append_option(fields.class.as_deref());
        self.priority.append_option(fields.priority.map(u32::from));
        self.nice.append_option(fields.nice.map(i32::from));
        self.uid.append_option(fields.uid);
        self.space.append_option(fields.space.as_deref());
        self.cgroup.append_option(fields.cgroup.as_deref());
        self.quota_us.append_option(fields.quota_us);
        self.period_us.append_option(fields.period_us);
        self.function.append_option(fields.function.as_deref());
        self.workqueue.append_option(fields.workqueue.as_deref());
        self.irq.append_option(fields.irq);
        self.vector.append_option(fields.vector.as_deref());
        self.softirq.append_option(fields.softirq);
        self.timer.append_option(fields.timer.as_ref().map(TimerSource::as_str));
        self.bank.append_option(fields.bank);
        self.idle_state.append_option(fields.idle_state);
        self.meanwhile.append_option(fields.meanwhile.as_deref());
        match &*fields.untraced {
            [] => self.untraced.append_null(),
            names => self.untraced.append_value(names.join(SEPARATOR.encode_utf8(&mut [0; 4]))),
        }
        self.unseen_cpu.append_option(fields.unseen_cpu.map(|cpu| cpu.0));
        self.frame.append_option(fields.frame.as_ref().map(Evidence::as_str));
        self.detail.append_option(fields.detail.as_deref());
    }

    fn sender(&mut self, sender: Option<&Sender>) {
        self.sender_comm.append_option(sender.and_then(|s| s.comm.as_deref()));
        self.sender_tid.append_option(sender.map(|s| s.tid));
        self.sender_tgid.append_option(sender.and_then(|s| s.tgid));
        self.sender_cpu.append_option(sender.map(|s| s.cpu.0));
        self.sender_via.append_option(sender.and_then(|s| s.via.as_deref()));
        self.sender_context.append_option(sender.map(|s| s.context.as_str()));
    }
}

/// Names repeat from row to row.
#[derive(Default)]
struct Names(RefCell<HashMap<Box<str>, Name>>);

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
struct Long<'a>(Option<&'a UInt64Array>);

impl Texts<'_> {
    fn word(&self, row: usize) -> Option<&str> {
        self.0.filter(|column| !column.is_null(row)).map(|column| column.value(row))
    }

    fn at(&self, row: usize) -> Option<Name> {
        self.word(row).map(|text| self.1.get(text))
    }
}

impl Signed<'_> {
    fn at(&self, row: usize) -> Option<i32> {
        self.0.filter(|column| !column.is_null(row)).map(|column| column.value(row))
    }
}

impl Unsigned<'_> {
    fn at(&self, row: usize) -> Option<u32> {
        self.0.filter(|column| !column.is_null(row)).map(|column| column.value(row))
    }
}

impl Long<'_> {
    fn at(&self, row: usize) -> Option<u64> {
        self.0.filter(|column| !column.is_null(row)).map(|column| column.value(row))
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

    fn u64(&self, name: &str) -> Result<Long<'a>, String> {
        Ok(Long(self.batch.column_if_any(name)?))
    }
}

/// (stall, part) rows of a batch. What this version does not know is kept as unknown; columns that it does not
/// know are passed over.
pub(crate) fn parts(batch: &Batch) -> Result<Vec<(StallId, Part)>, String> {
    let names = Names::default();
    let columns = Columns { batch, names: &names };
    let id = batch.column::<UInt64Array>("stall_id")?;
    let text = |name| batch.column::<StringArray>(name);
    let (net, gross) = (batch.column::<UInt64Array>("net_ns")?, batch.column::<UInt64Array>("gross_ns")?);
    let (placement, confidence) = (text("placement")?, text("confidence")?);
    let evidence = text("evidence")?;
    let (phase, moved_from) = (columns.text("phase")?, columns.u32("moved_from_cpu")?);
    let others_stalled = columns.u32("others_stalled")?;
    let (subject, sender) = (subjects(batch, &columns)?, senders(&columns)?);
    let part = |row| Part {
        culprit: Culprit { subject: subject(row), sender: sender(row) },
        phase: phase.word(row).map(Phase::from_word),
        moved_from: moved_from.at(row).map(CpuId),
        net: Nanos(net.value(row)),
        gross: Nanos(gross.value(row)),
        placement: Placement::from_word(placement.value(row)),
        confidence: Confidence::from_word(confidence.value(row)),
        evidence: Evidence::from_word(evidence.value(row)),
        others_stalled: others_stalled.at(row),
    };
    Ok((0..batch.len()).map(|row| (StallId(id.value(row)), part(row))).collect())
}

/// The subject of a row.
fn subjects<'a>(batch: &'a Batch, of: &Columns<'a>) -> Result<impl Fn(usize) -> Subject + use<'a>, String> {
    let text = |name| batch.column::<StringArray>(name);
    let (kind, name, names) = (text("kind")?, text("name")?, of.names);
    let (tid, tgid, comm) = (of.i32("tid")?, of.i32("tgid")?, of.text("comm")?);
    let process = of.text("process")?;
    let (class, priority, nice) = (of.text("class")?, of.u32("priority")?, of.i32("nice")?);
    let (uid, space, cgroup) = (of.u32("uid")?, of.text("space")?, of.text("cgroup")?);
    let (quota_us, period_us) = (of.u64("quota_us")?, of.u64("period_us")?);
    let (function, workqueue) = (of.text("function")?, of.text("workqueue")?);
    let (irq, vector, softirq) = (of.u32("irq")?, of.text("vector")?, of.u32("softirq")?);
    let (timer, bank, idle_state) = (of.text("timer")?, of.u32("bank")?, of.u32("idle_state")?);
    let (meanwhile, untraced) = (of.text("meanwhile")?, of.text("untraced")?);
    let (unseen_cpu, frame, detail) = (of.u32("unseen_cpu")?, of.text("frame")?, of.text("detail")?);
    Ok(move |row| {
        let counted = untraced.word(row).into_iter().flat_map(|names| names.split(SEPARATOR));
        Subject::from(SubjectFields {
            kind: names.get(kind.value(row)),
            name: names.get(name.value(row)),
            tid: tid.at(row),
            tgid: tgid.at(row),
            process: process.at(row),
            comm: comm.at(row),
            class: class.at(row),
            priority: priority.at(row).and_then(|n| u8::try_from(n).ok()),
            nice: nice.at(row).and_then(|n| i8::try_from(n).ok()),
            uid: uid.at(row),
            space: space.at(row),
            cgroup: cgroup.at(row),
            quota_us: quota_us.at(row),
            period_us: period_us.at(row),
            function: function.at(row),
            workqueue: workqueue.at(row),
            // Of several workers together: a row is of one.
            unbound: None,
            irq: irq.at(row),
            vector: vector.at(row),
            softirq: softirq.at(row),
            timer: timer.word(row).map(TimerSource::from_word),
            bank: bank.at(row),
            idle_state: idle_state.at(row),
            meanwhile: meanwhile.at(row),
            untraced: counted.map(Name::from).collect(),
            unseen_cpu: unseen_cpu.at(row).map(CpuId),
            frame: frame.word(row).map(Evidence::from_word),
            detail: detail.at(row),
        })
    })
}

/// Who set a row's culprit going.
fn senders<'a>(of: &Columns<'a>) -> Result<impl Fn(usize) -> Option<Sender> + use<'a>, String> {
    let (comm, via) = (of.text("sender_comm")?, of.text("sender_via")?);
    let (tid, tgid, cpu) = (of.i32("sender_tid")?, of.i32("sender_tgid")?, of.u32("sender_cpu")?);
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
pub(crate) fn legacy_parts(batch: &Batch, wording: Wording) -> Result<Vec<(StallId, Part)>, String> {
    let text = |name| batch.column::<StringArray>(name);
    let (kind, name, detail) = (text("kind")?, text("name")?, text("detail")?);
    let evidence = text("evidence")?;
    let mut parts = parts(batch)?;
    for (row, (_, part)) in parts.iter_mut().enumerate() {
        part.culprit.subject = legacy::subject(kind.value(row), name.value(row), detail.value(row));
        wording.rest(evidence.value(row), part);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::SCHEMA;

    #[test]
    fn the_builders_stand_in_the_order_of_the_schema() {
        let (_, listed) = SCHEMA.iter().find(|(file, _)| *file == ATTRIBUTIONS).unwrap();
        let listed: Vec<&str> = listed.iter().map(|(name, ..)| *name).collect();
        assert_eq!(COLUMNS, listed);
    }
}
