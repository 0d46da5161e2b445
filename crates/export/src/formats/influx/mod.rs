//! `influx`: line protocol to InfluxDB 1 (UDP, HTTP), 2 and 3 (HTTP).
//!
//! Times are nanoseconds since the epoch, and the precision is always given. All measurements have the tags `host` and
//! `label` (see [`SCHEMA`]):
//!
//! | measurement | at | further tags | fields |
//! |---|---|---|---|
//! | `jitter_run` | the start | `probe` | `run`, `tool`, `threshold_ns`, `interval_ns`; where the run fails its own proof, `doubts` |
//! | `jitter_stall` | start of the stall | `cpu`, `culprit_kind`, `culprit` | `duration_ns`, `explained_ns`, `run`, `stall_id`, `tid`, `comm`; the known ones of `culprit_ns`, `culprit_tid` and the other columns of `csv://` |
//! | `jitter_interval` | end of the interval | `cpu` | `count`, `max_ns`, `stolen_ns`, `duration_ns`, `run` |
//!
//! The tag `culprit` names the largest part of the stall. Live measurements without attribution have neither the
//! culprit's tags and fields nor `explained_ns`. `tid` and `comm` are the victim's.

mod carrier;
mod grammar;
mod http;
mod lines;
mod point;
mod udp;

pub use lines::SCHEMA;

use super::Format;
use carrier::Carrier;
use jitterscope_model::{Delivery, Row, RunFacts, RunManifest, Sink, SinkError};
use lines::Lines;
use std::path::PathBuf;

pub(super) static FORMAT: Format = Format {
    schemes: &[
        "influx",
        "influx+http",
        "influx+https",
        "influx2+http",
        "influx2+https",
        "influx3+http",
        "influx3+https",
    ],
    usage: &[
        ("influx://HOST:PORT", "InfluxDB 1, line protocol over UDP"),
        (
            "influx+http://HOST:PORT/?db=NAME",
            "InfluxDB 1, with user= if wanted",
        ),
        (
            "influx2+http://HOST:PORT/?org=ORG&bucket=NAME",
            "InfluxDB 2",
        ),
        ("influx3+http://HOST:PORT/?db=NAME", "InfluxDB 3"),
    ],
    notes: "+https for +http where wanted. Passwords are taken from password_file= or INFLUX_PASSWORD,\n\
            tokens from token_file= or INFLUX_TOKEN, certificates from the system's store or\n\
            SSL_CERT_FILE.",
    read: grammar::read,
};

/// A server's HTTP interface.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HttpPlace {
    /// `http://HOST:PORT`, perhaps with a path.
    base: String,
    /// The version of its interface.
    dialect: Dialect,
    credentials: Credentials,
}

/// Versions of the write interface.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Dialect {
    /// `/write` of InfluxDB 1.
    One {
        db: String,
        /// The retention policy, if not the default one.
        retention: Option<String>,
    },
    /// `/api/v2/write`.
    Two { org: String, bucket: String },
    /// `/api/v3/write_lp`.
    Three { db: String },
}

/// The credentials. Secrets are read when the target is opened, and are never on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Credentials {
    Nobody,
    /// InfluxDB 1: the password, from a file or `INFLUX_PASSWORD`.
    Password {
        user: String,
        file: Option<PathBuf>,
    },
    /// InfluxDB 2 and 3: the token, from a file or `INFLUX_TOKEN`; none if neither exists.
    Token {
        file: Option<PathBuf>,
    },
}

/// Formats rows as lines and passes them to a carrier.
struct Influx<C> {
    /// `None` at the end.
    carrier: Option<C>,
    lines: Option<Lines>,
}

impl<C: Carrier> Influx<C> {
    fn new(carrier: C) -> Influx<C> {
        Influx {
            carrier: Some(carrier),
            lines: None,
        }
    }
}

impl<C: Carrier> Sink for Influx<C> {
    fn may_refuse(&self) -> bool {
        true
    }

    fn begin(&mut self, facts: &RunFacts) -> Result<(), SinkError> {
        let lines = Lines::new(facts);
        if let Some(carrier) = &mut self.carrier {
            // The first line goes alone and at once, so that a wrong database or token shows before the measurement.
            carrier.first(lines.run())?;
        }
        self.lines = Some(lines);
        Ok(())
    }

    fn rows(&mut self, batch: &[Row<'_>]) -> Result<(), SinkError> {
        let (Some(lines), Some(carrier)) = (&self.lines, &mut self.carrier) else {
            return Ok(());
        };
        for row in batch {
            match row {
                Row::Stall(stall, attribution) => carrier.line(lines.stall(stall, *attribution)),
                Row::Interval(row, _) => carrier.line(lines.interval(row)),
                _ => {}
            }
        }
        Ok(())
    }

    fn takes(&self, row: &Row<'_>) -> bool {
        matches!(row, Row::Stall(..) | Row::Interval(..))
    }

    /// The carrier counts what was sent; the count is known at the end.
    fn tick(&mut self) -> Result<u64, SinkError> {
        if let Some(carrier) = &mut self.carrier {
            carrier.flush();
        }
        Ok(0)
    }

    fn end(&mut self, run: &RunManifest) -> Result<Delivery, SinkError> {
        let doubts = run.doubts();
        if let (Some(lines), Some(carrier), false) =
            (&self.lines, &mut self.carrier, doubts.is_empty())
        {
            carrier.line(lines.doubts(&doubts));
        }
        Ok(self.carrier.take().map(Carrier::finish).unwrap_or_default())
    }
}
