use super::*;
use proptest::prelude::*;

fn layout() -> PageLayout {
    PageLayout::parse(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n",
    )
    .unwrap()
}

/// Builds a page by hand.
struct Writer {
    base: u64,
    words: Vec<u32>,
}

impl Writer {
    fn new(base: u64) -> Writer {
        Writer {
            base,
            words: Vec::new(),
        }
    }

    fn head(&mut self, kind: u32, delta: u32) -> &mut Writer {
        self.words.push(kind | delta << 5);
        self
    }

    fn words(&mut self, words: &[u32]) -> &mut Writer {
        self.words.extend_from_slice(words);
        self
    }

    fn page(&self, flags: u64, after: &[u8]) -> Vec<u8> {
        let mut page = self.base.to_le_bytes().to_vec();
        page.extend(((self.words.len() as u64 * 4) | flags).to_le_bytes());
        page.extend(self.words.iter().flat_map(|w| w.to_le_bytes()));
        page.extend(after);
        page.resize(4096.max(page.len()), 0);
        page
    }
}

fn read(page: &[u8]) -> (Vec<(u64, Vec<u8>)>, bool) {
    let page = Page::parse(&layout(), page).unwrap();
    let mut records = page.records();
    let list = records
        .by_ref()
        .map(|r| (r.time.0, r.data.to_vec()))
        .collect();
    (list, records.is_damaged())
}

#[test]
fn short_and_long_events_carry_their_bytes() {
    let mut w = Writer::new(1000);
    w.head(2, 0).words(&[0x1111_1111, 0x2222_2222]);
    // Nine bytes and the word that counts them: 13, rounded up to 16.
    w.head(0, 7).words(&[13, 0x0403_0201, 0x0807_0605, 0x09]);
    w.head(1, 3).words(&[5]);
    let (records, damaged) = read(&w.page(0, &[]));
    assert!(!damaged);
    assert_eq!(records.len(), 3);
    assert_eq!(
        records[0],
        (1000, vec![0x11, 0x11, 0x11, 0x11, 0x22, 0x22, 0x22, 0x22])
    );
    assert_eq!(records[1], (1007, (1..=9).collect()));
    assert_eq!(records[2], (1010, vec![5, 0, 0, 0]));
}

#[test]
fn padding_adds_its_delta_and_hides_its_bytes() {
    let mut w = Writer::new(10);
    w.head(29, 5).words(&[8, 0xffff_ffff]);
    w.head(1, 1).words(&[7]);
    w.head(29, 0).words(&[1, 2, 3]);
    let (records, damaged) = read(&w.page(0, &[]));
    assert_eq!((records, damaged), (vec![(16, vec![7, 0, 0, 0])], false));
}

#[test]
fn long_deltas_and_absolute_times() {
    let mut w = Writer::new(0b10001 << 59 | 77);
    w.head(30, 3).words(&[2]);
    w.head(1, 1).words(&[1]);
    w.head(31, 9).words(&[4]);
    w.head(1, 2).words(&[2]);
    let (records, _) = read(&w.page(0, &[]));
    let top = 0b10001u64 << 59;
    assert_eq!(records[0].0, (top | 77) + 3 + (2 << 27) + 1);
    assert_eq!(records[1].0, (top | 4 << 27 | 9) + 2);
}

#[test]
fn an_absolute_time_that_wrapped_moves_on_to_the_next_top_bits() {
    let top = 0b00001u64 << 59;
    let mut w = Writer::new(top | ((1 << 59) - 5));
    w.head(31, 6).words(&[0]);
    w.head(1, 0).words(&[2]);
    assert_eq!(read(&w.page(0, &[])).0[0].0, (0b00010u64 << 59) | 6);
}

