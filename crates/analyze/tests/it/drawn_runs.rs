//! Pictures of synthetic runs: lanes, culprits and part properties, up to their limits.

use crate::common;

use common::{manifest, part, result, stall, with_control};
use jitterscope_analyze::SummaryBuilder;
use jitterscope_analyze::picture::{
    DrawnPart, DrawnStall, Lane, Picture, PictureBuilder, summary_row,
};
use jitterscope_model::*;

fn drawn(manifest: &RunManifest, rows: &[(Stall, Vec<Part>)]) -> Picture {
    let mut builder = PictureBuilder::new(manifest, rows.len() as u64, 1_000_000);
    for (stall, parts) in rows {
        builder.stall(stall);
        builder.attribution(&Attribution {
            stall: stall.id,
            parts: parts.clone(),
        });
    }
    builder.finish()
}

fn named(name: &str, net: u64) -> Part {
    part(CulpritKind::Timer, name, net)
}

/// A run of followed threads.
fn followed(accounts: Vec<ThreadAccount>) -> RunManifest {
    RunManifest {
        threads: accounts,
        ..manifest(Vec::new(), true)
    }
}

fn of_thread(id: u64, tid: i32, comm: &str) -> Stall {
    let victim = ThreadRef {
        tid,
        comm: Comm::new(comm),
    };
    Stall {
        victim,
        ..stall(id, 0, 1_000 + id, 2_600)
    }
}

#[test]
fn the_largest_part_is_the_first_of_equals() {
    let of = |nets: &[u64]| {
        let parts = (0..).zip(nets);
        let parts = parts
            .map(|(sort, net)| DrawnPart {
                sort,
                net: Nanos(*net),
                gross: Nanos(100),
                turns: 1,
            })
            .collect();
        let (start, length) = (Nanos(0), Nanos(100));
        DrawnStall {
            id: StallId(0),
            lane: 0,
            cpu: CpuId(0),
            start,
            length,
            parts,
        }
        .largest()
        .map(|part| part.sort)
    };
    assert_eq!(
        [
            of(&[]),
            of(&[5]),
            of(&[1, 7, 3]),
            of(&[7, 1, 7]),
            of(&[0, 0])
        ],
        [None, Some(0), Some(1), Some(0), Some(0)]
    );
}

#[test]
fn each_cpu_has_a_lane_also_one_that_nothing_stalled() {
    let manifest = manifest(
        vec![result(4, &[]), result(2, &[2_600]), result(3, &[])],
        true,
    );
    // CPU 7 has no result: a truncated run may have such a row.
    let rows = [(0, 2), (1, 7), (2, 4), (3, 7)]
        .map(|(id, cpu)| (stall(id, cpu, 2_000_000 + id, 2_600), vec![]));
    let picture = drawn(&manifest, &rows);
    assert_eq!(picture.lanes, [4, 2, 3, 7].map(|cpu| Lane::Cpu(CpuId(cpu))));
    assert_eq!(
        picture.stalls.iter().map(|of| of.lane).collect::<Vec<_>>(),
        [1, 3, 0, 3]
    );
    assert_eq!(
        (picture.stalls_read, picture.stalls[0].length),
        (4, Nanos(1_000))
    );
    assert_eq!(picture.offsets.counts.iter().sum::<u64>(), 4);
}

#[test]
fn a_threads_lane_has_its_role_else_its_name_else_the_victims() {
    let account = |tid, comm: &str, role: Option<&str>| ThreadAccount {
        tid,
        comm: comm.into(),
        role: role.map(str::to_owned),
        ..ThreadAccount::default()
    };
    let manifest = followed(vec![
        account(11, "worker", None),
        account(12, "js-x", Some("producer")),
        account(13, "", None),
    ]);
    let rows = [11, 12, 13, 14, 11].into_iter().zip(0..);
    let rows: Vec<_> = rows
        .map(|(tid, id)| (of_thread(id, tid, "victim"), vec![]))
        .collect();
    let picture = drawn(&manifest, &rows);
    let lane = |(tid, name): (i32, &str)| Lane::Thread {
        tid,
        name: name.into(),
    };
    let expected = [
        (11, "worker"),
        (12, "producer"),
        (13, "victim"),
        (14, "victim"),
    ]
    .map(lane);
    assert_eq!(picture.lanes, expected);
    assert_eq!(
        picture.stalls.iter().map(|of| of.lane).collect::<Vec<_>>(),
        [0, 1, 2, 3, 0]
    );
    // The manifest has no distribution: it is that of the rows.
    assert_eq!(picture.curves.len(), 1);
    assert_eq!(
        (picture.curves[0].count, picture.curves[0].longest().1),
        (5, 1_000.0)
    );
}

#[test]
fn threads_beyond_a_thousand_share_the_last_lane() {
    let rows: Vec<_> = (0..1_030)
        .map(|n| (of_thread(n, n as i32 + 1, "x"), vec![]))
        .collect();
    let picture = drawn(&followed(Vec::new()), &rows);
    assert_eq!(picture.lanes.len(), 1_025);
    assert_eq!(
        picture.lanes[1_023],
        Lane::Thread {
            tid: 1_024,
            name: "x".into()
        }
    );
    assert_eq!(picture.lanes[1_024], Lane::Others);
    for (n, drawn) in picture.stalls.iter().enumerate() {
        assert_eq!(drawn.lane, n.min(1_024), "thread {n}");
    }
}

