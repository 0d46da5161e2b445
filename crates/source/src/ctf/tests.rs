//! Tests on traces that are made here, byte for byte, in both byte orders, and on damaged ones.

use super::*;
use crate::context::TraceContext;
use crate::decode::Decoder;
use jitterscope_model::{ClockKind, EventKind};
use proptest::prelude::*;

/// As LTTng writes its metadata: aliases first, a compact header, and characters as an array.
const METADATA_TEXT: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 27; align = 1; signed = false; } := uint27_t;

trace {
	major = 1;
	minor = 8;
	uuid = "de96ec29-6f42-4a1c-8d2e-3f0d6e1b2c3d";
	byte_order = ORDER;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
	};
};

env {
	hostname = "box";
	domain = "kernel";
	sysname = "Linux";
	kernel_release = "6.1.0";
	tracer_name = "lttng-modules";
	tracer_major = 2;
	tracer_minor = 13;
};

clock {
	name = "monotonic";
	description = "Monotonic Clock";
	freq = 1000000000; /* Frequency, in Hz */
	/* clock value offset from Epoch is: offset * (1/freq) */
	offset = 1600000000000000000;
};

typealias integer {
	size = 27; align = 1; signed = false;
	map = clock.monotonic.value;
} := uint27_clock_monotonic_t;

typealias integer {
	size = 64; align = 8; signed = false;
	map = clock.monotonic.value;
} := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
};

struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct {
			uint27_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

stream {
	id = 0;
	event.header := struct event_header_compact;
	packet.context := struct packet_context;
};

event {
	name = "sched_switch";
	id = 0;
	stream_id = 0;
	fields := struct {
		integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _prev_comm[16];
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_tid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _prev_prio;
		integer { size = 64; align = 8; signed = 1; encoding = none; base = 10; } _prev_state;
		integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _next_comm[16];
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _next_tid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _next_prio;
	};
};

event {
	name = "irq_handler_entry";
	id = 33;
	stream_id = 0;
	fields := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _irq;
		string _name;
	};
};

event {
	name = "syscall_entry_read";
	id = 2;
	stream_id = 0;
	loglevel = 13;
	fields := struct {
		uint32_t __buf_length;
		uint64_t _buf[ __buf_length ];
	};
};
"#;

const MAGIC: u32 = 0xc1fc_1fc1;

/// A packet that is being made, in one of the byte orders.
struct Made {
    bytes: Vec<u8>,
    is_big: bool,
}

impl Made {
    fn u32(&mut self, value: u32) {
        let bytes = match self.is_big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        };
        self.bytes.extend(bytes);
    }

    fn u64(&mut self, value: u64) {
        let bytes = match self.is_big {
            true => value.to_be_bytes(),
            false => value.to_le_bytes(),
        };
        self.bytes.extend(bytes);
    }

    fn compact(&mut self, id: u32, time: u64) {
        let time = (time & 0x7ff_ffff) as u32;
        match self.is_big {
            true => self.u32(id << 27 | time),
            false => self.u32(time << 5 | id),
        }
    }

    /// The number and the time follow the five bits, at the next byte.
    fn extended(&mut self, id: u32, time: u64) {
        self.bytes.push(if self.is_big { 31 << 3 } else { 31 });
        self.u32(id);
        self.u64(time);
    }

    fn switch(&mut self, time: u64, prev: u32, next: u32) {
        self.compact(0, time);
        for (name, tid, has_state) in [(*b"prev", prev, true), (*b"next", next, false)] {
            self.bytes.extend(name);
            self.bytes.extend([0; 12]);
            self.u32(tid);
            self.u32(120);
            if has_state {
                self.u64(1);
            }
        }
    }

    fn interrupt(&mut self, time: u64, irq: u32) {
        self.extended(33, time);
        self.u32(irq);
        self.bytes.extend(b"eth0\0");
    }

    fn call(&mut self, time: u64) {
        self.compact(2, time);
        self.u32(2);
        self.u64(7);
        self.u64(8);
    }
}

