//! One line of InfluxDB's line protocol. The tests read lines with the crate `influxdb-line-protocol`; as a dependency
//! of the program it would add a tenth to a clean build.

use std::fmt::{Display, Write};

/// A line under construction: measurement, tags, fields, time, in this order. The names are constants of this crate and
/// need no escapes.
pub(super) struct Point {
    line: String,
    has_fields: bool,
}

/// The value of a field.
pub(super) enum Value<'v> {
    /// A 64-bit integer.
    Integer(i64),
    Text(&'v str),
}

impl Point {
    pub(super) fn new(measurement: &str) -> Point {
        Point {
            line: measurement.to_owned(),
            has_fields: false,
        }
    }

    /// Adds a tag, before the first field. An empty value would not parse.
    pub(super) fn tag(mut self, name: &str, value: &str) -> Point {
        debug_assert!(!self.has_fields && !value.is_empty());
        self.put(format_args!(",{name}="));
        self.escaped(value, &[',', '=', ' ']);
        self
    }

    pub(super) fn field(mut self, name: &str, value: Value<'_>) -> Point {
        self.line.push(if self.has_fields { ',' } else { ' ' });
        self.has_fields = true;
        match value {
            Value::Integer(number) => self.put(format_args!("{name}={number}i")),
            Value::Text(text) => {
                self.put(format_args!("{name}=\""));
                self.escaped(text, &['"', '\\']);
                self.line.push('"');
            }
        }
        self
    }

    /// Ends the line with its time, nanoseconds since 1970.
    pub(super) fn at(mut self, realtime_ns: i64) -> Vec<u8> {
        self.put(format_args!(" {realtime_ns}\n"));
        self.line.into_bytes()
    }

    fn put(&mut self, text: impl Display) {
        // Writing to a string cannot fail.
        let _ = write!(self.line, "{text}");
    }

    fn escaped(&mut self, text: &str, special: &[char]) {
        for c in text.chars() {
            if special.contains(&c) {
                self.line.push('\\');
            }
            self.line.push(c);
        }
    }
}
