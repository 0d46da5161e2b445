//! Interned names, which many records share.

use jitterscope_model::{KeyedMap, Name};

/// Maximum of interned names; only a hostile trace has more.
const CAPACITY: usize = 4096;

/// Names by their bytes. Any user who runs threads can choose them, so the hash has a secret key: colliding names would
/// slow down every record.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: KeyedMap<Box<[u8]>, Name>,
}

impl Names {
    /// The shared name of these bytes; replaces bytes that are not UTF-8.
    pub(super) fn get(&mut self, bytes: &[u8]) -> Name {
        if let Some(name) = self.known.get(bytes) {
            return name.clone();
        }
        let name: Name = String::from_utf8_lossy(bytes).into();
        if self.known.len() < CAPACITY {
            self.known.insert(bytes.into(), name.clone());
        }
        name
    }
}
