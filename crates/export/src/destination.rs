//! Where an export goes, as the user writes it.

use crate::csv::{CsvRows, Formulas};
use crate::error::DestinationError;
use crate::influx::{Credentials, Dialect, HttpPlace};
use jitterscope_model::CpuId;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where rows go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Comma-separated values; `None` when the user left the choice of rows to the command.
    Csv {
        /// The file.
        path: PathBuf,
        /// Which rows.
        rows: Option<CsvRows>,
        /// What becomes of names that a spreadsheet would calculate.
        formulas: Formulas,
    },
    /// JSON lines.
    Json {
        /// The file.
        path: PathBuf,
    },
    /// HdrHistogram interval log.
    Hlog {
        /// The file.
        path: PathBuf,
    },
    /// Percentile table.
    Hgrm {
        /// The file.
        path: PathBuf,
        /// One CPU only.
        cpu: Option<CpuId>,
        /// The histogram of this tag, of a whole pipeline.
        of: Option<String>,
    },
    /// The store's tables.
    Parquet {
        /// The folder.
        folder: PathBuf,
    },
    /// Line protocol over UDP.
    InfluxUdp {
        /// `HOST:PORT`.
        address: String,
    },
    /// Line protocol over HTTP.
    InfluxHttp(HttpPlace),
}

impl Destination {
    /// What the user should know before relying on it.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        match self {
            Destination::InfluxUdp { address } => Some(format!(
                "influx://{address} is UDP: whether anything arrives cannot be known (influx+http:// can tell)"
            )),
            _ => None,
        }
    }

    /// The file or folder that it writes, or `-`.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Destination::Csv { path, .. }
            | Destination::Json { path }
            | Destination::Hlog { path }
            | Destination::Hgrm { path, .. }
            | Destination::Parquet { folder: path } => Some(path),
            Destination::InfluxUdp { .. } | Destination::InfluxHttp(_) => None,
        }
    }

    /// Whether it writes to standard output.
    #[must_use]
    pub fn is_stdout(&self) -> bool {
        !matches!(self, Destination::Parquet { .. }) && self.path() == Some(Path::new("-"))
    }
}

impl fmt::Display for Destination {
    /// Its kind and place, without options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Csv { path, .. } => write!(f, "csv://{}", path.display()),
            Destination::Json { path } => write!(f, "json://{}", path.display()),
            Destination::Hlog { path } => write!(f, "hlog://{}", path.display()),
            Destination::Hgrm { path, .. } => write!(f, "hgrm://{}", path.display()),
            Destination::Parquet { folder } => write!(f, "parquet://{}", folder.display()),
            Destination::InfluxUdp { address } => write!(f, "influx://{address}"),
            Destination::InfluxHttp(place) => {
                let version = match place.dialect {
                    Dialect::One { .. } => "",
                    Dialect::Two { .. } => "2",
                    Dialect::Three { .. } => "3",
                };
                write!(f, "influx{version}+{}", place.base)
            }
        }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Destination, DestinationError> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| DestinationError::NoScheme(text.to_owned()))?;
        let parts = Parts::split(text, rest);
        parts.each_once()?;
        match scheme {
            "csv" => {
                let path = parts.path()?;
                let (mut rows, mut formulas) = (None, Formulas::default());
                for (key, value) in &parts.options {
                    match *key {
                        "rows" => {
                            rows = Some(
                                CsvRows::parse(value)
                                    .ok_or_else(|| parts.unknown(&format!("rows={value}"), CSV_OPTIONS))?,
                            )
                        }
                        "formulas" => {
                            formulas = Formulas::parse(value)
                                .ok_or_else(|| parts.unknown(&format!("formulas={value}"), CSV_OPTIONS))?
                        }
                        _ => return Err(parts.unknown(key, CSV_OPTIONS)),
                    }
                }
                Ok(Destination::Csv { path, rows, formulas })
            }
            "hgrm" => {
                let path = parts.path()?;
                let (mut cpu, mut of) = (None, None);
                for (key, value) in &parts.options {
                    match *key {
                        "cpu" => cpu = Some(CpuId(value.parse().map_err(|_| parts.value("cpu", value))?)),
                        "of" if !value.is_empty() => of = Some((*value).to_owned()),
                        _ => return Err(parts.unknown(key, "cpu=N, of=TAG")),
                    }
                }
                Ok(Destination::Hgrm { path, cpu, of })
            }
            "json" => parts.plain().map(|path| Destination::Json { path }),
            "hlog" => parts.plain().map(|path| Destination::Hlog { path }),
            "parquet" => parts.plain().map(|folder| Destination::Parquet { folder }),
            "influx" => {
                parts.none()?;
                let address = parts.place.trim_end_matches('/');
                match address.rsplit_once(':') {
                    Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0) => {
                        Ok(Destination::InfluxUdp { address: address.to_owned() })
                    }
                    _ => {
                        Err(parts.incomplete("write influx://HOST:PORT, for example influx://localhost:8089"))
                    }
                }
            }
            "influx+http" | "influx+https" => http(&parts, scheme, Version::One),
            "influx2+http" | "influx2+https" => http(&parts, scheme, Version::Two),
            "influx3+http" | "influx3+https" => http(&parts, scheme, Version::Three),
            other => Err(DestinationError::Scheme(other.to_owned())),
        }
    }
}

