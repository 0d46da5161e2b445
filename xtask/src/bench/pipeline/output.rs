//! Parses the output of the variants.

use anyhow::{Context, bail};
use serde_json::Value;
use std::fmt;

/// Message times in nanoseconds, and the memory used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transit {
    pub count: u64,
    pub p50: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
    /// Peak resident size, KiB.
    pub peak_kib: u64,
}

impl Transit {
    /// The median of each number; of two middle values the higher.
    pub fn median(rounds: &[Transit]) -> Transit {
        let of = |field: fn(&Transit) -> u64| {
            let mut values: Vec<u64> = rounds.iter().map(field).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        Transit {
            count: of(|t| t.count),
            p50: of(|t| t.p50),
            p99: of(|t| t.p99),
            p99_9: of(|t| t.p99_9),
            max: of(|t| t.max),
            peak_kib: of(|t| t.peak_kib),
        }
    }

    /// The columns of the table.
    pub fn columns(&self) -> [u64; 5] {
        [self.p50, self.p99, self.p99_9, self.max, self.peak_kib]
    }
}

impl fmt::Display for Transit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transit {
            p50,
            p99,
            p99_9,
            max,
            peak_kib,
            ..
        } = self;
        write!(
            f,
            "p50 {p50} p99 {p99} p99.9 {p99_9} max {max} ns, {peak_kib} KiB"
        )
    }
}

fn number(json: &Value, name: &str) -> anyhow::Result<u64> {
    json[name]
        .as_u64()
        .with_context(|| format!("no number '{name}' was printed"))
}

/// From the report of `record pipeline --json`: the accumulator's transit.
pub fn of_tool(text: &str) -> anyhow::Result<Transit> {
    let json: Value = serde_json::from_str(text).context("the report is no JSON")?;
    let consumers = json["pipeline"]["consumers"]
        .as_array()
        .context("the report has no consumers")?;
    let accumulator = consumers
        .iter()
        .find(|consumer| consumer["role"] == "accumulator")
        .context("the report has no accumulator")?;
    if number(accumulator, "disordered")? > 0 {
        bail!("the accumulator received messages out of order");
    }
    let transit = &accumulator["transit"];
    let levels = &transit["percentiles_ns"];
    Ok(Transit {
        count: number(transit, "count")?,
        p50: number(levels, "50")?,
        p99: number(levels, "99")?,
        p99_9: number(levels, "99.9")?,
        max: number(transit, "max_ns")?,
        peak_kib: number(&json["trust"], "peak_rss_bytes")? / 1024,
    })
}

/// From the JSON line of the ping.
pub fn of_ping(text: &str) -> anyhow::Result<Transit> {
    let line = text
        .lines()
        .rev()
        .find(|line| line.starts_with('{'))
        .context("the ping printed no JSON")?;
    let json: Value = serde_json::from_str(line).context("the ping printed broken JSON")?;
    Ok(Transit {
        count: number(&json, "count")?,
        p50: number(&json, "p50")?,
        p99: number(&json, "p99")?,
        p99_9: number(&json, "p99_9")?,
        max: number(&json, "max")?,
        peak_kib: number(&json, "peak_rss_kib")?,
    })
}

/// From Java's `result key=value ...`.
pub fn of_java(text: &str) -> anyhow::Result<Transit> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("result "))
        .context("Java printed no result")?;
    let number = |name: &str| -> anyhow::Result<u64> {
        let value = line
            .split_whitespace()
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let value = value.with_context(|| format!("Java printed no '{name}'"))?;
        value
            .parse()
            .with_context(|| format!("Java's '{name}' is '{value}', no number"))
    };
    let count = number("count")?;
    if number("disordered")? > 0 || number("inter_count")? != count {
        bail!("Java's accumulator lost or disordered messages: {line}");
    }
    Ok(Transit {
        count,
        p50: number("p50")?,
        p99: number("p99")?,
        p99_9: number("p99_9")?,
        max: number("max")?,
        peak_kib: number("peak_rss_kib")?,
    })
}

