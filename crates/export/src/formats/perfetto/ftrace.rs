//! Kernel events: pages of the kernel's trace as bundles of Perfetto's messages.

use super::clock::BootClock;
use super::functions::Functions;
use super::handler_exits::HandlerExits;
use super::kernel_event::EventMessages;
use super::left_out::LeftOut;
use super::senders::Senders;
use super::stream::{Stream, Texts};
use crate::error::ExportError;
use jitterscope_model::Message;
use jitterscope_model::{CpuId, KernelAddr};
use jitterscope_source::perfetto::numbers::{bundle, ftrace, packet};
use jitterscope_source::{ContextError, Decoder, Page, PageLoss, TraceContext};

/// Perfetto refuses a trace with a CPU beyond this.
const MOST_CPUS: u32 = 1024;

/// Decodes pages and writes their events.
pub(super) struct Ftrace {
    decoder: Decoder,
    exits: HandlerExits,
    functions: Functions,
    senders: Senders,
    left_out: LeftOut,
    event: Message,
}

impl Ftrace {
    /// For pages that `context` describes.
    ///
    /// # Errors
    /// The context is not that of a trace.
    pub(super) fn new(context: &TraceContext) -> Result<Ftrace, ContextError> {
        Ok(Ftrace {
            decoder: Decoder::new(context)?,
            exits: HandlerExits::of(context)?,
            functions: Functions::default(),
            senders: Senders::default(),
            left_out: LeftOut::default(),
            event: Message::default(),
        })
    }

    /// What was sent between CPUs, by the pages so far.
    pub(super) fn senders(&self) -> &Senders {
        &self.senders
    }

    /// What the file does not have of the pages so far.
    pub(super) fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Names kernel functions.
    pub(super) fn learn(
        &mut self,
        names: impl IntoIterator<Item = (KernelAddr, String)>,
        texts: &mut Texts,
    ) {
        self.functions.learn(names, texts);
    }

    /// Every function gets its name, or a word for having none.
    pub(super) fn end(&mut self, texts: &mut Texts) {
        self.functions.end(texts);
    }

    /// Writes a page of a CPU's buffer as one bundle.
    pub(super) fn page(
        &mut self,
        stream: &mut Stream,
        clock: &BootClock,
        (cpu, bytes): (CpuId, &[u8]),
    ) -> Result<(), ExportError> {
        let Ftrace {
            decoder,
            exits,
            functions,
            senders,
            left_out,
            event: inner,
        } = self;
        let Ok(page) = Page::parse(decoder.layout(), bytes) else {
            left_out.damaged_page();
            return Ok(());
        };
        if cpu.0 >= MOST_CPUS {
            left_out.cpu_too_high();
            return Ok(());
        }
        let records = page.read();
        if records.is_damaged() {
            left_out.damaged_page();
        }
        exits.begin(&page);
        let unknown = decoder.counts().unknown;
        stream.packet(|packet, texts| {
            packet.message(packet::FTRACE_EVENTS, |of_cpu| {
                of_cpu.uint(bundle::CPU, cpu.0);
                if records.loss() != PageLoss::None {
                    of_cpu.uint(bundle::LOST_EVENTS, true);
                }
                decoder.records(cpu, &records, |event| {
                    senders.record(&event);
                    inner.clear();
                    let mut messages = EventMessages {
                        functions,
                        texts,
                        exits,
                    };
                    let Some(field) = messages.write(&event, inner) else {
                        left_out.without_message(&event.kind);
                        return;
                    };
                    of_cpu.message(bundle::EVENT, |message| {
                        message.uint(ftrace::TIMESTAMP, clock.ns(event.time));
                        message.uint(ftrace::PID, event.tid as u32);
                        message.raw(field, inner.bytes());
                    });
                });
            });
        })?;
        left_out.unknown(decoder.counts().unknown - unknown);
        Ok(())
    }
}
