//! Decodes the kernel stacks of threads that go to sleep to [`SleepStack`]s.
//!
//! Where an instance has the option `stacktrace`, the kernel writes a record `kernel_stack` after each event of the
//! same thread: the number of return addresses, and the addresses themselves, the innermost call first.

use crate::context::{ContextError, TraceContext};
use crate::format::{EventFormat, NumberField};
use crate::ring::{PageLayout, PageRecords};
use jitterscope_model::{CpuId, KernelAddr, SleepStack};

/// The system and the name of the record.
pub(crate) const SYSTEM: &str = "ftrace";
pub(crate) const RECORD: &str = "kernel_stack";

/// The number of innermost calls that are read: far more than there are below the function that waits.
const MOST_FRAMES: usize = 64;
/// A return address, bytes.
const WORD: usize = size_of::<u64>();

/// Decodes the pages of one recording's stacks.
#[derive(Debug)]
pub struct StackDecoder {
    layout: PageLayout,
    kind: u32,
    id: NumberField,
    tid: NumberField,
    /// The number of addresses.
    size: NumberField,
    /// Where the addresses begin.
    first: usize,
    /// Reused for every record.
    stack: SleepStack,
}

impl StackDecoder {
    /// A decoder for the pages that `context` belongs to; `None` if no stacks were recorded.
    ///
    /// # Errors
    /// The context does not describe pages or the record.
    pub fn new(context: &TraceContext) -> Result<Option<StackDecoder>, ContextError> {
        let layout = context.layout()?;
        let is_ours = |text: &&crate::FormatText| text.system == SYSTEM && text.event == RECORD;
        let Some(text) = context.formats.iter().find(is_ours) else {
            return Ok(None);
        };
        let format = EventFormat::parse(&text.system, &text.event, &text.text)?;
        Ok(format.start("caller").map(|first| StackDecoder {
            layout,
            kind: u32::from(format.id()),
            id: format.number("common_type"),
            tid: format.number("common_pid"),
            size: format.number("size"),
            first,
            stack: SleepStack::default(),
        }))
    }

    /// The layout of the pages.
    #[must_use]
    pub fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// Passes every stack on a page of `cpu`'s buffer to `sink`, in order of time. Skips other records, and reads no
    /// further than a record goes, whatever number of addresses it states.
    pub fn records(
        &mut self,
        cpu: CpuId,
        page: &PageRecords<'_>,
        mut sink: impl FnMut(&SleepStack),
    ) {
        for record in &page.events {
            if self.id.u32(record.data) != self.kind {
                continue;
            }
            let stated = usize::try_from(self.size.i64(record.data)).unwrap_or(0);
            let addresses = record.data.get(self.first..).unwrap_or_default();
            let (words, _) = addresses.as_chunks::<WORD>();
            let words = words.iter().take(stated.min(MOST_FRAMES));
            let stack = &mut self.stack;
            stack.frames.clear();
            stack
                .frames
                .extend(words.map(|word| KernelAddr(u64::from_le_bytes(*word))));
            (stack.time, stack.cpu) = (record.time, cpu);
            stack.tid = self.tid.i32(record.data);
            sink(stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::FormatText;
    use crate::ring::Page;
    use jitterscope_model::{ClockKind, Ticks};
    use proptest::prelude::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    /// As Linux 6.18 describes it.
    const STACK: &str = "name: kernel_stack\nID: 4\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";

    fn context(text: &str) -> TraceContext {
        TraceContext {
            header_page: HEADER.into(),
            formats: vec![FormatText {
                system: SYSTEM.into(),
                event: RECORD.into(),
                text: text.into(),
            }],
            clock: ClockKind::Tsc,
            symbols: Default::default(),
            tasks: Default::default(),
            setup: Vec::new(),
        }
    }

    fn stacks(bytes: &[u8]) -> Vec<SleepStack> {
        let mut decoder = StackDecoder::new(&context(STACK)).unwrap().unwrap();
        let mut stacks = Vec::new();
        if let Ok(page) = Page::parse(&decoder.layout().clone(), bytes) {
            decoder.records(CpuId(3), &page.read(), |stack| stacks.push(stack.clone()));
        }
        stacks
    }

    fn record(delta: u32, words: &[u32]) -> Vec<u8> {
        let head = delta << 5 | words.len() as u32;
        std::iter::once(head)
            .chain(words.iter().copied())
            .flat_map(u32::to_le_bytes)
            .collect()
    }

    fn page(base: u64, records: &[Vec<u8>]) -> Vec<u8> {
        let data = records.concat();
        [
            &base.to_le_bytes()[..],
            &(data.len() as u64).to_le_bytes(),
            &data,
        ]
        .concat()
    }

    #[test]
    fn a_stack_has_the_addresses_that_its_record_holds() {
        let two = record(5, &[4, 42, 2, 0, 0x1000, 0xffff_ffff, 0x2000, 0xffff_ffff]);
        // The switch before it, one that claims more than it holds, one that claims less than none, and a short one.
        let switch = record(1, &[300, 42, 9, 9]);
        let boast = record(1, &[4, 43, 1 << 30, 0, 0x3000, 0xffff_ffff, 7]);
        let less = record(1, &[4, 44, u32::MAX, 0, 0x3000, 0xffff_ffff]);
        let short = record(1, &[4, 45]);
        let found = stacks(&page(1000, &[switch, two, boast, less, short]));
        let of = |time, tid, frames: &[u64]| SleepStack {
            time: Ticks(time),
            cpu: CpuId(3),
            tid,
            frames: frames
                .iter()
                .map(|low| KernelAddr(0xffff_ffff_0000_0000 | low))
                .collect(),
        };
        let wanted = [
            of(1006, 42, &[0x1000, 0x2000]),
            of(1007, 43, &[0x3000]),
            of(1008, 44, &[]),
            of(1009, 45, &[]),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn without_the_record_or_its_addresses_there_is_nothing_to_decode() {
        let none = |text: &str| StackDecoder::new(&context(text)).unwrap().is_none();
        assert!(none(&STACK.replace("caller", "other")));
        let mut other = context(STACK);
        other.formats[0].event = "user_stack".into();
        assert!(StackDecoder::new(&other).unwrap().is_none());
        assert!(StackDecoder::new(&context("nonsense")).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            stacks(&bytes);
        }

        #[test]
        fn no_record_makes_it_panic(words in prop::collection::vec(any::<u32>(), 1..28)) {
            let mut words = words;
            words[0] = 4;
            for stack in stacks(&page(0, &[record(1, &words)])) {
                prop_assert!(stack.frames.len() <= words.len() / 2);
            }
        }
    }
}
