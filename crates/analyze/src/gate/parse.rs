//! Parses conditions.

use super::condition::{Change, Condition, Limit, Operator, PERCENTILES, Percentile, Quantity};
use super::names::check_name;
use jitterscope_model::{BlockReason, Nanos};

/// The error in a list of conditions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{condition}': {why}")]
pub struct ParseError {
    pub condition: String,
    /// The error, and a correct form.
    pub why: String,
}

/// The words with which a condition may begin.
const WORDS: &str = "wait.pN, stall.pN, late.pN, message.pN, max, stolen, lost, stalls, unexplained, unresolved, \
                     hypervisor, firmware, culprit(NAME), culprit(unit:NAME), blocked(REASON), coverage, and for diff worse(total), worse(any), \
                     worse(culprit NAME)";

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    Time,
    Percent,
    PerSec,
    None,
}

/// Parses a list of conditions, separated by commas.
///
/// # Errors
/// One of them is invalid; the error names it, the reason and a correct form.
pub fn parse(text: &str) -> Result<Vec<Condition>, ParseError> {
    split_all(text)?.into_iter().map(condition).collect()
}

/// The parts of a list, each without spaces around it.
pub(super) fn split_all(text: &str) -> Result<Vec<&str>, ParseError> {
    let parts = split(text);
    if parts.iter().all(|part| part.trim().is_empty()) {
        return Err(wrong(
            "",
            format!("no condition; write one such as max>1ms. There are {WORDS}"),
        ));
    }
    Ok(parts.into_iter().map(str::trim).collect())
}

