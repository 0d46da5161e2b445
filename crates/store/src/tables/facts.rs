//! What a row of attributions says of its subject: a line a fact, with its column, how it is written and how it is
//! read.

use super::Column;
use super::batch::Batch;
use arrow_array::{Array, Int32Array, StringArray, UInt32Array, UInt64Array};
use jitterscope_model::{CpuId, Evidence, Name, SubjectFields, TimerSource};
use std::borrow::Cow;

/// Stands between the names in `untraced`.
const SEPARATOR: char = ',';

/// One fact of a subject.
pub(super) struct Fact {
    /// Its column.
    pub(super) name: &'static str,
    /// What the column says.
    pub(super) meaning: &'static str,
    /// Its type, and how it is taken from the fields and put there.
    pub(super) form: Form,
}

/// How a fact is taken from the fields of a subject, and put there. A row may have none.
pub(super) enum Form {
    Text(fn(&SubjectFields) -> Option<Cow<'_, str>>, fn(&mut SubjectFields, Name)),
    I32(fn(&SubjectFields) -> Option<i32>, fn(&mut SubjectFields, i32)),
    U32(fn(&SubjectFields) -> Option<u32>, fn(&mut SubjectFields, u32)),
    U64(fn(&SubjectFields) -> Option<u64>, fn(&mut SubjectFields, u64)),
}

impl Form {
    pub(super) const fn column(&self) -> Column {
        match self {
            Form::Text(..) => Column::TextOrNull,
            Form::I32(..) => Column::I32OrNull,
            Form::U32(..) => Column::U32OrNull,
            Form::U64(..) => Column::U64OrNull,
        }
    }
}

const fn fact(name: &'static str, form: Form, meaning: &'static str) -> Fact {
    Fact { name, meaning, form }
}

/// A field that is a name.
macro_rules! text {
    ($field:ident) => {
        Form::Text(|f| f.$field.as_deref().map(Cow::Borrowed), |f, text| f.$field = Some(text))
    };
}

/// A field that is a number of the column's own type.
macro_rules! number {
    ($form:ident $field:ident) => {
        Form::$form(|f| f.$field, |f, number| f.$field = Some(number))
    };
}

/// All of them, in the order of the columns. `unbound` is of several workers together, and a row is of one.
pub(super) const FACTS: [Fact; 25] = [
    fact("tid", number!(I32 tid), "of a thread, a worker, who ran meanwhile: thread id"),
    fact("tgid", number!(I32 tgid), "its process, where known"),
    fact("process", text!(process), "of a thread that is not its process's first: the name of that"),
    fact("comm", text!(comm), "its name"),
    fact("class", text!(class), "deadline, real_time, fair or idle"),
    fact(
        "priority",
        Form::U32(|f| f.priority.map(u32::from), |f, number| f.priority = u8::try_from(number).ok()),
        "of a real-time thread: as the user sets it",
    ),
    fact(
        "nice",
        Form::I32(|f| f.nice.map(i32::from), |f, number| f.nice = i8::try_from(number).ok()),
        "of a fair thread",
    ),
    fact("uid", number!(U32 uid), "its user, where known"),
    fact("space", text!(space), "of a thread: kernel or user by its flags, where known"),
    fact("cgroup", text!(cgroup), "its control group, where known; of a CPU quota: the group that it limits"),
    fact("quota_us", number!(U64 quota_us), "of a CPU quota: time granted, microseconds"),
    fact("period_us", number!(U64 period_us), "of a CPU quota: in each of these, microseconds"),
    fact("function", text!(function), "of work, a timer, a call, an NMI: the kernel function"),
    fact("workqueue", text!(workqueue), "of work: the queue, where seen"),
    fact("irq", number!(U32 irq), "of a device's interrupt: its number"),
    fact("vector", text!(vector), "of other interrupts: the vector"),
    fact("softirq", number!(U32 softirq), "of a softirq: its number"),
    fact(
        "timer",
        Form::Text(
            |f| f.timer.as_ref().map(|timer| Cow::Borrowed(timer.as_str())),
            |f, text| f.timer = Some(TimerSource::from_word(&text)),
        ),
        "what ran a timer function: hrtimer, wheel or interrupt",
    ),
    fact("bank", number!(U32 bank), "of a machine check"),
    fact("idle_state", number!(U32 idle_state), "of an idle exit: the state left"),
    fact("meanwhile", text!(meanwhile), "of a late timer: thread, work, idle_ended or unrecorded"),
    fact(
        "untraced",
        Form::Text(
            |f| (!f.untraced.is_empty()).then(|| f.untraced.join(SEPARATOR.encode_utf8(&mut [0; 4])).into()),
            |f, text| f.untraced = text.split(SEPARATOR).map(Name::from).collect(),
        ),
        "of untraced interrupts: which, with commas between",
    ),
    fact(
        "unseen_cpu",
        Form::U32(|f| f.unseen_cpu.map(|cpu| cpu.0), |f, number| f.unseen_cpu = Some(CpuId(number))),
        "CPU of which no record says what ran",
    ),
    fact(
        "frame",
        Form::Text(
            |f| f.frame.as_ref().map(|records| Cow::Borrowed(records.as_str())),
            |f, text| f.frame = Some(Evidence::from_word(&text)),
        ),
        "records of the frame whose end is missing",
    ),
    fact("detail", text!(detail), "of a culprit that the writer did not know: what was said of it"),
];

/// The column of a fact in a batch, and where its values go.
enum Source<'a> {
    Text(&'a StringArray, fn(&mut SubjectFields, Name)),
    I32(&'a Int32Array, fn(&mut SubjectFields, i32)),
    U32(&'a UInt32Array, fn(&mut SubjectFields, u32)),
    U64(&'a UInt64Array, fn(&mut SubjectFields, u64)),
}

/// The facts that a batch has.
pub(super) struct FactColumns<'a>(Vec<Source<'a>>);

impl<'a> FactColumns<'a> {
    /// Those of a batch. An older version wrote fewer, and most batches have nothing of most of them.
    pub(super) fn of(batch: &'a Batch) -> Result<FactColumns<'a>, String> {
        let mut found = Vec::new();
        for Fact { name, form, .. } in FACTS {
            let source = match form {
                Form::Text(_, put) => column_of(batch, name)?.map(|column| Source::Text(column, put)),
                Form::I32(_, put) => column_of(batch, name)?.map(|column| Source::I32(column, put)),
                Form::U32(_, put) => column_of(batch, name)?.map(|column| Source::U32(column, put)),
                Form::U64(_, put) => column_of(batch, name)?.map(|column| Source::U64(column, put)),
            };
            found.extend(source);
        }
        Ok(FactColumns(found))
    }

    /// Puts the facts of a row into `fields`.
    pub(super) fn put(&self, row: usize, fields: &mut SubjectFields, name: impl Fn(&str) -> Name) {
        for source in &self.0 {
            match source {
                Source::Text(column, put) if column.is_valid(row) => put(fields, name(column.value(row))),
                Source::I32(column, put) if column.is_valid(row) => put(fields, column.value(row)),
                Source::U32(column, put) if column.is_valid(row) => put(fields, column.value(row)),
                Source::U64(column, put) if column.is_valid(row) => put(fields, column.value(row)),
                _ => {}
            }
        }
    }
}

/// A column that has a value in some row.
fn column_of<'a, T: Array + 'static>(batch: &'a Batch, name: &str) -> Result<Option<&'a T>, String> {
    Ok(batch.column_if_any::<T>(name)?.filter(|column| column.null_count() < column.len()))
}
