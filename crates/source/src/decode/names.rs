//! Names that many records share, made once.

use jitterscope_model::{KeyedMap, Name};

/// How many different names are kept; more than that only a hostile trace has.
const CAPACITY: usize = 4096;

/// Names by their bytes. Whoever may run threads chooses these, so they are hashed with a secret: names that fall
/// together would make every record slow.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: KeyedMap<Box<[u8]>, Name>,
}

impl Names {
    /// The shared name of these bytes; what is not UTF-8 is replaced.
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