/// The names of the threads in Java's `threads PRODUCER ACCUMULATOR`.
pub fn java_threads(line: &str) -> Option<(&str, &str)> {
    line.trim().strip_prefix("threads ")?.split_once(' ')
}

/// Two different CPUs, as in `0,1`.
pub fn pair(text: &str) -> Option<(u32, u32)> {
    let (first, second) = text.split_once(',')?;
    let (first, second) = (first.trim().parse().ok()?, second.trim().parse().ok()?);
    (first != second).then_some((first, second))
}

/// The CPUs of `Cpus_allowed_list` in `/proc/self/status`.
pub fn allowed_cpus(status: &str) -> Option<Vec<u32>> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let mut cpus = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: Transit = Transit {
        count: 7,
        p50: 250,
        p99: 431,
        p99_9: 20_000,
        max: 99_999,
        peak_kib: 2_048,
    };

    #[test]
    fn all_three_are_read_alike() {
        let tool = r#"{"pipeline":{"consumers":[
            {"role":"journaller","disordered":0,"transit":{"count":1}},
            {"role":"accumulator","disordered":0,"transit":{"count":7,"max_ns":99999,
             "percentiles_ns":{"50":250,"90":300,"99":431,"99.9":20000}}}]},
            "trust":{"peak_rss_bytes":2097152}}"#;
        assert_eq!(of_tool(tool).unwrap(), EXPECTED);
        let ping = "running\n{\"count\":7,\"p50\":250,\"p99\":431,\"p99_9\":20000,\"max\":99999,\"peak_rss_kib\":2048}\n";
        assert_eq!(of_ping(ping).unwrap(), EXPECTED);
        let java = "OpenJDK warns\nresult count=7 inter_count=7 disordered=0 min=1 p50=250 p99=431 p99_9=20000 \
                    max=99999 peak_rss_kib=2048\n";
        assert_eq!(of_java(java).unwrap(), EXPECTED);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let error = |result: anyhow::Result<Transit>| format!("{:#}", result.unwrap_err());
        assert!(error(of_java("")).contains("no result"));
        assert!(error(of_java("result count=7")).contains("'disordered'"));
        assert!(error(of_java("result count=x")).contains("'x'"));
        let lost =
            "result count=7 inter_count=6 disordered=0 p50=1 p99=1 p99_9=1 max=1 peak_rss_kib=1";
        assert!(error(of_java(lost)).contains("lost"));
        let disordered = lost.replace("inter_count=6 disordered=0", "inter_count=7 disordered=1");
        assert!(error(of_java(&disordered)).contains("disordered"));
        // p99 and p99_9 must not be confused.
        let partly = "result count=7 inter_count=7 disordered=0 p50=1 p99_9=1 max=1 peak_rss_kib=1";
        assert!(error(of_java(partly)).contains("'p99'"));
        assert!(error(of_tool("{}")).contains("consumers"));
        assert!(error(of_ping("nothing")).contains("JSON"));
        let disordered = r#"{"pipeline":{"consumers":[{"role":"accumulator","disordered":2}]}}"#;
        assert!(error(of_tool(disordered)).contains("out of order"));
    }

    #[test]
    fn medians_are_of_each_number_alone() {
        let round = |p50, p99| Transit {
            count: 7,
            p50,
            p99,
            ..EXPECTED
        };
        let median = Transit::median(&[round(3, 10), round(1, 30), round(2, 20)]);
        assert_eq!((median.p50, median.p99, median.count), (2, 20, 7));
        assert_eq!(Transit::median(&[round(1, 5), round(9, 6)]).p50, 9);
        assert_eq!(Transit::median(&[]), Transit::default());
    }

    #[test]
    fn cpus_and_threads_are_read() {
        assert_eq!(pair("2, 5"), Some((2, 5)));
        assert_eq!((pair("1,1"), pair("1"), pair("a,b")), (None, None, None));
        let status = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-2,5\n";
        assert_eq!(allowed_cpus(status), Some(vec![0, 1, 2, 5]));
        assert_eq!(allowed_cpus("Cpus_allowed_list:\tx"), None);
        assert_eq!(java_threads("threads a b\n"), Some(("a", "b")));
        assert_eq!(java_threads("result a b"), None);
    }
}
