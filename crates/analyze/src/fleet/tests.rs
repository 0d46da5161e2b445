use super::*;

/// A host that loses this share, a fifth of it to a timer.
fn host(n: usize, kernel: &str, share: f64) -> (FleetHost, Vec<HostCulprit>) {
    let measured_s = 86_400.0;
    let stolen_s = share * measured_s;
    let of = FleetHost {
        host_id: format!("id{n:04}"),
        host: format!("host{n}"),
        cluster: "c".into(),
        twins: Twins {
            cpu_model: "cpu".into(),
            machine: "box".into(),
            kernel: kernel.into(),
            tuning: "t".into(),
        },
        hours: 24,
        measured_s,
        stolen_s,
        longest_s: 1e-3,
        lost: 0,
    };
    let culprit = |kind: &str, name: &str, part: f64| HostCulprit {
        host_id: of.host_id.clone(),
        kernel: kernel.into(),
        tuning: "t".into(),
        kind: kind.into(),
        name: name.into(),
        stolen_s: part * stolen_s,
    };
    let culprits = vec![
        culprit("timer", "tick", 0.2),
        culprit("thread", "java", 0.8),
    ];
    (of, culprits)
}

fn spread(random: &mut fastrand::Rng) -> f64 {
    let (u, v) = (random.f64().max(f64::MIN_POSITIVE), random.f64());
    let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
    1e-3 * (0.3 * normal).exp()
}

/// Has a culprit take time from a host.
fn take(one: &mut FleetHost, its: &mut Vec<HostCulprit>, kind: &str, name: &str, stolen_s: f64) {
    one.stolen_s += stolen_s;
    its.push(HostCulprit {
        kind: kind.into(),
        name: name.into(),
        stolen_s,
        ..its[0].clone()
    });
}

/// A fleet on two kernels; with `planted`, the second takes half as much again for its softirqs, and a host has bad
/// firmware.
fn fleet(seed: u64, planted: bool) -> FleetFindings {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut hosts, mut culprits) = (Vec::new(), Vec::new());
    for n in 0..60 {
        let kernel = if n % 3 == 0 { "6.12" } else { "6.1" };
        let (mut one, mut its) = host(n, kernel, spread(&mut random));
        let softirq = 2e-4 * one.measured_s * (0.1 * spread(&mut random) / 1e-3).exp();
        let factor = if planted && kernel == "6.12" {
            1.5
        } else {
            1.0
        };
        let bad = if planted && n == 17 {
            0.02 * one.measured_s
        } else {
            0.0
        };
        // So rare that half of the hosts have less than matters.
        let rare = 1e-7 * one.measured_s * spread(&mut random) / 1e-3;
        for (kind, name, time) in [
            ("ipi", "flush", rare),
            ("softirq", "rcu", factor * softirq),
            ("smi", "firmware", bad),
        ] {
            take(&mut one, &mut its, kind, name, time);
        }
        hosts.push(one);
        culprits.extend(its);
    }
    judge(hosts, &culprits, Vec::new())
}

#[test]
fn planted_causes_are_found_and_named() {
    for seed in 0..10 {
        let found = fleet(seed, true);
        let worst = &found.worst[0];
        assert_eq!((worst.host.host.as_str(), worst.twin_hosts), ("host17", 39));
        assert_eq!(
            (&*worst.causes[0].kind, &*worst.causes[0].name),
            ("smi", "firmware")
        );
        assert!(worst.share > 10.0 * worst.twins_share);
        let change = &found.changes[0];
        assert_eq!((change.varied, &*change.second), (Varied::Kernel, "6.12"));
        let figure = change
            .figures
            .iter()
            .find(|of| of.culprit.is_some())
            .unwrap();
        assert_eq!(figure.culprit, Some(("softirq".into(), "rcu".into())));
        let by = figure.comparison.change.unwrap();
        assert!((0.4..0.6).contains(&by), "{by}");
    }
}

/// A fleet of many small groups: six machines, two kernels, two tunings, seven hosts each.
fn mixed(seed: u64, planted: bool) -> FleetFindings {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut hosts, mut culprits) = (Vec::new(), Vec::new());
    for n in 0..168 {
        let (machine, kernel, tuning) = (n % 6, n / 6 % 2, n / 12 % 2);
        let level = (machine as f64 - 2.0).exp2() * if tuning == 0 { 1.0 } else { 0.2 };
        let kernel = if kernel == 0 { "6.1" } else { "6.12" };
        let (mut one, mut its) = host(n, kernel, level * spread(&mut random));
        let factor = if planted && kernel == "6.12" {
            1.3
        } else {
            1.0
        };
        let bad = if planted && n == 17 {
            8.0 * one.stolen_s
        } else {
            0.0
        };
        for (kind, name, time) in [
            (
                "softirq",
                "rcu",
                factor * 0.1 * level * spread(&mut random) * one.measured_s,
            ),
            ("smi", "firmware", bad),
        ] {
            take(&mut one, &mut its, kind, name, time);
        }
        one.twins.machine = format!("box{machine}");
        one.twins.tuning = format!("t{tuning}");
        for of in &mut its {
            of.tuning.clone_from(&one.twins.tuning);
        }
        hosts.push(one);
        culprits.extend(its);
    }
    judge(hosts, &culprits, Vec::new())
}

