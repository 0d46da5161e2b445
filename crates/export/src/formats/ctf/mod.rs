//! `ctf`: the pages that the run kept, as a CTF trace with LTTng's names, for Trace Compass and babeltrace2.
//!
//! Each page is a packet. The file of a CPU has the records of that CPU; those of senders are in files of their own. Names
//! of functions and threads, which LTTng's traces do not have, are events of our own in another file.

mod metadata;
mod packet;

use super::Format;
use crate::error::ExportError;
use crate::exporter::{CopyRun, Exporter};
use crate::partial_folder::PartialFolder;
use jitterscope_model::{CpuId, Delivery, Ticks, TraceRole};
use jitterscope_source::ctf::METADATA;
use jitterscope_source::{Page, PageLoss, TraceContext};
use jitterscope_store::{RunReader, TracePiece};
use metadata::{Clock, Events};
use packet::Packet;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(super) static FORMAT: Format = Format {
    schemes: &["ctf"],
    usage: &[(
        "ctf://FOLDER",
        "the kernel's trace in CTF, for Trace Compass and babeltrace2",
    )],
    notes: "",
    read: |address| {
        address.without_options()?;
        Ok(Exporter::folder(address.path()?, "page", CtfTrace::open))
    },
};

/// The file of names.
const NAMES: &str = "names_0";
/// No kernel has a CPU beyond this.
const MOST_CPUS: u32 = 8192;

/// A trace that is being written.
struct CtfTrace {
    files: PartialFolder,
    /// The number of the file of descriptions.
    metadata: usize,
    /// Files of an earlier export, which readers would take for a part of this one.
    old: Vec<String>,
}

impl CtfTrace {
    fn open(folder: &Path) -> Result<CtfTrace, ExportError> {
        let mut files = PartialFolder::open(folder)?;
        let entries = files.folder().entries();
        let entries = entries.map_err(|error| ExportError::access(folder, error))?;
        let mut old = Vec::new();
        for entry in entries {
            let name = entry.name.to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if !is_ours(&name) {
                let why = "it holds other files, which readers would take for part of the trace; name a new folder";
                return Err(ExportError::file(folder, io::Error::other(why)));
            }
            old.push(name);
        }
        let metadata = make(&mut files, METADATA)?;
        Ok(CtfTrace {
            files,
            metadata,
            old,
        })
    }
}

/// Whether an export makes a file of this name.
fn is_ours(name: &str) -> bool {
    let of_role = |role: &TraceRole| {
        let number = name
            .strip_prefix(role.as_str())
            .and_then(|rest| rest.strip_prefix('_'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    name == METADATA || name == NAMES || TraceRole::ALL.iter().any(of_role)
}

/// Makes a file that only its owner may read, because records hold kernel addresses.
fn make(files: &mut PartialFolder, name: &str) -> Result<usize, ExportError> {
    let number = files.make(name)?;
    let path = files.path().to_owned();
    if let Some(file) = files.file(number) {
        file.set_permissions(Permissions::from_mode(0o600))
            .map_err(|error| ExportError::file(&path, error))?;
    }
    Ok(number)
}

/// The file of a CPU.
struct Stream {
    file: usize,
    packets: u64,
    /// Records that were lost so far.
    discarded: u64,
    last: Ticks,
    /// The run did not keep the pages before the next one.
    after_gap: bool,
}

impl CopyRun for CtfTrace {
    fn copy(self: Box<Self>, run: &RunReader) -> Result<Delivery, ExportError> {
        let CtfTrace {
            mut files,
            metadata,
            old,
        } = *self;
        let Some(context) = run.trace_context::<TraceContext>()? else {
            return Err(ExportError::NoTrace);
        };
        let described =
            |error: &dyn std::fmt::Display| ExportError::TraceContext(error.to_string());
        let layout = context.layout().map_err(|e| described(&e))?;
        let formats = context.formats().map_err(|e| described(&e))?;
        let events = Events::of(&formats);
        let path = files.path().to_owned();
        let failed = |error| ExportError::file(&path, error);
        let mut streams: BTreeMap<(TraceRole, CpuId), Stream> = BTreeMap::new();
        let (mut pages, mut unfit, mut unknown, mut gaps) = (0_u64, 0_u64, 0_u64, 0_u64);
        let mut packet = Packet::default();
        for piece in run.trace_pieces()? {
            let stored = match piece? {
                TracePiece::Page(stored) => stored,
                TracePiece::Missing => {
                    streams
                        .values_mut()
                        .for_each(|stream| stream.after_gap = true);
                    continue;
                }
                TracePiece::Turn(_) => continue,
            };
            if !stored.role.has_events() {
                continue;
            }
            let page = Page::parse(&layout, &stored.bytes).ok();
            let Some(page) = page.filter(|_| stored.cpu.0 < MOST_CPUS) else {
                unfit += 1;
                continue;
            };
            let key = (stored.role, stored.cpu);
            let stream = match streams.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(free) => {
                    let name = format!("{}_{}", stored.role.as_str(), stored.cpu.0);
                    free.insert(Stream {
                        file: make(&mut files, &name)?,
                        packets: 0,
                        discarded: 0,
                        last: Ticks(0),
                        after_gap: false,
                    })
                }
            };
            let lost = match page.loss() {
                PageLoss::None => u64::from(stream.after_gap),
                PageLoss::Lost(count) => count,
                PageLoss::LostUnknown => 1,
            };
            gaps += u64::from(std::mem::take(&mut stream.after_gap));
            stream.discarded = stream.discarded.saturating_add(lost);
            packet.begin(page.base().max(stream.last));
            for record in page.records() {
                stream.last = stream.last.max(record.time);
                if !events.write(record.data, stream.last, &mut packet) {
                    unknown += 1;
                }
            }
            let bytes = packet.end(stream.last, stored.cpu, stream.packets, stream.discarded);
            stream.packets += 1;
            if let Some(file) = files.file(stream.file) {
                file.write_all(bytes).map_err(failed)?;
            }
            pages += 1;
        }
        if pages == 0 {
            return Err(ExportError::NoTrace);
        }
        let start = run.manifest().clock_start.ticks;
        let first = streams.keys().next().map_or(CpuId(0), |(_, cpu)| *cpu);
        packet.begin(start);
        events.write_names(&context, start, &mut packet);
        let names = make(&mut files, NAMES)?;
        let bytes = packet.end(start, first, 0, 0).to_vec();
        let clock = Clock::of(run.manifest());
        let text = metadata::text(run.manifest(), &clock, &events);
        for (file, bytes) in [(names, bytes), (metadata, text.into_bytes())] {
            if let Some(file) = files.file(file) {
                file.write_all(&bytes).map_err(failed)?;
            }
        }
        let written: BTreeSet<String> = files.files().map(|(_, name)| name.to_owned()).collect();
        for name in old.iter().filter(|name| !written.contains(*name)) {
            files
                .folder()
                .remove_file(std::ffi::OsStr::new(name))
                .map_err(|error| ExportError::access(&path, error))?;
        }
        files.finish()?;
        let mut remarks = vec![clock.remark()];
        for (count, what) in [
            (
                unfit,
                "pages are left out: their CPU or their head cannot be",
            ),
            (
                unknown,
                "records are left out: the run does not describe their events",
            ),
            (
                gaps,
                "places follow pages that the run did not keep: an event is marked as lost there",
            ),
        ] {
            if count > 0 {
                remarks.push(format!("{count} {what}"));
            }
        }
        remarks.push("stalls are not in the trace: it holds only what the kernel recorded".into());
        Ok(Delivery {
            remarks,
            ..Delivery::of(pages)
        })
    }
}
