//! The forms of metrics: OpenMetrics 1.0; Prometheus's older text, which node_exporter reads from files; and Prometheus's
//! protocol buffers, the only form with native histograms.

use jitterscope_model::{EXPONENTIAL_SCHEMA, Message};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};

/// A text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsForm {
    OpenMetrics,
    /// Version 0.0.4: counters are named with their ending, and there is no type for facts, no unit and no end.
    Prometheus,
    /// Messages `io.prometheus.client.MetricFamily`, each behind its length.
    Protobuf,
}

impl MetricsForm {
    /// The form that a client asks for, by the values of its header `Accept`.
    #[must_use]
    pub fn accepted(accept: &[String]) -> MetricsForm {
        let kinds = || accept.iter().flat_map(|line| line.split(','));
        let is_family = |kind: &str| {
            kind.trim().starts_with("application/vnd.google.protobuf")
                && kind.contains("io.prometheus.client.MetricFamily")
                && kind.contains("delimited")
        };
        // A Prometheus asks for protocol buffers only if it takes native histograms.
        if kinds().any(is_family) {
            return MetricsForm::Protobuf;
        }
        match kinds().any(|kind| kind.trim().starts_with("application/openmetrics-text")) {
            true => MetricsForm::OpenMetrics,
            false => MetricsForm::Prometheus,
        }
    }

    /// The media type, as HTTP names it.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            MetricsForm::OpenMetrics => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            MetricsForm::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            MetricsForm::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
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
    /// In protocol buffers: the families so far, and the current one.
    families: Vec<u8>,
    family: Message,
}

/// Fields of `MetricFamily`, `Metric`, `LabelPair` and `Histogram`, and values of `MetricType`, from
/// <https://github.com/prometheus/client_model> (io/prometheus/client/metrics.proto).
mod field {
    pub(super) const NAME: u32 = 1;
    pub(super) const HELP: u32 = 2;
    pub(super) const TYPE: u32 = 3;
    pub(super) const METRIC: u32 = 4;
    pub(super) const LABEL: u32 = 1;
    pub(super) const GAUGE: u32 = 2;
    pub(super) const COUNTER: u32 = 3;
    pub(super) const HISTOGRAM: u32 = 7;
    pub(super) const VALUE: u32 = 1;
    pub(super) const COUNT: u32 = 1;
    pub(super) const SUM: u32 = 2;
    pub(super) const BUCKET: u32 = 3;
    pub(super) const SCHEMA: u32 = 5;
    pub(super) const ZERO_THRESHOLD: u32 = 6;
    pub(super) const SPAN: u32 = 12;
    pub(super) const DELTA: u32 = 13;
}

/// The durations that a native histogram counts as zero, seconds: Prometheus's own default.
const ZERO: f64 = 2.938_735_877_055_719e-39;

