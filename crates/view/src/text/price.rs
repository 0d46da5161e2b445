//! The cost of recording kernel events, in a sentence.

use crate::number::{count, percent};
use jitterscope_analyze::{Price, Taken};
use jitterscope_model::{EventClass, GraphPrice, Nanos, PutInOrder, RecordCost, StackPrice};

/// The number of named event classes.
const REPORTED: usize = 3;

/// The number of records by class.
pub(crate) fn records(price: &Price) -> String {
    let all = all(price);
    match all {
        0 => "no kernel event was recorded".into(),
        _ => format!("{} kernel events ({})", count(all), classes(price, all)),
    }
}

fn all(price: &Price) -> u64 {
    let counts = price.events.values();
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

/// The number of records by class, the cost of each, the total, and the recorder's own thread.
pub(crate) fn text(price: &Price) -> String {
    let helper = format!(
        "our own thread took {} of a CPU",
        percent(price.helper_fraction)
    );
    let mut text = records(price);
    if all(price) == 0 {
        return format!("{text}; {helper}");
    }
    if let Some(RecordCost { warm_ns, cold_ns }) = price.record {
        text += &format!(", of {warm_ns} each with warm caches to {cold_ns} with cold ones");
    }
    if let Some(stacks) = &price.stacks {
        text += &format!(", and {}", of_stacks(stacks));
    }
    if let Some(taken) = &price.taken {
        text += &format!(": {}", share(taken));
    }
    if let Some(graph) = &price.graph {
        text += &format!("; {}", of_graph(graph));
    }
    format!("{text}; {helper}")
}

/// The stacks of sleeping threads.
fn of_stacks(stacks: &StackPrice) -> String {
    let mut text = format!("{} kernel stacks", count(stacks.records));
    match stacks.record {
        Some(RecordCost { warm_ns, cold_ns }) => {
            text += &format!(", of {warm_ns} to {cold_ns} each");
        }
        None => text += ", whose cost is not known",
    }
    text
}

/// The cost of tracing kernel functions.
fn of_graph(graph: &GraphPrice) -> String {
    let mut text = format!(
        "looking into kernel functions took {} records more",
        count(graph.records)
    );
    if let Some(RecordCost { warm_ns, cold_ns }) = graph.record {
        let taken = |each: Nanos| Nanos(each.0.saturating_mul(graph.records));
        let range = |least: Nanos, most: Nanos| match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        let (each, all) = (
            range(warm_ns, cold_ns),
            range(taken(warm_ns), taken(cold_ns)),
        );
        text += &format!(" of {each} each, an estimated {all} in all");
    }
    if let Some(beside) = graph.beside_ns {
        text += &format!(", and made a short system call {beside} longer on every CPU");
    }
    text
}

/// The largest classes, and the rest as one.
fn classes(price: &Price, all: u64) -> String {
    let mut largest: Vec<(&EventClass, u64)> =
        price.events.iter().map(|(class, n)| (class, *n)).collect();
    largest.order_by_key(|(_, n)| std::cmp::Reverse(*n));
    let of = |n: u64| percent(n as f64 / all as f64);
    let named = largest
        .iter()
        .take(REPORTED)
        .map(|(class, n)| format!("{} {}", of(*n), word(class)));
    let rest: u64 = largest.iter().skip(REPORTED).map(|(_, n)| *n).sum();
    let rest = (rest > 0).then(|| format!("{} others", of(rest)));
    named.chain(rest).collect::<Vec<_>>().join(", ")
}

fn word(class: &EventClass) -> String {
    match class {
        EventClass::WakeUps => "wake-ups".to_owned(),
        EventClass::Work => "work items".to_owned(),
        EventClass::Calls => "calls between CPUs".to_owned(),
        EventClass::Power => "idle states".to_owned(),
        other => crate::style::tame(other.as_str()),
    }
}

/// The cost of the records, as a share of the stolen or of all time.
pub(crate) fn share(taken: &Taken) -> String {
    match (taken.least_of_stolen, taken.most_of_stolen) {
        (Some(least), Some(most)) => {
            format!(
                "an estimated {} of the stolen time is ours",
                range(least, most)
            )
        }
        _ => format!(
            "recording took an estimated {} of the CPUs' time",
            range(taken.least_of_time, taken.most_of_time)
        ),
    }
}

/// `1.00 % to 7.00 %`; a single value if both read the same.
fn range(least: f64, most: f64) -> String {
    let (least, most) = (percent(least), percent(most));
    if least == most {
        least
    } else {
        format!("{least} to {most}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn price(record: Option<RecordCost>, taken: Option<Taken>) -> Price {
        let classes = [
            (EventClass::Switches, 50),
            (EventClass::Timers, 30),
            (EventClass::WakeUps, 15),
            (EventClass::Power, 4),
            (EventClass::Other("of_tomorrow".into()), 1),
        ];
        Price {
            events: classes.into(),
            on_measured: 80,
            record,
            taken,
            graph: None,
            stacks: None,
            helper_fraction: 0.042,
        }
    }

    #[test]
    fn ends_of_a_range_that_read_the_same_are_reported_once() {
        assert_eq!(range(0.0020, 0.00204), "0.20 %");
        assert_eq!(range(0.01, 0.07), "1.00 % to 7.00 %");
    }

    #[test]
    fn a_price_says_what_was_recorded_and_what_that_took() {
        let record = RecordCost {
            warm_ns: Nanos(60),
            cold_ns: Nanos(400),
        };
        let taken = Taken {
            least_ns: Nanos(4800),
            most_ns: Nanos(32_000),
            least_of_stolen: Some(0.01),
            most_of_stolen: Some(0.07),
            least_of_time: 0.001,
            most_of_time: 0.002,
        };
        assert_eq!(
            text(&price(Some(record), Some(taken))),
            "100 kernel events (50.0 % switches, 30.0 % timers, 15.0 % wake-ups, 5.00 % others), of 60 ns each with warm \
             caches to 400 ns with cold ones: an estimated 1.00 % to 7.00 % of the stolen time is ours; our own \
             thread took 4.20 % of a CPU"
        );
        let followed = Taken {
            least_of_stolen: None,
            most_of_stolen: None,
            ..taken
        };
        let text_of_it = text(&price(Some(record), Some(followed)));
        assert!(
            text_of_it.contains("recording took an estimated 0.10 % to 0.20 % of the CPUs' time"),
            "{text_of_it}"
        );
        let unknown = text(&price(None, None));
        assert!(
            !unknown.contains("each") && !unknown.contains("estimated"),
            "{unknown}"
        );
        let graph = GraphPrice {
            functions: vec!["vmstat_update".into()],
            records: 1000,
            lost: 0,
            record: Some(RecordCost {
                warm_ns: Nanos(100),
                cold_ns: Nanos(300),
            }),
            beside_ns: Some(Nanos(70)),
        };
        let looked = text(&Price {
            graph: Some(graph),
            ..price(None, None)
        });
        assert!(
            looked.contains(
                "; looking into kernel functions took 1,000 records more of 100 ns to 300 ns each, an estimated 100 us \
                 to 300 us in all, and made a short system call 70 ns longer on every CPU; our own"
            ),
            "{looked}"
        );
        let none = Price {
            events: Default::default(),
            ..price(None, None)
        };
        assert!(text(&none).starts_with("no kernel event was recorded"));
    }
}
