//! Logs as programs write them.

use super::*;
use proptest::prelude::*;

/// 2026-11-21 21:40:00 UTC.
const START: u64 = 1_795_297_200_000_000_000;
const MS: u64 = 1_000_000;

fn read_with(text: &str, options: &MarkOptions) -> Result<MarkLog, MarkError> {
    let minute = START..START + 60_000 * MS;
    read_marks(text.as_bytes(), "app.log".into(), options, minute)
}

fn read(text: &str) -> MarkLog {
    read_with(text, &MarkOptions::default()).unwrap()
}

/// Name, start in milliseconds of the run, length in microseconds.
fn shown(log: &MarkLog) -> Vec<(&str, u64, u64)> {
    log.marks
        .iter()
        .map(|mark| {
            (
                mark.name.as_str(),
                (mark.start_realtime_ns - START) / MS,
                mark.length_ns.0 / 1000,
            )
        })
        .collect()
}

#[test]
fn pauses_and_safepoints_of_a_jvm_are_marks_that_end_at_their_time() {
    let log = read(
        "[2026-11-21T21:40:01.500+0000][info][gc,start] GC(3) Pause Young (Normal) (G1 Evacuation Pause)\n\
         [2026-11-21T21:40:01.512+0000][info][gc] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 23M->2M(256M) 12.000ms\n\
         [2026-11-21T21:40:01.513+0000][info][safepoint] Safepoint \"G1CollectForAllocation\", Time since last: 812345 ns, Reaching safepoint: 1000 ns, Cleanup: 500 ns, At safepoint: 12500500 ns, Total: 13000000 ns\n\
         [2026-11-21T21:40:02.000+0000][info][gc] GC(4) Concurrent Mark Cycle 44.1ms\n\
         [2026-11-21T21:50:00.000+0000][info][gc] GC(5) Pause Remark 30M->30M(256M) 1.0ms\n\
         a line of the program itself\n",
    );
    assert_eq!(log.form, MarkForm::Jvm);
    assert_eq!(
        shown(&log),
        [
            ("GC: Pause Young (Normal)", 1500, 12_000),
            ("safepoint: G1CollectForAllocation", 1500, 13_000),
        ]
    );
    assert_eq!((log.outside, log.unread), (1, 1));
}

#[test]
fn other_clocks_and_older_jvms_are_read_and_uptime_alone_is_refused() {
    // `:time` alone, and milliseconds since the epoch.
    for time in ["2026-11-21T22:40:01.512+0100", "1795297201512ms"] {
        let log = read(&format!(
            "[{time}] GC(3) Pause Full (System.gc()) 9M->2M(20M) 12.5ms\n"
        ));
        assert_eq!(
            shown(&log),
            [("GC: Pause Full (System.gc())", 1499, 12_500)]
        );
    }
    let log = read(
        "[2026-11-21T21:40:01.512Z][info][safepoint] Total time for which application threads were stopped: \
         0.0120000 seconds, Stopping threads took: 0.0000100 seconds\n",
    );
    assert_eq!(shown(&log), [("safepoint", 1500, 12_000)]);
    let refused = read_with(
        "[0.123s][info][gc] GC(3) Pause Young (Normal) 9M->2M(20M) 12.5ms\n",
        &MarkOptions::default(),
    );
    assert!(matches!(refused, Err(MarkError::Uptime)), "{refused:?}");
}

#[test]
fn tables_are_read_by_their_column_names() {
    for text in [
        "time,duration_ms,request\n2026-11-21T21:40:01.500Z,12,get\n",
        "Timestamp;Request;Latency (us)\n2026-11-21 21:40:01.5;get;12000\n",
        "name\tstart\tend\nget\t21:40:01.500\t21:40:01.512\n",
        "end_ms,took,url\n1795297201512,12ms,get\n",
        "ts_ns,dur_us,what\n1795297201500000000,12000,\"get\"\n",
        "start_s,duration_s,name\n1795297201.5,0.012,get\n",
    ] {
        let log = read(text);
        assert_eq!(log.form, MarkForm::Csv, "{text}");
        assert_eq!(shown(&log), [("get", 1500, 12_000)], "{text}");
    }
    let log = read("time,duration_ms\n21:40:01,x\n21:40:02,5\n,,\n");
    assert_eq!((shown(&log), log.unread), (vec![("row", 2000, 5000)], 2));
    let options = MarkOptions {
        form: Some(MarkForm::Csv),
        ..MarkOptions::default()
    };
    let refused = read_with("a,b\n1,2\n", &options);
    assert!(matches!(refused, Err(MarkError::NoTime(of)) if of == "a,b"));
}

