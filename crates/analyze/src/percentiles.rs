//! Percentiles as reports have them.

use crate::FineNanos;
use std::collections::BTreeMap;

/// Percentiles by name (`"99.9"`); null if there are too few values.
pub type Percentiles = BTreeMap<&'static str, Option<FineNanos>>;
