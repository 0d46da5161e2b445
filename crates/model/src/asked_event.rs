//! Events that the user asked for, beside those of the recording's own.

use crate::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A tracepoint, or a probe that somebody defined, with the records of it that count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedEvent {
    /// The event's group: `block`.
    pub system: Name,
    /// Its name within the group: `block_rq_issue`.
    pub event: Name,
    /// The kernel's filter, in the words of its `filter` files; `None` for every record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// An event that was recorded because the user asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskedEventRecords {
    #[serde(flatten)]
    pub event: AskedEvent,
    /// The number of records that were read; zero if the recorder was killed.
    pub records: u64,
}

/// Why a text names no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is SYSTEM:EVENT or SYSTEM:EVENT:FILTER, as in block:block_rq_issue:bytes>65536")]
pub struct NoEventName;

impl AskedEvent {
    /// The event without its filter: `block:block_rq_issue`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.system, self.event)
    }
}

impl FromStr for AskedEvent {
    type Err = NoEventName;

    fn from_str(text: &str) -> Result<AskedEvent, NoEventName> {
        let (system, rest) = text.split_once(':').ok_or(NoEventName)?;
        let (event, filter) = match rest.split_once(':') {
            Some((event, filter)) => (event, Some(filter.trim())),
            None => (rest, None),
        };
        if !is_name(system) || !is_name(event) || filter == Some("") {
            return Err(NoEventName);
        }
        Ok(AskedEvent {
            system: system.into(),
            event: event.into(),
            filter: filter.map(str::to_owned),
        })
    }
}

impl fmt::Display for AskedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match &self.filter {
            Some(filter) => write!(f, ":{filter}"),
            None => Ok(()),
        }
    }
}

/// Whether a text can be the name of an event or of its group. It becomes part of a path that root opens.
fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_group_a_name_and_perhaps_a_filter() {
        let plain: AskedEvent = "block:block_rq_issue".parse().unwrap();
        assert_eq!(plain.name(), "block:block_rq_issue");
        assert_eq!(plain.filter, None);
        let filtered: AskedEvent = r#"net:netif_rx:name == "eth0:1" && len > 9"#.parse().unwrap();
        assert_eq!(
            filtered.filter.as_deref(),
            Some(r#"name == "eth0:1" && len > 9"#)
        );
        assert_eq!(
            filtered.to_string().parse::<AskedEvent>().as_ref(),
            Ok(&filtered)
        );
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            "block",
            ":block_rq_issue",
            "block:",
            "block:block_rq_issue:",
            "block:../../trace",
            "..:x",
            "block/block_rq_issue:x",
            "block:a b",
            "block:*",
            "-x:y",
        ] {
            assert_eq!(text.parse::<AskedEvent>(), Err(NoEventName), "{text}");
        }
    }
}
