//! Parses a request with `httparse`, and validates it before any action.

use std::io::Read;

/// The largest head of a request, bytes.
const MOST: usize = 16 << 10;
const LINES: usize = 64;

/// The relevant parts of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: Vec<(String, String)>,
    /// A valid request has exactly one.
    pub host: Vec<String>,
    pub origin: Vec<String>,
    pub fetch_site: Vec<String>,
    pub fetch_mode: Vec<String>,
    pub accept: Vec<String>,
}

/// Why a request is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRequest {
    Malformed,
    /// Its head is longer than that of any browser.
    TooLong,
    /// It ended early, or took too long.
    Ended,
}

impl Request {
    /// Reads the head of a request. The body is not read: no request here has one.
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

    /// The request in these bytes; `None` if it is incomplete.
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
                "accept" => request.accept.push(value()?),
                "sec-fetch-mode" => request.fetch_mode.push(value()?),
                _ => {}
            }
        }
        Ok(Some(request))
    }

    /// The value of a query parameter; the first if there are two.
    pub fn asked(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
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

/// Decodes percent signs and, in forms, plus signs; `None` if the result is not text.
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
        let text = b"GET /compare?a=x%20y&b=%3Cb%3E+c HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n";
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
        assert_eq!(Request::read(&text[..]), Ok(request));
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
            let text = format!("GET /{path} HTTP/1.1\r\nhost: x\r\nsec-fetch-mode: {path}\r\n\r\n");
            let _ = Request::parse(text.as_bytes());
        }
    }
}
