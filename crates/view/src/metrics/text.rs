//! The text forms of metrics: OpenMetrics 1.0, and Prometheus's older form, which node_exporter reads from files.

use std::fmt::{Display, Write};

/// A text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsForm {
    OpenMetrics,
    /// Version 0.0.4: counters are named with their ending, and there is no type for facts, no unit and no end.
    Prometheus,
}

impl MetricsForm {
    /// The media type, as HTTP names it.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            MetricsForm::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsForm::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The type of a family of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Counter,
    Gauge,
    Histogram,
    /// A fact in labels; the value is 1.
    Info,
}

/// A time in seconds, to the nanosecond.
pub(super) struct Seconds(pub(super) u64);

impl Display for Seconds {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        match nanos {
            0 => write!(to, "{seconds}.0"),
            _ => {
                let digits = format!("{nanos:09}");
                write!(to, "{seconds}.{}", digits.trim_end_matches('0'))
            }
        }
    }
}

type Labels<'a> = &'a [(&'a str, &'a str)];

/// A text with families of metrics. Every row has the labels of the text besides its own.
pub(super) struct MetricsText<'a> {
    form: MetricsForm,
    common: Labels<'a>,
    text: String,
    name: String,
    of: Type,
}

impl<'a> MetricsText<'a> {
    pub(super) fn new(form: MetricsForm, common: Labels<'a>) -> MetricsText<'a> {
        MetricsText {
            form,
            common,
            text: String::new(),
            name: String::new(),
            of: Type::Gauge,
        }
    }

    /// Begins a family. `name` has no ending, except that of the unit.
    pub(super) fn family(&mut self, name: &str, of: Type, unit: &str, help: &str) {
        self.name = name.to_owned();
        self.of = of;
        let open = self.form == MetricsForm::OpenMetrics;
        let (family, word) = match of {
            Type::Counter if open => (name.to_owned(), "counter"),
            Type::Counter => (format!("{name}_total"), "counter"),
            Type::Gauge => (name.to_owned(), "gauge"),
            Type::Histogram => (name.to_owned(), "histogram"),
            Type::Info if open => (name.to_owned(), "info"),
            Type::Info => (format!("{name}_info"), "gauge"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# TYPE {family} {word}");
        if open && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {family} {}", self.escaped_help(help));
    }

    /// A row of the family.
    pub(super) fn row(&mut self, labels: Labels<'_>, value: impl Display) {
        let ending = match self.of {
            Type::Counter => "_total",
            Type::Info => "_info",
            Type::Gauge | Type::Histogram => "",
        };
        self.sample(ending, labels, value);
    }

    /// The rows of a histogram: for each upper bound in nanoseconds the count up to it and from the one before.
    pub(super) fn histogram(&mut self, bounds: &[u64], counts: &[u64], sum: impl Display) {
        let mut below = 0_u64;
        for (at, count) in counts.iter().enumerate() {
            below = below.saturating_add(*count);
            let bound = bounds
                .get(at)
                .map_or_else(|| "+Inf".to_owned(), |ns| Seconds(*ns).to_string());
            self.sample("_bucket", &[("le", &bound)], below);
        }
        self.sample("_sum", &[], sum);
        self.sample("_count", &[], below);
    }

    fn sample(&mut self, ending: &str, labels: Labels<'_>, value: impl Display) {
        let _ = write!(self.text, "{}{ending}", self.name);
        let mut sign = '{';
        for (name, value) in self.common.iter().chain(labels) {
            let _ = write!(self.text, "{sign}{name}=\"{}\"", escaped(value));
            sign = ',';
        }
        let end = if sign == '{' { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    pub(super) fn end(mut self) -> String {
        if self.form == MetricsForm::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    fn escaped_help(&self, help: &str) -> String {
        match self.form {
            MetricsForm::OpenMetrics => escaped(help),
            MetricsForm::Prometheus => help.replace('\\', "\\\\").replace('\n', "\\n"),
        }
    }
}

/// The value of a label.
fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: MetricsForm) -> String {
        let mut text = MetricsText::new(form, &[("cpus", "1")]);
        text.family("js_a_seconds", Type::Counter, "seconds", "Says \"a\\b\".");
        text.row(&[("who", "a\"b\\c\nd")], Seconds(1_500_000_000));
        text.family("js_b", Type::Info, "", "Facts.");
        text.row(&[], 1);
        text.family("js_c_seconds", Type::Histogram, "seconds", "Lengths.");
        text.histogram(&[1_000, 2_000_000_000], &[3, 0, 2], Seconds(7_000_000_000));
        text.end()
    }

    #[test]
    fn openmetrics_names_families_without_ending_and_has_an_end() {
        let expected = r#"# TYPE js_a_seconds counter
# UNIT js_a_seconds seconds
# HELP js_a_seconds Says \"a\\b\".
js_a_seconds_total{cpus="1",who="a\"b\\c\nd"} 1.5
# TYPE js_b info
# HELP js_b Facts.
js_b_info{cpus="1"} 1
# TYPE js_c_seconds histogram
# UNIT js_c_seconds seconds
# HELP js_c_seconds Lengths.
js_c_seconds_bucket{cpus="1",le="0.000001"} 3
js_c_seconds_bucket{cpus="1",le="2.0"} 3
js_c_seconds_bucket{cpus="1",le="+Inf"} 5
js_c_seconds_sum{cpus="1"} 7.0
js_c_seconds_count{cpus="1"} 5
# EOF
"#;
        assert_eq!(text(MetricsForm::OpenMetrics), expected);
    }

    #[test]
    fn the_older_form_names_families_as_their_rows() {
        let text = text(MetricsForm::Prometheus);
        for line in [
            "# TYPE js_a_seconds_total counter",
            "# HELP js_a_seconds_total Says \"a\\\\b\".",
            "# TYPE js_b_info gauge",
            "# TYPE js_c_seconds histogram",
        ] {
            assert!(text.lines().any(|of| of == line), "{line}: {text}");
        }
        assert!(!text.contains("UNIT") && !text.contains("EOF"), "{text}");
    }

    #[test]
    fn a_time_is_written_to_the_nanosecond() {
        for (ns, text) in [
            (0, "0.0"),
            (1, "0.000000001"),
            (1_000_000_010, "1.00000001"),
            (u64::MAX, "18446744073.709551615"),
        ] {
            assert_eq!(Seconds(ns).to_string(), text);
        }
    }
}
