//! Charts and pages of synthetic runs: every kind can be made, and untrusted text stays text.

use crate::common;
use crate::pictured;

use common::{Scenario, busy, late, part, sent_by, thread};
use jitterscope_analyze::picture::{Lane, PictureBuilder};
use jitterscope_model::{KnobFinding, KnobVerdict, Nanos, TimelineItem, TimelineRow};
use jitterscope_store::RunReader;
use jitterscope_testing::SplitMix64;
use jitterscope_tune::{Effect, Win};
use jitterscope_view::chart::{self, ChartError, ChartKind};
use jitterscope_view::html::{self, Frames, Gain, Setting};
use jitterscope_view::{Drawn, Wanted};
use pictured::{ALL, drawn, pipeline};
use std::path::Path;

fn page(run: &Drawn) -> String {
    html::render(&html::Page {
        run,
        frames: &[],
        settings: &[],
        list: None,
    })
    .html
}

#[test]
fn the_picture_sums_up_what_the_summary_does() {
    let run = drawn(&busy(&[0, 1]), ALL);
    let attribution = run.summary.attribution.as_ref().unwrap();
    let all = attribution
        .culprits
        .iter()
        .chain(&attribution.unexplained.classes);
    assert_eq!(run.picture.culprits.len(), all.clone().count());
    for row in all {
        let drawn = run
            .picture
            .culprits
            .iter()
            .find(|culprit| culprit.subject == row.subject)
            .unwrap();
        assert_eq!(
            (drawn.total, drawn.count, drawn.max),
            (row.total_ns, row.count, row.max_ns)
        );
    }
    assert_eq!(run.picture.stalls_read, run.picture.stalls.len() as u64);
    assert_eq!(run.picture.stalls_read, attribution.stalls);
}

#[test]
fn an_idle_control_is_drawn_and_in_no_sum() {
    let run = drawn(&late(&[0, 1, 3], Some(3)), ALL);
    let attribution = run.summary.attribution.as_ref().unwrap();
    let total: u64 = run
        .picture
        .culprits
        .iter()
        .map(|culprit| culprit.total.0)
        .sum();
    assert_eq!(total, attribution.stalled_ns.0);
    assert!(run.picture.stalls_read > attribution.stalls);
}

#[test]
fn a_run_that_is_too_long_for_a_page_keeps_its_sums() {
    let all = drawn(&busy(&[0, 1]), ALL);
    let some = drawn(&busy(&[0, 1]), Wanted { stalls: 200, ..ALL });
    assert!(some.picture.stalls.len() <= 200 && all.picture.stalls.len() > 200);
    assert_eq!(some.picture.culprits, all.picture.culprits);
    assert_eq!(some.picture.stalls_read, all.picture.stalls_read);
    let longest = |run: &Drawn| run.picture.stalls.iter().map(|stall| stall.length).max();
    assert_eq!(longest(&some), longest(&all));
}

#[test]
fn every_chart_is_drawn_or_says_why_not() {
    for scenario in [
        busy(&[0, 1]),
        busy(&[2]),
        late(&[0, 1], None),
        Scenario::new(&[0]).finish(),
    ] {
        let run = drawn(&scenario, ALL);
        for kind in ChartKind::ALL {
            match chart::svg(kind, &[&run]) {
                Ok(svg) => {
                    assert!(
                        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
                        "{kind}"
                    );
                    assert!(
                        svg.contains("font/woff2;base64,") && !svg.contains("NaN"),
                        "{kind}"
                    );
                }
                Err(ChartError::Nothing { why, .. }) => assert!(!why.is_empty()),
                Err(error) => panic!("{kind}: {error}"),
            }
        }
    }
    let (one, other) = (drawn(&busy(&[0]), ALL), drawn(&late(&[0], None), ALL));
    assert!(chart::svg(ChartKind::Percentiles, &[&one, &one]).is_ok());
    assert!(matches!(
        chart::svg(ChartKind::Percentiles, &[&one, &other]),
        Err(ChartError::NotAlike { .. })
    ));
}

