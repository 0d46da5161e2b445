//! Maps whose keys other users choose: names of threads, of their processes and control groups.

use std::collections::{HashMap, HashSet};

/// Hashes with keys made anew for each map: names that were chosen to fall together do not, and would otherwise make
/// every record slow. Several times as fast as the standard library's hash on keys as short as these.
pub type Keyed = ahash::RandomState;

/// A map by what others choose.
pub type KeyedMap<K, V> = HashMap<K, V, Keyed>;

/// A set of what others choose.
pub type KeyedSet<K> = HashSet<K, Keyed>;
