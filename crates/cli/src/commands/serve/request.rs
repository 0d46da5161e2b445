//! What a browser asks, read with `httparse` and looked at before anything is done for it.

use std::io::Read;

/// Bytes of a request's head.
const MOST: usize = 16 << 10;
/// Lines of it.
const LINES: usize = 64;

/// A request, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// Without what follows the question mark.
    pub path: String,
    pub query: Vec<(String, String)>,
    /// Exactly one is a request's due.
    pub host: Vec<String>,
    pub origin: Vec<String>,
    pub fetch_site: Vec<String>,
    /// Names and values.
    pub cookies: Vec<(String, String)>,
}

/// Why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// It is none, or damaged.
    Malformed,
    /// Its head is longer than any that a browser sends here.
    TooLong,
    /// It ended, or took too long.
    Ended,
}

impl Request {
    /// Reads the head of a request. What follows it is not read: nothing here takes any.
    pub fn read(mut from: impl Read) -> Result<Request, BadRequest> {
        let mut bytes = Vec::new();
        let mut piece = [0; 2048];
        loop {
            let n = from.read(&mut piece).map_err(|_| BadRequest::Ended)?;
            if n == 0 {
                return Err(BadRequest::Ended);
            }
            bytes.extend_from_slice(&piece[..n]);
            if let Some(request) = Request::parse(&bytes)? {
                return Ok(request);
            }
            if bytes.len() >= MOST {
                return Err(BadRequest::TooLong);
            }
        }
    }

    /// The request in these bytes; `None` where it goes on.
    pub fn parse(bytes: &[u8]) -> Result<Option<Request>, BadRequest> {
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut parsed = httparse::Request::new(&mut lines);
        match parsed.parse(bytes) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(BadRequest::TooLong),
            Err(_) => return Err(BadRequest::Malformed),
        }
        let target = parsed.path.ok_or(BadRequest::Malformed)?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request {
            method: parsed.method.ok_or(BadRequest::Malformed)?.to_owned(),
            path: decoded(path, false).ok_or(BadRequest::Malformed)?,
            query: pairs(query).ok_or(BadRequest::Malformed)?,
            ..Request::default()
        };
        for line in parsed.headers.iter() {
            let text = || std::str::from_utf8(line.value).map(|text| text.trim().to_owned());
            let value = || text().map_err(|_| BadRequest::Malformed);
            match line.name.to_ascii_lowercase().as_str() {
                "host" => request.host.push(value()?),
                "origin" => request.origin.push(value()?),
                "sec-fetch-site" => request.fetch_site.push(value()?),
                "cookie" => request
                    .cookies
                    .extend(value()?.split(';').filter_map(|pair| {
                        let (name, value) = pair.split_once('=')?;
                        Some((name.trim().to_owned(), value.trim().to_owned()))
                    })),
                _ => {}
            }
        }
        Ok(Some(request))
    }

    /// What the address says of a name; the first, where it does so twice.
    pub fn asked(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The same place with all that was asked for but this: an address of this server, whatever was in it.
    pub fn address_without(&self, name: &str) -> String {
        let asked = self.query.iter().filter(|(known, _)| known != name);
        let asked: Vec<String> = asked
            .map(|(name, value)| format!("{}={}", encoded(name, ""), encoded(value, "")))
            .collect();
        let mark = if asked.is_empty() { "" } else { "?" };
        format!(
            "/{}{mark}{}",
            encoded(self.path.trim_start_matches('/'), "/"),
            asked.join("&")
        )
    }
}

/// What is no letter or digit, nor one of these, by percent signs.
fn encoded(text: &str, kept: &str) -> String {
    let is_kept = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte)
    };
    text.bytes()
        .map(|byte| {
            if is_kept(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn pairs(query: &str) -> Option<Vec<(String, String)>> {
    let of = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name, true)?, decoded(value, true)?))
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(of)
        .collect()
}

/// Percent signs and, in forms, plus signs undone; `None` where it is no text then.
fn decoded(text: &str, form: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(left.next()?)?, digit(left.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if form => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_in_pieces() {
        let text =
            b"GET /compare?a=x%20y&b=%3Cb%3E+c HTTP/1.1\r\nHost: 127.0.0.1:80\r\nCookie: a=1; b=2\r\n\r\n";
        for at in 0..text.len() {
            assert_eq!(Request::parse(&text[..at]), Ok(None), "{at}");
        }
        let request = Request::parse(text).unwrap().unwrap();
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("GET", "/compare")
        );
        assert_eq!(
            (request.asked("a"), request.asked("b"), request.asked("c")),
            (Some("x y"), Some("<b> c"), None)
        );
        assert_eq!(
            request.cookies,
            [("a".into(), "1".into()), ("b".into(), "2".into())]
        );
        assert_eq!(Request::read(&text[..]), Ok(request));
    }

    #[test]
    fn an_address_without_its_token_is_of_this_server() {
        let of = |target: &str| {
            let text = format!("GET {target} HTTP/1.1\r\n\r\n");
            Request::parse(text.as_bytes())
                .unwrap()
                .unwrap()
                .address_without("token")
        };
        assert_eq!(of("/run/abc?token=1"), "/run/abc");
        assert_eq!(of("/?token=1&q=x+y%26z&token=2"), "/?q=x%20y%26z");
        assert_eq!(of("//evil.example/run/?token=1"), "/evil.example/run/");
        assert_eq!(of("/run/a%0d%0aSet-Cookie:x"), "/run/a%0D%0ASet-Cookie%3Ax");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(
            Request::parse(b"\x16\x03\x01\x02\x00"),
            Err(BadRequest::Malformed)
        );
        assert_eq!(
            Request::parse(b"GET /%zz HTTP/1.1\r\n\r\n"),
            Err(BadRequest::Malformed)
        );
        assert_eq!(
            Request::parse(b"GET /%ff HTTP/1.1\r\n\r\n"),
            Err(BadRequest::Malformed)
        );
        let long = [
            b"GET / HTTP/1.1\r\n".to_vec(),
            b"a: b\r\n".repeat(100),
            b"\r\n".to_vec(),
        ]
        .concat();
        assert_eq!(Request::parse(&long), Err(BadRequest::TooLong));
        let endless = [b"GET / HTTP/1.1\r\nx: ".to_vec(), vec![b'x'; 2 * MOST]].concat();
        assert_eq!(Request::read(&endless[..]), Err(BadRequest::TooLong));
        assert_eq!(Request::read(&b"GET / HTTP"[..]), Err(BadRequest::Ended));
    }

    proptest! {
        #[test]
        fn nothing_that_comes_in_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), path in "[ -~]{0,60}") {
            let _ = Request::parse(&bytes);
            let text = format!("GET /{path} HTTP/1.1\r\nhost: x\r\ncookie: {path}\r\n\r\n");
            let _ = Request::parse(text.as_bytes());
        }
    }
}
