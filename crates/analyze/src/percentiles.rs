//! Percentiles as reports have them.

use crate::FineNanos;
use std::collections::BTreeMap;

/// Percentiles by name (`"99.9"`); null where too little was seen to tell.
pub type Percentiles = BTreeMap<&'static str, Option<FineNanos>>;
