//! The file `metadata`: what the packets hold, in TSDL. The types of fields and their bytes stand here together.

use super::packet::Packet;
use jitterscope_model::{ClockKind, RunManifest, Ticks};
use jitterscope_source::TraceContext;
use jitterscope_source::ctf::{BOOTTIME, FUNCTION, KERNEL_CLOCK, NAMED_THREAD, event_of, field_of};
use jitterscope_source::format::{BytesField, EventFormat, FieldForm, NumberField};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The same for all traces: it only ties the packets to the metadata beside them.
pub(super) const UUID: [u8; 16] = *b"jitterscope-CTF1";
/// The longest text of an event, bytes.
const LONGEST: usize = 4096;

/// The types that fields refer to.
const TYPES: &str = "\
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := address_t;
typealias integer { size = 8; align = 8; signed = true; } := int8_t;
typealias integer { size = 16; align = 8; signed = true; } := int16_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := text_t;
";

/// The clock of the trace.
pub(super) struct Clock {
    /// As TSDL names it, and as the kernel does.
    name: &'static str,
    kernels: String,
    hz: u64,
    offset_s: u64,
    /// In ticks.
    offset: u64,
    /// What is added to a time for `CLOCK_BOOTTIME`, nanoseconds.
    boottime: Option<i128>,
}

impl Clock {
    pub(super) fn of(run: &RunManifest) -> Clock {
        let start = run.clock_start;
        let hz = run.rate.hz.max(1);
        let (name, kernels) = match run.clock {
            ClockKind::Tsc => ("x86_tsc", "x86-tsc"),
            ClockKind::MonotonicRaw => ("monotonic_raw", "mono_raw"),
        };
        let kernels = run.imported.as_ref().map_or(kernels, |from| &from.clock);
        let own = run.rate.nanos(start.ticks).0;
        let offset = u128::from(start.realtime_ns.saturating_sub(own));
        let part = offset % 1_000_000_000 * u128::from(hz) / 1_000_000_000;
        Clock {
            name,
            kernels: kernels.to_owned(),
            hz,
            offset_s: (offset / 1_000_000_000) as u64,
            offset: u64::try_from(part).unwrap_or(0),
            boottime: start
                .boottime_ns
                .map(|boot| i128::from(boot) - i128::from(own)),
        }
    }

    /// What its times are.
    pub(super) fn remark(&self) -> String {
        format!(
            "times are the time of day at the start of the measurement, and then those of the measuring clock ({} Hz)",
            self.hz
        )
    }
}

/// A field: its name in the trace, and its form.
struct Field {
    name: String,
    form: FieldForm,
}

/// The events of a trace, by number.
pub(super) struct Events {
    events: BTreeMap<u16, (String, Vec<Field>)>,
    /// What every record begins with.
    id: NumberField,
    head: [NumberField; 3],
    /// Numbers of the events that name functions and threads.
    named: [u16; 2],
}

impl Events {
    pub(super) fn of(formats: &[EventFormat]) -> Events {
        let mut events = BTreeMap::new();
        for format in formats {
            let (system, event) = (format.system(), format.name());
            let of = |(name, form): (&str, FieldForm)| {
                let name = field_of(system, event, name);
                let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                (is_name && !name.is_empty()).then(|| Field {
                    name: name.to_owned(),
                    form,
                })
            };
            // A second field of a name would not be TSDL.
            let mut names = BTreeSet::new();
            let fields = format.forms().filter_map(of);
            let fields = fields
                .filter(|field| names.insert(field.name.clone()))
                .collect();
            events.insert(format.id(), (event_of(system, event), fields));
        }
        let of = |name| {
            formats
                .first()
                .map_or_else(NumberField::default, |format| format.number(name))
        };
        let mut free = (0..=u16::MAX).rev().filter(|id| !events.contains_key(id));
        let named = [free.next().unwrap_or(0), free.next().unwrap_or(0)];
        Events {
            id: of("common_type"),
            head: ["common_pid", "common_flags", "common_preempt_count"].map(of),
            named,
            events,
        }
    }