/// A whole packet: its CPU, number, losses so far and first time.
fn packet(
    is_big: bool,
    (cpu, number, lost, begin): (u32, u64, u64, u64),
    fill: impl Fn(&mut Made),
) -> Vec<u8> {
    let mut events = Made {
        bytes: Vec::new(),
        is_big,
    };
    fill(&mut events);
    let mut made = Made {
        bytes: Vec::new(),
        is_big,
    };
    made.u32(MAGIC);
    made.bytes.extend([0; 16]);
    made.u32(0);
    let content = (24 + 6 * 8 + 4 + events.bytes.len() as u64) * 8;
    let size = content.next_multiple_of(512 * 8);
    for word in [begin, begin + 1_000_000_000, content, size, number, lost] {
        made.u64(word);
    }
    made.u32(cpu);
    made.bytes.extend(events.bytes);
    made.bytes.resize((size / 8) as usize, 0);
    made.bytes
}

/// The metadata, and two CPUs' files, of which one has a loss and times that wrap around.
fn trace(is_big: bool) -> (Vec<u8>, Vec<Vec<u8>>) {
    let text = METADATA_TEXT.replace("ORDER", if is_big { "be" } else { "le" });
    let wrap = 1 << 27;
    let first = [
        packet(is_big, (0, 0, 0, wrap - 100), |made| {
            made.call(wrap - 100);
            made.interrupt(wrap - 90, 9);
            made.switch(wrap - 50, 5, 6);
            made.switch(wrap + 50, 6, 7);
        }),
        packet(is_big, (0, 1, 3, wrap + 1000), |made| {
            made.interrupt(wrap + 1000, 10);
            made.switch(wrap + 1100, 7, 5);
        }),
    ]
    .concat();
    let second = packet(is_big, (1, 0, 0, 70), |made| made.switch(70, 0, 8));
    (text.into_bytes(), vec![first, second])
}

fn read(metadata: &[u8], files: &[Vec<u8>]) -> Result<Ctf, CtfError> {
    let files: Vec<Box<dyn ReadAt>> = files
        .iter()
        .map(|file| Box::new(file.clone()) as Box<dyn ReadAt>)
        .collect();
    let pages = tempfile::tempfile().unwrap();
    open(metadata, &files, pages, &AtomicBool::new(false))
}

/// CPU, time, running thread and event of every record.
fn found(read: &Ctf) -> (Vec<(u32, u64, i32, String)>, u64) {
    let dat = &read.dat;
    let context = TraceContext {
        header_page: dat.header_page.clone(),
        formats: dat.formats.clone(),
        clock: ClockKind::MonotonicRaw,
        symbols: Default::default(),
        tasks: Default::default(),
        setup: Vec::new(),
    };
    let mut decoder = Decoder::new(&context).unwrap();
    let mut all = Vec::new();
    for cpu in &dat.buffers[0].cpus {
        let mut pages = dat.pages(&dat.buffers[0], cpu, 1 << 16);
        while let Some(page) = pages.peek().unwrap() {
            let taken = decoder.page(cpu.cpu, page, |event| {
                let what = match event.kind {
                    EventKind::SchedSwitch { prev, next, .. } => {
                        format!("{} {} to {} {}", prev.comm, prev.tid, next.comm, next.tid)
                    }
                    EventKind::IrqEntry { irq, action } => format!("irq {irq} {action}"),
                    other => format!("{other:?}"),
                };
                all.push((event.cpu.0, event.time.0, event.tid, what));
            });
            taken.unwrap();
            pages.pass();
        }
    }
    (all, decoder.counts().lost)
}

#[test]
fn events_of_both_byte_orders_become_records_with_the_running_thread() {
    let wrap = 1 << 27;
    for is_big in [false, true] {
        let (metadata, files) = trace(is_big);
        let read = read(&metadata, &files).unwrap();
        let (records, lost) = found(&read);
        let switch = |prev: i32, next: i32| format!("prev {prev} to next {next}");
        let expected = [
            // Before the first switch, the thread is the one that it names.
            (0, wrap - 90, 5, "irq 9 eth0".to_owned()),
            (0, wrap - 50, 5, switch(5, 6)),
            (0, wrap + 50, 6, switch(6, 7)),
            (0, wrap + 1000, 7, "irq 10 eth0".to_owned()),
            (0, wrap + 1100, 7, switch(7, 5)),
            (1, 70, 0, switch(0, 8)),
        ];
        assert_eq!(records, expected, "{is_big}");
        assert_eq!((lost, read.unread, read.disordered), (3, 1, 0));
        assert!(read.cut.is_empty());
        let options = &read.dat.options;
        assert_eq!(options.clock.as_deref(), Some("mono"));
        assert_eq!(options.date_us, Some(1_600_000_000_000_000));
        assert_eq!(options.uname.as_deref(), Some("Linux box 6.1.0  "));
        assert_eq!(options.program.as_deref(), Some("lttng-modules 2.13"));
        assert_eq!(options.overrun, 3);
    }
}

