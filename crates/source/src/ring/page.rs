//! One page: its header, its loss and a streaming iterator over its records.

use super::{PageLayout, RawRecord};
use jitterscope_model::Ticks;

/// Low bits of the commit field: the length of the records in bytes.
const COMMIT_LENGTH: u64 = (1 << 27) - 1;
/// Commit bit: events were lost between the previous page and this one.
pub(super) const COMMIT_LOST: u64 = 1 << 31;
/// Commit bit: the number of lost events is stored right after the records.
pub(super) const COMMIT_LOST_STORED: u64 = 1 << 30;

const TYPE_PADDING: u32 = 29;
pub(super) const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_ABSOLUTE: u32 = 31;
pub(super) const DELTA_BITS: u32 = 27;
/// Approximate size of an event with its word, in bytes.
const USUAL_EVENT: usize = 32;
/// The bits of a time that an absolute record does not contain.
const INHERITED: u64 = 0b1_1111 << 59;

/// Why bytes are not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("{length} bytes are no trace page: its header alone has {header}")]
    TooShort {
        length: usize,
        /// Length of the header.
        header: usize,
    },
}

/// What the ring buffer lost before this page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageLoss {
    #[default]
    None,
    /// This number of events.
    Lost(u64),
    /// Some events; the page had no room for their number.
    LostUnknown,
}

/// A page of the ring buffer.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    base: u64,
    records: &'a [u8],
    loss: PageLoss,
    complete: bool,
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*word), rest))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*chunk))
}

impl<'a> Page<'a> {
    /// Parses the header. A truncated page keeps its complete records and is not [complete](Page::is_complete).
    ///
    /// # Errors
    /// There are fewer bytes than a header has.
    pub fn parse(layout: &PageLayout, bytes: &'a [u8]) -> Result<Page<'a>, PageError> {
        let too_short = PageError::TooShort {
            length: bytes.len(),
            header: layout.data,
        };
        let base = long(bytes, layout.timestamp).ok_or(too_short)?;
        let commit = match layout.commit_size {
            4 => bytes
                .get(layout.commit..)
                .and_then(word)
                .map(|(commit, _)| u64::from(commit)),
            _ => long(bytes, layout.commit),
        };
        let commit = commit.ok_or(too_short)?;
        let data = bytes.get(layout.data..).ok_or(too_short)?;
        let length = usize::try_from(commit & COMMIT_LENGTH).unwrap_or(usize::MAX);
        let loss = if commit & COMMIT_LOST == 0 {
            PageLoss::None
        } else if commit & COMMIT_LOST_STORED == 0 {
            PageLoss::LostUnknown
        } else {
            long(data, length).map_or(PageLoss::LostUnknown, PageLoss::Lost)
        };
        let complete = length <= data.len();
        Ok(Page {
            base,
            records: &data[..length.min(data.len())],
            loss,
            complete,
        })
    }

    /// Marks in the header that an unknown number of events was lost before the page, if none is marked yet. Returns
    /// whether it marked it.
    pub fn mark_loss(layout: &PageLayout, bytes: &mut [u8]) -> bool {
        let Some(own) = bytes
            .get_mut(layout.commit..)
            .and_then(|rest| rest.get_mut(..4))
        else {
            return false;
        };
        // The flags are in the lower word, whatever the size of the field.
        let flag = (COMMIT_LOST >> 24) as u8;
        let unmarked = own[3] & flag == 0;
        own[3] |= flag;
        unmarked
    }

    /// A page that says that an unknown number of events was lost up to this time. It has one record there, of no event.
    #[must_use]
    pub fn of_loss(layout: &PageLayout, at: Ticks) -> Vec<u8> {
        let record: [[u8; 4]; 2] = [1u32.to_le_bytes(), [0; 4]];
        let record = record.as_flattened();
        let mut page = vec![0; layout.data];
        page[layout.timestamp..][..8].copy_from_slice(&at.0.to_le_bytes());
        // The length and the flags are in the lower word, whatever the size of the field.
        page[layout.commit..][..4].copy_from_slice(&(record.len() as u32).to_le_bytes());
        page.extend(record);
        Page::mark_loss(layout, &mut page);
        page
    }

    /// How many of `bytes` the page uses: header, records and the stored number of lost events. The rest of a
    /// sub-buffer need not be kept.
    #[must_use]
    pub fn used(layout: &PageLayout, bytes: &[u8]) -> usize {
        let Ok(page) = Page::parse(layout, bytes) else {
            return bytes.len();
        };
        let stored = if matches!(page.loss, PageLoss::Lost(_)) {
            8
        } else {
            0
        };
        (layout.data + page.records.len() + stored).min(bytes.len())
    }

    /// Its base time, which no event of it precedes.
    #[must_use]
    pub fn base(&self) -> Ticks {
        Ticks(self.base)
    }

    /// The loss before this page.
    #[must_use]
    pub fn loss(&self) -> PageLoss {
        self.loss
    }

    /// Whether it has all bytes that the header announces.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether it has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Its events, in order.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records {
            time: self.base,
            rest: self.records,
            damaged: !self.complete,
        }
    }

    /// Reads all of its events, for callers that need them more than once.
    #[must_use]
    pub fn read(&self) -> PageRecords<'a> {
        let mut events = Vec::with_capacity(self.records.len() / USUAL_EVENT);
        let mut records = self.records();
        events.extend(records.by_ref());
        PageRecords {
            events,
            loss: self.loss,
            damaged: records.is_damaged(),
        }
    }

    /// Times of the first and last event, without decoding them.
    #[must_use]
    pub fn time_range(&self) -> Option<(Ticks, Ticks)> {
        let mut records = self.records();
        let first = records.next()?.time;
        Some((first, records.last().map_or(first, |record| record.time)))
    }
}