#[test]
fn lines_of_a_log_are_moments_or_end_when_they_were_written() {
    let text = "2026-11-21 21:40:01,512 WARN order 17 took 12ms\n\
                2026-11-21 21:40:02,000 INFO 3 orders\n\
                \tat com.example.Main(Main.java:7)\n";
    let log = read(text);
    assert_eq!(log.form, MarkForm::Log);
    assert_eq!(
        shown(&log),
        [
            ("WARN order # took #ms", 1512, 0),
            ("INFO # orders", 2000, 0)
        ]
    );
    assert_eq!(log.unread, 1);
    let took = MarkOptions {
        took: true,
        name: Some("order".into()),
        ..MarkOptions::default()
    };
    assert_eq!(
        shown(&read_with(text, &took).unwrap()),
        [("order", 1500, 12_000)]
    );
}

#[test]
fn a_format_of_times_is_followed_and_a_wrong_one_refused() {
    let with = |format: &str, text: &str| {
        let options = MarkOptions {
            time_format: Some(format.into()),
            ..MarkOptions::default()
        };
        read_with(text, &options)
    };
    for (format, time) in [
        ("%d/%b/%Y:%H:%M:%S %z", "21/Nov/2026:22:40:01 +0100"),
        ("%H:%M:%S%.f", "21:40:01.000"),
        ("%s", "1795297201"),
    ] {
        let log = with(format, &format!("[{time}] GET /index\n")).unwrap();
        assert_eq!(shown(&log), [("GET /index", 1000, 0)], "{format}");
    }
    assert!(matches!(with("%!", "x"), Err(MarkError::Format { .. })));
    let refused = with("%H:%M", "hello\nworld\n");
    let Err(MarkError::NothingRead { lines, first }) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!((lines, first.as_str()), (2, "hello"));
    assert!(matches!(with("%H:%M", "\n \n"), Err(MarkError::Empty)));
}

#[test]
fn hostile_lines_cost_no_memory_and_reach_no_terminal() {
    let long = format!("2026-11-21T21:40:01Z {}\n", "x".repeat(1 << 20));
    let log = read(&format!("{long}2026-11-21T21:40:02Z \u{1b}[31mred\n"));
    assert_eq!(log.marks.len(), 2);
    assert_eq!(log.marks[0].name.chars().count(), NAME);
    assert!(!log.marks[1].name.contains('\u{1b}'), "{:?}", log.marks[1]);
}

#[test]
fn the_longest_of_too_many_marks_are_kept() {
    let mut text = "start_ms,duration_us,name\n".to_owned();
    for n in 0..2 * MarkLog::MOST + 7 {
        text += &format!("{},{},r\n", START / MS + n as u64 % 60_000, n);
    }
    let log = read(&text);
    assert_eq!(log.marks.len(), MarkLog::MOST);
    assert_eq!(log.beyond, MarkLog::MOST as u64 + 7);
    let shortest = log.marks.iter().map(|mark| mark.length_ns.0 / 1000).min();
    assert_eq!(shortest, Some(MarkLog::MOST as u64 + 7));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        text in "[\\[\\]0-9T:.,;Z+\\- a-zPSG()\"\\n]{0,200}",
        took: bool,
    ) {
        for form in [None, Some(MarkForm::Jvm), Some(MarkForm::Csv), Some(MarkForm::Log)] {
            let options = MarkOptions { form, took, ..MarkOptions::default() };
            let minute = START..START + 60_000 * MS;
            let _ = read_marks(&bytes[..], "x".into(), &options, minute.clone());
            let _ = read_marks(text.as_bytes(), "x".into(), &options, minute);
        }
    }
}