    /// Writes a record; false if its event is not described.
    pub(super) fn write(&self, record: &[u8], at: Ticks, packet: &mut Packet) -> bool {
        let id = self.id.u32(record) as u16;
        let Some((_, fields)) = self.events.get(&id) else {
            return false;
        };
        let [tid, flags, preempt] = self.head;
        packet.event(
            id,
            at,
            (
                tid.i32(record),
                flags.u32(record) as u8,
                preempt.u32(record) as u8,
            ),
        );
        for field in fields {
            match field.form {
                FieldForm::Number(number) => {
                    let bytes = number.u64(record).to_le_bytes();
                    packet.put(&bytes[..number.size()]);
                }
                FieldForm::Text(BytesField::Fixed { length, .. })
                | FieldForm::Bytes(BytesField::Fixed { length, .. }) => {
                    let (FieldForm::Text(bytes) | FieldForm::Bytes(bytes)) = field.form else {
                        continue;
                    };
                    let own = bytes.get(record);
                    packet.put(own);
                    // A record that is too short has none.
                    packet.put(&vec![0; length - own.len()]);
                }
                FieldForm::Text(text) => {
                    let own = text.text(record);
                    packet.put(&own[..own.len().min(LONGEST)]);
                    packet.put(&[0]);
                }
                FieldForm::Bytes(bytes) => {
                    let own = bytes.get(record);
                    let own = &own[..own.len().min(LONGEST)];
                    packet.put(&(own.len() as u16).to_le_bytes());
                    packet.put(own);
                }
            }
        }
        true
    }

    /// Writes the names that the run knows beside its records.
    pub(super) fn write_names(&self, context: &TraceContext, at: Ticks, packet: &mut Packet) {
        let [functions, threads] = self.named;
        let text = |packet: &mut Packet, text: &str| {
            let bytes = text.bytes().take(LONGEST).take_while(|byte| *byte != 0);
            packet.put(&bytes.chain([0]).collect::<Vec<u8>>());
        };
        for (address, name) in &context.symbols {
            packet.event(functions, at, (0, 0, 0));
            packet.put(&address.0.to_le_bytes());
            text(packet, name);
        }
        for (tid, name) in &context.tasks {
            packet.event(threads, at, (0, 0, 0));
            packet.put(&tid.to_le_bytes());
            text(packet, name);
        }
    }

    /// The declarations.
    fn declare(&self, out: &mut String) {
        for (id, (name, fields)) in &self.events {
            let fields: String = fields.iter().map(declared).collect();
            event(out, (*id, name), &fields);
        }
        let [functions, threads] = self.named;
        event(
            out,
            (functions, FUNCTION),
            "\t\taddress_t _address;\n\t\tstring _name;\n",
        );
        event(
            out,
            (threads, NAMED_THREAD),
            "\t\tint32_t _tid;\n\t\tstring _name;\n",
        );
    }
}

fn event(out: &mut String, (id, name): (u16, &str), fields: &str) {
    let name = quoted(name);
    // Writing to a text does not fail.
    let _ = write!(
        out,
        "\nevent {{\n\tname = {name};\n\tid = {id};\n\tstream_id = 0;\n\tfields := struct {{\n{fields}\t}};\n}};\n"
    );
}

/// The declaration of a field, in a line or two.
fn declared(field: &Field) -> String {
    let name = &field.name;
    let line = match field.form {
        FieldForm::Number(number) => {
            let bits = number.size() * 8;
            match (number.is_signed(), bits) {
                (true, _) => format!("int{bits}_t _{name};"),
                (false, 64) if is_address(name) => format!("address_t _{name};"),
                (false, _) => format!("uint{bits}_t _{name};"),
            }
        }
        FieldForm::Text(BytesField::Fixed { length, .. }) => format!("text_t _{name}[{length}];"),
        FieldForm::Bytes(BytesField::Fixed { length, .. }) => format!("uint8_t _{name}[{length}];"),
        FieldForm::Text(_) => format!("string _{name};"),
        FieldForm::Bytes(_) => {
            format!("uint16_t __{name}_length;\n\t\tuint8_t _{name}[ __{name}_length ];")
        }
    };
    format!("\t\t{line}\n")
}

