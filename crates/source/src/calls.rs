//! Decodes pages of the tracer `function_graph` to [`CallRecord`]s.

use crate::context::{ContextError, TraceContext};
use crate::format::{EventFormat, NumberField};
use crate::ring::{Page, PageError, PageLayout};
use jitterscope_model::{CallRecord, CpuId, Ticks};

/// One of the tracer's events.
#[derive(Clone, Copy, Debug)]
struct Plan {
    id: u16,
    ends: bool,
    tid: NumberField,
    function: NumberField,
    depth: NumberField,
    /// The minimum length of a record, bytes.
    length: usize,
}

/// Decodes the pages of one recording's function graph.
#[derive(Debug)]
pub struct CallDecoder {
    layout: PageLayout,
    id: NumberField,
    plans: Vec<Plan>,
}

impl CallDecoder {
    /// A decoder for the pages that `context` belongs to; `None` if no functions were traced.
    ///
    /// # Errors
    /// The context does not describe pages or formats.
    pub fn new(context: &TraceContext) -> Result<Option<CallDecoder>, ContextError> {
        let layout = context.layout()?;
        let (mut id, mut plans) = (NumberField::default(), Vec::new());
        for text in context
            .formats
            .iter()
            .filter(|text| text.system == "ftrace" && text.event != crate::stacks::RECORD)
        {
            let format = EventFormat::parse(&text.system, &text.event, &text.text)?;
            id = format.number("common_type");
            plans.push(Plan::of(&format));
        }
        Ok((!plans.is_empty()).then_some(CallDecoder { layout, id, plans }))
    }

    /// Passes every entry and exit on a page of `cpu`'s buffer to `sink`, in order of time. Returns the times of the
    /// first and last record. Skips other records, and records shorter than their format.
    ///
    /// # Errors
    /// The bytes are fewer than a page header.
    pub fn page(
        &self,
        cpu: CpuId,
        bytes: &[u8],
        mut sink: impl FnMut(CallRecord),
    ) -> Result<Option<(Ticks, Ticks)>, PageError> {
        let page = Page::parse(&self.layout, bytes)?;
        let mut range: Option<(Ticks, Ticks)> = None;
        for record in page.records() {
            range = Some((range.map_or(record.time, |(first, _)| first), record.time));
            let id = self.id.u32(record.data);
            let Some(plan) = self.plans.iter().find(|plan| u32::from(plan.id) == id) else {
                continue;
            };
            if record.data.len() < plan.length {
                continue;
            }
            sink(CallRecord {
                time: record.time,
                cpu,
                tid: plan.tid.i32(record.data),
                function: plan.function.address(record.data),
                depth: plan.depth.i32(record.data),
                ends: plan.ends,
            });
        }
        Ok(range)
    }
}

impl Plan {
    fn of(format: &EventFormat) -> Plan {
        let (tid, function, depth) = (
            format.number("common_pid"),
            format.number("func"),
            format.number("depth"),
        );
        Plan {
            id: format.id(),
            ends: format.name().ends_with("_exit"),
            tid,
            function,
            depth,
            length: [tid, function, depth]
                .into_iter()
                .map(NumberField::end)
                .max()
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::FormatText;
    use jitterscope_model::{ClockKind, KernelAddr};
    use proptest::prelude::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    const ENTRY: &str = "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n";
    /// Another field order, as in kernels that also record the return value.
    const EXIT: &str = "\tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned long retval;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:int depth;\toffset:24;\tsize:4;\tsigned:1;\n";

    fn decoder() -> CallDecoder {
        let format = |event: &str, id: u32, fields: &str| FormatText {
            system: "ftrace".into(),
            event: event.into(),
            text: format!("name: {event}\nID: {id}\nformat:\n{COMMON}{fields}"),
        };
        let context = TraceContext {
            header_page: HEADER.into(),
            formats: vec![
                format("funcgraph_entry", 11, ENTRY),
                format("funcgraph_exit", 10, EXIT),
            ],
            clock: ClockKind::Tsc,
            symbols: Default::default(),
            tasks: Default::default(),
            setup: Vec::new(),
        };
        CallDecoder::new(&context).unwrap().unwrap()
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
    fn beginnings_and_ends_are_read_by_the_kernels_own_formats() {
        let begins = record(5, &[11, 42, 0x1000, 0xffff_ffff, 3]);
        let ends = record(7, &[10, 42, 0x1000, 0xffff_ffff, 9, 9, 3]);
        // An unrelated event, and a truncated one.
        let (other, short) = (record(1, &[77, 42, 0, 0, 0]), record(1, &[11, 42, 0x1000]));
        let mut calls = Vec::new();
        let bytes = page(1000, &[begins, other, short, ends]);
        let range = decoder()
            .page(CpuId(2), &bytes, |call| calls.push(call))
            .unwrap();
        assert_eq!(range, Some((Ticks(1005), Ticks(1014))));
        let call = CallRecord {
            time: Ticks(1005),
            cpu: CpuId(2),
            tid: 42,
            function: KernelAddr(0xffff_ffff_0000_1000),
            depth: 3,
            ends: false,
        };
        assert_eq!(
            calls,
            [
                call,
                CallRecord {
                    time: Ticks(1014),
                    ends: true,
                    ..call
                }
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decoder().page(CpuId(0), &bytes, |_| {});
        }
    }
}