#[test]
fn culprits_are_by_total_and_a_stall_counts_once() {
    let manifest = manifest(vec![result(1, &[])], true);
    let parts = [
        vec![named("small", 5), named("large", 40), named("small", 7)],
        vec![named("large", 60), named("large", 30)],
        vec![named("small", 9)],
        vec![],
    ];
    let rows: Vec<_> = (0..)
        .zip(parts)
        .map(|(id, parts)| (stall(id, 1, 2_000_000 + id, 2_600), parts))
        .collect();
    let picture = drawn(&manifest, &rows);
    let reported: Vec<_> = picture
        .culprits
        .iter()
        .map(|of| {
            (
                of.subject.name().into_owned(),
                of.count,
                of.total.0,
                of.max.0,
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("large".to_owned(), 2, 130, 90),
            ("small".to_owned(), 2, 21, 12)
        ]
    );
    // Parts refer to their culprit's place in that order.
    let of_first: Vec<_> = picture.stalls[0]
        .parts
        .iter()
        .map(|of| (picture.sorts[of.sort].culprit, of.net.0))
        .collect();
    assert_eq!(of_first, [(1, 5), (0, 40), (1, 7)]);
}

#[test]
fn what_stalled_the_idle_control_is_drawn_and_not_summed_up() {
    let mut manifest = manifest(vec![result(1, &[]), result(3, &[])], true);
    manifest.probe.wakeup = Some(with_control(3));
    let rows = [(0, 1, 10), (1, 3, 100), (2, 1, 30)]
        .map(|(id, cpu, net)| (stall(id, cpu, 2_000_000, 2_600), vec![named("tick", net)]));
    let picture = drawn(&manifest, &rows);
    assert_eq!((picture.stalls_read, picture.stalls.len()), (3, 3));
    assert!(picture.stalls.iter().all(|of| of.parts.len() == 1));
    assert_eq!(picture.offsets.counts.iter().sum::<u64>(), 2);
    let tick = &picture.culprits[0];
    assert_eq!(
        (tick.count, tick.total, tick.max),
        (2, Nanos(40), Nanos(30))
    );
}

#[test]
fn parts_of_one_sort_differ_in_lengths_alone() {
    let manifest = manifest(vec![result(1, &[])], true);
    let moved = Part {
        moved_from: Some(CpuId(0)),
        ..named("a", 3)
    };
    let rows = vec![
        (
            stall(0, 1, 2_000_000, 2_600),
            vec![named("a", 1), named("b", 1), moved.clone()],
        ),
        (stall(1, 1, 2_100_000, 2_600), vec![moved, named("a", 2)]),
    ];
    let picture = drawn(&manifest, &rows);
    let sorts: Vec<Vec<usize>> = picture
        .stalls
        .iter()
        .map(|of| of.parts.iter().map(|part| part.sort).collect())
        .collect();
    assert_eq!(sorts, [vec![0, 1, 2], vec![2, 0]]);
    for sort in &picture.sorts {
        let part = sort.part.as_ref().unwrap();
        assert_eq!(
            (part.net, part.gross),
            (Nanos::ZERO, Nanos::ZERO),
            "lengths are each part's own"
        );
        assert_eq!(part.culprit.subject, picture.culprits[sort.culprit].subject);
    }
}

#[test]
fn beyond_the_sorts_told_apart_each_culprit_has_one() {
    const MOST: u32 = 16_384;
    let manifest = manifest(vec![result(1, &[])], true);
    let others = |name: &str, n| Part {
        others_stalled: Some(n),
        ..named(name, 1)
    };
    let mut parts: Vec<Part> = (0..MOST).map(|n| others("a", n)).collect();
    parts.extend([
        others("b", 1),
        others("a", MOST + 1),
        others("b", 2),
        others("a", 0),
        others("a", MOST + 2),
    ]);
    let picture = drawn(&manifest, &[(stall(0, 1, 2_000_000, 2_600), parts)]);
    let most = MOST as usize;
    let last: Vec<usize> = picture.stalls[0].parts[most - 1..]
        .iter()
        .map(|part| part.sort)
        .collect();
    assert_eq!(last, [most - 1, most, most + 1, most, 0, most + 1]);
    assert_eq!(picture.sorts.len(), most + 2);
    let rest = |at: usize| {
        let culprit = &picture.culprits[picture.sorts[at].culprit];
        (&picture.sorts[at].part, culprit.subject.name().into_owned())
    };
    assert!(picture.sorts[..most].iter().all(|sort| sort.part.is_some()));
    assert_eq!(
        [rest(most), rest(most + 1)],
        [(&None, "b".to_owned()), (&None, "a".to_owned())]
    );
}

#[test]
fn a_culprits_row_of_the_summary_is_found_by_its_subject() {
    let manifest = manifest(vec![result(1, &[])], true);
    let parts = [
        named("a", 600),
        named("b", 300),
        part(CulpritKind::Firmware, "SMI", 100),
    ];
    let mut builder = SummaryBuilder::new(&manifest);
    builder.stall(&stall(0, 1, 2_000_000, 2_600));
    builder.attribution(&Attribution {
        stall: StallId(0),
        parts: parts.to_vec(),
    });
    let summary = builder.finish();
    let total =
        |part: &Part| summary_row(&summary, &part.culprit.subject).map(|row| row.total_ns.0);
    assert_eq!(
        [&parts[0], &parts[1], &parts[2], &named("c", 1)].map(total),
        [Some(600), Some(300), Some(100), None]
    );
}