/// The located events of a page.
#[derive(Clone, Debug)]
pub struct PageRecords<'a> {
    pub(crate) events: Vec<RawRecord<'a>>,
    loss: PageLoss,
    damaged: bool,
}

impl PageRecords<'_> {
    /// Times of the first and last event.
    #[must_use]
    pub fn time_range(&self) -> Option<(Ticks, Ticks)> {
        Some((self.events.first()?.time, self.events.last()?.time))
    }

    /// The loss before the page.
    #[must_use]
    pub fn loss(&self) -> PageLoss {
        self.loss
    }

    /// Whether they end in missing or invalid bytes; later events are lost.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }
}

/// Iterates over the events of a page, in order. Ends at the first invalid byte.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    time: u64,
    rest: &'a [u8],
    damaged: bool,
}

impl<'a> Records<'a> {
    /// Whether the records ended because of missing or invalid bytes; later events are lost.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damaged
    }

    fn damage(&mut self) -> Option<RawRecord<'a>> {
        self.damaged = true;
        self.rest = &[];
        None
    }

    /// Splits `length` bytes off the rest, and skips their alignment.
    fn take(&mut self, from: &'a [u8], length: usize) -> Option<&'a [u8]> {
        let (data, _) = from.split_at_checked(length)?;
        // The last record of a truncated page may miss its alignment.
        self.rest = from.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(data)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = RawRecord<'a>;

    fn next(&mut self) -> Option<RawRecord<'a>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let Some((head, body)) = word(self.rest) else {
                return self.damage();
            };
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            if kind == TYPE_ABSOLUTE {
                let Some((high, rest)) = word(body) else {
                    return self.damage();
                };
                let carried = u64::from(high) << DELTA_BITS | delta;
                let top = self.time & INHERITED;
                let absolute = top | carried;
                // The lower bits wrapped since the previous time (the kernel uses the same test).
                let wrapped = top != 0 && absolute < self.time;
                self.time = if wrapped {
                    absolute.wrapping_add(1 << 59)
                } else {
                    absolute
                };
                self.rest = rest;
                continue;
            }
            self.time = self.time.wrapping_add(delta);
            match kind {
                TYPE_TIME_EXTEND => {
                    let Some((high, rest)) = word(body) else {
                        return self.damage();
                    };
                    self.time = self.time.wrapping_add(u64::from(high) << DELTA_BITS);
                    self.rest = rest;
                }
                TYPE_PADDING if delta == 0 => {
                    self.rest = &[];
                    return None;
                }
                TYPE_PADDING | 0 => {
                    let Some((length, data)) = word(body) else {
                        return self.damage();
                    };
                    // The length includes the word that holds it.
                    let Some(length) = (length as usize).checked_sub(4) else {
                        return self.damage();
                    };
                    let Some(data) = self.take(data, length) else {
                        return self.damage();
                    };
                    if kind == 0 {
                        return Some(RawRecord {
                            time: Ticks(self.time),
                            data,
                        });
                    }
                }
                _ => {
                    let Some(data) = self.take(body, kind as usize * 4) else {
                        return self.damage();
                    };
                    return Some(RawRecord {
                        time: Ticks(self.time),
                        data,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