#[test]
fn loss_is_read_from_the_flags() {
    let mut w = Writer::new(0);
    w.head(1, 0).words(&[1]);
    let loss = |flags, after: &[u8]| {
        Page::parse(&layout(), &w.page(flags, after))
            .unwrap()
            .loss()
    };
    assert_eq!(loss(0, &[]), PageLoss::None);
    assert_eq!(loss(COMMIT_LOST, &[]), PageLoss::LostUnknown);
    assert_eq!(
        loss(COMMIT_LOST | COMMIT_LOST_STORED, &321u64.to_le_bytes()),
        PageLoss::Lost(321)
    );
    let page = w.page(COMMIT_LOST | COMMIT_LOST_STORED, &321u64.to_le_bytes());
    assert_eq!(Page::used(&layout(), &page), 16 + 8 + 8);
    assert_eq!(
        Page::parse(&layout(), &page[..32]).unwrap().loss(),
        PageLoss::Lost(321)
    );
    assert_eq!(
        Page::parse(&layout(), &page[..30]).unwrap().loss(),
        PageLoss::LostUnknown
    );
}

#[test]
fn impossible_lengths_end_the_page_as_damaged() {
    for words in [
        &[0u32, 3][..],
        &[0],
        &[0, 5000],
        &[28, 1],
        &[30],
        &[31],
        &[29 | 1 << 5, 2],
        &[29 | 1 << 5],
    ] {
        let (records, damaged) = read(
            &Writer {
                base: 0,
                words: words.to_vec(),
            }
            .page(0, &[]),
        );
        assert_eq!((records.len(), damaged), (0, true), "{words:?}");
    }
    let mut w = Writer::new(0);
    w.head(1, 0).words(&[1]).head(2, 0).words(&[1, 2]);
    let page = w.page(0, &[]);
    let cut = Page::parse(&layout(), &page[..28]).unwrap();
    let mut records = cut.records();
    assert!(!cut.is_complete() && records.by_ref().count() == 1 && records.is_damaged());
    assert!(Page::parse(&layout(), &page[..15]).is_err());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), commit in any::<u32>()) {
        let mut bytes = bytes;
        if let Some(field) = bytes.get_mut(8..12) {
            field.copy_from_slice(&(commit & 0xc000_03ff).to_le_bytes());
        }
        if let Ok(page) = Page::parse(&layout(), &bytes) {
            let n = page.records().count();
            prop_assert!(n <= bytes.len() / 4);
            prop_assert_eq!(page.time_range().is_some(), n > 0);
            let (all, mut one_by_one) = (page.read(), page.records());
            prop_assert!(all.events.iter().copied().eq(one_by_one.by_ref()));
            prop_assert_eq!((all.is_damaged(), all.loss()), (one_by_one.is_damaged(), page.loss()));
            prop_assert_eq!(all.time_range(), page.time_range());
        }
        prop_assert!(Page::used(&layout(), &bytes) <= bytes.len());
    }

    #[test]
    fn what_was_written_is_read(events in prop::collection::vec((0u32..1 << 27, prop::collection::vec(any::<u32>(), 1..40)), 0..20), base in 0u64..1 << 58) {
        let mut w = Writer::new(base);
        let mut expected = Vec::new();
        let mut time = base;
        for (delta, words) in &events {
            time += u64::from(*delta);
            if words.len() <= 28 {
                w.head(words.len() as u32, *delta);
            } else {
                w.head(0, *delta).words(&[words.len() as u32 * 4 + 4]);
            }
            w.words(words);
            expected.push((time, words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>()));
        }
        let page = w.page(0, &[]);
        prop_assert_eq!(read(&page), (expected.clone(), false));
        let range = Page::parse(&layout(), &page).unwrap().time_range();
        prop_assert_eq!(range.map(|(a, b)| (a.0, b.0)), expected.first().zip(expected.last()).map(|(a, b)| (a.0, b.0)));
    }
}

#[test]
fn a_page_of_loss_has_a_time_and_no_event() {
    for size in [4, 8] {
        let text = format!(
            "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             \tfield: local_t commit;\toffset:8;\tsize:{size};\tsigned:1;\n\
             \tfield: char data;\toffset:{};\tsize:4080;\tsigned:0;\n",
            8 + size
        );
        let layout = PageLayout::parse(&text).unwrap();
        let bytes = Page::of_loss(&layout, Ticks(77));
        let page = Page::parse(&layout, &bytes).unwrap();
        assert_eq!(page.loss(), PageLoss::LostUnknown);
        assert_eq!(page.time_range(), Some((Ticks(77), Ticks(77))));
        assert!(page.is_complete() && !page.read().is_damaged());
        assert_eq!(Page::used(&layout, &bytes), bytes.len());
    }
}
