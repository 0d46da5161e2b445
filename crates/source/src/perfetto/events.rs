//! Perfetto's messages of kernel events as records of the kernel's ring buffer: a format for each, and how its fields get
//! there.

use super::numbers::ftrace;
use super::wire::Value;
use crate::context::FormatText;
use crate::own_record::{self, Edge, HEAD};
use crate::tracefs::{is_recorded, system_of};
use std::collections::HashMap;

/// An event has at most so many fields, and a trace so many kinds of events that it describes itself.
pub(super) const MOST_FIELDS: usize = 64;
const MOST_EVENTS: usize = 1 << 12;
/// The length of a thread's name in a record.
const COMM: usize = 16;

/// How a field is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Signed4,
    Signed8,
    Unsigned4,
    Unsigned8,
    Comm,
    Text,
    /// The number of a kernel function's name.
    Function,
}

/// An event that has a message of its own: the kernel's system and name, the message, and its fields with the kernel's
/// names.
struct Known {
    event: (&'static str, &'static str),
    message: u32,
    fields: &'static [(u32, &'static str, Form)],
}

const fn known(
    event: (&'static str, &'static str),
    message: u32,
    fields: &'static [(u32, &'static str, Form)],
) -> Known {
    Known {
        event,
        message,
        fields,
    }
}

use Form::{Comm, Function, Signed4, Signed8, Text, Unsigned4, Unsigned8};

const TASK: [(u32, &str, Form); 3] = [(1, "comm", Comm), (2, "pid", Signed4), (3, "prio", Signed4)];

/// Perfetto writes a number of its own for every pointer, and begins anew each time that it reads the kernel's buffers.
/// Those of functions have names. Those of other objects tell nothing: a start and its end, or a work item and who queued
/// it, may have different ones.
const FUNCTIONS: [&str; 6] = [
    "function", "func", "handler", "callsite", "callback", "caller",
];
const OBJECTS: [&str; 4] = ["work", "timer", "hrtimer", "csd"];

const KNOWN: [Known; 22] = [
    known(
        ("sched", "sched_switch"),
        ftrace::SCHED_SWITCH,
        &[
            (1, "prev_comm", Comm),
            (2, "prev_pid", Signed4),
            (3, "prev_prio", Signed4),
            (4, "prev_state", Signed8),
            (5, "next_comm", Comm),
            (6, "next_pid", Signed4),
            (7, "next_prio", Signed4),
        ],
    ),
    known(
        ("sched", "sched_waking"),
        ftrace::SCHED_WAKING,
        &[TASK[0], TASK[1], TASK[2], (5, "target_cpu", Signed4)],
    ),
    known(
        ("sched", "sched_migrate_task"),
        ftrace::SCHED_MIGRATE_TASK,
        &[
            TASK[0],
            TASK[1],
            TASK[2],
            (4, "orig_cpu", Signed4),
            (5, "dest_cpu", Signed4),
        ],
    ),
    known(
        ("task", "task_newtask"),
        ftrace::TASK_NEWTASK,
        &[
            (1, "pid", Signed4),
            (2, "comm", Comm),
            (3, "clone_flags", Unsigned8),
        ],
    ),
    known(
        ("task", "task_rename"),
        ftrace::TASK_RENAME,
        &[
            (1, "pid", Signed4),
            (2, "oldcomm", Comm),
            (3, "newcomm", Comm),
        ],
    ),
    known(
        ("cgroup", "cgroup_attach_task"),
        ftrace::CGROUP_ATTACH_TASK,
        &[
            (1, "dst_root", Signed4),
            (3, "pid", Signed4),
            (7, "dst_path", Text),
        ],
    ),
    known(
        ("signal", "signal_generate"),
        ftrace::SIGNAL_GENERATE,
        &[
            (1, "code", Signed4),
            (4, "pid", Signed4),
            (6, "sig", Signed4),
        ],
    ),
    known(
        ("irq", "irq_handler_entry"),
        ftrace::IRQ_HANDLER_ENTRY,
        &[(1, "irq", Signed4), (2, "name", Text)],
    ),
    known(
        ("irq", "irq_handler_exit"),
        ftrace::IRQ_HANDLER_EXIT,
        &[(1, "irq", Signed4), (2, "ret", Signed4)],
    ),
    known(
        ("irq", "softirq_entry"),
        ftrace::SOFTIRQ_ENTRY,
        &[(1, "vec", Unsigned4)],
    ),
    known(
        ("irq", "softirq_exit"),
        ftrace::SOFTIRQ_EXIT,
        &[(1, "vec", Unsigned4)],
    ),
    known(
        ("irq_vectors", "local_timer_entry"),
        ftrace::LOCAL_TIMER_ENTRY,
        &[(1, "vector", Signed4)],
    ),
    known(
        ("irq_vectors", "local_timer_exit"),
        ftrace::LOCAL_TIMER_EXIT,
        &[(1, "vector", Signed4)],
    ),
    known(
        ("workqueue", "workqueue_execute_start"),
        ftrace::WORKQUEUE_EXECUTE_START,
        &[(2, "function", Function)],
    ),
    known(
        ("workqueue", "workqueue_execute_end"),
        ftrace::WORKQUEUE_EXECUTE_END,
        &[(2, "function", Function)],
    ),
    known(
        ("workqueue", "workqueue_queue_work"),
        ftrace::WORKQUEUE_QUEUE_WORK,
        &[
            (2, "function", Function),
            (4, "req_cpu", Signed4),
            (5, "cpu", Signed4),
            (6, "workqueue", Text),
        ],
    ),
    known(
        ("timer", "timer_expire_entry"),
        ftrace::TIMER_EXPIRE_ENTRY,
        &[(3, "function", Function)],
    ),
    known(
        ("timer", "timer_expire_exit"),
        ftrace::TIMER_EXPIRE_EXIT,
        &[],
    ),
    known(
        ("timer", "hrtimer_expire_entry"),
        ftrace::HRTIMER_EXPIRE_ENTRY,
        &[(2, "now", Signed8), (3, "function", Function)],
    ),
    known(
        ("timer", "hrtimer_expire_exit"),
        ftrace::HRTIMER_EXPIRE_EXIT,
        &[],
    ),
    known(
        ("power", "cpu_frequency"),
        ftrace::CPU_FREQUENCY,
        &[(1, "state", Unsigned4), (2, "cpu_id", Unsigned4)],
    ),
    known(
        ("power", "cpu_idle"),
        ftrace::CPU_IDLE,
        &[(1, "state", Unsigned4), (2, "cpu_id", Unsigned4)],
    ),
];

