//! Maps with keys that other users choose: names of threads, processes and control groups.

use std::collections::{HashMap, HashSet};

/// Hashes with random keys per map, so that names chosen to collide do not collide and cannot slow down every record.
/// Several times as fast as the standard library's hash for short keys.
pub type Keyed = ahash::RandomState;

/// A map with keys that others choose.
pub type KeyedMap<K, V> = HashMap<K, V, Keyed>;

/// A set of values that others choose.
pub type KeyedSet<K> = HashSet<K, Keyed>;