#[test]
fn metadata_may_be_in_packets_of_either_byte_order() {
    let (plain, files) = trace(false);
    for is_big in [false, true] {
        let mut packets = Vec::new();
        for part in plain.chunks(1000) {
            let mut made = Made {
                bytes: Vec::new(),
                is_big,
            };
            made.u32(0x75d1_1d57);
            made.bytes.extend([0; 16]);
            made.u32(0);
            made.u32((part.len() as u32 + 37) * 8);
            made.u32(2048 * 8);
            made.bytes.extend([0, 0, 0, 1, 8]);
            made.bytes.extend(part);
            made.bytes.resize(2048, 0);
            packets.extend(made.bytes);
        }
        let read = read(&packets, &files).unwrap();
        assert_eq!(found(&read).0.len(), 6);
    }
}

#[test]
fn a_file_that_is_cut_off_yields_its_intact_part() {
    let (metadata, mut files) = trace(false);
    files[0].truncate(24 + 52 + 24 + 22 + 60 + 30);
    let read = read(&metadata, &files).unwrap();
    let (records, _) = found(&read);
    assert_eq!(
        records.iter().filter(|(cpu, ..)| *cpu == 0).count(),
        2,
        "{records:?}"
    );
    assert_eq!(read.cut.iter().collect::<Vec<_>>(), [CpuId(0)]);
}

#[test]
fn each_unreadable_trace_says_what_it_is() {
    let (metadata, files) = trace(false);
    let text = String::from_utf8(metadata).unwrap();
    let error = |text: &str| read(text.as_bytes(), &files).err().unwrap().to_string();
    let without = |what: &str, with: &str| error(&text.replace(what, with));
    assert!(without("minor = 8", "minor = 9").contains("version 1.9"));
    assert!(error("{ \"type\": \"preamble\" }").contains("version 2"));
    let no_events = text
        .replace("sched_switch", "x")
        .replace("irq_handler_entry", "y");
    assert!(error(&no_events).contains("without kernel events"));
    assert!(without("cpu_id", "other").contains("cpu_id"));
    assert!(without("map = clock.monotonic.value;", "").contains("no time"));
    assert!(without("freq = 1000000000", "freq = 7").contains("7 times per second"));
    assert!(without("} align(8);", "} align(8)").contains("in line"));
    let deep = format!("struct x {{ {}", "struct { ".repeat(100));
    assert!(error(&deep).contains("too deeply"));
    // Each type has twice the fields of the one before.
    let mut large = String::from("typealias struct { string a; } := t0;");
    for n in 1..40 {
        let before = n - 1;
        large.push_str(&format!(
            "typealias struct {{ t{before} a; t{before} b; }} := t{n};"
        ));
    }
    assert!(error(&large).contains("too large"));
}

#[test]
fn endless_arrays_of_nothing_end() {
    let (metadata, files) = trace(false);
    let text = String::from_utf8(metadata).unwrap();
    let text = text.replace("string _name;", "struct { } _name[18446744073709551615];");
    let read = read(text.as_bytes(), &files).unwrap();
    assert!(read.cut.contains(CpuId(0)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_damage_makes_it_panic(
        is_big: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        of_events in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let (mut metadata, mut files) = trace(is_big);
        for (at, value) in changes {
            let at = at.index(metadata.len());
            metadata[at] = value;
        }
        for (at, value) in of_events {
            let at = at.index(files[0].len());
            files[0][at] = value;
        }
        if is_cut {
            let length = cut.index(files[0].len());
            files[0].truncate(length);
        }
        if let Ok(read) = read(&metadata, &files) {
            found(&read);
        }
    }
}
