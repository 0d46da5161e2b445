use super::*;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

/// An hour of a host with `culprits` culprits, a bucket and a stall of two parts.
fn hour(host: &str, hour: u64, culprits: u64) -> HostHour {
    let part = |name: &str, time_ns| RollupPart {
        kind: "thread".into(),
        name: name.into(),
        owner: Some("unit:backup.service".into()),
        phase: None,
        time_ns,
    };
    let group = GroupHour {
        cpus: "2-5".parse().unwrap(),
        stalls: 7,
        stalled_ns: 70,
        longest_ns: 20,
        measured_ns: 4 * 3_600_000_000_000,
        lost: 3,
        culprits: (0..culprits)
            .map(|n| RollupCulprit {
                kind: "thread".into(),
                name: format!("t{n}"),
                owner: None,
                count: n,
                time_ns: 10 * n,
                longest_ns: n,
            })
            .collect(),
        buckets: vec![RollupBucket {
            key: STALLS_KEY.into(),
            bucket: -40,
            count: 7,
        }],
        longest: vec![RollupStall {
            cpu: 3,
            start_ns: 1_700_000_000_000_000_001,
            length_ns: 20,
            parts: vec![part("tar", 15), part("gzip", 5)],
        }],
    };
    HostHour {
        host: RollupHost {
            id: host.into(),
            name: format!("{host}.example"),
            boot: "0123abcd".into(),
            ..RollupHost::default()
        },
        hour,
        clock_ahead_s: None,
        groups: vec![group],
    }
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn merged(files: &[Vec<u8>], known: &BTreeSet<String>) -> Merged {
    let path = Path::new("x.parquet");
    let sources = files.iter().map(|bytes| (file(bytes), path)).collect();
    merge(sources, &|name| known.contains(name)).unwrap()
}

#[test]
fn merging_keeps_every_row_of_every_batch_once() {
    let none = BTreeSet::new();
    let of = |host: &str, culprits| {
        let hour = hour(host, 472_222, culprits);
        let name = object_name(
            &hour.host,
            "cpus-2-5",
            &HourFile::new(hour.hour, "0123abcd"),
        );
        (encode(&hour, &name).unwrap(), name)
    };
    let ((a, name_a), (b, name_b)) = (of("aa", 64), of("bb", 2000));
    let both = merged(&[a.clone(), b.clone(), a.clone()], &none);
    // An hour, its culprits, a bucket, a stall, two parts.
    assert_eq!(both.rows, (1 + 64 + 4) + (1 + 2000 + 4));
    assert_eq!(
        both.batches,
        BTreeSet::from([name_a.clone(), name_b.clone()])
    );
    let listed = batches(file(&both.file), Path::new("x")).unwrap();
    assert_eq!(listed, both.batches);
    // Merging what is merged changes nothing.
    let again = merged(std::slice::from_ref(&both.file), &none);
    assert_eq!((again.rows, &again.batches), (both.rows, &both.batches));
    assert_eq!(again.file, both.file);
    // What is known stays out.
    let rest = merged(&[a, b], &BTreeSet::from([name_b]));
    assert_eq!((rest.rows, rest.batches), (69, BTreeSet::from([name_a])));
}

#[test]
fn damaged_files_are_refused_and_named() {
    let hour = hour("aa", 1, 1);
    let good = encode(&hour, "x").unwrap();
    for bytes in [
        &good[..good.len() / 2],
        &good[..good.len() - 1],
        b"PAR1",
        b"",
    ] {
        let sources = vec![(file(bytes), Path::new("bad.parquet"))];
        let error = merge(sources, &|_| false).unwrap_err().to_string();
        assert!(error.contains("bad.parquet"), "{error}");
    }
}

#[test]
fn names_of_hours_are_read_back() {
    let file = HourFile::new(472_222, "A1B2-c3d4-e5f6");
    assert_eq!(file.name(), "0000472222-a1b2c3d4.json");
    let second = HourFile {
        number: 2,
        is_sent: true,
        ..file.clone()
    };
    assert_eq!(second.name(), "0000472222-a1b2c3d4-2.sent.json");
    for known in [file, second] {
        assert_eq!(HourFile::parse(&known.name()), Some(known));
    }
    for other in [
        "0000472222.json",
        "x-a1b2c3d4.json",
        "472222-a1b2c3d4.json",
        "0000472222-A1B2C3D4.json",
        "0000472222-a1b2c3d4-1.json",
        "0000472222-a1b2c3d4.json.sent",
        ".partial",
    ] {
        assert_eq!(HourFile::parse(other), None, "{other}");
    }
}

#[test]
fn paths_have_only_letters_that_stores_and_engines_take() {
    let host = RollupHost {
        id: "f00d".into(),
        ..RollupHost::default()
    };
    let name = object_name(&host, "cpus-1,3-5", &HourFile::new(1, "ab"));
    assert_eq!(name, "0000000001-ab-f00d-cpus-1+3-5");
    assert_eq!(
        raw_folder("a/../b =", "2026-11-28"),
        "v1/raw/cluster=a_.._b__/day=2026-11-28"
    );
}

/// A full hour of a group: 64 culprits and others of nine kinds, ten histograms, eight stalls of eight parts.
fn full(cpus: &str, seed: u64) -> GroupHour {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut number = || random.u64(1_000_000..100_000_000_000);
    let kinds = [
        "thread",
        "irq",
        "softirq",
        "timer",
        "ipi",
        "work",
        "hypervisor",
        "unresolved",
        "smi",
    ];
    let culprit = |kind: &str, name: String, time_ns: u64| RollupCulprit {
        kind: kind.into(),
        name,
        owner: (kind == "thread").then(|| format!("unit:service-{}.service", time_ns % 40)),
        count: time_ns / 10_000,
        time_ns,
        longest_ns: time_ns / 100,
    };
    let mut culprits: Vec<RollupCulprit> = (0..64)
        .map(|n| culprit(kinds[n % 9], format!("culprit-{n}"), number()))
        .collect();
    culprits.extend(kinds.map(|kind| culprit(kind, OTHERS.into(), number())));
    let keys = kinds
        .map(key_of_kind)
        .into_iter()
        .chain([STALLS_KEY.into()]);
    let buckets = keys.flat_map(|key| {
        (-88..-48).map(move |bucket| RollupBucket {
            key: key.clone(),
            bucket,
            count: 100_000_u64 >> ((bucket + 88) / 4),
        })
    });
    let buckets = buckets.collect();
    let longest = (0..8).map(|n| RollupStall {
        cpu: n,
        start_ns: 1_700_000_000_000_000_000 + number(),
        length_ns: number(),
        parts: (0..8)
            .map(|n| RollupPart {
                kind: kinds[n].into(),
                name: format!("culprit-{n}"),
                owner: None,
                phase: None,
                time_ns: number(),
            })
            .collect(),
    });
    GroupHour {
        cpus: cpus.parse().unwrap(),
        longest: longest.collect(),
        culprits,
        buckets,
        ..hour("x", 1, 0).groups.remove(0)
    }
}

#[test]
fn a_host_hour_is_small_also_with_many_cpus() {
    for (groups, most) in [(1_u32, 16 << 10), (2, 24 << 10), (8, 64 << 10)] {
        let of = HostHour {
            groups: (0..groups)
                .map(|n| full(&format!("{}-{}", 32 * n, 32 * n + 31), n.into()))
                .collect(),
            ..hour("aa", 472_222, 0)
        };
        let bytes = encode(&of, "x").unwrap().len();
        println!("{groups} groups: {bytes} bytes");
        assert!(bytes < most, "{groups} groups: {bytes} bytes");
    }
}