/// The interrupts between CPUs of x86. Perfetto has no message for them; our own exports use `ipi_entry` and `ipi_exit`.
pub const IPI_VECTORS: [&str; 3] = ["reschedule", "call_function", "call_function_single"];

/// The place of a field in a record.
#[derive(Debug)]
struct Field {
    /// The number in its message, or its name in a generic event.
    number: u32,
    name: String,
    at: usize,
    form: Form,
}

/// How an event becomes a record.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The number of its format.
    id: u16,
    fields: Vec<Field>,
    /// Bytes of its record before those of texts.
    length: usize,
    pub(super) edge: Option<Edge>,
    /// Places of the two threads of a switch: the one that ran, and the next one.
    pub(super) switch: Option<(usize, usize)>,
}

/// All plans of a trace, made as its events appear.
#[derive(Debug, Default)]
pub(super) struct Plans {
    plans: Vec<Plan>,
    by_message: HashMap<u32, Option<usize>>,
    by_event: HashMap<(String, String), usize>,
    pub(super) formats: Vec<FormatText>,
}

impl Plans {
    pub(super) fn get(&self, number: usize) -> &Plan {
        &self.plans[number]
    }

    /// Whether no event was of any use.
    pub(super) fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    /// The plan of a message.
    pub(super) fn of_message(&mut self, message: u32) -> Option<usize> {
        if let Some(known) = self.by_message.get(&message) {
            return *known;
        }
        let known = KNOWN.iter().find(|known| known.message == message)?;
        let (system, event) = known.event;
        let plan = self.of_event(system, event, || {
            let own = known.fields.iter();
            own.map(|(number, name, form)| (*number, (*name).to_owned(), *form))
                .collect()
        });
        self.by_message.insert(message, plan);
        plan
    }

    /// The plan of an interrupt between CPUs that our own export names by its vector.
    pub(super) fn of_vector(&mut self, vector: &[u8], begins: bool) -> Option<usize> {
        let vector = IPI_VECTORS
            .iter()
            .find(|known| known.as_bytes() == vector)?;
        let half = if begins { "entry" } else { "exit" };
        self.of_event("irq_vectors", &format!("{vector}_{half}"), || {
            vec![(0, "vector".to_owned(), Signed4)]
        })
    }

    /// The plan of an event without a message of its own. `fields` lists what it has, by name.
    pub(super) fn generic(
        &mut self,
        event: &str,
        fields: impl FnOnce() -> Vec<(u32, String, Form)>,
    ) -> Option<usize> {
        let system = system_of(event)?;
        self.of_event(system, event, fields)
    }

    /// Learns a message that the trace describes.
    pub(super) fn describe(
        &mut self,
        message: u32,
        (system, event): (&str, &str),
        fields: Vec<(u32, String, Form)>,
    ) {
        if self.by_message.len() < MOST_EVENTS && !self.by_message.contains_key(&message) {
            let used = is_recorded(system, event);
            let plan = match used {
                true => self.of_event(system, event, || fields),
                false => None,
            };
            self.by_message.insert(message, plan);
        }
    }

