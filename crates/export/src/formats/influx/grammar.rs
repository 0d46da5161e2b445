//! Parses a server as a destination.

use super::http::Http;
use super::udp::Udp;
use super::{Credentials, Dialect, HttpPlace, Influx};
use crate::address::Address;
use crate::error::DestinationError;
use crate::exporter::Exporter;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Parses a server of any of the schemes.
pub(super) fn read(address: &Address<'_>) -> Result<Exporter, DestinationError> {
    match address.scheme {
        "influx" => udp(address),
        scheme if scheme.starts_with("influx2") => http(address, Version::Two),
        scheme if scheme.starts_with("influx3") => http(address, Version::Three),
        _ => http(address, Version::One),
    }
}

fn udp(address: &Address<'_>) -> Result<Exporter, DestinationError> {
    address.without_options()?;
    let own = address.server().to_owned();
    match own.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|p| p > 0) => {}
        _ => {
            return Err(
                address.incomplete("write influx://HOST:PORT, for example influx://localhost:8089")
            );
        }
    }
    let remark = format!(
        "influx://{own} is UDP: whether anything arrives cannot be known (influx+http:// can tell)"
    );
    let exporter = Exporter::server(address.server(), move |pace| {
        Ok(Influx::new(Udp::open(&own, pace)?))
    });
    Ok(Exporter {
        remark: Some(remark),
        ..exporter
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
    Three,
}

fn http(address: &Address<'_>, version: Version) -> Result<Exporter, DestinationError> {
    let known = match version {
        Version::One => "db=, rp=, user=, password_file=",
        Version::Two => "org=, bucket=, token_file=",
        Version::Three => "db=, token_file=",
    };
    let authority = address.server();
    if !is_authority(authority.split('/').next().unwrap_or_default()) {
        return Err(address.incomplete(
            "write HOST:PORT after the scheme; passwords and tokens come from a file or the environment",
        ));
    }
    let tls = if address.scheme.ends_with("https") {
        "https"
    } else {
        "http"
    };
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for (key, value) in &address.options {
        let takes = known.split(", ").any(|k| k.strip_suffix('=') == Some(key));
        if !takes {
            return Err(address.unknown(key, known));
        }
        found.insert(
            key,
            percent_decoded(value).ok_or_else(|| address.value("an option", value))?,
        );
    }
    let mut take = |key: &str, missing: &'static str| match found.remove(key) {
        Some(value) if !value.is_empty() => Ok(value),
        _ => Err(address.incomplete(missing)),
    };
    let dialect = match version {
        Version::One => Dialect::One {
            db: take("db", "name the database: influx+http://HOST:8086/?db=NAME")?,
            retention: found.remove("rp"),
        },
        Version::Two => Dialect::Two {
            org: take(
                "org",
                "name organisation and bucket: influx2+http://HOST:8086/?org=ORG&bucket=NAME",
            )?,
            bucket: take(
                "bucket",
                "name the bucket too: influx2+http://HOST:8086/?org=ORG&bucket=NAME",
            )?,
        },
        Version::Three => Dialect::Three {
            db: take("db", "name the database: influx3+http://HOST:8181/?db=NAME")?,
        },
    };
    let credentials = match version {
        Version::One => match found.remove("user") {
            Some(user) => Credentials::Password {
                user,
                file: found.remove("password_file").map(PathBuf::from),
            },
            None if found.contains_key("password_file") => {
                return Err(address.incomplete("password_file= needs user= too"));
            }
            None => Credentials::Nobody,
        },
        _ => Credentials::Token {
            file: found.remove("token_file").map(PathBuf::from),
        },
    };
    let place = HttpPlace {
        base: format!("{tls}://{authority}"),
        dialect,
        credentials,
    };
    Ok(Exporter::server(authority, move |pace| {
        Ok(Influx::new(Http::open(&place, pace)?))
    }))
}

/// Whether the text is `HOST` or `HOST:PORT`; a HOST with colons is in brackets. A user is not allowed: secrets must
/// not be on a command line.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) if host.parse::<std::net::Ipv6Addr>().is_ok() => (host, port),
            _ => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let named = !host.is_empty()
        && !host.contains(|c: char| c == '@' || c.is_whitespace() || c.is_control());
    let digits = port.strip_prefix(':');
    named
        && (port.is_empty() || digits.is_some_and(|port| port.parse::<u16>().is_ok_and(|p| p > 0)))
}

/// Decodes `%20` and the like; `None` if no byte follows a `%`, or the bytes are not UTF-8.
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

    fn refusal(text: &str) -> Option<String> {
        read(&Address::split(text).unwrap())
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn a_server_is_read_with_or_without_a_port_and_a_path() {
        for authority in [
            "h",
            "h:1",
            "h/a/path",
            "[::1]",
            "[::1]:8086",
            "10.0.0.1:8086",
        ] {
            assert_eq!(
                refusal(&format!("influx+http://{authority}/?db=a")),
                None,
                "{authority}"
            );
        }
        assert_eq!(refusal("influx://[::1]:8089"), None);
        for broken in ["a%", "a%2", "a%zz", "a%+5", "a%ff"] {
            let refused = refusal(&format!("influx2+https://h:1/?org={broken}&bucket=b"));
            assert!(refused.is_some(), "{broken}");
        }
        assert_eq!(percent_decoded("my%20org").as_deref(), Some("my org"));
    }

    #[test]
    fn each_mistake_says_what_to_write() {
        for (text, word) in [
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
            ("influx+http://h:1/?db=a&password_file=f", "needs user="),
        ] {
            let error = refusal(text).unwrap();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
