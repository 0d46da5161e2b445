//! Any bytes as a pipeline's journal.
#![no_main]

use jitterscope_model::{JournalEntry, JournalError, JournalReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let read: Vec<_> = JournalReader::new(bytes).collect();
    let good: Vec<JournalEntry> = read.iter().map_while(|entry| entry.ok()).collect();
    let whole = good.len() * JournalEntry::SIZE;
    let again: Vec<u8> = good.iter().flat_map(|entry| entry.to_bytes()).collect();
    assert_eq!(again, &bytes[..whole]);
    match &read[good.len()..] {
        // What is left may only be room that was never used.
        [] => assert!(bytes[whole..].iter().all(|byte| *byte == 0)),
        [Err(JournalError::Marker { offset })] => assert_eq!(*offset, whole as u64),
        [
            Err(JournalError::Cut {
                offset,
                bytes: left,
            }),
        ] => {
            assert_eq!((*offset, *left), (whole as u64, bytes.len() - whole));
        }
        more => panic!("a reader goes on behind an error: {more:?}"),
    }
});
