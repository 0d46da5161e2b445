use super::numbers::{bundle, compact, descriptor, ftrace, generic, interned};
use super::*;
use crate::{Decoder, TraceContext};
use flate2::Compression;
use flate2::read::ZlibEncoder;
use jitterscope_model::{ClockKind, EventKind, ExecutionContext, KernelEvent, Message};
use std::io::Read;

fn file() -> File {
    let path = std::env::temp_dir().join(format!(
        "perfetto-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

fn read(bytes: &[u8]) -> Result<Perfetto, PerfettoError> {
    open(&bytes.to_vec(), file(), &AtomicBool::new(false))
}

/// The records of all CPUs, CPU by CPU.
fn records(read: &Perfetto) -> Vec<KernelEvent> {
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
    let mut events = Vec::new();
    for data in &dat.buffers[0].cpus {
        let mut pages = dat.pages(&dat.buffers[0], data, 1 << 16);
        while let Some(page) = pages.peek().unwrap() {
            let _ = decoder.page(data.cpu, page, |event| events.push(event));
            pages.pass();
        }
    }
    assert_eq!(
        (decoder.counts().malformed, decoder.counts().unknown),
        (0, 0)
    );
    events
}

/// A trace of packets.
fn trace(packets: &[&dyn Fn(&mut Message)]) -> Vec<u8> {
    let mut file = Message::default();
    for fill in packets {
        file.message(packet::TRACE_PACKET, |packet| {
            packet.uint(packet::SEQUENCE, 7_u32);
            fill(packet);
        });
    }
    file.bytes().to_vec()
}

fn of_cpu(packet: &mut Message, cpu: u32, fill: impl FnOnce(&mut Message)) {
    packet.message(packet::FTRACE_EVENTS, |of| {
        of.uint(bundle::CPU, cpu);
        fill(of);
    });
}

fn event(of: &mut Message, ns: u64, tid: i32, message: u32, fill: impl FnOnce(&mut Message)) {
    of.message(bundle::EVENT, |event| {
        event.uint(ftrace::TIMESTAMP, ns);
        event.uint(ftrace::PID, tid as u32);
        event.message(message, fill);
    });
}

fn switch(of: &mut Message, ns: u64, [prev, next]: [i32; 2]) {
    event(of, ns, prev, ftrace::SCHED_SWITCH, |m| {
        m.text(1, &format!("t{prev}"));
        m.int(2, prev);
        m.int(3, 120);
        m.int(4, 1);
        m.text(5, &format!("t{next}"));
        m.int(6, next);
        m.int(7, 98);
    });
}

/// What a switch says: the thread that ran, its state, and the next one with its name and priority.
fn switched(event: &KernelEvent) -> (u64, [i32; 2], u64, String, i32) {
    match &event.kind {
        EventKind::SchedSwitch {
            prev,
            prev_state,
            next,
        } => (
            event.time.0,
            [prev.tid, next.tid],
            *prev_state,
            next.comm.to_string(),
            next.prio,
        ),
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_become_the_kernels_records() {
    let bytes = trace(&[
        &|packet| {
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for (id, ns) in [
                    (clock::REALTIME, 9_000_000_u64),
                    (clock::BOOTTIME, 4_000_000),
                ] {
                    snapshot.message(clock::CLOCKS, |of| {
                        of.uint(clock::ID, id);
                        of.uint(clock::TIMESTAMP, ns);
                    });
                }
            });
            packet.message(packet::SYSTEM_INFO, |info| {
                info.message(system::UTSNAME, |uname| {
                    uname.text(system::RELEASE, "6.1.0");
                    uname.text(system::MACHINE, "x86_64");
                });
                info.text(system::SERVICE, "Perfetto v49");
                info.uint(system::CPUS, 4_u32);
            });
            packet.message(packet::PROCESS_TREE, |of| {
                of.message(tree::THREADS, |thread| {
                    thread.int(tree::TID, 31);
                    thread.text(tree::NAME, "worker");
                });
            });
        },
        &|packet| {
            of_cpu(packet, 3, |of| {
                switch(of, 1000, [0, 11]);
                event(of, 1010, 11, ftrace::LOCAL_TIMER_ENTRY, |m| m.int(1, 236));
                event(of, 1011, 11, ftrace::HRTIMER_EXPIRE_ENTRY, |m| {
                    m.uint(1, 77_u32);
                    m.int(2, 1009);
                    m.uint(3, 5_u32);
                });
                event(of, 1020, 11, ftrace::LOCAL_TIMER_EXIT, |m| m.int(1, 236));
                event(of, 1021, 11, ftrace::IPI_ENTRY, |m| m.text(1, "reschedule"));
                event(of, 1022, 11, ftrace::IPI_ENTRY, |m| {
                    m.text(1, "Rescheduling interrupts")
                });
                event(of, 1023, 11, 9999, |m| m.int(1, 1));
                event(of, 1024, 11, ftrace::IRQ_HANDLER_ENTRY, |m| {
                    m.int(1, 24);
                    m.text(2, "virtio0-input");
                });
            });
            packet.message(packet::INTERNED, |data| {
                data.message(interned::KERNEL_SYMBOLS, |of| {
                    of.uint(interned::ID, 5_u32);
                    of.raw(interned::TEXT, b"tick_sched_timer");
                });
            });
        },
    ]);
    assert!(is_perfetto(&bytes).unwrap());
    let read = read(&bytes).unwrap();
    assert_eq!((read.unread, read.cut, read.disordered), (2, false, 0));
    let events = records(&read);
    assert!(events.iter().all(|event| event.cpu == CpuId(3)));
    assert_eq!(switched(&events[0]), (1000, [0, 11], 1, "t11".into(), 98));
    let interrupts = events
        .iter()
        .map(|event| event.context == ExecutionContext::Interrupt);
    let irq: Vec<bool> = interrupts.collect();
    assert_eq!(irq, [false, true, true, true, true, true]);
    let EventKind::HrtimerEntry { function, .. } = &events[2].kind else {
        panic!("{:?}", events[2]);
    };
    assert_eq!(
        read.dat.functions.as_ref().unwrap().name(*function),
        Some("tick_sched_timer")
    );
    assert!(
        matches!(&events[4].kind, EventKind::VectorEntry { vector } if **vector == *"reschedule")
    );
    assert!(
        matches!(&events[5].kind, EventKind::IrqEntry { irq: 24, action } if **action == *"virtio0-input")
    );
    let options = &read.dat.options;
    assert_eq!(options.clock.as_deref(), Some("boot"));
    assert_eq!((options.date_us, options.cpus), (Some(5000), Some(4)));
    assert_eq!(options.program.as_deref(), Some("Perfetto v49"));
    assert_eq!(
        options.uname.as_deref(),
        Some("Linux unknown 6.1.0  x86_64")
    );
    assert_eq!(read.dat.threads, [(31, Comm::from_bytes(b"worker"))]);
}

/// Writes a list of numbers in the packed form.
fn packed(m: &mut Message, field: u32, numbers: &[u64]) {
    let mut list = Message::default();
    for number in numbers {
        let mut one = Message::default();
        one.uint(1, *number);
        list.raw(1, &one.bytes()[1..]);
    }
    // Each number is behind its tag and its length.
    let mut rest = list.bytes();
    let mut plain = Vec::new();
    while let [_, length, tail @ ..] = rest {
        plain.extend_from_slice(&tail[..usize::from(*length)]);
        rest = &tail[usize::from(*length)..];
    }
    m.raw(field, &plain);
}

fn compact_lists(of: &mut Message) {
    of.message(bundle::COMPACT, |m| {
        m.text(compact::TEXTS, "rx");
        m.text(compact::TEXTS, "swapper/2");
        packed(m, compact::SWITCH_TIME, &[1000, 50, 70]);
        packed(m, compact::SWITCH_PREV_STATE, &[1, 0, 2]);
        packed(m, compact::SWITCH_NEXT_PID, &[21, 0, 21]);
        packed(m, compact::SWITCH_NEXT_PRIO, &[98, 120, 98]);
        packed(m, compact::SWITCH_NEXT_COMM, &[0, 1, 0]);
        packed(m, compact::WAKING_TIME, &[1020]);
        packed(m, compact::WAKING_PID, &[33]);
        packed(m, compact::WAKING_CPU, &[1]);
        packed(m, compact::WAKING_PRIO, &[120]);
        packed(m, compact::WAKING_COMM, &[0]);
    });
}

#[test]
fn compact_switches_name_the_thread_before_by_the_switch_before() {
    let bytes = trace(&[&|packet| {
        of_cpu(packet, 2, |of| {
            event(of, 1030, 21, ftrace::SOFTIRQ_ENTRY, |m| m.uint(1, 3_u32));
            compact_lists(of);
        });
    }]);
    let read = read(&bytes).unwrap();
    let events = records(&read);
    // Of the first switch, nobody knows who ran before.
    assert_eq!((events.len(), read.unread), (4, 1));
    assert!(
        matches!(&events[0].kind, EventKind::SchedWaking { task, target: CpuId(1) } if task.tid == 33)
    );
    assert_eq!((events[0].tid, events[0].time.0), (21, 1020));
    assert!(matches!(
        &events[1].kind,
        EventKind::SoftirqEntry { vec: 3 }
    ));
    assert_eq!(
        switched(&events[2]),
        (1050, [21, 0], 0, "swapper/2".into(), 120)
    );
    assert_eq!(switched(&events[3]), (1120, [0, 21], 2, "rx".into(), 98));
}

#[test]
fn dropped_packets_may_have_been_of_any_cpu() {
    let bytes = trace(&[
        &|packet| of_cpu(packet, 0, |of| switch(of, 900, [0, 5])),
        &|packet| of_cpu(packet, 1, |of| switch(of, 900, [0, 6])),
        &|packet| packet.uint(packet::DROPPED_BEFORE, true),
        // What was lost before a bundle without events is missing before the next one.
        &|packet| of_cpu(packet, 0, |of| of.uint(bundle::LOST_EVENTS, true)),
        &|packet| of_cpu(packet, 1, compact_lists),
        &|packet| of_cpu(packet, 0, |of| switch(of, 990, [5, 0])),
    ]);
    let read = read(&bytes).unwrap();
    // The first switch of the lists does not leave thread 6.
    assert_eq!((records(&read).len(), read.unread), (3 + 3, 1));
    assert_eq!(read.dat.options.overrun, 2);
}

#[test]
fn a_bundle_of_too_many_events_is_cut() {
    let zeros = vec![0; 1 << 20];
    let bytes = trace(&[&|packet| {
        of_cpu(packet, 0, |of| {
            switch(of, 900, [0, 5]);
            of.message(bundle::COMPACT, |m| {
                for field in [
                    compact::SWITCH_TIME,
                    compact::SWITCH_PREV_STATE,
                    compact::SWITCH_NEXT_PID,
                    compact::SWITCH_NEXT_PRIO,
                    compact::SWITCH_NEXT_COMM,
                ] {
                    m.raw(field, &zeros);
                }
            });
        });
    }]);
    let read = read(&bytes).unwrap();
    assert!(records(&read).len() <= 1 << 18);
    // Entries are places in the lists, so a bundle has them once.
    let twice = trace(&[&|packet| {
        of_cpu(packet, 0, |of| {
            compact_lists(of);
            compact_lists(of);
        });
    }]);
    let read = self::read(&twice).unwrap();
    assert_eq!((records(&read).len(), read.cut), (3, true));
    // Lists of different lengths have no more events than the shortest.
    let uneven = trace(&[&|packet| {
        of_cpu(packet, 0, |of| {
            switch(of, 900, [0, 5]);
            of.message(bundle::COMPACT, |m| {
                packed(m, compact::SWITCH_TIME, &[1000, 50]);
                packed(m, compact::SWITCH_NEXT_PID, &[21]);
            });
        });
    }]);
    let read = self::read(&uneven).unwrap();
    assert_eq!((records(&read).len(), read.cut), (1, true));
}

#[test]
fn after_a_loss_the_running_thread_is_unknown() {
    let bytes = trace(&[
        &|packet| of_cpu(packet, 0, |of| switch(of, 900, [0, 5])),
        &|packet| {
            of_cpu(packet, 0, |of| {
                of.uint(bundle::LOST_EVENTS, true);
                compact_lists(of);
            });
        },
        // The service dropped packets of this sequence.
        &|packet| {
            packet.uint(packet::DROPPED_BEFORE, true);
            of_cpu(packet, 0, |of| switch(of, 2000, [21, 0]));
        },
    ]);
    let read = read(&bytes).unwrap();
    let events = records(&read);
    assert_eq!((events.len(), read.unread), (5, 1));
    assert_eq!(read.dat.options.overrun, 2);
}

#[test]
fn events_that_the_trace_describes_are_read() {
    let bytes = trace(&[&|packet| {
        of_cpu(packet, 0, |of| {
            // The description may follow the events of its bundle.
            of.message(bundle::DESCRIPTORS, |d| {
                d.uint(descriptor::FIELD, 70_000_u32);
                d.text(descriptor::SYSTEM, "irq_vectors");
                d.message(descriptor::MESSAGE, |m| {
                    m.text(descriptor::NAME, "reschedule_entry");
                    m.message(descriptor::FIELDS, |field| {
                        field.text(descriptor::FIELD_NAME, "vector");
                        field.uint(descriptor::FIELD_NUMBER, 1_u32);
                        field.uint(descriptor::FIELD_TYPE, 3_u32);
                    });
                });
            });
            event(of, 10, 4, 70_000, |m| m.int(1, 253));
            event(of, 20, 4, ftrace::GENERIC, |m| {
                m.text(generic::EVENT, "tlb_flush");
                m.message(generic::FIELD, |field| {
                    field.text(generic::NAME, "pages");
                    field.uint(generic::UINT, 33_u32);
                });
            });
            event(of, 30, 4, ftrace::GENERIC, |m| {
                m.text(generic::EVENT, "kvm_exit")
            });
            of.message(bundle::DESCRIPTORS, |d| {
                d.uint(descriptor::FIELD, 70_001_u32);
                d.message(descriptor::MESSAGE, |m| {
                    m.text(descriptor::NAME, "irq_work_entry")
                });
            });
            event(of, 40, 4, 70_001, |_| {});
        });
    }]);
    let read = read(&bytes).unwrap();
    let events = records(&read);
    assert_eq!(read.unread, 1);
    assert!(
        matches!(&events[0].kind, EventKind::VectorEntry { vector } if **vector == *"reschedule")
    );
    assert!(matches!(&events[1].kind, EventKind::TlbFlush { .. }));
    assert!(
        matches!(&events[2].kind, EventKind::VectorEntry { vector } if **vector == *"irq_work")
    );
}

#[test]
fn numbers_of_functions_begin_anew_with_their_sequence() {
    let work = |of: &mut Message, ns, number: u32| {
        event(of, ns, 9, ftrace::WORKQUEUE_EXECUTE_START, |m| {
            // A number that is used again for other work.
            m.uint(1, 4_u32);
            m.uint(2, number);
        });
    };
    let name = |packet: &mut Message, number: u32, name: &str| {
        packet.message(packet::INTERNED, |data| {
            data.message(interned::KERNEL_SYMBOLS, |of| {
                of.uint(interned::ID, number);
                of.text(interned::TEXT, name);
            });
        });
    };
    let bytes = trace(&[
        &|packet| {
            of_cpu(packet, 0, |of| work(of, 10, 1));
            name(packet, 1, "first");
        },
        &|packet| {
            packet.uint(packet::SEQUENCE_FLAGS, packet::CLEARED);
            name(packet, 1, "second");
            of_cpu(packet, 0, |of| {
                work(of, 20, 1);
                work(of, 30, 2);
            });
        },
        &|packet| {
            name(packet, 3, "first");
            of_cpu(packet, 0, |of| work(of, 40, 3));
        },
    ]);
    let read = read(&bytes).unwrap();
    let symbols = read.dat.functions.as_ref().unwrap();
    let functions = records(&read).into_iter().map(|event| match event.kind {
        EventKind::WorkStart { work: 0, function } => function,
        other => panic!("{other:?}"),
    });
    let functions: Vec<KernelAddr> = functions.collect();
    let names: Vec<_> = functions.iter().map(|of| symbols.name(*of)).collect();
    assert_eq!(names, [Some("first"), Some("second"), None, Some("first")]);
    assert_eq!(functions[0], functions[3]);
}

#[test]
fn compressed_packets_are_expanded() {
    let inner = trace(&[&|packet| of_cpu(packet, 1, |of| switch(of, 50, [3, 4]))]);
    let mut zlib = Vec::new();
    ZlibEncoder::new(&inner[..], Compression::default())
        .read_to_end(&mut zlib)
        .unwrap();
    let zstd =
        ruzstd::encoding::compress_to_vec(&inner[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (field, compressed) in [(packet::COMPRESSED, zlib), (packet::ZSTD_COMPRESSED, zstd)] {
        let bytes = trace(&[&|packet| packet.raw(field, &compressed)]);
        let whole = read(&bytes).unwrap();
        assert_eq!((records(&whole).len(), whole.cut), (1, false));
        let damaged = trace(&[
            &|packet| of_cpu(packet, 1, |of| switch(of, 40, [2, 3])),
            &|packet| packet.raw(field, &compressed[..compressed.len() / 2]),
        ]);
        let part = read(&damaged).unwrap();
        assert!(part.cut && records(&part).len() <= 2);
    }
}

#[test]
fn a_file_that_is_cut_off_yields_its_intact_part() {
    let bytes = trace(&[
        &|packet| of_cpu(packet, 0, |of| switch(of, 10, [0, 5])),
        &|packet| of_cpu(packet, 1, |of| switch(of, 20, [0, 6])),
    ]);
    for length in 1..bytes.len() {
        match read(&bytes[..length]) {
            Ok(part) => {
                assert!(part.cut || length == bytes.len() / 2, "{length}");
                assert!(records(&part).len() <= 1);
            }
            Err(PerfettoError::NoEvents) => assert!(length < bytes.len() / 2 + 1),
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn what_cannot_be_used_is_refused() {
    let nothing = trace(&[&|packet| packet.uint(packet::TIMESTAMP, 5_u32)]);
    assert!(is_perfetto(&nothing).unwrap());
    assert!(matches!(read(&nothing), Err(PerfettoError::NoEvents)));
    let clock = trace(&[&|packet| {
        of_cpu(packet, 0, |of| {
            of.uint(bundle::CLOCK, 1_u32);
            switch(of, 10, [0, 5]);
        });
    }]);
    assert!(matches!(
        read(&clock),
        Err(PerfettoError::Clock { clock: 1 })
    ));
    let stopped = open(&nothing, file(), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(PerfettoError::Stopped)));
    for other in [
        &b""[..],
        b"PERFILE2",
        b"\x17\x08\x44tracing",
        b"\n",
        b"\n\x05text\n",
        b"{\"a\":1}",
    ] {
        assert!(!is_perfetto(&other.to_vec()).unwrap(), "{other:?}");
    }
}

#[test]
fn events_of_another_machine_are_left_out() {
    let bytes = trace(&[
        &|packet| {
            packet.uint(packet::MACHINE, 77_u32);
            of_cpu(packet, 0, |of| switch(of, 5, [0, 9]));
        },
        &|packet| of_cpu(packet, 0, |of| switch(of, 10, [0, 5])),
    ]);
    let read = read(&bytes).unwrap();
    assert_eq!((records(&read).len(), read.unread), (1, 1));
}
