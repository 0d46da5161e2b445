//! The file before its pages: descriptions, options and tables.

use super::census::{Buffer, Census};
use super::clock::FileClock;
use super::name_of;
use jitterscope_model::{CpuId, KernelAddr, RunManifest, TraceRole};
use jitterscope_source::{FormatText, TraceContext};
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"\x17\x08\x44tracing6\0";
const LITTLE_ENDIAN: u8 = 0;
/// Bytes of a `long` where the trace was made: a page's length has as many.
const LONG: u8 = 8;
/// What `events/header_event` of every kernel says: a record's head.
const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\t\
                            array       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n\t\
                            time_stamp : type == 31\n\tdata max type_len  == 28\n";
/// Numbers of options.
const BUFFER: u16 = 3;
const TRACECLOCK: u16 = 4;
const UNAME: u16 = 5;
const OFFSET: u16 = 7;
const VERSION: u16 = 9;
const TSC2NSEC: u16 = 14;
/// The system whose formats have a place of their own.
const FTRACE: &str = "ftrace";
/// The name of what lies behind a known function: a reader gives an address the last name before it.
const BEHIND: &str = "unnamed";

pub(super) struct Header<'a> {
    pub(super) context: &'a TraceContext,
    pub(super) manifest: &'a RunManifest,
    pub(super) page_size: usize,
    pub(super) census: &'a Census,
    pub(super) clock: &'a FileClock,
}

