//! Who may look. Other users of this machine and web pages in the same browser reach the port too: a secret
//! that only the printed address has becomes a cookie, and a request must name this server as its host and
//! come from its own pages.

use super::request::Request;
use anyhow::Context;
use std::fs::File;
use std::io::Read;
use std::sync::Mutex;

/// The secrets of one server.
pub struct Guard {
    port: u16,
    /// What the printed address has.
    token: String,
    /// What a browser is given for it.
    cookie: String,
    /// One that is used up at once: it stands in the arguments of a program, which others can read.
    once: Mutex<Option<String>>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is answered.
    Granted,
    /// It brought the token: it is sent to the same place with this cookie, and without the token.
    Welcome { cookie: String },
    /// It is refused, and why.
    Refused(&'static str),
}

impl Guard {
    /// New secrets for a server at a port.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(port: u16) -> anyhow::Result<Guard> {
        Ok(Guard {
            port,
            token: secret()?,
            cookie: secret()?,
            once: Mutex::new(None),
        })
    }

    /// The address that lets one in.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// An address that lets one in once.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn address_once(&self) -> anyhow::Result<String> {
        let token = secret()?;
        let address = format!("http://127.0.0.1:{}/?token={token}", self.port);
        *self
            .once
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(token);
        Ok(address)
    }

    /// Looks at a request.
    pub fn admit(&self, request: &Request) -> Admission {
        let hosts = [
            format!("127.0.0.1:{}", self.port),
            format!("localhost:{}", self.port),
        ];
        // A page of another name that leads here (DNS rebinding) has that name as its host.
        let [host] = &request.host[..] else {
            return Admission::Refused("it must name one host");
        };
        if !hosts.contains(host) {
            return Admission::Refused("this server is 127.0.0.1 and nothing else");
        }
        let own = |origin: &String| hosts.iter().any(|host| *origin == format!("http://{host}"));
        if !request.origin.iter().all(own) {
            return Admission::Refused("it comes from another origin");
        }
        let token = request.asked("token");
        let site_is_fine = |site: &String| matches!(site.as_str(), "same-origin" | "none");
        if !request.fetch_site.iter().all(site_is_fine) && token.is_none() {
            return Admission::Refused("another site asks");
        }
        if let Some(given) = token {
            return if equal(given, &self.token) || self.uses_up(given) {
                let name = self.cookie_name();
                let cookie = format!("{name}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie);
                Admission::Welcome { cookie }
            } else {
                Admission::Refused("the token is not that of this server")
            };
        }
        let name = self.cookie_name();
        let known = request
            .cookies
            .iter()
            .any(|(given, value)| *given == name && equal(value, &self.cookie));
        match known {
            true => Admission::Granted,
            false => Admission::Refused("open the address that jitterscope serve has printed"),
        }
    }

    /// Cookies are of a host whatever its port: two servers must not take each other's.
    fn cookie_name(&self) -> String {
        format!("jitterscope-{}", self.port)
    }

    fn uses_up(&self, given: &str) -> bool {
        let mut once = self
            .once
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let fits = once.as_deref().is_some_and(|token| equal(given, token));
        if fits {
            *once = None;
        }
        fits
    }
}

/// Compares in the same time wherever they differ.
fn equal(given: &str, secret: &str) -> bool {
    given.len() == secret.len()
        && given
            .bytes()
            .zip(secret.bytes())
            .fold(0, |differ, (a, b)| differ | (a ^ b))
            == 0
}

/// 128 random bits.
fn secret() -> anyhow::Result<String> {
    let mut bytes = [0u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("no random bytes for the address (/dev/urandom)")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(head: &str) -> Request {
        Request::parse(format!("{head}\r\n\r\n").as_bytes())
            .unwrap()
            .unwrap()
    }

    fn get(guard: &Guard, path: &str, more: &str) -> Admission {
        guard.admit(&request(&format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8000{more}"
        )))
    }

    #[test]
    fn the_token_becomes_a_cookie_and_the_cookie_lets_in() {
        let guard = Guard::new(8000).unwrap();
        let path = guard.address().split_once(":8000").unwrap().1.to_owned();
        let Admission::Welcome { cookie } = get(&guard, &path, "") else {
            panic!("not let in")
        };
        assert!(
            cookie.contains("HttpOnly; SameSite=Strict") && !cookie.contains(&guard.token),
            "{cookie}"
        );
        let pair = cookie.split(';').next().unwrap();
        assert_eq!(
            get(&guard, "/", &format!("\r\nCookie: x=1; {pair}")),
            Admission::Granted
        );
        assert!(matches!(
            get(&guard, "/", &format!("\r\nCookie: {pair}0")),
            Admission::Refused(_)
        ));
        assert!(matches!(get(&guard, "/", ""), Admission::Refused(_)));
        assert!(matches!(get(&guard, "/?token=", ""), Admission::Refused(_)));
        assert!(matches!(
            get(&Guard::new(8000).unwrap(), &path, ""),
            Admission::Refused(_)
        ));
    }

    #[test]
    fn other_hosts_origins_and_sites_are_refused_even_with_the_cookie() {
        let guard = Guard::new(8000).unwrap();
        let cookie = format!("\r\nCookie: jitterscope-8000={}", guard.cookie);
        let with = |more: &str| get(&guard, "/", &format!("{cookie}{more}"));
        assert_eq!(
            with("\r\nOrigin: http://localhost:8000\r\nSec-Fetch-Site: same-origin"),
            Admission::Granted
        );
        for more in [
            "\r\nOrigin: http://evil.example",
            "\r\nOrigin: null",
            "\r\nOrigin: http://127.0.0.1:8001",
            "\r\nSec-Fetch-Site: cross-site",
            "\r\nSec-Fetch-Site: same-site",
            "\r\nHost: 127.0.0.1:8000",
        ] {
            assert!(matches!(with(more), Admission::Refused(_)), "{more}");
        }
        for host in [
            "evil.example:8000",
            "127.0.0.1",
            "127.0.0.1:8001",
            "[::1]:8000",
            "",
        ] {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}{cookie}");
            assert!(
                matches!(guard.admit(&request(&head)), Admission::Refused(_)),
                "{host}"
            );
        }
        assert!(matches!(
            guard.admit(&request(&format!("GET / HTTP/1.0{cookie}"))),
            Admission::Refused(_)
        ));
    }

    #[test]
    fn an_address_for_once_is_used_up() {
        let guard = Guard::new(8000).unwrap();
        let path = guard
            .address_once()
            .unwrap()
            .split_once(":8000")
            .unwrap()
            .1
            .to_owned();
        assert!(matches!(get(&guard, &path, ""), Admission::Welcome { .. }));
        assert!(matches!(get(&guard, &path, ""), Admission::Refused(_)));
    }
}