#[test]
fn small_groups_are_judged_together_and_each_is_a_pair() {
    let mut kernels = 0;
    for seed in 0..10 {
        let found = mixed(seed, true);
        assert_eq!((found.groups, found.without_twins), (24, 0));
        assert_eq!(found.worst[0].host.host, "host17", "seed {seed}");
        assert_eq!(found.worst[0].causes[0].name, "firmware");
        let tuning = found.changes.iter().find(|of| of.varied == Varied::Tuning);
        assert_eq!(tuning.unwrap().groups, 12);
        kernels += usize::from(found.changes.iter().any(|of| {
            let rcu = Some(("softirq".into(), "rcu".into()));
            of.varied == Varied::Kernel && of.figures.iter().any(|figure| figure.culprit == rcu)
        }));
    }
    assert!(kernels >= 7, "{kernels} of 10");
}

#[test]
fn equal_mixed_fleets_give_alarms_as_rarely_as_stated() {
    let (mut worse, mut kernels) = (0, 0);
    const ROUNDS: u64 = 150;
    for seed in 0..ROUNDS {
        let found = mixed(5000 + seed, false);
        worse += u64::from(!found.worst.is_empty());
        let of_kernel = |of: &FleetChange| of.varied == Varied::Kernel;
        kernels += u64::from(found.changes.iter().any(of_kernel));
    }
    // Five in a hundred, and three standard errors.
    let most = ROUNDS / 20 + 8;
    assert!(
        worse <= most && kernels <= most,
        "{worse} and {kernels} of {ROUNDS}"
    );
}

#[test]
fn equal_fleets_give_alarms_as_rarely_as_stated() {
    let (mut worse, mut changed) = (0, 0);
    const ROUNDS: u64 = 200;
    for seed in 0..ROUNDS {
        let found = fleet(1000 + seed, false);
        worse += u64::from(!found.worst.is_empty());
        changed += u64::from(!found.changes.is_empty());
    }
    // Five in a hundred, and three standard errors.
    let most = ROUNDS / 20 + 9;
    assert!(
        worse <= most && changed <= most,
        "{worse} and {changed} of {ROUNDS}"
    );
}

#[test]
fn hosts_without_twins_and_with_little_time_are_counted_and_not_judged() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut hosts: Vec<FleetHost> = (0..20)
        .map(|n| host(n, "6.1", spread(&mut random)).0)
        .collect();
    hosts[3].measured_s /= 100.0;
    hosts[3].lost = 5;
    hosts.push(host(100, "5.10", 1.0).0);
    let found = judge(hosts, &[], Vec::new());
    assert_eq!((found.hosts, found.groups, found.without_twins), (21, 1, 1));
    assert_eq!(
        (found.short, found.lost, found.hosts_with_losses),
        (1, 5, 1)
    );
    assert!(found.worst.is_empty());
}

#[test]
fn an_empty_fleet_has_no_findings() {
    let found = judge(Vec::new(), &[], Vec::new());
    assert_eq!((found.hosts, found.groups), (0, 0));
}

#[test]
fn a_host_that_is_bad_in_one_kind_only_is_found_by_that_kind() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut hosts, mut culprits) = (Vec::new(), Vec::new());
    for n in 0..60 {
        let (mut one, mut its) = host(n, "6.1", spread(&mut random));
        let factor = if n == 30 { 20.0 } else { 1.0 };
        let time = factor * 1e-2 * spread(&mut random) * one.measured_s;
        take(&mut one, &mut its, "firmware", "SMI", time);
        hosts.push(one);
        culprits.extend(its);
    }
    let found = judge(hosts, &culprits, Vec::new());
    assert_eq!(found.worst.len(), 1, "{:#?}", found.worst);
    let worst = &found.worst[0];
    assert_eq!(
        (&*worst.host.host, worst.kind.as_deref()),
        ("host30", Some("firmware"))
    );
    assert_eq!(worst.causes[0].name, "SMI");
}