pub(super) fn wrong(condition: &str, why: impl Into<String>) -> ParseError {
    ParseError {
        condition: condition.to_owned(),
        why: why.into(),
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

pub(super) fn condition(text: &str) -> Result<Condition, ParseError> {
    if text.is_empty() {
        return Err(wrong(text, "an empty condition between two commas"));
    }
    // A pattern may contain a comparison sign: it ends at its parenthesis.
    let search_from = match (text.find('('), text.find(['<', '>'])) {
        (Some(open), Some(sign)) if open < sign => text
            .find(')')
            .ok_or_else(|| wrong(text, "the parenthesis is not closed"))?,
        (Some(_), None) if !text.contains(')') => {
            return Err(wrong(text, "the parenthesis is not closed"));
        }
        _ => 0,
    };
    let (left, operator, right) = match text[search_from..]
        .find(['<', '>'])
        .map(|at| at + search_from)
    {
        None => (text, None, ""),
        Some(at) => {
            let rest = &text[at..];
            let (operator, length) = match rest.as_bytes() {
                [b'>', b'=', ..] => (Operator::AtLeast, 2),
                [b'>', ..] => (Operator::Above, 1),
                [b'<', b'=', ..] => (Operator::AtMost, 2),
                _ => (Operator::Below, 1),
            };
            (&text[..at], Some(operator), rest[length..].trim())
        }
    };
    let (quantity, unit) = quantity(text, left.trim())?;
    let limit = match (operator, unit) {
        (None, Unit::None) => None,
        (Some(_), Unit::None) => {
            return Err(wrong(
                text,
                format!("{quantity} is compared with nothing: leave out the limit"),
            ));
        }
        (None, unit) => {
            return Err(wrong(
                text,
                format!("no limit: write for example {quantity}>{}", example(unit)),
            ));
        }
        (Some(operator), unit) => Some((operator, limit(text, &quantity, right, unit)?)),
    };
    Ok(Condition { quantity, limit })
}

fn example(unit: Unit) -> &'static str {
    match unit {
        Unit::Time => "50us",
        Unit::Percent | Unit::None => "5%",
        Unit::PerSec => "100/s",
    }
}

fn quantity(condition: &str, text: &str) -> Result<(Quantity, Unit), ParseError> {
    if let Some((word, rest)) = text.split_once('(') {
        let pattern = rest
            .strip_suffix(')')
            .ok_or_else(|| wrong(condition, "something stands behind the parenthesis"))?;
        let pattern = pattern.trim();
        if pattern.is_empty() || pattern.contains(['(', ')']) {
            return Err(wrong(
                condition,
                "name something in the parentheses, without parentheses of its own",
            ));
        }
        return match word.trim() {
            "culprit" => {
                check_name(pattern).map_err(|why| wrong(condition, why))?;
                Ok((Quantity::Culprit(pattern.to_owned()), Unit::Percent))
            }
            "blocked" => Ok((
                Quantity::Blocked(reason(condition, pattern)?),
                Unit::Percent,
            )),
            "worse" => {
                let change = match pattern.split_once(char::is_whitespace) {
                    None if pattern == "total" => Change::Total,
                    None if pattern == "any" => Change::Any,
                    Some(("culprit", name)) => {
                        check_name(name.trim()).map_err(|why| wrong(condition, why))?;
                        Change::Culprit(name.trim().to_owned())
                    }
                    _ => {
                        return Err(wrong(
                            condition,
                            "write worse(total), worse(any) or worse(culprit NAME)",
                        ));
                    }
                };
                Ok((Quantity::Worse(change), Unit::None))
            }
            other => Err(wrong(
                condition,
                format!("nothing is called {other}(...); there are {WORDS}"),
            )),
        };
    }
    if let Some((word, level)) = text.split_once(".p") {
        let percentile = |of: fn(Percentile) -> Quantity| match PERCENTILES
            .iter()
            .position(|name| *name == level)
        {
            Some(at) => Ok((of(Percentile(at)), Unit::Time)),
            None => Err(wrong(
                condition,
                format!(
                    "there is no percentile {level:?}; there are {}",
                    PERCENTILES.join(", ")
                ),
            )),
        };
        return match word {
            "wait" => percentile(Quantity::Wait),
            "stall" => percentile(Quantity::Stall),
            "late" => percentile(Quantity::Late),
            "message" => percentile(Quantity::Message),
            other => Err(wrong(
                condition,
                format!("{other:?} has no percentiles; there are {WORDS}"),
            )),
        };
    }
    Ok(match text {
        "max" => (Quantity::Max, Unit::Time),
        "stolen" => (Quantity::Stolen, Unit::Percent),
        "lost" => (Quantity::Lost, Unit::Percent),
        "stalls" => (Quantity::Stalls, Unit::PerSec),
        "unexplained" => (Quantity::Unexplained, Unit::Percent),
        "unresolved" => (Quantity::Unresolved, Unit::Percent),
        "hypervisor" => (Quantity::Hypervisor, Unit::Percent),
        "firmware" => (Quantity::Firmware, Unit::Percent),
        "coverage" => (Quantity::Coverage, Unit::Percent),
        "wait" | "stall" | "late" | "message" => {
            return Err(wrong(
                condition,
                format!("which percentile? Write for example {text}.p99.9"),
            ));
        }
        "" => {
            return Err(wrong(
                condition,
                format!("nothing is compared; there are {WORDS}"),
            ));
        }
        other => {
            return Err(wrong(
                condition,
                format!("nothing is called {other:?}; there are {WORDS}"),
            ));
        }
    })
}

/// A reason that this version knows.
fn reason(condition: &str, word: &str) -> Result<BlockReason, ParseError> {
    let known = BlockReason::KNOWN.iter();
    known
        .clone()
        .find(|reason| reason.as_str() == word)
        .cloned()
        .ok_or_else(|| {
            let near = known
                .clone()
                .min_by_key(|reason| strsim::osa_distance(reason.as_str(), word))
                .map_or("", BlockReason::as_str);
            let all: Vec<&str> = known.map(BlockReason::as_str).collect();
            let all = all.join(", ");
            wrong(
                condition,
                format!("no thread is blocked on {word:?}; perhaps {near}? There are {all}"),
            )
        })
}

pub(super) fn limit(
    condition: &str,
    quantity: &Quantity,
    text: &str,
    unit: Unit,
) -> Result<Limit, ParseError> {
    let bad = || {
        wrong(
            condition,
            format!(
                "{text:?} is no limit of {quantity}: write for example {}",
                example(unit)
            ),
        )
    };
    let number = |digits: &str| -> Result<f64, ParseError> {
        let digits = digits.trim();
        // No exponents, signs or words, so that the value is clear at a glance.
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        digits
            .parse::<f64>()
            .ok()
            .filter(|n| plain && n.is_finite())
            .ok_or_else(bad)
    };
    match unit {
        Unit::Percent => match text.strip_suffix('%') {
            Some(digits) => {
                let percent = number(digits)?;
                if percent > 100.0 {
                    return Err(wrong(condition, "more than 100%"));
                }
                Ok(Limit::Percent(percent))
            }
            None => match (text.strip_suffix("/s"), quantity) {
                (
                    Some(time),
                    Quantity::Stolen
                    | Quantity::Hypervisor
                    | Quantity::Firmware
                    | Quantity::Culprit(_),
                ) => match limit(condition, quantity, time, Unit::Time) {
                    Ok(Limit::Time(time)) if time.0 <= 1_000_000_000 => Ok(Limit::TimePerSec(time)),
                    Ok(_) => Err(wrong(condition, "more than a second per second")),
                    Err(_) => Err(bad()),
                },
                _ => Err(bad()),
            },
        },
        Unit::PerSec => Ok(Limit::PerSec(number(
            text.strip_suffix("/s").ok_or_else(bad)?,
        )?)),
        Unit::Time => {
            let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
            let (digits, scale) = units
                .iter()
                .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
                .ok_or_else(bad)?;
            let about = number(digits)?;
            let whole = digits
                .trim()
                .parse::<u64>()
                .ok()
                .and_then(|n| n.checked_mul(*scale as u64));
            let ns = match whole {
                Some(ns) => ns,
                None => {
                    let ns = about * scale;
                    if ns >= 9.2e18 {
                        return Err(wrong(condition, "more than 292 years"));
                    }
                    ns.round() as u64
                }
            };
            Ok(Limit::Time(Nanos(ns)))
        }
        Unit::None => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_documented_list_is_understood() {
        let text = "wait.p99.9>50us, max>1ms, unresolved>5%, culprit(kworker)>0.1%, hypervisor>2%";
        let conditions = parse(text).unwrap();
        let again: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        assert_eq!(again.join(", "), text);
        assert_eq!(parse("max > 1.5 ms").unwrap(), parse("max>1500us").unwrap());
        assert_eq!(parse("coverage<99%,stalls>=3/s").unwrap().len(), 2);
        assert_eq!(
            parse("worse( total )").unwrap()[0].quantity,
            Quantity::Worse(Change::Total)
        );
        let odd = parse("culprit(a>b, c)>1%").unwrap();
        assert_eq!(odd[0].quantity, Quantity::Culprit("a>b, c".into()));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, said) in [
            ("", "no condition"),
            ("max>1ms,", "between two commas"),
            ("max", "max>50us"),
            ("max>5", "50us"),
            ("max>5%", "50us"),
            ("stolen>50us", "5%"),
            ("stalls>3", "100/s"),
            ("wait>50us", "wait.p99.9"),
            ("wait.p98>50us", "99.9"),
            ("mx>1ms", "there are wait.pN"),
            ("culprit()>1%", "name something"),
            ("culprit(x>1%", "not closed"),
            ("culprit(x)y>1%", "behind the parenthesis"),
            ("blame(x)>1%", "nothing is called blame"),
            ("worse(total)>1%", "leave out the limit"),
            ("worse(all)", "worse(any)"),
            ("culprit(kwroker)>0.1%", "\"kworker\""),
            ("worse(culprit firmwere)", "\"firmware\""),
            ("stolen>101%", "100%"),
            ("max>-1ms", "no limit"),
            ("max>+1ms", "no limit"),
            ("max>1e3ms", "no limit"),
            ("max>99999999999s", "292 years"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn limits_hold_up_to_the_last_number_that_has_a_meaning() {
        let limit = |text: &str| parse(text).ok().and_then(|all| all[0].limit);
        assert_eq!(
            limit("stolen<=100%"),
            Some((Operator::AtMost, Limit::Percent(100.0)))
        );
        assert_eq!(limit("stolen>100.1%"), None);
        // A whole number is exact, any other is rounded.
        let time = |ns| Some((Operator::Above, Limit::Time(Nanos(ns))));
        assert_eq!(limit("max>9200000001s"), time(9_200_000_001_000_000_000));
        assert_eq!(limit("max>9007199254740993ns"), time(9_007_199_254_740_993));
        assert!(limit("max>9199999999.0s").is_some());
        assert_eq!(limit("max>9200000000.0s"), None);
        assert_eq!(limit("max>0.0015us"), time(2));
        assert_eq!(
            [
                limit("max>.ms"),
                limit("max>1..5ms"),
                limit("max>+1ms"),
                limit("max> ms")
            ],
            [None; 4]
        );
    }

    #[test]
    fn a_comma_parts_conditions_but_in_parentheses() {
        let names = |text: &str| -> Vec<String> {
            parse(text)
                .unwrap()
                .into_iter()
                .map(|of| of.quantity.to_string())
                .collect()
        };
        assert_eq!(names("culprit(a,b)>1%,max>1ms"), ["culprit(a,b)", "max"]);
        assert_eq!(
            names("worse(culprit a<b),stolen>1%"),
            ["worse(culprit a<b)", "stolen"]
        );
        for (text, said) in [
            ("worse(total", "not closed"),
            ("culprit(a)),max>1ms", "without parentheses"),
            ("max)>1ms,stolen>1%", "nothing is called"),
            ("max>1ms(", "no limit"),
            (">1ms", "nothing is compared"),
            (" , ", "no condition"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    fn quantities() -> impl Strategy<Value = (Quantity, Unit)> {
        let percentile = || (0..PERCENTILES.len()).prop_map(Percentile);
        let pattern = "[a-z*/_:.]{1,12}";
        prop_oneof![
            percentile().prop_map(|p| (Quantity::Wait(p), Unit::Time)),
            percentile().prop_map(|p| (Quantity::Stall(p), Unit::Time)),
            percentile().prop_map(|p| (Quantity::Late(p), Unit::Time)),
            percentile().prop_map(|p| (Quantity::Message(p), Unit::Time)),
            Just((Quantity::Max, Unit::Time)),
            Just((Quantity::Stolen, Unit::Percent)),
            Just((Quantity::Lost, Unit::Percent)),
            Just((Quantity::Stalls, Unit::PerSec)),
            Just((Quantity::Unexplained, Unit::Percent)),
            Just((Quantity::Unresolved, Unit::Percent)),
            Just((Quantity::Hypervisor, Unit::Percent)),
            Just((Quantity::Firmware, Unit::Percent)),
            Just((Quantity::Coverage, Unit::Percent)),
            pattern.prop_map(|p| (Quantity::Culprit(p), Unit::Percent)),
            Just((Quantity::Worse(Change::Total), Unit::None)),
            Just((Quantity::Worse(Change::Any), Unit::None)),
            pattern.prop_map(|p| (Quantity::Worse(Change::Culprit(p)), Unit::None)),
        ]
    }

    fn conditions() -> impl Strategy<Value = Condition> {
        let operator = prop::sample::select(vec![
            Operator::Above,
            Operator::AtLeast,
            Operator::Below,
            Operator::AtMost,
        ]);
        (quantities(), operator, any::<u64>()).prop_map(|((quantity, unit), operator, number)| {
            let limit = match unit {
                Unit::Time => Some(Limit::Time(Nanos(number))),
                Unit::Percent => Some(Limit::Percent((number % 100_001) as f64 / 1000.0)),
                Unit::PerSec => Some(Limit::PerSec((number % 1_000_000) as f64 / 8.0)),
                Unit::None => None,
            };
            Condition {
                quantity,
                limit: limit.map(|limit| (operator, limit)),
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(all in prop::collection::vec(conditions(), 1..6)) {
            let text = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            prop_assert_eq!(parse(&text), Ok(all));
        }

        #[test]
        fn spaces_do_not_matter(condition in conditions()) {
            let text = condition.to_string();
            let spaced = text.replace('>', " > ").replace('<', " < ").replace("> =", ">=").replace("< =", "<=");
            prop_assert_eq!(parse(&format!("  {spaced}  ")), Ok(vec![condition]));
        }

        #[test]
        fn nothing_panics_and_every_error_says_something(text in "\\PC{0,40}") {
            if let Err(error) = parse(&text) {
                prop_assert!(!error.why.is_empty());
            }
        }

        #[test]
        fn what_is_nearly_right_neither(text in "[a-z.()<>=%/,0-9 *]{0,30}") {
            let _ = parse(&text);
        }
    }
}