/// The positions of the vertical axes' marks, by label.
fn lengths_of_axes(svg: &str) -> Vec<(String, String)> {
    let marks = svg
        .lines()
        .filter(|line| line.contains("text-anchor=\"end\"") && line.contains("small num"));
    let of = |line: &str, before: &str, after: char| {
        line.split(before)
            .nth(1)
            .unwrap()
            .split(after)
            .next()
            .unwrap()
            .to_owned()
    };
    marks
        .map(|line| (of(line, "\">", '<'), of(line, " y=\"", '"')))
        .collect()
}

/// A run of one thread's stalls of this length.
fn of_length(label: &str, name: &str, ns: u64) -> Drawn {
    let mut scenario = Scenario::new(&[0]);
    scenario.manifest.label = label.into();
    for at in 0..40 {
        scenario.stall(0, 1000 * at, vec![part(thread(name, 3), ns + at)]);
        scenario.stall(0, 1000 * at + 500, vec![part(thread("both", 4), ns / 2)]);
    }
    drawn(&scenario.finish(), ALL)
}

#[test]
fn charts_beside_one_another_have_the_same_scales_and_colours() {
    let (short, long) = (
        of_length("SHORT", "one", 2_000),
        of_length("LONG", "other", 800_000),
    );
    for kind in [ChartKind::Series, ChartKind::Outliers] {
        let alone = [&short, &long].map(|run| lengths_of_axes(&chart::svg(kind, &[run]).unwrap()));
        assert_ne!(alone[0], alone[1], "{kind}: alone each has its own");
        let both = chart::svg(kind, &[&short, &long]).unwrap();
        let images: Vec<&str> = both.split("<g transform").skip(1).collect();
        assert_eq!(images.len(), 2, "{kind}");
        let marks = images
            .iter()
            .map(|image| lengths_of_axes(image))
            .collect::<Vec<_>>();
        assert!(
            marks[0].len() > 1 && marks[0] == marks[1],
            "{kind}: {marks:?}"
        );
        // There is one key: a common culprit is the same series in both.
        let key = |image: &str| {
            image
                .lines()
                .filter(|line| line.contains(">thread "))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(key(images[0]), key(images[1]), "{kind}");
        assert_eq!(key(images[0]).len(), 3, "{kind}: {:?}", key(images[0]));
    }
    // A hundred times the share is a bar a hundred times as long.
    let both = chart::svg(ChartKind::Culprits, &[&short, &long]).unwrap();
    let widths: Vec<f64> = both
        .split("<g transform")
        .skip(1)
        .map(|image| {
            let bar = image
                .lines()
                .find(|line| line.contains("class=\"f0\""))
                .unwrap();
            bar.split(" width=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert!(widths[1] / widths[0] > 90.0, "{widths:?}");
}

/// Stalls with two parts of a culprit, each triggered by the same thread.
#[test]
fn who_set_a_culprit_going_is_a_share_of_the_times_that_are_known() {
    let mut scenario = Scenario::new(&[0]);
    for at in 0..40 {
        let sent = |net| sent_by(part(thread("rival", 3), net), "waker", 77, 0, None);
        let alone = part(thread("rival", 3), 700);
        scenario.stall(0, 1000 * at, vec![sent(5_000), sent(3_000), alone]);
    }
    let page = page(&drawn(&scenario.finish(), ALL));
    assert!(
        page.contains("woken by waker (pid 77, CPU 0)</td>"),
        "{page}"
    );
}

#[test]
fn names_that_are_markup_are_text_in_charts_and_pages() {
    let evil = "</svg><script>x";
    let mut scenario = Scenario::new(&[0]);
    scenario.manifest.label = "<script>label".into();
    for at in 0..40 {
        scenario.stall(0, 1000 * at, vec![part(thread(evil, 3), 5000 + at)]);
    }
    let mut scenario = scenario.finish();
    scenario.manifest.label = "label".into();
    scenario.manifest.host.hostname = "<img src=x onerror=alert(1)>".into();
    scenario.manifest.host.cmdline = "quiet \"><script>".into();
    scenario.manifest.command_line = vec!["jitterscope".into(), "</title><script>".into()];
    let run = drawn(&scenario, ALL);
    for kind in [ChartKind::Culprits, ChartKind::Outliers, ChartKind::Series] {
        let svg = chart::svg(kind, &[&run]).unwrap();
        assert!(
            !svg.contains("<script") && svg.matches("</svg>").count() == 1,
            "{kind}"
        );
        assert!(svg.contains("&lt;/svg&gt;"), "{kind}");
    }
    let page = page(&run);
    // Its rows, its frames, and the script.
    assert_eq!(page.matches("<script").count(), 3);
    assert!(!page.contains("<img"));
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"));
}

#[test]
fn the_policy_lets_nothing_but_the_page_itself_run() {
    let page = page(&drawn(&busy(&[0]), ALL));
    let policy = page
        .split("Content-Security-Policy\" content=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(
        policy.starts_with("default-src &#39;none&#39;; "),
        "{policy}"
    );
    for never in ["unsafe", "http:", "https:", "*"] {
        assert!(!policy.contains(never), "{policy}");
    }
    for outside in ["src=\"", "href=\"http", "href=\"//", "url(http", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_redacted_page_has_no_name_of_the_machine() {
    let mut scenario = busy(&[0]);
    scenario.manifest.host.hostname = "secret-host".into();
    scenario.manifest.label = "secret-label".into();
    scenario.manifest.command_line = vec!["/home/secret/jitterscope".into()];
    let run = drawn(
        &scenario,
        Wanted {
            redact: true,
            ..ALL
        },
    );
    assert!(!page(&run).contains("secret"));
    assert!(page(&drawn(&scenario, ALL)).contains("secret-host"));
}

/// Width and height of a PNG.
#[cfg(feature = "png")]
fn size_of_png(bytes: &[u8]) -> (u32, u32) {
    assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[cfg(feature = "png")]
#[test]
fn every_chart_is_had_in_pixels_twice_as_large_as_it_says() {
    use jitterscope_view::chart::{ChartError, ChartKind, png, svg};
    let run = drawn(&busy(&[0, 1]), ALL);
    let mut made = 0;
    for kind in ChartKind::ALL {
        let text = match svg(kind, &[&run]) {
            Ok(text) => text,
            // Only a pipeline has those.
            Err(ChartError::Nothing {
                chart: ChartKind::Histograms,
                ..
            }) => continue,
            Err(error) => panic!("{kind}: {error}"),
        };
        let says = |name: &str| -> f64 {
            let at = text.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
            text[at..].split('"').next().unwrap().parse().unwrap()
        };
        let bytes = png(kind, &[&run]).unwrap();
        let (width, height) = size_of_png(&bytes);
        assert_eq!(
            (f64::from(width), f64::from(height)),
            ((says("width") * 2.0).ceil(), (says("height") * 2.0).ceil()),
            "{kind}"
        );
        // More than blank paper: text and lines do not compress to nothing.
        assert!(bytes.len() > 5_000, "{kind}: {} bytes", bytes.len());
        made += 1;
    }
    assert_eq!(made, 5);
}

fn finding(knob: &str, verdict: KnobVerdict, gain: Gain) -> Setting {
    let finding = KnobFinding {
        knob: knob.into(),
        verdict,
        reason: "guarded by <root>".into(),
        current: format!("{knob} is 1"),
        wanted: "at least 10".into(),
    };
    Setting {
        finding,
        title: format!("About {knob}"),
        gain,
    }
}

#[test]
fn findings_of_the_audit_stand_in_the_page_each_with_what_it_would_win() {
    let mut run = drawn(&busy(&[0]), ALL);
    run.summary.machine = Some(Box::default());
    let win = |effect, ms: u64, culprits: &[&str]| {
        Gain::Of(Win {
            effect,
            total_ns: Nanos(ms * 1_000_000),
            count: 3,
            per_second_milli: 1500,
            culprits: culprits.iter().map(|name| (*name).to_owned()).collect(),
            negligible: false,
        })
    };
    let settings = [
        finding("nothing", KnobVerdict::Wrong, Gain::Nothing),
        finding("second", KnobVerdict::Wrong, win(Effect::Removes, 30, &[])),
        finding(
            "guess",
            KnobVerdict::Wrong,
            win(Effect::Perhaps, 9_000, &["it"]),
        ),
        finding(
            "winner",
            KnobVerdict::Wrong,
            win(Effect::Lessens, 1_400, &["a <b>", "c", "d", "e"]),
        ),
        finding("unproven", KnobVerdict::Wrong, Gain::Unknown),
        finding("fine", KnobVerdict::Fine, Gain::Nothing),
        finding("hidden", KnobVerdict::Unreadable, Gain::Nothing),
    ];
    let of = |settings: &[Setting]| {
        let html = html::render(&html::Page {
            run: &run,
            frames: &[],
            settings,
            list: None,
        })
        .html;
        html.split("<section id=\"settings\">")
            .nth(1)
            .unwrap()
            .split("</section>")
            .next()
            .unwrap()
            .to_owned()
    };
    let section = of(&settings);
    for message in [
        "About winner",
        "part of 1.40 s, 3 times, 1.5/s: a &lt;b&gt;, c, d, 1 more",
        "not known: the run names nobody",
        "guarded by &lt;root&gt;",
    ] {
        assert!(section.contains(message), "{message}: {section}");
    }
    assert!(!section.contains("About fine"), "{section}");
    let at = |text: &str| section.find(text).unwrap();
    let ranked = ["winner", "second", "guess"].map(|knob| at(&format!("About {knob}")));
    assert!(ranked.is_sorted(), "{section}");
    assert!(
        at("About winner") < at("1 more, which would win nothing")
            && at("1 more, which") < at("About nothing")
    );
    assert!(
        at("About unproven") < at("1 more, which"),
        "what cannot be said is not nothing"
    );
    assert!(of(&settings[5..6]).contains("none is wrong"));
}

/// Frames as in a recording: `rows` for every stall.
fn framed(run: &Drawn, stalls: usize, rows: u64) -> Vec<Frames> {
    let mut random = jitterscope_testing::SplitMix64(3);
    let mut row = || {
        let start = random.below(1 << 24);
        let culprit = part(thread("worker", 3), 1).culprit;
        let culprit = std::sync::Arc::unwrap_or_clone(culprit);
        let item = TimelineItem::Frame {
            culprit,
            ended: true,
            named_inside: false,
        };
        TimelineRow {
            cpu: None,
            depth: 0,
            start: Nanos(start),
            end: Some(Nanos(start + 99)),
            item,
        }
    };
    let mut rows = || (0..rows).map(|_| row()).collect();
    run.picture
        .stalls
        .iter()
        .take(stalls)
        .map(|stall| Frames {
            stall: stall.id,
            rows: rows(),
        })
        .collect()
}

#[test]
fn frames_are_left_out_before_a_page_is_too_large_to_be_sent() {
    let run = drawn(&busy(&[0, 1]), ALL);
    let of = |frames: &[Frames]| {
        html::render(&html::Page {
            run: &run,
            frames,
            settings: &[],
            list: None,
        })
    };
    let few = framed(&run, 40, 20);
    assert_eq!(of(&few).framed, 40);
    let many = framed(&run, 200, 1_200);
    let written = of(&many);
    assert!((20..200).contains(&written.framed), "{}", written.framed);
    assert!(
        (1_400_000..=1_500_000).contains(&written.html.len()),
        "{}",
        written.html.len()
    );
}

/// Stalls of one thread, a second apart.
fn once_a_second() -> Scenario {
    let mut scenario = Scenario::new(&[0]);
    for at in 0..8 {
        scenario.stall(
            0,
            1_000_000 * at + 500_000,
            vec![part(thread("one", 3), 50_000)],
        );
    }
    scenario
}

#[test]
fn one_stall_in_a_field_is_faint_and_the_key_has_no_more_than_the_image() {
    let run = drawn(&once_a_second().finish(), ALL);
    let svg = chart::svg(ChartKind::Offsets, &[&run]).unwrap();
    let used: Vec<usize> = (0..8)
        .filter(|heat| svg.contains(&format!("<path class=\"h{heat}\"")))
        .collect();
    assert!(used.iter().all(|heat| *heat < 4), "{used:?}");
    assert_eq!(
        svg.matches("<rect class=\"h").count(),
        used.len(),
        "a key of the shades in use"
    );
}

#[test]
fn what_is_too_short_for_a_period_is_no_map_of_offsets() {
    let mut run = drawn(&once_a_second().finish(), ALL);
    let map = &run.picture.offsets;
    run.picture.duration = Nanos(map.unit.0 * map.units_per_column * map.columns as u64);
    assert!(
        !chart::svg(ChartKind::Offsets, &[&run])
            .unwrap()
            .contains("after the end")
    );
    // The last column extends beyond the end.
    run.picture.duration = Nanos(run.picture.duration.0 - run.picture.offsets.unit.0 / 2);
    assert!(
        chart::svg(ChartKind::Offsets, &[&run])
            .unwrap()
            .contains("after the end")
    );
    run.picture.duration = Nanos(2 * run.picture.offsets.unit.0);
    let error = chart::svg(ChartKind::Offsets, &[&run])
        .unwrap_err()
        .to_string();
    assert!(error.contains("too short for a period of"), "{error}");
}

#[test]
fn sticks_have_marks_and_the_key_has_them_too() {
    let svg = chart::svg(ChartKind::Series, &[&drawn(&busy(&[0, 1]), ALL)]).unwrap();
    let count = |class: &str| svg.matches(&format!("<path class=\"{class} s")).count();
    assert_eq!(
        count("mark"),
        count("stick"),
        "beside the key a mark for each series of sticks"
    );
    assert!(count("mark") > 2);
}

/// The numbers of path commands.
fn numbers(commands: &str) -> Vec<f64> {
    commands
        .split(|c: char| !matches!(c, '0'..='9' | '.' | '-'))
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[test]
fn no_mark_reaches_above_the_end_of_its_stick() {
    // Long stalls, and one without room for a mark.
    let mut scenario = Scenario::new(&[0]);
    for (at, length) in [(1, 900), (2, 90_000), (3, 2_000_000), (4, 1_020)] {
        scenario.stall(
            0,
            1_000_000 * at,
            vec![part(thread(&format!("t{at}"), 3), length)],
        );
    }
    let svg = chart::svg(ChartKind::Series, &[&drawn(&scenario.finish(), ALL)]).unwrap();
    let paths = |class: &str| -> Vec<(usize, String)> {
        svg.split("<path class=\"")
            .filter_map(|piece| {
                piece
                    .strip_prefix(class)?
                    .strip_prefix(" s")?
                    .split_once("\" d=\"M")
            })
            .flat_map(|(series, rest)| {
                let commands = rest.split('"').next().unwrap();
                let whole = if class == "mark" {
                    vec![commands]
                } else {
                    commands.split('M').collect()
                };
                whole
                    .into_iter()
                    .map(|one| (series.parse().unwrap(), one.to_owned()))
                    .collect::<Vec<_>>()
            })
            .collect()
    };
    let (sticks, marks) = (paths("stick"), paths("mark"));
    // In the key and in the chart.
    assert_eq!((sticks.len(), marks.len()), (8, 8), "{svg}");
    let mut within = 0;
    for ((series, stick), (of, mark)) in sticks.iter().zip(&marks) {
        let [x, foot, end] = numbers(stick)[..] else {
            panic!("{stick}")
        };
        let at = numbers(mark);
        assert_eq!(series, of);
        assert!(
            (at[0] - x).abs() <= 3.1,
            "{mark} is not of the stick {stick}"
        );
        // Circles and crosses begin at their centre, saltires and squares at their top or bottom.
        let top = if matches!(of, 0 | 4) {
            at[1] - 3.0
        } else {
            at[1]
        };
        assert!(top - 0.6 >= end, "{mark} reaches above {stick}");
        within += usize::from(top < foot);
        assert!(
            top < foot || foot - end < 14.0,
            "{mark} is below {stick}, which has room for it"
        );
    }
    assert!(within >= 6, "{within} of 8 marks are within their sticks");
}

#[test]
fn a_run_without_stalls_says_so_once() {
    let html = page(&drawn(&Scenario::new(&[0]).finish(), ALL));
    assert_eq!(html.matches("None was recorded: nothing took").count(), 1);
    for id in [
        "culprits", "series", "outliers", "offsets", "worst", "periods",
    ] {
        assert!(!html.contains(&format!("<section id=\"{id}\">")), "{id}");
        assert!(!html.contains(&format!("<a href=\"#{id}\">")), "{id}");
    }
    let html = page(&drawn(&busy(&[0]), ALL));
    assert!(!html.contains("None was recorded") && html.contains("<a href=\"#periods\">"));
}

#[test]
fn counted_slow_messages_are_reported_beside_drawn_ones() {
    let mut run = pipeline();
    let message = |run: &Drawn| {
        [
            ChartKind::Series,
            ChartKind::Outliers,
            ChartKind::Culprits,
            ChartKind::Histograms,
        ]
        .map(|kind| chart::svg(kind, &[run]).unwrap())
        .into_iter()
        .chain([page(run)])
        .collect::<Vec<_>>()
    };
    let recorded = run.picture.stalls_read;
    for shown in message(&run) {
        assert!(
            !shown.contains("slow messages (the rest"),
            "all of them are recorded one by one"
        );
    }
    // Slow messages have no percentile above which they lie.
    let page_of_all = page(&run);
    assert!(
        page_of_all.contains("the slow messages of the")
            && !page_of_all.contains("longer than 0 ns")
    );
    run.summary.pipeline.as_mut().unwrap().consumers[0].slow = recorded + 1_234_567;
    let wanted = format!(
        "{recorded} of {} slow messages (the rest were only counted)",
        with_commas(recorded + 1_234_567)
    );
    for shown in message(&run) {
        assert!(shown.contains(&wanted), "{wanted} is not shown");
        assert!(
            !shown.contains(">Every stall") && !shown.contains(">The longest stall of each moment")
        );
    }
    let section = |page: &str| {
        let from = page.split("<section id=\"worst\">").nth(1).unwrap();
        from.split("</section>").next().unwrap().to_owned()
    };
    assert!(!section(&page_of_all).contains("recorded one by one"));
    let counted = section(&page(&run));
    assert!(
        counted.contains("these are the longest of those; the others have no row."),
        "{counted}"
    );
    for stall in &mut run.summary.worst {
        stall.duration_ns.0 /= 2;
    }
    assert!(
        section(&page(&run)).contains("the longest of all, "),
        "half as long are not the longest"
    );
}

/// As in reports, with a comma every three digits.
fn with_commas(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[test]
fn a_page_that_is_too_large_without_frames_says_so() {
    let mut run = drawn(&busy(&[0, 1]), ALL);
    let frames = framed(&run, 20, 20);
    let of = |run: &Drawn| {
        html::render(&html::Page {
            run,
            frames: &frames,
            settings: &[],
            list: None,
        })
    };
    let message = "<p>This page is larger than 1.5 MB";
    let small = of(&run);
    assert!(!small.html.contains(message) && small.framed == 20);
    // Incompressible lengths.
    let mut random = SplitMix64(3);
    let one = run
        .picture
        .stalls
        .iter()
        .find(|stall| !stall.parts.is_empty())
        .unwrap()
        .clone();
    let mut next = run
        .picture
        .stalls
        .iter()
        .map(|stall| stall.id.0)
        .max()
        .unwrap();
    while run.picture.stalls.len() < 60_000 {
        let mut stall = one.clone();
        next += 1;
        stall.id.0 = next;
        stall.start = Nanos(next * 100_000 + random.below(100_000));
        let mut part = stall.parts[0];
        stall.parts.clear();
        for _ in 0..8 {
            part.net = Nanos(random.below(1 << 24));
            stall.parts.push(part);
        }
        stall.length = stall.parts.iter().map(|part| part.net).sum();
        run.picture.stalls.push(stall);
    }
    run.picture.stalls_read = run.picture.stalls.len() as u64;
    let large = of(&run);
    assert!(
        large.html.len() > html::MOST_BYTES,
        "{} bytes",
        large.html.len()
    );
    assert!(
        large.html.contains(message),
        "a page of {} bytes says nothing of it",
        large.html.len()
    );
    assert!(
        large.html.contains("frames of the longest few only") && (1..20).contains(&large.framed)
    );
}

#[test]
fn parts_of_the_worst_stalls_are_summed_by_culprit() {
    let mut scenario = Scenario::new(&[0]);
    let rival = |net| part(thread("rival", 3), net);
    let parts = vec![
        rival(30_000),
        part(thread("between", 4), 40_000),
        rival(30_000),
    ];
    scenario.stall(0, 1_000, parts);
    let page = page(&drawn(&scenario.finish(), ALL));
    let worst = page.split("<section id=\"worst\">").nth(1).unwrap();
    let row = worst
        .split("<tbody>")
        .nth(1)
        .unwrap()
        .split("</tr>")
        .next()
        .unwrap();
    assert!(
        row.contains("60.0 % thread rival") && !row.contains("30.0 %"),
        "{row}"
    );
    let cells: Vec<&str> = row.split("<td").skip(1).collect();
    assert!(
        cells[2].contains("60.0 %"),
        "third, so that a narrow window has it: {row}"
    );
}

#[test]
fn a_lane_has_the_name_that_its_thread_has_after_it_was_executed() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures/attach");
    let reader = RunReader::open(&fixture).unwrap();
    let mut manifest = reader.manifest().clone();
    let stalls: Vec<_> = reader
        .stalls()
        .unwrap()
        .map(|stall| stall.unwrap())
        .collect();
    for thread in &mut manifest.threads {
        thread.comm = format!("executed-{}", thread.tid);
        thread.role = None;
    }
    let mut builder = PictureBuilder::new(&manifest, stalls.len() as u64, 1_000);
    stalls.iter().for_each(|stall| builder.stall(stall));
    let lanes = builder.finish().lanes;
    assert!(!lanes.is_empty());
    for lane in lanes {
        let Lane::Thread { tid, name } = &lane else {
            panic!("{lane:?}")
        };
        assert_eq!(*name, format!("executed-{tid}"));
    }
}

#[test]
fn a_served_stall_says_whether_its_order_is_lost_and_of_how_many_turns_each_part_is() {
    let mut worst = drawn(&busy(&[0]), ALL).summary.worst.remove(0);
    worst.parts[0].turns = 12;
    let answer = |rows: Option<&[TimelineRow]>| -> serde_json::Value {
        serde_json::from_str(&html::stall("spin", &worst, rows)).unwrap()
    };
    let lost = answer(None);
    assert_eq!(lost["order_lost"], true);
    assert_eq!(lost["parts"][0]["turns"], 12);
    // Without any record inside it, there is no order either, but nothing is lost.
    assert_eq!(answer(Some(&[]))["order_lost"], false);
}
