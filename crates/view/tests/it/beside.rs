//! Runs side by side in charts: their names, what is compared, and the agreement of the numbers.

use crate::common;
use crate::pictured;

use common::{Scenario, busy, part, thread};
use jitterscope_model::Nanos;
use jitterscope_view::Drawn;
use jitterscope_view::chart::{self, ChartKind};
use jitterscope_view::html;
use pictured::{ALL, drawn, pipeline};

/// A run in which a thread with this id steals this many milliseconds of each CPU, 20 times.
fn rival(cpus: &[u32], tid: i32, ms: u64) -> Drawn {
    let mut scenario = Scenario::new(cpus);
    for at in 0..20 {
        let stolen = part(thread("rival", tid), ms * 1_000_000 + at);
        scenario.stall(cpus[0], 300_000 * at, vec![stolen]);
    }
    drawn(&scenario.finish(), ALL)
}

/// The texts of a key, which have no numbers other than those of axes.
fn texts(svg: &str) -> Vec<&str> {
    svg.split("<text ")
        .skip(1)
        .map(|of| of.split_once('>').unwrap().1.split('<').next().unwrap())
        .collect()
}

#[test]
fn pipelines_are_compared_from_the_intended_time_and_the_chart_says_so() {
    let (one, mut other) = (pipeline(), pipeline());
    other.summary.run.label = "other".into();
    let svg = chart::svg(ChartKind::Percentiles, &[&one, &other]).unwrap();
    let texts = texts(&svg);
    assert!(
        texts[0].ends_with("latency from the intended time"),
        "{}",
        texts[0]
    );
    let keys = texts
        .iter()
        .filter(|text| text.ends_with(", from the intended time"))
        .count();
    assert_eq!(keys, 2, "{texts:?}");
    assert!(!svg.contains("queue transit"));
    // A single run has all of them.
    assert!(
        chart::svg(ChartKind::Percentiles, &[&one])
            .unwrap()
            .contains("queue transit")
    );
}

#[test]
fn runs_of_one_label_are_told_apart_by_their_ids() {
    let (one, mut other) = (drawn(&busy(&[0]), ALL), drawn(&busy(&[0]), ALL));
    other.summary.run.id = "0000-other".into();
    let wanted =
        [&one, &other].map(|run| format!("{} {}", run.summary.run.label, run.summary.run.id));
    let svg = chart::svg(ChartKind::Percentiles, &[&one, &other]).unwrap();
    for wanted in wanted {
        assert!(
            texts(&svg).contains(&wanted.as_str()),
            "{wanted}: {:?}",
            texts(&svg)
        );
    }
    other.summary.run.label = "other".into();
    let svg = chart::svg(ChartKind::Percentiles, &[&one, &other]).unwrap();
    assert!(
        texts(&svg).contains(&"other"),
        "a label of its own is enough"
    );
}

#[test]
fn a_culprit_that_two_runs_know_by_different_ids_is_one_series() {
    let (one, other) = (rival(&[0], 3, 1), rival(&[0], 9, 1));
    assert_ne!(
        one.picture.culprits[0].subject,
        other.picture.culprits[0].subject
    );
    for kind in [ChartKind::Series, ChartKind::Outliers] {
        let svg = chart::svg(kind, &[&one, &other]).unwrap();
        for image in svg.split("<g transform").skip(1) {
            let key: Vec<&str> = texts(image)
                .into_iter()
                .filter(|text| text.starts_with("thread rival"))
                .collect();
            assert_eq!(key.len(), 1, "{kind}: {key:?}");
            assert!(
                image.contains(" s0\"") && !image.contains(" s1\""),
                "{kind}"
            );
        }
    }
}

#[test]
fn bars_beside_one_another_say_the_share_that_they_are() {
    let (one, two) = (rival(&[0], 3, 100), rival(&[0, 1], 3, 100));
    let svg = chart::svg(ChartKind::Culprits, &[&one, &two]).unwrap();
    let images: Vec<&str> = svg.split("<g transform").skip(1).collect();
    let mut widths = Vec::new();
    for (image, run) in images.iter().zip([&one, &two]) {
        let whole = run.picture.measured.0 as f64;
        let share = run.picture.culprits[0].total.0 as f64 / whole;
        let wanted = format!("{:.1} %, ", share * 100.0);
        assert!(
            texts(image).iter().any(|text| text.starts_with(&wanted)),
            "{wanted}: {:?}",
            texts(image)
        );
        assert!(texts(image)[0].ends_with("as shares of the time that was measured"));
        let bar = image
            .split("<rect class=\"f0\"")
            .nth(1)
            .unwrap()
            .split(" width=\"")
            .nth(1)
            .unwrap();
        widths.push(bar.split('"').next().unwrap().parse::<f64>().unwrap() / share);
    }
    assert!(
        (widths[0] / widths[1] - 1.0).abs() < 0.02,
        "as long as what is said of them: {widths:?}"
    );
    assert!(
        two.picture.measured.0 > 19 * one.picture.measured.0 / 10,
        "two CPUs have twice the time"
    );
    // A single run shows the share of the stolen time.
    assert!(
        chart::svg(ChartKind::Culprits, &[&one])
            .unwrap()
            .contains(">100.0 %, ")
    );
}