    fn of_event(
        &mut self,
        system: &str,
        event: &str,
        fields: impl FnOnce() -> Vec<(u32, String, Form)>,
    ) -> Option<usize> {
        let key = (system.to_owned(), event.to_owned());
        if let Some(known) = self.by_event.get(&key) {
            return Some(*known);
        }
        if self.by_event.len() >= MOST_EVENTS || !own_record::is_name(event) {
            return None;
        }
        let id = u16::try_from(self.formats.len() + 1).ok()?;
        let (plan, lines) = Plan::of(id, (system, event), fields());
        self.formats
            .push(own_record::format(id, (system, event), &lines));
        self.plans.push(plan);
        let number = self.plans.len() - 1;
        self.by_event.insert(key, number);
        Some(number)
    }
}

impl Plan {
    /// Gives each field of an event a place. Returns also the lines of the format.
    fn of(
        id: u16,
        (system, event): (&str, &str),
        fields: Vec<(u32, String, Form)>,
    ) -> (Plan, String) {
        let mut plan = Plan {
            id,
            fields: Vec::new(),
            length: HEAD,
            edge: Edge::of(system, event),
            switch: None,
        };
        let mut lines = String::new();
        for (number, name, form) in fields.into_iter().take(MOST_FIELDS) {
            if !own_record::is_name(&name) || OBJECTS.contains(&&*name) {
                continue;
            }
            let form = match FUNCTIONS.contains(&&*name) {
                true => Form::Function,
                false => form,
            };
            let bytes = form.bytes();
            let at = plan.length.next_multiple_of(form.alignment());
            lines.push_str(&match form {
                Form::Comm => own_record::fixed_line(&name, (at, bytes)),
                Form::Text => own_record::located_line(&name, at),
                Form::Signed4 | Form::Signed8 => own_record::number_line(&name, (at, bytes), true),
                Form::Unsigned4 | Form::Unsigned8 | Form::Function => {
                    own_record::number_line(&name, (at, bytes), false)
                }
            });
            plan.length = at + bytes;
            plan.fields.push(Field {
                number,
                name,
                at,
                form,
            });
        }
        let at = |name: &str| {
            let field = plan.fields.iter().find(|field| field.name == name)?;
            (field.form == Signed4).then_some(field.at)
        };
        if (system, event) == ("sched", "sched_switch") {
            plan.switch = at("prev_pid").zip(at("next_pid"));
        }
        (plan, lines)
    }

    /// An empty record.
    pub(super) fn begin(&self, record: &mut Vec<u8>) {
        own_record::begin(record, self.id, self.length);
    }

    /// Puts the field of a message into a record. `function` is the address of a named function.
    pub(super) fn put(
        &self,
        record: &mut Vec<u8>,
        number: u32,
        value: Value<'_>,
        function: &mut dyn FnMut(u64) -> u64,
    ) {
        if let Some(field) = self.fields.iter().find(|field| field.number == number) {
            field.put(record, value, function);
        }
    }

    /// Puts a named field into a record.
    pub(super) fn put_named(
        &self,
        record: &mut Vec<u8>,
        (name, value): (&str, Value<'_>),
        function: &mut dyn FnMut(u64) -> u64,
    ) {
        if let Some(field) = self.fields.iter().find(|field| field.name == name) {
            field.put(record, value, function);
        }
    }
}

impl Field {
    fn put(&self, record: &mut Vec<u8>, value: Value<'_>, function: &mut dyn FnMut(u64) -> u64) {
        let place = (self.at, self.form.bytes());
        match (self.form, value) {
            (Form::Comm, Value::Bytes(text)) => own_record::put_fixed(record, place, text),
            (Form::Text, Value::Bytes(text)) => own_record::put_located(record, self.at, text),
            (Form::Function, Value::Int(number)) => {
                own_record::put_number(record, place, function(number));
            }
            (Form::Comm | Form::Text, _) | (_, Value::Bytes(_)) => {}
            (_, Value::Int(number)) => own_record::put_number(record, place, number),
        }
    }
}

impl Form {
    fn bytes(self) -> usize {
        match self {
            Form::Signed4 | Form::Unsigned4 | Form::Text => 4,
            Form::Signed8 | Form::Unsigned8 | Form::Function => 8,
            Form::Comm => COMM,
        }
    }

    fn alignment(self) -> usize {
        match self {
            Form::Comm => 1,
            other => other.bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::EventFormat;

    #[test]
    fn every_known_event_is_one_that_recordings_have_and_has_a_readable_format() {
        for known in KNOWN {
            let (system, event) = known.event;
            assert!(is_recorded(system, event), "{system}:{event}");
            let mut plans = Plans::default();
            let number = plans.of_message(known.message).unwrap();
            assert_eq!(plans.of_message(known.message), Some(number));
            let text = &plans.formats[0].text;
            let format = EventFormat::parse(system, event, text).unwrap();
            for (_, name, _) in known.fields {
                assert!(format.has(name), "{system}:{event} {name}");
            }
        }
    }
}