const CSV_OPTIONS: &str =
    "rows=stalls, rows=intervals and rows=series, and formulas=escape for a file that a spreadsheet opens";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
    Three,
}

fn http(parts: &Parts<'_>, scheme: &str, version: Version) -> Result<Destination, DestinationError> {
    let known = match version {
        Version::One => "db=, rp=, user=, password_file=",
        Version::Two => "org=, bucket=, token_file=",
        Version::Three => "db=, token_file=",
    };
    let authority = parts.place.trim_end_matches('/');
    if !is_authority(authority.split('/').next().unwrap_or_default()) {
        return Err(parts.incomplete(
            "write HOST:PORT after the scheme; passwords and tokens come from a file or the environment",
        ));
    }
    let tls = if scheme.ends_with("https") { "https" } else { "http" };
    let mut found: std::collections::BTreeMap<&str, String> = std::collections::BTreeMap::new();
    for (key, value) in &parts.options {
        let takes = known.split(", ").any(|k| k.strip_suffix('=') == Some(key));
        if !takes {
            return Err(parts.unknown(key, known));
        }
        found.insert(key, percent_decoded(value).ok_or_else(|| parts.value("an option", value))?);
    }
    let mut take = |key: &str, missing: &'static str| match found.remove(key) {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(parts.incomplete(missing)),
    };
    let dialect = match version {
        Version::One => Dialect::One {
            db: take("db", "name the database: influx+http://HOST:8086/?db=NAME")?,
            retention: found.remove("rp"),
        },
        Version::Two => Dialect::Two {
            org: take("org", "name organisation and bucket: influx2+http://HOST:8086/?org=ORG&bucket=NAME")?,
            bucket: take("bucket", "name the bucket too: influx2+http://HOST:8086/?org=ORG&bucket=NAME")?,
        },
        Version::Three => {
            Dialect::Three { db: take("db", "name the database: influx3+http://HOST:8181/?db=NAME")? }
        }
    };
    let credentials = match version {
        Version::One => match found.remove("user") {
            Some(user) => {
                Credentials::Password { user, file: found.remove("password_file").map(PathBuf::from) }
            }
            None if found.contains_key("password_file") => {
                return Err(parts.incomplete("password_file= needs user= too"));
            }
            None => Credentials::Nobody,
        },
        _ => Credentials::Token { file: found.remove("token_file").map(PathBuf::from) },
    };
    Ok(Destination::InfluxHttp(HttpPlace { base: format!("{tls}://{authority}"), dialect, credentials }))
}

/// `HOST` or `HOST:PORT`; a HOST with colons is in brackets. No user: secrets are on no command line.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) if host.parse::<std::net::Ipv6Addr>().is_ok() => (host, port),
            _ => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let named = !host.is_empty() && !host.contains(|c: char| c == '@' || c.is_whitespace() || c.is_control());
    let digits = port.strip_prefix(':');
    named && (port.is_empty() || digits.is_some_and(|port| port.parse::<u16>().is_ok_and(|p| p > 0)))
}

