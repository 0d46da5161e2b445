//! Periods of many culprits with limited effort.

use jitterscope_analyze::periods::{Effort, FALSE_ALARM, PeriodSearch, PeriodSummary};
use jitterscope_model::*;

const RATE: TickRate = TickRate::NANOSECONDS;
const SECOND: u64 = 1_000_000_000;

/// A stall of CPU 1 with one culprit.
fn stalled(id: u64, at: u64, name: &str, net: u64) -> (Stall, Attribution) {
    let stall = Stall {
        id: StallId(id),
        cpu: CpuId(1),
        victim: ThreadRef {
            tid: 1,
            comm: Comm::default(),
        },
        start: Ticks(at),
        end: Ticks(at + net),
    };
    let timer = Subject::Timer {
        function: Some(name.into()),
        source: None,
    };
    let part = Part::inside(timer, Nanos(net), Evidence::TimerRecords);
    (
        stall,
        Attribution {
            stall: StallId(id),
            parts: vec![part],
        },
    )
}

/// Culprits c0, c1, ..., each every 100 ms for ten seconds, each stealing more than the one before.
fn search(culprits: u64, effort: Effort) -> PeriodSummary {
    let mut search = PeriodSearch::new(effort);
    for n in 0..100 {
        for c in 0..culprits {
            let at = n * SECOND / 10 + c * 1_300_000;
            let (stall, attribution) =
                stalled(n * culprits + c, at, &format!("c{c}"), 1_000 + c * 10);
            search.add(&stall, Some(&attribution));
        }
    }
    search
        .finish(Ticks(0), Ticks(10 * SECOND), RATE, FALSE_ALARM)
        .into()
}

#[test]
fn those_who_stole_most_are_searched_within_the_effort() {
    let little = Effort {
        cost: 1000,
        ..Effort::BRIEF
    };
    let found = search(20, little);
    assert!(found.searched > 0 && found.left_out > 0, "{found:?}");
    assert_eq!(found.searched + found.left_out, 20);
    let mut names: Vec<String> = found
        .rows
        .iter()
        .map(|row| row.name.as_deref().unwrap().to_owned())
        .collect();
    names.sort();
    let mut expected: Vec<String> = (20 - found.searched..20).map(|c| format!("c{c}")).collect();
    expected.sort();
    assert_eq!(names, expected);
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.period_ns.0.abs_diff(SECOND / 10) < 20_000),
        "{found:?}"
    );

    let all = search(20, Effort::BRIEF);
    assert_eq!((all.searched, all.left_out, all.rows.len()), (20, 0, 20));
}

#[test]
fn memory_has_a_limit_and_what_it_refused_is_reported() {
    let narrow = Effort {
        times: 30,
        groups: 4,
        cost: u64::MAX,
    };
    let found = search(6, narrow);
    // Three culprits, because the CPU itself is a group too.
    assert_eq!((found.searched, found.left_out), (3, 1));
    assert!(
        found
            .rows
            .iter()
            .all(|row| row.stalls == 30 && row.hit_fraction > 0.9),
        "{found:?}"
    );
}

#[test]
fn bursts_and_a_crowd_are_no_period() {
    let mut search = PeriodSearch::new(Effort::BRIEF);
    // Three bursts of many stalls at random distances.
    let mut id = 0;
    for burst in [SECOND, 3 * SECOND + 70_000_000, 7 * SECOND + 10_000_000] {
        for n in 0..17 {
            let (stall, attribution) = stalled(id, burst + n * n * 970_000, "burst", 2_000);
            search.add(&stall, Some(&attribution));
            id += 1;
        }
    }
    let found: PeriodSummary = search
        .finish(Ticks(0), Ticks(10 * SECOND), RATE, FALSE_ALARM)
        .into();
    assert_eq!((found.searched, found.rows.len()), (1, 0), "{found:?}");
}

#[test]
fn a_tick_is_called_by_its_name() {
    let mut search = PeriodSearch::new(Effort::BRIEF);
    for n in 0..2500 {
        let (stall, attribution) =
            stalled(n, n * 4_000_000 + n * 7 % 900, "tick_nohz_handler", 2_000);
        search.add(&stall, Some(&attribution));
    }
    let found: PeriodSummary = search
        .finish(Ticks(0), Ticks(10 * SECOND), RATE, FALSE_ALARM)
        .into();
    assert_eq!(found.rows.len(), 1, "{found:?}");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["rows"][0]["kind"], "timer");
    assert!(
        json["rows"][0]["known"]
            .as_str()
            .unwrap()
            .contains("HZ=250"),
        "{json}"
    );
    assert_eq!(json["left_out"], 0);
}
