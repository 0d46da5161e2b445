//! `serve` as whoever reaches its port meets it.

#[path = "../../view/tests/common/mod.rs"]
mod common;

#[path = "stored/mod.rs"]
mod stored;

use common::busy;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use stored::store;

struct Server {
    child: Child,
    port: u16,
    token: String,
    cookie: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(runs: &Path) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
            .args(["--runs", runs.to_str().unwrap(), "serve"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let (port, token) = address
            .trim()
            .rsplit_once(':')
            .unwrap()
            .1
            .split_once("/?token=")
            .unwrap();
        let (port, token) = (port.parse().unwrap(), token.to_owned());
        let mut server = Server {
            child,
            port,
            token,
            cookie: String::new(),
        };
        let welcome = server.get(&format!("/?token={}", server.token));
        let line = welcome
            .lines()
            .find_map(|line| line.strip_prefix("Set-Cookie: "))
            .unwrap();
        server.cookie = line.split(';').next().unwrap().to_owned();
        server
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// The whole answer, its head included.
    fn get(&self, path: &str) -> String {
        let mut stream = self.connect();
        let host = format!("127.0.0.1:{}", self.port);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nCookie: {}\r\n\r\n",
            self.cookie
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn status(&self, path: &str) -> String {
        self.get(path).split(' ').nth(1).unwrap().to_owned()
    }
}

fn id(run: &Path) -> String {
    run.file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .rsplit_once('-')
        .unwrap()
        .1
        .to_owned()
}

#[test]
fn connections_that_only_wait_keep_nobody_out() {
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0]), dir.path());
    let server = Server::start(dir.path());
    let idle: Vec<TcpStream> = (0..64).map(|_| server.connect()).collect();
    // Half a request each: they are no better than those that say nothing.
    for mut stream in idle.iter().step_by(2) {
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
    }
    for _ in 0..3 {
        assert_eq!(server.status("/"), "200");
    }
    drop(idle);
}

#[test]
fn a_link_with_the_token_leads_to_where_it_points_and_loses_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = id(&store(&busy(&[0]), dir.path()));
    let server = Server::start(dir.path());
    let sent_to = |path: &str| {
        let answer = server.get(path);
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
        answer
            .lines()
            .find_map(|line| line.strip_prefix("Location: "))
            .unwrap()
            .to_owned()
    };
    let token = &server.token;
    assert_eq!(
        sent_to(&format!("/run/{run}?token={token}")),
        format!("/run/{run}")
    );
    assert_eq!(
        sent_to(&format!("/compare?a=x&token={token}&b=y")),
        "/compare?a=x&b=y"
    );
    assert_eq!(sent_to(&format!("/?token={token}&q=a%20b")), "/?q=a%20b");
    for elsewhere in [
        "//evil.example/",
        "/http://evil.example/",
        "/run%0d%0aX:%20y",
    ] {
        assert_eq!(sent_to(&format!("{elsewhere}?token={token}")), "/");
    }
    assert_eq!(server.status(&format!("/run/{run}")), "200");
}

#[test]
fn what_was_asked_wrongly_is_reported_as_that_in_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (
        store(&busy(&[0]), dir.path()),
        store(&busy(&[0]), dir.path()),
    );
    let server = Server::start(dir.path());
    let (a_id, b_id) = (id(&a), id(&b));
    for (path, status, said) in [
        (
            format!("/compare?a={a_id}&b={a_id}"),
            "400",
            "are the same run",
        ),
        (
            format!("/compare?a={a_id}"),
            "400",
            "choose one as A and one as B",
        ),
        (
            format!("/compare?a={a_id}&b=nobody"),
            "404",
            "There is no such run",
        ),
        ("/run/nobody".into(), "404", "There is no such run"),
        ("/etc/passwd".into(), "404", "nor another page"),
    ] {
        let answer = server.get(&path);
        assert_eq!(answer.split(' ').nth(1), Some(status), "{path}: {answer}");
        assert!(
            answer.contains("text/html") && answer.contains(said),
            "{path}: {answer}"
        );
        assert!(
            answer.contains("<a href=\"/\">To the list of runs</a>"),
            "{path}: {answer}"
        );
    }
    assert_eq!(server.status(&format!("/compare?a={a_id}&b={b_id}")), "200");
    for stall in ["x", "99999999"] {
        let answer = server.get(&format!("/run/{a_id}/stall/{stall}"));
        assert!(
            answer.starts_with("HTTP/1.1 404") && answer.contains("text/plain"),
            "{answer}"
        );
    }
    // A run that is damaged is no mistake of whoever asks for it.
    std::fs::write(a.join("gaps.parquet"), b"no table").unwrap();
    let answer = server.get(&format!("/run/{a_id}"));
    assert!(
        answer.starts_with("HTTP/1.1 500") && answer.contains("gaps.parquet"),
        "{answer}"
    );
}
