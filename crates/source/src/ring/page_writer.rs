//! Makes pages, for records that come from elsewhere.

use super::PageLayout;
use super::page::{COMMIT_LOST, COMMIT_LOST_STORED, DELTA_BITS, TYPE_TIME_EXTEND};
use jitterscope_model::Ticks;

/// The longest record whose length is in its word, bytes.
const SHORT: usize = 112;
/// What a record takes beside its bytes: its word, its length, and the upper part of its delta with a word of its own.
const AROUND: usize = 16;
/// The number of lost records, after the records.
const COUNT: usize = 8;
/// A delta has so many bits at most.
const MOST_BITS: u32 = DELTA_BITS + 32;

/// A page that is being filled.
#[derive(Clone, Debug)]
pub struct PageWriter {
    layout: PageLayout,
    /// Bytes of a page, with its header.
    size: usize,
    bytes: Vec<u8>,
    last: Ticks,
    /// Records that were lost before this page.
    lost: u64,
}

impl PageWriter {
    /// An empty page of so many bytes, which are more than its header has.
    #[must_use]
    pub fn new(layout: &PageLayout, size: usize) -> PageWriter {
        PageWriter {
            layout: *layout,
            size,
            bytes: vec![0; layout.data],
            last: Ticks(0),
            lost: 0,
        }
    }

    /// The time of the last record so far, of all pages.
    #[must_use]
    pub fn last(&self) -> Ticks {
        self.last
    }

    /// Whether it has no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.layout.data
    }

    /// Whether an empty page has room for the record.
    #[must_use]
    pub fn fits_any(&self, data: &[u8]) -> bool {
        self.layout.data + AROUND + data.len().next_multiple_of(4) + COUNT <= self.size
    }

    /// Adds a record; one that is earlier than the last one gets its time. False where it does not fit: take the page,
    /// and add it again.
    pub fn put(&mut self, time: Ticks, data: &[u8]) -> bool {
        let time = time.max(self.last);
        let padded = data.len().next_multiple_of(4);
        let is_first = self.is_empty();
        let delta = match is_first {
            true => 0,
            false => time.0 - self.last.0,
        };
        let fits = self.bytes.len() + AROUND + padded + COUNT <= self.size;
        if !fits || delta >> MOST_BITS != 0 {
            return false;
        }
        if is_first {
            self.bytes[self.layout.timestamp..][..8].copy_from_slice(&time.0.to_le_bytes());
        }
        let low = |delta: u64| ((delta & ((1 << DELTA_BITS) - 1)) as u32) << 5;
        let mut delta = delta;
        if delta >> DELTA_BITS != 0 {
            self.word(low(delta) | TYPE_TIME_EXTEND);
            self.word((delta >> DELTA_BITS) as u32);
            delta = 0;
        }
        if padded == 0 || padded > SHORT {
            self.word(low(delta));
            self.word(padded as u32 + 4);
        } else {
            self.word(low(delta) | (padded / 4) as u32);
        }
        self.bytes.extend(data);
        self.bytes.resize(self.bytes.len() + padded - data.len(), 0);
        self.last = time;
        true
    }

    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_le_bytes());
    }

    /// Notes that records were lost before the next one. The page must be empty.
    pub fn lost(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
    }

    /// The page with the records so far; an empty one takes its place.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        let mut page = std::mem::replace(&mut self.bytes, vec![0; self.layout.data]);
        let mut commit = (page.len() - self.layout.data) as u64;
        if self.lost > 0 {
            commit |= COMMIT_LOST | COMMIT_LOST_STORED;
            page.extend(std::mem::take(&mut self.lost).to_le_bytes());
        }
        // Length and flags are in the lower word, whatever the size of the field.
        page[self.layout.commit..][..4].copy_from_slice(&(commit as u32).to_le_bytes());
        page.resize(self.size.max(page.len()), 0);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{Page, PageLoss};
    use proptest::prelude::*;

    fn layout() -> PageLayout {
        PageLayout::parse(crate::ring::layout::tests::HEADER).unwrap()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            records in prop::collection::vec((0u64..1 << 40, prop::collection::vec(any::<u8>(), 0..300)), 0..60),
            lost in 0u64..3,
        ) {
            let layout = layout();
            let mut writer = PageWriter::new(&layout, 4096);
            let (mut pages, mut time, mut expected) = (Vec::new(), 1 << 60, Vec::new());
            writer.lost(lost);
            for (delta, data) in &records {
                time += delta;
                if !writer.put(Ticks(time), data) {
                    pages.push(writer.take());
                    prop_assert!(writer.put(Ticks(time), data));
                }
                let mut padded = data.clone();
                padded.resize(data.len().next_multiple_of(4), 0);
                expected.push((time, padded));
            }
            pages.push(writer.take());
            let mut found = Vec::new();
            for (number, page) in pages.iter().enumerate() {
                prop_assert_eq!(page.len(), 4096);
                let page = Page::parse(&layout, page).unwrap();
                let loss = if number == 0 && lost > 0 { PageLoss::Lost(lost) } else { PageLoss::None };
                prop_assert_eq!(page.loss(), loss);
                found.extend(page.records().map(|record| (record.time.0, record.data.to_vec())));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn times_do_not_go_back_and_may_be_far_apart() {
        let layout = layout();
        let mut writer = PageWriter::new(&layout, 4096);
        assert!(writer.put(Ticks(100), &[1; 8]));
        assert!(writer.put(Ticks(90), &[2; 8]));
        assert!(
            !writer.put(Ticks(u64::MAX), &[3; 8]),
            "no delta is as large"
        );
        let page = writer.take();
        let times: Vec<u64> = Page::parse(&layout, &page)
            .unwrap()
            .records()
            .map(|r| r.time.0)
            .collect();
        assert_eq!(times, [100, 100]);
        assert!(writer.put(Ticks(u64::MAX), &[3; 8]));
        let page = writer.take();
        assert_eq!(Page::parse(&layout, &page).unwrap().base(), Ticks(u64::MAX));
        assert!(!writer.fits_any(&[0; 4096]));
    }
}
