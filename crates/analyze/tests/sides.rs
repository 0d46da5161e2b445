//! What is compared, and what recording cost.

mod common;

use common::{manifest, result, stall};
use jitterscope_analyze::compare::{ComparedRunBuilder, DiffRules, Side, diff};
use jitterscope_analyze::{Price, SummaryBuilder};
use jitterscope_model::*;
use std::path::Path;

fn side(name: &str, runs: u64) -> Side {
    let run = |at: u64| {
        let manifest = RunManifest { id: format!("{name}{at}"), ..manifest(vec![result(1, &[2600])], false) };
        let mut builder = ComparedRunBuilder::new(&manifest, None, Path::new("x"));
        builder.stall(&stall(0, 1, 2_000_000, 2600), &Attribution { stall: StallId(0), parts: Vec::new() });
        builder.finish()
    };
    Side::pool(name, (0..runs).map(run).collect()).unwrap()
}

#[test]
fn a_side_was_measured_as_long_as_all_its_runs() {
    let told = diff(&[side("a", 1), side("b", 3)], DiffRules::default(), &[], &|_, _| false);
    let [one, three] = [0, 1].map(|at| told.sides[at].measured_ns.0);
    assert!(one > 1_000_000, "{one}");
    assert!(three.abs_diff(3 * one) < 3, "{one} {three}");
    assert_eq!(told.sides[1].runs.len(), 3);
}

/// Of a run of a probe of this kind, and how long it measured, in nanoseconds.
fn price(kind: &str) -> (Price, f64) {
    let mut manifest = manifest(vec![result(1, &[2600, 26_000])], true);
    manifest.probe.kind = kind.into();
    manifest.host.online = "0-3".parse().unwrap();
    manifest.self_noise.events = Some(EventPrice {
        on_measured: 11,
        record: Some(RecordCost { warm_ns: Nanos(100), cold_ns: Nanos(500) }),
        ..EventPrice::default()
    });
    (SummaryBuilder::new(&manifest).finish().trust.price.unwrap(), manifest.duration().0 as f64)
}

#[test]
fn what_records_took_is_a_share_of_the_stolen_time_only_where_a_probe_spun() {
    let near = |a: Option<f64>, b: f64| (a.unwrap() - b).abs() < 1e-9;
    let taken = |kind| {
        let (price, duration) = price(kind);
        (price.taken.unwrap(), duration)
    };
    let (spun, duration) = taken("spin");
    assert_eq!((spun.least_ns, spun.most_ns), (Nanos(1_100), Nanos(5_500)));
    // Of the eleven microseconds of the two stalls, and of all time of one CPU.
    assert!(near(spun.least_of_stolen, 0.1) && near(spun.most_of_stolen, 0.5), "{spun:?}");
    assert!(near(Some(spun.most_of_time), 5_500.0 / duration), "{spun:?}");
    let (slept, _) = taken("wakeup");
    assert_eq!((slept.least_of_stolen, slept.most_of_stolen), (None, None));
    // Who follows threads records all CPUs.
    let (followed, duration) = taken("attach");
    assert!(near(Some(followed.most_of_time), 5_500.0 / duration / 4.0), "{followed:?}");
}