impl Header<'_> {
    /// The bytes, and the place of the first page of each buffer.
    pub(super) fn bytes(&self) -> (Vec<u8>, BTreeMap<Buffer, u64>) {
        let mut out = Vec::new();
        self.descriptions(&mut out);
        // The tables' places are among the options, whose length does not depend on them.
        let cpus = self.census.cpus();
        let others: Vec<TraceRole> = self.census.other_roles().into_iter().collect();
        let mut sized = Vec::new();
        self.options(&mut sized, &vec![0; others.len()], &others);
        let table = b"flyrecord\0".len() as u64 + 16 * u64::from(cpus);
        let clock = format!("[{}]", self.clock.name);
        let own_end = out.len() as u64 + sized.len() as u64 + table + 8 + clock.len() as u64;
        let tables: Vec<u64> = (0..others.len() as u64)
            .map(|n| own_end + n * table)
            .collect();
        let end = own_end + others.len() as u64 * table;
        self.options(&mut out, &tables, &others);

        let mut places = BTreeMap::new();
        let size = self.page_size as u64;
        let mut next = end.next_multiple_of(size.max(1));
        for role in [TraceRole::Local].into_iter().chain(others) {
            out.extend_from_slice(b"flyrecord\0");
            for cpu in 0..cpus {
                let bytes = self.census.of(role, cpu) * size;
                out.extend_from_slice(&next.to_le_bytes());
                out.extend_from_slice(&bytes.to_le_bytes());
                if bytes > 0 {
                    let cpu = CpuId(cpu);
                    places.insert(Buffer { role, cpu }, next);
                }
                next += bytes;
            }
            if role == TraceRole::Local {
                sized_64(&mut out, clock.as_bytes());
            }
        }
        (out, places)
    }

    fn descriptions(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[LITTLE_ENDIAN, LONG]);
        out.extend_from_slice(&count(self.page_size));
        out.extend_from_slice(b"header_page\0");
        sized_64(out, self.context.header_page.as_bytes());
        out.extend_from_slice(b"header_event\0");
        sized_64(out, HEADER_EVENT.as_bytes());
        let (own, systems) = self.formats();
        out.extend_from_slice(&count(own.len()));
        for format in own {
            sized_64(out, format.text.as_bytes());
        }
        out.extend_from_slice(&count(systems.len()));
        for (system, formats) in systems {
            text(out, system);
            out.extend_from_slice(&count(formats.len()));
            for format in formats {
                sized_64(out, format.text.as_bytes());
            }
        }
        sized_32(out, self.functions().as_bytes());
        // No record here refers to a format of `trace_printk`.
        sized_32(out, b"");
        sized_64(out, &self.names());
        out.extend_from_slice(&self.census.cpus().to_le_bytes());
    }

    /// The formats of ftrace's own events, and those of each other system.
    fn formats(&self) -> (Vec<&FormatText>, BTreeMap<&str, Vec<&FormatText>>) {
        let mut own = Vec::new();
        let mut systems: BTreeMap<&str, Vec<&FormatText>> = BTreeMap::new();
        for format in &self.context.formats {
            match format.system.as_str() {
                FTRACE => own.push(format),
                system => systems.entry(system).or_default().push(format),
            }
        }
        (own, systems)
    }

    /// The named kernel functions, as `/proc/kallsyms` lists them.
    fn functions(&self) -> String {
        let known = &self.context.symbols;
        let mut text = String::new();
        for (address, name) in known {
            let name: String = name
                .chars()
                .map(|c| if c.is_whitespace() { '?' } else { c })
                .collect();
            text.push_str(&format!("{:016x} T {name}\n", address.0));
            let behind = KernelAddr(address.0.saturating_add(1));
            if !known.contains_key(&behind) {
                text.push_str(&format!("{:016x} T {BEHIND}\n", behind.0));
            }
        }
        text
    }

    /// The threads' names, as `saved_cmdlines` lists them.
    fn names(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for (tid, comm) in self.census.names() {
            text.extend_from_slice(format!("{tid} ").as_bytes());
            // A thread may have a name of several lines; a line here has one thread.
            let bytes = comm.as_bytes().iter();
            text.extend(bytes.map(|byte| if *byte == b'\n' { b'?' } else { *byte }));
            text.push(b'\n');
        }
        text
    }

    /// The options. `tables` are the places of the other buffers' tables.
    fn options(&self, out: &mut Vec<u8>, tables: &[u64], others: &[TraceRole]) {
        out.extend_from_slice(b"options  \0");
        if let Some((mult, shift)) = self.clock.scale {
            let mut value = Vec::new();
            value.extend_from_slice(&mult.to_le_bytes());
            value.extend_from_slice(&shift.to_le_bytes());
            // Readers add the other offset.
            value.extend_from_slice(&0u64.to_le_bytes());
            option(out, TSC2NSEC, &value);
        }
        option_text(out, OFFSET, &self.clock.offset.to_string());
        option_text(out, TRACECLOCK, &format!("[{}]", self.clock.name));
        let host = &self.manifest.host;
        let uname = [
            &host.hostname,
            &host.kernel_release,
            &host.kernel_version,
            &host.arch,
        ];
        let uname = uname.map(String::as_str).join(" ");
        option_text(out, UNAME, &format!("Linux {uname}"));
        let version = &self.manifest.tool_version;
        option_text(out, VERSION, &format!("jitterscope {version}"));
        for (place, role) in tables.iter().zip(others) {
            let mut value = place.to_le_bytes().to_vec();
            text(&mut value, name_of(*role));
            option(out, BUFFER, &value);
        }
        out.extend_from_slice(&0u16.to_le_bytes());
    }
}

/// A number of things, as the file counts them.
fn count(of: usize) -> [u8; 4] {
    u32::try_from(of).unwrap_or(u32::MAX).to_le_bytes()
}

fn sized_64(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn sized_32(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&count(bytes.len()));
    out.extend_from_slice(bytes);
}

/// A text up to its end sign, which ends it.
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

fn option(out: &mut Vec<u8>, number: u16, value: &[u8]) {
    out.extend_from_slice(&number.to_le_bytes());
    sized_32(out, value);
}

fn option_text(out: &mut Vec<u8>, number: u16, value: &str) {
    let mut with_end = Vec::new();
    text(&mut with_end, value);
    option(out, number, &with_end);
}
