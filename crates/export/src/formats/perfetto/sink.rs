//! Takes the rows of a run, stored or live, and writes them as a trace.

use super::clock::BootClock;
use super::ftrace::Ftrace;
use super::stalls::Stalls;
use super::stream::Stream;
use crate::error::ExportError;
use crate::output::Output;
use jitterscope_model::{CpuId, Delivery, RawPage, Row, RunFacts, RunManifest, Sink, SinkError};
use jitterscope_source::TraceContext;
use jitterscope_source::perfetto::numbers::{clock, packet, system};
use serde_json::Value;

/// Pages that wait for their description, bytes. A recording describes them with its first turn.
const MOST_WAITING: usize = 16 << 20;

pub(super) struct PerfettoFile {
    stream: Stream,
    run: Option<Run>,
    /// Rows written.
    written: u64,
}

/// What is known since the run began.
struct Run {
    clock: BootClock,
    stalls: Stalls,
    /// Pages and their decoder, once it is described.
    ftrace: Option<Ftrace>,
    waiting: Vec<(CpuId, Vec<u8>)>,
    waiting_bytes: usize,
    pages: u64,
    /// Pages that came before their description and found no room.
    lost: u64,
}

impl PerfettoFile {
    pub(super) fn new(output: Output) -> PerfettoFile {
        PerfettoFile {
            stream: Stream::new(output),
            run: None,
            written: 0,
        }
    }
}

impl Sink for PerfettoFile {
    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        if self.stream.output().is_terminal() {
            return Err(ExportError::NoText("a trace of Perfetto").into());
        }
        self.stream.output().begin()?;
        let run = Run {
            clock: BootClock::new(facts),
            stalls: Stalls::new(facts),
            ftrace: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            pages: 0,
            lost: 0,
        };
        clocks(&mut self.stream, &run.clock)?;
        run.stalls.tracks().begin(&mut self.stream, facts)?;
        self.run = Some(run);
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        if let Some(run) = &mut self.run {
            for row in batch {
                self.written += u64::from(run.row(&mut self.stream, row)?);
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        match row {
            Row::Stall(..) | Row::Interval(..) => true,
            Row::Page(page) => page.role.has_events(),
            Row::Whole(..) | Row::Turn(_) | Row::Context(_) => false,
        }
    }

    fn tick(&mut self) -> Result<u64, SinkError> {
        self.stream.output().flush()?;
        Ok(self.written)
    }

    fn end(&mut self, manifest: &RunManifest) -> Result<Delivery, SinkError> {
        let mut delivery = Delivery::of(self.written);
        if let Some(mut run) = self.run.take() {
            delivery = run.end(&mut self.stream, manifest, delivery)?;
        }
        self.stream.output().finish()?;
        Ok(delivery)
    }
}

impl Run {
    /// Writes a row. Returns whether it counts as one.
    fn row(&mut self, stream: &mut Stream, row: &Row<'_>) -> Result<bool, ExportError> {
        Ok(match row {
            Row::Stall(stall, attribution) => {
                self.decode(stream)?;
                let senders = self.ftrace.as_ref().map(Ftrace::senders);
                let stall = (*stall, *attribution);
                self.stalls.stall(stream, &self.clock, stall, senders)?
            }
            Row::Interval(interval, _) => {
                self.stalls.interval(stream, &self.clock, interval)?;
                true
            }
            Row::Page(page) if page.role.has_events() => self.page(stream, page)?,
            Row::Turn(turn) => {
                if let Some(ftrace) = &mut self.ftrace {
                    let named = turn.functions.iter();
                    let named = named.map(|(address, name)| (*address, name.to_string()));
                    ftrace.learn(named, stream.texts());
                }
                self.decode(stream)?;
                false
            }
            Row::Context(json) => {
                self.describe(stream, json)?;
                self.decode(stream)?;
                false
            }
            Row::Whole(..) | Row::Page(_) => false,
        })
    }

    /// Keeps a page until its turn has named the functions in it. Returns whether it had room.
    fn page(&mut self, stream: &mut Stream, page: &RawPage<'_>) -> Result<bool, ExportError> {
        if self.waiting_bytes + page.bytes.len() > MOST_WAITING {
            self.decode(stream)?;
        }
        if self.waiting_bytes + page.bytes.len() > MOST_WAITING {
            self.lost += 1;
            return Ok(false);
        }
        self.waiting_bytes += page.bytes.len();
        self.waiting.push((page.cpu, page.bytes.to_vec()));
        self.pages += 1;
        Ok(true)
    }

