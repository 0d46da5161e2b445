//! Access control. Other users of this machine and web pages in the same browser can reach the port, too. So every
//! address begins with a secret that only the printed one has, and a request must name this server as its host and come
//! from its own pages. There is no cookie, because a browser would send it to every port of this machine.

use super::request::Request;
use anyhow::Context;
use std::fs::File;
use std::io::Read;

/// The secret of one server.
pub struct Guard {
    /// The accepted host names.
    hosts: [String; 2],
    /// `/SECRET/`, the beginning of all paths.
    home: String,
}

impl Guard {
    /// A new secret for a server at a port.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn new(port: u16) -> anyhow::Result<Guard> {
        let hosts = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
        let home = format!("/{}/", secret()?);
        Ok(Guard { hosts, home })
    }

    /// The address with the secret.
    pub fn address(&self) -> String {
        format!("http://{}{}", self.hosts[0], self.home)
    }

    /// The path of the address.
    pub fn home(&self) -> &str {
        &self.home
    }

    /// Checks a request and returns its path below [`Guard::home`].
    ///
    /// # Errors
    /// The reason for a refusal.
    pub fn admit<'r>(&self, request: &'r Request) -> Result<&'r str, &'static str> {
        // A page under another name that leads here (DNS rebinding) has that name as its host.
        let [host] = &request.host[..] else {
            return Err("it must name one host");
        };
        if !self.hosts.contains(host) {
            return Err("this server is 127.0.0.1 and nothing else");
        }
        let own = |origin: &String| {
            origin
                .strip_prefix("http://")
                .is_some_and(|host| self.hosts.iter().any(|ours| ours == host))
        };
        if !request.origin.iter().all(own) {
            return Err("it comes from another origin");
        }
        // Another site may link here if it has the secret, but cannot read the result.
        let ours = |site: &String| matches!(site.as_str(), "same-origin" | "none");
        if !request.fetch_site.iter().all(ours) && request.fetch_mode != ["navigate"] {
            return Err("another site asks");
        }
        let below = request.path.get(self.home.len()..);
        below
            .filter(|below| {
                equal(
                    &request.path[..request.path.len() - below.len()],
                    &self.home,
                )
            })
            .ok_or("open the address that jitterscope serve has printed")
    }
}

/// Compares in constant time.
pub fn equal(given: &str, secret: &str) -> bool {
    given.len() == secret.len()
        && given
            .bytes()
            .zip(secret.bytes())
            .fold(0, |differ, (a, b)| differ | (a ^ b))
            == 0
}

/// 128 random bits.
///
/// # Errors
/// The system has none.
pub fn secret() -> anyhow::Result<String> {
    let mut bytes = [0u8; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("no random bytes for the address (/dev/urandom)")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(guard: &Guard, path: &str, host: &str, more: &str) -> Result<String, &'static str> {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}{more}\r\n\r\n");
        let request = Request::parse(head.as_bytes()).unwrap().unwrap();
        guard.admit(&request).map(str::to_owned)
    }

    fn get(guard: &Guard, path: &str, more: &str) -> Result<String, &'static str> {
        admitted(guard, path, "127.0.0.1:8000", more)
    }

    #[test]
    fn only_the_secret_path_lets_in() {
        let guard = Guard::new(8000).unwrap();
        let home = guard.home().to_owned();
        assert_eq!(guard.address(), format!("http://127.0.0.1:8000{home}"));
        assert_eq!(get(&guard, &home, "").unwrap(), "");
        assert_eq!(
            get(&guard, &format!("{home}run/x?q=1"), "").unwrap(),
            "run/x"
        );
        let secret = home.trim_matches('/');
        let cookie = format!("\r\nCookie: jitterscope-8000={secret}");
        let other = Guard::new(8000).unwrap().home().to_owned();
        for path in [
            "/".to_owned(),
            "/run/x".to_owned(),
            format!("/{}/", &secret[1..]),
            format!("//{secret}/"),
            // Relative links would lead elsewhere.
            format!("/{secret}"),
            format!("/{secret}%E2%82%AC/"),
            other,
        ] {
            assert!(get(&guard, &path, &cookie).is_err(), "{path}");
            let asked = format!("{path}?token={secret}");
            assert!(get(&guard, &asked, "").is_err(), "{asked}");
        }
    }

    #[test]
    fn other_hosts_origins_and_sites_are_refused_with_the_secret() {
        let guard = Guard::new(8000).unwrap();
        let with = |more: &str| get(&guard, guard.home(), more);
        for more in [
            "\r\nOrigin: http://localhost:8000\r\nSec-Fetch-Site: same-origin",
            "\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate",
        ] {
            assert_eq!(with(more).unwrap(), "", "{more}");
        }
        for more in [
            "\r\nOrigin: http://evil.example",
            "\r\nOrigin: null",
            "\r\nOrigin: http://127.0.0.1:8001",
            "\r\nSec-Fetch-Site: cross-site",
            "\r\nSec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors",
            "\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Mode: cors",
            "\r\nHost: 127.0.0.1:8000",
        ] {
            assert!(with(more).is_err(), "{more}");
        }
        for host in [
            "evil.example:8000",
            "127.0.0.1",
            "127.0.0.1:8001",
            "[::1]:8000",
            "",
        ] {
            assert!(admitted(&guard, guard.home(), host, "").is_err(), "{host}");
        }
    }
}