/// `PLACE?KEY=VALUE&...`.
struct Parts<'a> {
    whole: &'a str,
    place: &'a str,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn split(whole: &'a str, rest: &'a str) -> Parts<'a> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let options = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .collect();
        Parts { whole, place, options }
    }

    fn each_once(&self) -> Result<(), DestinationError> {
        for (index, (key, _)) in self.options.iter().enumerate() {
            if self.options[..index].iter().any(|(earlier, _)| earlier == key) {
                return Err(DestinationError::OptionTwice {
                    target: self.whole.into(),
                    option: (*key).into(),
                });
            }
        }
        Ok(())
    }

    fn path(&self) -> Result<PathBuf, DestinationError> {
        if self.place.is_empty() {
            return Err(self.incomplete("name a file behind ://, or - for standard output"));
        }
        Ok(PathBuf::from(self.place))
    }

    /// A file and no options.
    fn plain(&self) -> Result<PathBuf, DestinationError> {
        self.none()?;
        self.path()
    }

    fn none(&self) -> Result<(), DestinationError> {
        match self.options.first() {
            Some((key, _)) => Err(self.unknown(key, "none")),
            None => Ok(()),
        }
    }

    fn incomplete(&self, missing: &'static str) -> DestinationError {
        DestinationError::Incomplete { target: self.whole.into(), missing }
    }

    fn unknown(&self, option: &str, known: &'static str) -> DestinationError {
        DestinationError::Option { target: self.whole.into(), option: option.into(), known }
    }

    fn value(&self, option: &'static str, value: &str) -> DestinationError {
        DestinationError::Value { target: self.whole.into(), option, value: value.into() }
    }
}

/// `%20` and its like; `None` when what follows a `%` is no byte, or the bytes are no text.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(text: &str) -> Result<Destination, DestinationError> {
        text.parse()
    }

    #[test]
    fn each_scheme_is_read() {
        let csv = |path: &str, rows, formulas| Ok(Destination::Csv { path: path.into(), rows, formulas });
        assert_eq!(target("csv://a/b.csv"), csv("a/b.csv", None, Formulas::Keep));
        assert_eq!(target("csv://b?rows=series"), csv("b", Some(CsvRows::Series), Formulas::Keep));
        assert_eq!(target("csv://b?formulas=escape"), csv("b", None, Formulas::Escape));
        assert_eq!(
            target("hgrm:///x?cpu=3"),
            Ok(Destination::Hgrm { path: "/x".into(), cpu: Some(CpuId(3)), of: None })
        );
        assert_eq!(
            target("influx://[::1]:8089"),
            Ok(Destination::InfluxUdp { address: "[::1]:8089".into() })
        );
        for authority in ["h", "h:1", "h/a/path", "[::1]", "[::1]:8086", "10.0.0.1:8086"] {
            assert!(target(&format!("influx+http://{authority}/?db=a")).is_ok(), "{authority}");
        }
        for broken in ["a%", "a%2", "a%zz", "a%+5", "a%ff"] {
            let refused = target(&format!("influx2+https://h:1/?org={broken}&bucket=b"));
            assert!(refused.is_err(), "{broken}: {refused:?}");
        }
        let Ok(Destination::InfluxHttp(place)) = target("influx2+https://h:1/?org=my%20org&bucket=b") else {
            panic!("not read");
        };
        assert_eq!(place.base, "https://h:1");
        assert_eq!(place.dialect, Dialect::Two { org: "my org".into(), bucket: "b".into() });
    }

    #[test]
    fn each_mistake_says_what_to_write() {
        for (text, word) in [
            ("file.csv", "SCHEME://"),
            ("xml://a", "csv, json"),
            ("csv://", "name a file"),
            ("csv://a?row=1", "rows="),
            ("csv://a?rows=all", "'rows=all' is no option of it; there is rows=stalls"),
            ("csv://a?formulas=1", "'formulas=1' is no option of it"),
            ("csv://a?rows=stalls&rows=series", "'rows' is given twice"),
            ("hgrm://a?cpu=x", "cpu cannot be 'x'"),
            ("json://a?b=c", "there is none"),
            ("influx://localhost", "HOST:PORT"),
            ("influx://localhost:99999", "HOST:PORT"),
            ("influx+http://localhost:8086", "db=NAME"),
            ("influx2+http://localhost:8086/?org=o", "bucket"),
            ("influx3+http://localhost:8181/?db=a&org=b", "token_file="),
            ("influx+http://u:p@h:1/?db=a", "file or the environment"),
            ("influx+http://:8086/?db=a", "HOST:PORT"),
            ("influx+http://h:99999/?db=a", "HOST:PORT"),
            ("influx+http://h:0/?db=a", "HOST:PORT"),
            ("influx+http://a b:1/?db=a", "HOST:PORT"),
            ("influx+http://[::1/?db=a", "HOST:PORT"),
            ("influx+http://::1/?db=a", "HOST:PORT"),
            ("influx+http://h:1/?db=a&db=b", "'db' is given twice"),
            ("influx+http://h:1/?db=a&password_file=f", "needs user="),
        ] {
            let error = target(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn hostile_targets_never_panic(text in "(csv|hgrm|influx|influx2[+]http)://[a-z0-9:/?&=%]{0,30}") {
            let _ = text.parse::<Destination>();
        }
    }
}
