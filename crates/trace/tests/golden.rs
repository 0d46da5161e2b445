//! The recorded fixture decodes to what it decoded to before.

#[path = "support/fixture.rs"]
mod fixture;

use jitterscope_model::{EventKind, KernelEvent, Ticks};
use jitterscope_trace::{Decoder, Page, Role, Tasks};
use std::collections::BTreeMap;

/// The variant's name.
fn kind_of(event: &KernelEvent) -> String {
    let text = format!("{:?}", event.kind);
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

#[test]
fn show() {
    let (context, pages) = fixture::read(&fixture::folder());
    let mut decoder = Decoder::new(&context).unwrap();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut firsts = BTreeMap::new();
    for page in &pages {
        decoder.page(page.cpu, &page.bytes, |event| {
            *counts.entry(kind_of(&event)).or_default() += 1;
            firsts.entry(kind_of(&event)).or_insert(event);
        }).unwrap();
    }
    println!("{:?}", decoder.counts());
    println!("{counts:#?}");
    for f in firsts.values() { println!("{f:?}"); }
    println!("{:#?}", context.symbols);
}
