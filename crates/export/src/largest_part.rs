//! The fields about a stall's culprit in the formats with one row a stall: those of its largest part.

use jitterscope_model::{Attribution, Part, SubjectFields};

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Number(i64),
    Text(String),
}

impl Fact {
    fn text(value: impl ToString) -> Fact {
        Fact::Text(value.to_string())
    }
}

/// The part with the most time.
pub(crate) fn largest_part(attribution: Option<&Attribution>) -> Option<&Part> {
    attribution?.parts.iter().max_by_key(|part| part.net)
}

/// The number of fields.
pub(crate) const FACTS: usize = 15;

/// The fields, with the name that all formats use; `None` where the value is unknown or does not apply. The first two,
/// kind and name, are always present.
pub(crate) fn facts(part: &Part) -> [(&'static str, Option<Fact>); FACTS] {
    let fields = SubjectFields::from(&part.culprit.subject);
    let number = |value: Option<i32>| value.map(|value| Fact::Number(value.into()));
    let text = |value: Option<jitterscope_model::Name>| value.map(Fact::text);
    [
        ("culprit_kind", Some(Fact::text(fields.kind))),
        ("culprit", Some(Fact::text(fields.name))),
        (
            "culprit_ns",
            Some(Fact::Number(i64::try_from(part.net.0).unwrap_or(i64::MAX))),
        ),
        ("culprit_tid", number(fields.tid)),
        ("culprit_tgid", number(fields.tgid)),
        ("culprit_comm", text(fields.comm)),
        ("culprit_class", text(fields.class)),
        (
            "culprit_priority",
            fields.priority.map(|value| Fact::Number(value.into())),
        ),
        (
            "culprit_uid",
            fields.uid.map(|value| Fact::Number(value.into())),
        ),
        ("culprit_cgroup", text(fields.cgroup)),
        ("culprit_function", text(fields.function)),
        ("culprit_workqueue", text(fields.workqueue)),
        (
            "culprit_irq",
            fields.irq.map(|value| Fact::Number(value.into())),
        ),
        ("phase", part.phase.as_ref().map(Fact::text)),
        (
            "moved_from_cpu",
            part.moved_from.map(|cpu| Fact::Number(cpu.0.into())),
        ),
    ]
}
