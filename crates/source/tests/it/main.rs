//! The crate's integration tests, linked once.

#[path = "../support/fixture.rs"]
mod fixture;
#[path = "../support/load.rs"]
mod load;

mod golden;
mod graph_page;
mod live;
