//! A journal of `tune` written by a test, with valid checksums.

/// JSON records, one per line, sealed as `tune` seals them.
///
/// # Panics
/// If a record is not an object.
#[must_use]
pub fn sealed_journal(records: impl IntoIterator<Item = String>) -> String {
    let mut chain = 0_u32;
    let mut text = String::new();
    for record in records {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&chain.to_le_bytes());
        hasher.update(record.as_bytes());
        chain = hasher.finalize();
        let open = record.strip_suffix('}').expect("an object");
        text += &format!("{open},\"chain\":\"{chain:08x}\"}}\n");
    }
    text
}