#[test]
fn runs_of_different_lengths_have_one_time_axis_and_one_unit() {
    let [short, long] = [4, 20].map(|seconds: u64| {
        let mut scenario = Scenario::new(&[0]);
        scenario.manifest.probe.duration_ns = Nanos(seconds * 1_000_000_000);
        for at in 0..20 {
            scenario.stall(0, 150_000 * at, vec![part(thread("rival", 3), 1_000_000)]);
        }
        drawn(&scenario.finish(), ALL)
    });
    assert!(short.picture.duration.0 * 2 < long.picture.duration.0);
    for kind in [ChartKind::Series, ChartKind::Outliers, ChartKind::Offsets] {
        let svg = chart::svg(kind, &[&short, &long]).unwrap();
        // The position of each mark of the horizontal axis, by its label.
        let across = |image: &str| -> Vec<(String, String)> {
            let marks = image
                .lines()
                .filter(|line| line.contains("text-anchor=\"middle\""));
            let of = |line: &str| {
                let x = line
                    .split(" x=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .to_owned();
                (x, texts(line)[0].to_owned())
            };
            marks.filter(|line| line.contains("num")).map(of).collect()
        };
        let images: Vec<_> = svg.split("<g transform").skip(1).map(across).collect();
        assert!(images[0].len() > 3, "{kind}: {images:?}");
        assert_eq!(images[0], images[1], "{kind}");
        let first = svg.split("<g transform").nth(1).unwrap();
        assert!(
            first.contains("after the end"),
            "{kind}: what is behind the end of the shorter one is said"
        );
    }
    let svg = chart::svg(ChartKind::Offsets, &[&short, &long]).unwrap();
    assert_eq!(
        svg.matches("When within each 1 s stalls begin").count(),
        2,
        "{:?}",
        texts(&svg)
    );
    let alone = chart::svg(ChartKind::Offsets, &[&short]).unwrap();
    assert!(alone.contains("When within each 100 ms stalls begin"));
}

#[test]
fn what_a_run_has_is_called_by_its_name_throughout_its_page() {
    let page_of = |run: &Drawn| {
        html::render(&html::Page {
            run,
            frames: &[],
            settings: &[],
            list: None,
        })
        .html
    };
    for (probe, one, heading) in [
        ("spin", "stall", "Worst stalls"),
        ("wakeup", "late wake-up", "Worst late wake-ups"),
        ("attach", "wait", "Worst waits"),
        ("passive", "stolen stretch", "Worst stolen stretches"),
        ("pipeline", "slow message", "Worst slow messages"),
    ] {
        let mut run = rival(&[0], 3, 1);
        run.summary.probe.kind = probe.into();
        let page = page_of(&run);
        // Without the script and its data.
        let shown = page.split("<script").next().unwrap();
        assert!(shown.contains(&format!("<h2>{heading}</h2>")), "{probe}");
        assert!(
            shown.contains(&format!(">Every {one}, by the culprit")),
            "{probe}"
        );
        assert!(
            shown.contains(&format!(">The longest {one} of each moment")),
            "{probe}"
        );
        let many = heading.strip_prefix("Worst ").unwrap();
        assert!(shown.contains(&format!("in 20 {many}<")), "{probe}");
        assert_eq!(
            shown.contains(">stalls<"),
            probe == "spin",
            "{probe}: the head of a column"
        );
    }
}

#[test]
fn messages_that_waited_together_share_their_time() {
    let (one, mut other) = (pipeline(), pipeline());
    other.summary.run.label = "other".into();
    let svg = chart::svg(ChartKind::Culprits, &[&one, &other]).unwrap();
    let texts = texts(&svg);
    assert!(
        texts[0].ends_with("as shares of the slow messages&#39; time"),
        "{}",
        texts[0]
    );
    let shares = texts
        .iter()
        .filter(|text| text.contains(" slow message") && text.contains(" in "));
    let shares: Vec<f64> = shares
        .filter_map(|text| text.split(" %, ").next()?.parse().ok())
        .collect();
    assert!(shares.len() > 4, "{texts:?}");
    assert!(
        shares.iter().sum::<f64>() <= 200.5,
        "of two runs: {shares:?}"
    );
}
