//! Rows as line protocol.

use super::point::{Point, Value};
use crate::largest_part::{Fact, facts as culprit_facts, largest_part};
use jitterscope_model::{Attribution, Doubt, IntervalRow, RunFacts, Stall};

/// A measurement: its name, its tags, its fields.
pub type Measurement = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

pub const SCHEMA: [Measurement; 3] = [
    (
        "jitter_run",
        &["host", "label", "probe"],
        &["run", "tool", "threshold_ns", "interval_ns", "doubts"],
    ),
    (
        "jitter_stall",
        &["host", "label", "cpu", "culprit_kind", "culprit"],
        &[
            "duration_ns",
            "explained_ns",
            "culprit_ns",
            "culprit_tid",
            "culprit_tgid",
            "culprit_comm",
            "culprit_class",
            "culprit_priority",
            "culprit_uid",
            "culprit_cgroup",
            "culprit_function",
            "culprit_workqueue",
            "culprit_irq",
            "phase",
            "moved_from_cpu",
            "run",
            "stall_id",
            "tid",
            "comm",
        ],
    ),
    (
        "jitter_interval",
        &["host", "label", "cpu"],
        &["count", "max_ns", "stolen_ns", "duration_ns", "run"],
    ),
];

/// The facts of a culprit that are tags.
const TAGS: [&str; 2] = ["culprit_kind", "culprit"];

/// Makes the lines of one run.
pub(super) struct Lines {
    facts: RunFacts,
    host: String,
    label: String,
}

impl Lines {
    pub(super) fn new(facts: &RunFacts) -> Lines {
        Lines {
            host: tag_value(&facts.hostname),
            label: tag_value(&facts.label),
            facts: facts.clone(),
        }
    }

    /// The beginning of a line, with the tags of all measurements.
    fn point(&self, measurement: &str) -> Point {
        Point::new(measurement)
            .tag("host", &self.host)
            .tag("label", &self.label)
    }

    pub(super) fn run(&self) -> Vec<u8> {
        let facts = &self.facts;
        self.point("jitter_run")
            .tag("probe", &tag_value(&facts.probe))
            .field("run", Value::Text(&facts.id))
            .field(
                "tool",
                Value::Text(concat!("jitterscope ", env!("CARGO_PKG_VERSION"))),
            )
            .field("threshold_ns", count(facts.threshold.0))
            .field("interval_ns", count(facts.interval.0))
            .at(signed(facts.clock.realtime_ns))
    }

    /// The doubts about the run's verdicts on culprits, as JSON like in the run's report: a field of its point, for the
    /// end of a run that has any.
    pub(super) fn doubts(&self, doubts: &[Doubt]) -> Vec<u8> {
        let facts = &self.facts;
        self.point("jitter_run")
            .tag("probe", &tag_value(&facts.probe))
            .field(
                "doubts",
                Value::Text(&serde_json::to_string(doubts).unwrap_or_default()),
            )
            .at(signed(facts.clock.realtime_ns))
    }

    pub(super) fn stall(&self, stall: &Stall, attribution: Option<&Attribution>) -> Vec<u8> {
        let facts = &self.facts;
        let mut line = self
            .point("jitter_stall")
            .tag("cpu", &stall.cpu.to_string());
        let known = largest_part(attribution)
            .map(culprit_facts)
            .into_iter()
            .flatten();
        let mut fields = Vec::new();
        for (name, fact) in known.filter_map(|(name, fact)| Some((name, fact?))) {
            // Only what queries group by is a tag; the rest has too many values for an index.
            match fact {
                Fact::Text(text) if TAGS.contains(&name) => {
                    line = line.tag(name, &tag_value(&text))
                }
                fact => fields.push((name, fact)),
            }
        }
        let mut line = line.field("duration_ns", count(facts.rate.nanos(stall.length()).0));
        if let Some(attribution) = attribution {
            line = line.field("explained_ns", count(attribution.explained().0));
        }
        for (name, fact) in fields {
            line = match fact {
                Fact::Number(number) => line.field(name, Value::Integer(number)),
                Fact::Text(text) => line.field(name, Value::Text(&printable(&text))),
            };
        }
        // The run and the stall's id lead from a point to the trace of that moment.
        line.field("run", Value::Text(&facts.id))
            .field("stall_id", count(stall.id.0))
            .field("tid", Value::Integer(stall.victim.tid.into()))
            .field(
                "comm",
                Value::Text(&printable(&stall.victim.comm.to_string())),
            )
            .at(signed(facts.epoch_ns(stall.start)))
    }

    pub(super) fn interval(&self, row: &IntervalRow) -> Vec<u8> {
        let facts = &self.facts;
        self.point("jitter_interval")
            .tag("cpu", &row.cpu.to_string())
            .field("count", count(row.count))
            .field("max_ns", count(row.max.0))
            .field("stolen_ns", count(row.stolen.0))
            .field(
                "duration_ns",
                count(facts.rate.nanos(row.end.since(row.start)).0),
            )
            .field("run", Value::Text(&facts.id))
            .at(signed(facts.epoch_ns(row.end)))
    }
}

