//! The records of events that the user asked for: their own fields, as text.

use crate::context::{ContextError, TraceContext};
use crate::format::EventFormat;
use crate::ring::{Page, PageError, PageLayout};
use jitterscope_model::{AskedEvent, KernelAddr, Name, Ticks};
use std::collections::BTreeMap;
use std::fmt::Write;
use tracepoint_decode::{PerfByteReader, PerfFieldArray, PerfFieldFormat};

/// The longest text of a record's fields, bytes. Any process may write long records, for example through a probe of
/// its own.
const LONGEST: usize = 512;
/// How the kernel declares a device number, whose upper 12 bits are the major number.
const DEVICE: &str = "dev_t ";
const MINOR_BITS: u32 = 20;

/// A record of an event that the user asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRecord {
    pub time: Ticks,
    /// The event, as `SYSTEM:EVENT`.
    pub event: Name,
    /// The thread that wrote it.
    pub tid: i32,
    /// The event's own fields as `name=value`, separated by spaces; cut off after 512 bytes.
    pub fields: String,
}

/// Reads the records of events that the user asked for, and skips all others.
#[derive(Debug)]
pub struct AskedDecoder {
    layout: PageLayout,
    formats: BTreeMap<u16, (Name, EventFormat)>,
    /// Names of kernel functions that the recording looked up.
    symbols: BTreeMap<KernelAddr, String>,
}

impl AskedDecoder {
    /// `None` if the pages of this context have none of these events.
    ///
    /// # Errors
    /// The context does not describe pages or formats.
    pub fn new<'a>(
        context: &TraceContext,
        asked: impl Iterator<Item = &'a AskedEvent> + Clone,
    ) -> Result<Option<AskedDecoder>, ContextError> {
        let mut formats = BTreeMap::new();
        for text in &context.formats {
            let is_it =
                |event: &AskedEvent| *event.system == text.system && *event.event == text.event;
            let Some(event) = asked.clone().find(|event| is_it(event)) else {
                continue;
            };
            let format = EventFormat::parse(&text.system, &text.event, &text.text)?;
            formats.insert(format.id(), (event.name().into(), format));
        }
        if formats.is_empty() {
            return Ok(None);
        }
        let layout = context.layout()?;
        let symbols = context.symbols.clone();
        Ok(Some(AskedDecoder {
            layout,
            formats,
            symbols,
        }))
    }

    /// Passes each such record of a page to `sink`, in order of time.
    ///
    /// # Errors
    /// The bytes are fewer than a page header.
    pub fn page(&self, bytes: &[u8], mut sink: impl FnMut(AskedRecord)) -> Result<(), PageError> {
        let page = Page::parse(&self.layout, bytes)?;
        for record in &page.read().events {
            let id = record.data.first_chunk().map(|id| u16::from_le_bytes(*id));
            if let Some((name, format)) = id.and_then(|id| self.formats.get(&id)) {
                sink(AskedRecord {
                    time: record.time,
                    event: name.clone(),
                    tid: format.number("common_pid").i32(record.data),
                    fields: self.fields(format, record.data),
                });
            }
        }
        Ok(())
    }

    /// The fields of a record as text.
    fn fields(&self, format: &EventFormat, record: &[u8]) -> String {
        let mut text = String::new();
        for field in format.own_fields() {
            let before = text.len();
            if !text.is_empty() {
                text.push(' ');
            }
            if self.write_field(&mut text, field, record).is_none() {
                text.truncate(before);
            }
            if text.len() > LONGEST {
                text.truncate(text.floor_char_boundary(LONGEST));
                text.push('…');
                break;
            }
        }
        text
    }

    /// Writes a field; `None` if the record is too short for it.
    fn write_field(&self, text: &mut String, field: &PerfFieldFormat, record: &[u8]) -> Option<()> {
        let reader = PerfByteReader::new(false);
        let bytes = field.get_field_bytes(record, reader)?;
        write!(text, "{}=", field.name()).ok()?;
        let declared = field.field();
        if let (true, Ok(bytes)) = (declared.starts_with(DEVICE), bytes.try_into()) {
            let device = u32::from_le_bytes(bytes);
            let minor = device & ((1 << MINOR_BITS) - 1);
            return write!(text, "{}:{minor}", device >> MINOR_BITS).ok();
        }
        if let (true, Ok(bytes)) = (declared.contains('*'), bytes.try_into())
            && let Some(name) = self.symbols.get(&KernelAddr(u64::from_le_bytes(bytes)))
        {
            text.push_str(name);
            return Some(());
        }
        if matches!(field.array(), PerfFieldArray::None | PerfFieldArray::Fixed) {
            let value = field.get_field_value_with_data_and_reader(record, reader);
            return write!(text, "{}", value.display()).ok();
        }
        // A length of the record's own: a text, or a large number such as a set of CPUs. The library's reader would
        // divide these by an element's size, which may be zero.
        if declared.contains("char") {
            let end = bytes.iter().position(|byte| *byte == 0);
            let bytes = &bytes[..end.unwrap_or(bytes.len()).min(LONGEST)];
            text.push_str(&String::from_utf8_lossy(bytes));
            return Some(());
        }
        text.push_str("0x");
        let digits = bytes.iter().take(LONGEST / 2).rev();
        let mut digits = digits.skip_while(|byte| **byte == 0).peekable();
        if digits.peek().is_none() {
            text.push('0');
        }
        digits.try_for_each(|byte| write!(text, "{byte:02x}").ok())
    }
}
