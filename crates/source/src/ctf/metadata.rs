//! The file `metadata`: its text, plain or in packets.

use super::error::CtfError;

/// The longest text that is read, bytes: a kernel's has less than one megabyte.
pub const LONGEST: usize = 16 << 20;
/// The first word of a packet.
const MAGIC: u32 = 0x75d1_1d57;
/// The head of a packet: magic, UUID, checksum, content, size, compression, encryption, checksum scheme, version.
const HEAD: usize = 37;

/// The text of the metadata.
///
/// # Errors
/// The file is of another version, or its packets cannot be.
pub(super) fn text(bytes: &[u8]) -> Result<String, CtfError> {
    let word = bytes.first_chunk::<4>();
    let is_big = match word {
        Some(word) if u32::from_le_bytes(*word) == MAGIC => false,
        Some(word) if u32::from_be_bytes(*word) == MAGIC => true,
        _ => {
            if bytes.starts_with(b"{") || bytes.starts_with(b"[") || bytes.starts_with(b"\x1e") {
                return Err(CtfError::Version2);
            }
            return Ok(String::from_utf8_lossy(bytes).into_owned());
        }
    };
    let mut text = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(head) = rest.get(..HEAD) else {
            break;
        };
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            match is_big {
                true => u32::from_be_bytes(bytes),
                false => u32::from_le_bytes(bytes),
            }
        };
        let why = |why| CtfError::Packet { why };
        if word(0) != MAGIC {
            return Err(why("has no mark"));
        }
        let (content, size) = (word(24) as usize / 8, word(28) as usize / 8);
        let (schemes, version) = (&head[32..35], (head[35], head[36]));
        if version != (1, 8) {
            let (major, minor) = (version.0.into(), version.1.into());
            return Err(CtfError::Version { major, minor });
        }
        if schemes[..2] != [0, 0] {
            return Err(why("is compressed or encrypted"));
        }
        if content < HEAD || size < content {
            return Err(why("has an impossible length"));
        }
        // A packet that is cut off is read as far as it goes.
        text.extend_from_slice(&rest[HEAD..content.min(rest.len()).max(HEAD)]);
        rest = rest.get(size..).unwrap_or_default();
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}
