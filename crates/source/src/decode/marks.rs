//! What is written to an instance's `trace_marker`.

use jitterscope_model::Ticks;

/// The id of such a record. The kernel's numbers below its events are fixed (`enum trace_type`).
const PRINT: usize = 5;
/// Where the text begins: after the fields of every record and the address of the writing function.
const TEXT: usize = 8 + size_of::<u64>();
/// The longest text that is kept, bytes, and how many are kept until they are taken.
const LONGEST: usize = 256;
const MOST: usize = 64;

/// A write to `trace_marker`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub time: Ticks,
    /// The text; its first 256 bytes.
    pub text: String,
}

/// The marks since they were last taken.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<Mark>);

impl Marks {
    /// Takes in a record that is no event.
    pub(super) fn record(&mut self, id: usize, time: Ticks, data: &[u8]) {
        let Some(text) = data.get(TEXT..).filter(|_| id == PRINT) else {
            return;
        };
        if self.0.len() >= MOST {
            return;
        }
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(&text[..text.len().min(LONGEST)]);
        self.0.push(Mark {
            time,
            text: text.trim_end().to_owned(),
        });
    }

    pub(super) fn take(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &[u8]) -> Vec<u8> {
        [&[0; TEXT], text].concat()
    }

    #[test]
    fn a_mark_has_its_text_up_to_its_end_and_other_records_have_none() {
        let mut marks = Marks::default();
        marks.record(PRINT, Ticks(7), &record(b"late order\n\0\0rest"));
        marks.record(PRINT + 1, Ticks(8), &record(b"other\0"));
        marks.record(PRINT, Ticks(9), &[0; TEXT - 1]);
        marks.record(PRINT, Ticks(10), &record(&[0xff; 1000]));
        let taken = marks.take();
        assert_eq!(
            (taken[0].time, taken[0].text.as_str()),
            (Ticks(7), "late order")
        );
        assert_eq!(taken.len(), 2);
        assert_eq!(taken[1].text.chars().count(), LONGEST);
        assert!(marks.take().is_empty());
    }

    #[test]
    fn there_are_only_so_many_at_a_time() {
        let mut marks = Marks::default();
        for n in 0..1000 {
            marks.record(PRINT, Ticks(n), &record(b"x\0"));
        }
        assert_eq!(marks.take().len(), MOST);
    }
}
