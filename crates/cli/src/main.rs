//! `jitterscope`: being wired.
fn main() {}
