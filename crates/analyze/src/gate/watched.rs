//! Conditions that are judged over and over while a recording runs: `wait.p99>50us over 10s`.

use super::condition::{Condition, Limit, Quantity};
use super::parse::{ParseError, Unit, condition, limit, split_all, wrong};
use jitterscope_model::Nanos;
use std::fmt;

/// The word before the time.
const OVER: &str = " over ";
/// The shortest and the longest time.
const SHORTEST: Nanos = Nanos(100_000_000);
const LONGEST: Nanos = Nanos(600_000_000_000);

/// A condition, and the time over which it is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    pub condition: Condition,
    /// `None`: the time that all conditions share.
    pub over: Option<Nanos>,
}

impl fmt::Display for Watched {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.over {
            None => write!(to, "{}", self.condition),
            Some(over) => write!(to, "{}{OVER}{}", self.condition, Limit::Time(over)),
        }
    }
}

/// Parses a list of conditions, separated by commas; each may end with a time: `over 10s`.
///
/// # Errors
/// One of them is invalid; the error names it, the reason and a correct form.
pub fn parse_watched(text: &str) -> Result<Vec<Watched>, ParseError> {
    split_all(text)?.into_iter().map(one).collect()
}

fn one(text: &str) -> Result<Watched, ParseError> {
    // A name in parentheses may contain the word.
    let behind = |(_, time): &(&str, &str)| !time.contains(['(', ')', '<', '>']);
    let Some((left, time)) = text.rsplit_once(OVER).filter(behind) else {
        return Ok(Watched {
            condition: condition(text)?,
            over: None,
        });
    };
    let condition = condition(left.trim())?;
    match limit(text, &Quantity::Max, time.trim(), Unit::Time) {
        Ok(Limit::Time(over)) if (SHORTEST..=LONGEST).contains(&over) => Ok(Watched {
            condition,
            over: Some(over),
        }),
        _ => Err(wrong(
            text,
            format!(
                "{:?} is no time from 100ms to 10m: write for example {condition}{OVER}10s",
                time.trim()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::parse;

    #[test]
    fn a_condition_may_have_a_time_of_its_own() {
        let text = "culprit(kworker)>1ms/s, wait.p99>50us over 10s, max>1ms over 500ms";
        let all = parse_watched(text).unwrap();
        let again: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(again.join(", "), text);
        let overs: Vec<_> = all.iter().map(|of| of.over).collect();
        let seconds = |ms: u64| Some(Nanos(ms * 1_000_000));
        assert_eq!(overs, [None, seconds(10_000), seconds(500)]);
        let odd = parse_watched("culprit(a over 5s)>1%").unwrap();
        assert_eq!(odd[0].over, None);
        assert_eq!(
            odd[0].condition.quantity,
            Quantity::Culprit("a over 5s".into())
        );
    }

    #[test]
    fn a_wrong_time_is_refused_and_so_is_any_time_of_a_gate() {
        for (text, said) in [
            ("max>1ms over 1ms", "100ms to 10m"),
            ("max>1ms over 1h", "100ms to 10m"),
            ("max>1ms over 700s", "100ms to 10m"),
            ("max>1ms over ", "no limit"),
            ("max over 10s", "max>50us"),
            ("max>1ms,", "between two commas"),
            ("", "no condition"),
        ] {
            let error = parse_watched(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert!(parse("max>1ms over 10s").is_err());
    }

    #[test]
    fn a_time_per_second_is_a_share_of_the_measured_time() {
        let limit =
            |text: &str| parse(text).map(|all| all[0].limit.map(|(_, limit)| limit.value()));
        assert_eq!(limit("culprit(kworker)>1ms/s"), Ok(Some(0.001)));
        assert_eq!(limit("stolen>=50us/s"), Ok(Some(0.000_05)));
        for text in [
            "unexplained>1ms/s",
            "coverage<1ms/s",
            "max>1ms/s",
            "stolen>2s/s",
            "stalls>1ms/s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