impl<'a> MetricsText<'a> {
    pub(super) fn new(form: MetricsForm, common: Labels<'a>) -> MetricsText<'a> {
        MetricsText {
            form,
            common,
            text: String::new(),
            name: String::new(),
            of: Type::Gauge,
            families: Vec::new(),
            family: Message::default(),
        }
    }

    fn is_protobuf(&self) -> bool {
        self.form == MetricsForm::Protobuf
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
        if self.is_protobuf() {
            self.end_family();
            self.family.text(field::NAME, &family);
            self.family.text(field::HELP, help);
            let of: u32 = match of {
                Type::Counter => 0,
                Type::Gauge | Type::Info => 1,
                Type::Histogram => 4,
            };
            self.family.uint(field::TYPE, of);
            return;
        }
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

    /// The rows of a histogram: for each upper bound in nanoseconds the count up to it and from the one before. `native`:
    /// the counts by exponential bucket, for the form that has them.
    pub(super) fn histogram(
        &mut self,
        bounds: &[u64],
        counts: &[u64],
        native: &BTreeMap<i32, u64>,
        sum: impl Display,
    ) {
        if self.is_protobuf() {
            let labels = self.common;
            self.family.message(field::METRIC, |metric| {
                put_labels(metric, labels);
                metric.message(field::HISTOGRAM, |histogram| {
                    put_histogram(histogram, bounds, counts, native, number(&sum));
                });
            });
            return;
        }
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
        if self.is_protobuf() {
            let of = match self.of {
                Type::Counter => field::COUNTER,
                Type::Gauge | Type::Info | Type::Histogram => field::GAUGE,
            };
            let common = self.common;
            self.family.message(field::METRIC, |metric| {
                put_labels(metric, common);
                put_labels(metric, labels);
                metric.message(of, |of| of.double(field::VALUE, number(&value)));
            });
            return;
        }
        let _ = write!(self.text, "{}{ending}", self.name);
        let mut sign = '{';
        for (name, value) in self.common.iter().chain(labels) {
            let _ = write!(self.text, "{sign}{name}=\"{}\"", escaped(value));
            sign = ',';
        }
        let end = if sign == '{' { "" } else { "}" };
        let _ = writeln!(self.text, "{end} {value}");
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        match self.form {
            MetricsForm::OpenMetrics => self.text.push_str("# EOF\n"),
            MetricsForm::Prometheus => {}
            MetricsForm::Protobuf => {
                self.end_family();
                return self.families;
            }
        }
        self.text.into_bytes()
    }

    fn end_family(&mut self) {
        if !self.family.is_empty() {
            self.families.extend(self.family.delimited());
            self.family.clear();
        }
    }

    fn escaped_help(&self, help: &str) -> String {
        match self.form {
            MetricsForm::OpenMetrics => escaped(help),
            MetricsForm::Prometheus | MetricsForm::Protobuf => {
                help.replace('\\', "\\\\").replace('\n', "\\n")
            }
        }
    }
}

fn put_labels(metric: &mut Message, labels: Labels<'_>) {
    for (name, value) in labels {
        metric.message(field::LABEL, |label| {
            label.text(1, name);
            label.text(2, value);
        });
    }
}

fn put_histogram(
    to: &mut Message,
    bounds: &[u64],
    counts: &[u64],
    native: &BTreeMap<i32, u64>,
    sum: f64,
) {
    to.uint(field::COUNT, counts.iter().sum::<u64>());
    to.double(field::SUM, sum);
    let mut below = 0_u64;
    for (bound, count) in bounds.iter().zip(counts) {
        below += count;
        to.message(field::BUCKET, |bucket| {
            bucket.uint(1, below);
            bucket.double(2, number(&Seconds(*bound)));
        });
    }
    to.zigzag(field::SCHEMA, EXPONENTIAL_SCHEMA.into());
    to.double(field::ZERO_THRESHOLD, ZERO);
    let mut spans: Vec<(i32, u32)> = Vec::new();
    let mut next = 0;
    for bucket in native.keys() {
        match spans.last_mut() {
            Some((_, length)) if *bucket == next => *length += 1,
            _ => spans.push((bucket - next, 1)),
        }
        next = bucket + 1;
    }
    if spans.is_empty() {
        // Without a span, readers take it for a histogram of the older kind.
        spans.push((0, 0));
    }
    for (offset, length) in spans {
        to.message(field::SPAN, |span| {
            span.zigzag(1, offset.into());
            span.uint(2, length);
        });
    }
    let mut before = 0_i64;
    for count in native.values() {
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        to.zigzag(field::DELTA, count - before);
        before = count;
    }
}

/// A value as protocol buffers have it.
fn number(value: &impl Display) -> f64 {
    // Every value is written as a decimal number.
    value.to_string().parse().unwrap_or(f64::NAN)
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

    fn written(form: MetricsForm) -> Vec<u8> {
        let mut text = MetricsText::new(form, &[("cpus", "1")]);
        text.family("js_a_seconds", Type::Counter, "seconds", "Says \"a\\b\".");
        text.row(&[("who", "a\"b\\c\nd")], Seconds(1_500_000_000));
        text.family("js_b", Type::Info, "", "Facts.");
        text.row(&[], 1);
        text.family("js_c_seconds", Type::Histogram, "seconds", "Lengths.");
        let native = BTreeMap::from([(-80, 2), (-79, 1), (8, 2)]);
        let sum = Seconds(7_000_000_000);
        text.histogram(&[1_000, 2_000_000_000], &[3, 0, 2], &native, sum);
        text.end()
    }

    fn text(form: MetricsForm) -> String {
        String::from_utf8(written(form)).unwrap()
    }

    #[test]
    fn the_client_chooses_the_form() {
        let of = |accept: &str| MetricsForm::accepted(&[accept.to_owned()]);
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        assert_eq!(of(prometheus), MetricsForm::OpenMetrics);
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        assert_eq!(of(&format!("{native},{prometheus}")), MetricsForm::Protobuf);
        assert_eq!(of("*/*"), MetricsForm::Prometheus);
        assert_eq!(MetricsForm::accepted(&[]), MetricsForm::Prometheus);
    }

    #[test]
    fn protocol_buffers_have_native_histograms() {
        let bytes = written(MetricsForm::Protobuf);
        // Each family behind its length.
        let (mut at, mut families) = (0, Vec::new());
        while at < bytes.len() {
            let (low, more) = (bytes[at], bytes[at] >= 0x80);
            let length = match more {
                true => usize::from(low & 0x7f) | usize::from(bytes[at + 1]) << 7,
                false => low.into(),
            };
            at += 1 + usize::from(more);
            families.push(&bytes[at..at + length]);
            at += length;
        }
        assert_eq!(families.len(), 3);
        let has = |family: &[u8], part: &[u8]| family.windows(part.len()).any(|of| of == part);
        assert!(has(families[0], b"js_a_seconds_total"));
        assert!(has(families[0], &1.5_f64.to_le_bytes()));
        assert!(has(families[1], b"js_b_info"));
        // Schema 2; two spans: two buckets from -80 on, and one 86 buckets further; deltas 2, -1, +1.
        let native = [
            &[0x28, 4][..],
            &[0x62, 5, 0x08, 0x9f, 0x01, 0x10, 2],
            &[0x62, 5, 0x08, 0xac, 0x01, 0x10, 1],
            &[0x68, 4, 0x68, 1, 0x68, 2],
        ];
        for part in native {
            assert!(has(families[2], part), "{part:x?}: {:x?}", families[2]);
        }
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