/// InfluxDB 1 has no unsigned integers.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn count(number: u64) -> Value<'static> {
    Value::Integer(signed(number))
}

/// A value that every version reads back unchanged: no line ends, no backslash (its meaning before other characters
/// differs between versions), and never empty, which does not parse.
fn tag_value(text: &str) -> String {
    match printable(text) {
        empty if empty.is_empty() => "-".into(),
        some => some,
    }
}

fn printable(text: &str) -> String {
    let mild = |c: char| match c {
        '\\' => '/',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(mild).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitterscope_model::{
        ClockReading, Comm, CpuId, Evidence, Nanos, Part, Placement, StallId, Subject, ThreadRef,
        TickRate, Ticks,
    };

    fn lines() -> Lines {
        Lines::new(&RunFacts {
            id: "abc".into(),
            label: "a b".into(),
            hostname: "h,1".into(),
            probe: "spin".into(),
            cpus: [CpuId(0)].into_iter().collect(),
            threshold: Nanos(300),
            interval: Nanos(1_000_000_000),
            rate: TickRate {
                hz: 2_000_000_000,
                ..TickRate::NANOSECONDS
            },
            clock: ClockReading {
                ticks: Ticks(1000),
                monotonic_raw_ns: 0,
                realtime_ns: 1_700_000_000_000_000_000,
                boottime_ns: None,
                width_ticks: 0,
            },
        })
    }

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn what_a_run_fails_by_is_a_field_of_its_point() {
        let lost = [Doubt::EventsLost {
            lost: 200,
            events: 5_138,
        }];
        let (run, doubts) = (text(lines().run()), text(lines().doubts(&lost)));
        let series = |line: &str| line.split_once(' ').map(|(series, _)| series.to_owned());
        let time = |line: &str| line.rsplit_once(' ').map(|(_, time)| time.to_owned());
        assert_eq!((series(&doubts), time(&doubts)), (series(&run), time(&run)));
        let field = r#"doubts="[{\"kind\":\"events_lost\",\"lost\":200,\"events\":5138}]""#;
        assert!(doubts.contains(field), "{doubts}");
    }

    #[test]
    fn lines_are_dated_in_nanoseconds_and_escaped() {
        let stall = Stall {
            id: StallId(7),
            cpu: CpuId(1),
            victim: ThreadRef {
                tid: 5,
                comm: Comm::new("js\"spin"),
            },
            start: Ticks(3000),
            end: Ticks(5000),
        };
        assert_eq!(
            text(lines().stall(&stall, None)),
            "jitter_stall,host=h\\,1,label=a\\ b,cpu=1 duration_ns=1000i,run=\"abc\",stall_id=7i,tid=5i,comm=\"js\\\"spin\" 1700000000000001000\n"
        );
        let part = Part {
            placement: Placement::Lead,
            ..Part::inside(
                Subject::Timer {
                    function: Some("tick\\sched\n=x".into()),
                    source: None,
                },
                Nanos(1000),
                Evidence::TimerRecords,
            )
        };
        let attribution = Attribution {
            stall: StallId(7),
            parts: vec![part],
        };
        let line = text(lines().stall(&stall, Some(&attribution)));
        assert!(
            line.contains(
                ",culprit_kind=timer,culprit=tick/sched?\\=x duration_ns=1000i,explained_ns=1000i,culprit_ns=1000i,culprit_function=\"tick/sched?=x\","
            )
        );
    }

    #[test]
    fn the_schema_is_what_is_written() {
        let row = IntervalRow {
            cpu: CpuId(0),
            start: Ticks(1000),
            end: Ticks(2001),
            count: 2,
            max: Nanos(9),
            stolen: Nanos(10),
        };
        assert_eq!(
            text(lines().interval(&row)),
            "jitter_interval,host=h\\,1,label=a\\ b,cpu=0 count=2i,max_ns=9i,stolen_ns=10i,duration_ns=500i,run=\"abc\" 1700000000000000500\n"
        );
        // The point of a run has its last field only if there are doubts.
        let doubts = text(lines().doubts(&[Doubt::EventsLost {
            lost: 200,
            events: 5_138,
        }]));
        for (line, later) in [
            (text(lines().run()), Some(&doubts)),
            (text(lines().interval(&row)), None),
        ] {
            let parsed = influxdb_line_protocol::parse_lines(&line)
                .next()
                .unwrap()
                .unwrap();
            let (_, tags, fields) = SCHEMA
                .iter()
                .find(|(name, ..)| *name == parsed.series.measurement.as_str())
                .unwrap();
            let written: Vec<&str> = parsed
                .series
                .tag_set
                .iter()
                .flatten()
                .map(|(key, _)| key.as_str())
                .collect();
            assert_eq!(&written, tags);
            let later = later.map(|line| {
                influxdb_line_protocol::parse_lines(line)
                    .next()
                    .unwrap()
                    .unwrap()
            });
            let all = parsed
                .field_set
                .iter()
                .chain(later.iter().flat_map(|line| &line.field_set));
            let written: Vec<&str> = all.map(|(key, _)| key.as_str()).collect();
            assert_eq!(&written, fields);
        }
    }
}