    /// Takes the description of the pages. A later one only has more names.
    fn describe(&mut self, stream: &mut Stream, json: &[u8]) -> Result<(), ExportError> {
        let context: TraceContext = serde_json::from_slice(json)
            .map_err(|error| ExportError::TraceContext(error.to_string()))?;
        let ftrace = match self.ftrace.take() {
            Some(ftrace) => ftrace,
            None => Ftrace::new(&context)
                .map_err(|error| ExportError::TraceContext(error.to_string()))?,
        };
        let ftrace = self.ftrace.insert(ftrace);
        ftrace.learn(context.symbols, stream.texts());
        Ok(())
    }

    /// Writes the pages that wait, if they are described.
    fn decode(&mut self, stream: &mut Stream) -> Result<(), ExportError> {
        let Some(ftrace) = &mut self.ftrace else {
            return Ok(());
        };
        for (cpu, bytes) in self.waiting.drain(..) {
            ftrace.page(stream, &self.clock, (cpu, &bytes))?;
        }
        self.waiting_bytes = 0;
        Ok(())
    }

    /// Writes what only the end knows.
    fn end(
        &mut self,
        stream: &mut Stream,
        manifest: &RunManifest,
        delivery: Delivery,
    ) -> Result<Delivery, ExportError> {
        self.decode(stream)?;
        if let Some(ftrace) = &mut self.ftrace {
            ftrace.end(stream.texts());
        }
        self.stalls.end(stream, &self.clock)?;
        let undecoded = self.waiting.len() as u64;
        let lost = self.lost + self.stalls.crowded() + undecoded;
        let remarks = self.remarks(manifest, self.pages - undecoded);
        system_info(stream, manifest)?;
        let (root, at) = (self.stalls.tracks().root(), self.clock.base());
        for doubt in manifest.doubts() {
            stream.instant(at, root, |instant| {
                instant.name("what this run says of culprits does not hold");
                if let Ok(Value::Object(fields)) = serde_json::to_value(doubt) {
                    for (name, value) in &fields {
                        instant.value(name, value);
                    }
                }
            })?;
        }
        for remark in &remarks {
            stream.instant(at, root, |instant| {
                instant.name("about this trace");
                instant.text("remark", remark);
            })?;
        }
        let problem = (lost > 0).then(|| {
            format!(
                "{} stalls overlap too many others; {} pages have no description",
                self.stalls.crowded(),
                self.lost + undecoded
            )
        });
        Ok(Delivery {
            delivered: delivery.delivered - undecoded,
            lost,
            problem,
            remarks,
            ..delivery
        })
    }

    /// The error of the times, and what the file does not have of the run.
    fn remarks(&self, manifest: &RunManifest, pages: u64) -> Vec<String> {
        let mut remarks = vec![self.clock.remark(manifest)];
        let kept = manifest.trace.bytes > 0;
        let without = match (pages, kept) {
            (0, _) if !manifest.attributed => Some("the run recorded no kernel events"),
            (0, true) => Some("kernel events are left out: they hold names"),
            (0, false) => Some("the run kept no kernel events"),
            (_, true) if !manifest.trace.complete => {
                Some("the run kept kernel events only around its worst stalls")
            }
            _ => None,
        };
        remarks.extend(without.map(str::to_owned));
        if let Some(ftrace) = &self.ftrace {
            remarks.extend(ftrace.left_out().remarks());
        }
        remarks
    }
}

/// Writes the clocks at the start, so that a viewer can show the time of day.
fn clocks(stream: &mut Stream, at: &BootClock) -> Result<(), ExportError> {
    let start = *at.start();
    stream.packet(|packet, _| {
        packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
            for (id, ns) in [
                (clock::BOOTTIME, at.base()),
                (clock::MONOTONIC_RAW, start.monotonic_raw_ns),
                (clock::REALTIME, start.realtime_ns),
            ] {
                snapshot.message(clock::CLOCKS, |of| {
                    of.uint(clock::ID, id);
                    of.uint(clock::TIMESTAMP, ns);
                });
            }
            snapshot.uint(clock::PRIMARY, clock::BOOTTIME);
        });
    })
}

/// Writes the kernel's version, on which the meaning of a thread's state depends.
fn system_info(stream: &mut Stream, manifest: &RunManifest) -> Result<(), ExportError> {
    let host = &manifest.host;
    stream.packet(|packet, _| {
        packet.message(packet::SYSTEM_INFO, |info| {
            info.message(system::UTSNAME, |names| {
                names.text(system::SYSNAME, "Linux");
                names.text(system::VERSION, &host.kernel_version);
                names.text(system::RELEASE, &host.kernel_release);
                names.text(system::MACHINE, &host.arch);
            });
            info.text(
                system::SERVICE,
                &format!("jitterscope {}", manifest.tool_version),
            );
        });
    })
}
