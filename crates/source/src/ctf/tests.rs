//! Tests on traces that are made here.