/// Whether a number of 64 bits is shown as an address.
fn is_address(name: &str) -> bool {
    [
        "address", "ip", "function", "func", "work", "timer", "hrtimer", "csd", "callsite",
        "callback", "handler",
    ]
    .contains(&name)
}

/// A text as TSDL writes it.
fn quoted(text: &str) -> String {
    let text = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => "?".to_owned(),
        c => c.to_string(),
    });
    format!("\"{}\"", text.collect::<String>())
}

/// The whole text.
pub(super) fn text(run: &RunManifest, clock: &Clock, events: &Events) -> String {
    let uuid: String = UUID
        .iter()
        .enumerate()
        .map(|(n, byte)| {
            format!(
                "{}{byte:02x}",
                if [4, 6, 8, 10].contains(&n) { "-" } else { "" }
            )
        })
        .collect();
    let host = &run.host;
    let mut env = vec![
        ("hostname", host.hostname.clone()),
        ("domain", "kernel".into()),
        ("sysname", "Linux".into()),
        ("kernel_release", host.kernel_release.clone()),
        ("kernel_version", host.kernel_version.clone()),
        ("architecture", host.arch.clone()),
        ("tracer_name", "jitterscope".into()),
        (KERNEL_CLOCK, clock.kernels.clone()),
    ];
    env.extend(clock.boottime.map(|offset| (BOOTTIME, offset.to_string())));
    let mut env: String = env
        .iter()
        .map(|(key, value)| format!("\t{key} = {};\n", quoted(value)))
        .collect();
    let numbers = ["tracer_major", "tracer_minor", "tracer_patchlevel"];
    for (key, number) in numbers.iter().zip(run.tool_version.split(['.', '-', '+'])) {
        if let Ok(number) = number.parse::<u32>() {
            env.push_str(&format!("\t{key} = {number};\n"));
        }
    }
    let Clock {
        name,
        hz,
        offset_s,
        offset,
        ..
    } = clock;
    let mut out = format!(
        "/* CTF 1.8 */\n\n{TYPES}\n\
         trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{uuid}\";\n\tbyte_order = le;\n\tpacket.header := struct {{\n\
         \t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n\t\tuint32_t stream_id;\n\t}};\n}};\n\n\
         env {{\n{env}}};\n\n\
         clock {{\n\tname = \"{name}\";\n\tdescription = \"the clock of the records\";\n\tfreq = {hz};\n\
         \toffset_s = {offset_s};\n\toffset = {offset};\n}};\n\n\
         typealias integer {{ size = 64; align = 8; signed = false; map = clock.{name}.value; }} := ticks_t;\n\n\
         stream {{\n\tid = 0;\n\tevent.header := struct {{\n\t\tuint16_t id;\n\t\tticks_t timestamp;\n\t}};\n\
         \tpacket.context := struct {{\n\t\tticks_t timestamp_begin;\n\t\tticks_t timestamp_end;\n\
         \t\tuint64_t content_size;\n\t\tuint64_t packet_size;\n\t\tuint64_t packet_seq_num;\n\
         \t\tuint64_t events_discarded;\n\t\tuint32_t cpu_id;\n\t}};\n\
         \tevent.context := struct {{\n\t\tint32_t _tid;\n\t\tuint8_t _common_flags;\n\
         \t\tuint8_t _common_preempt_count;\n\t}};\n}};\n"
    );
    events.declare(&mut out);
    out
}
