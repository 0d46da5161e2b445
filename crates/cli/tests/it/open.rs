//! `open`, for the page that fetches the trace and for others.

use crate::common;
use crate::live::Ended;

use crate::stored;

use common::busy;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use stored::store;

const PAGE: &str = "https://ui.perfetto.dev";

struct Offer {
    child: Ended,
    port: u16,
    /// `/SECRET-ID.perfetto-trace`.
    path: String,
}

fn command(runs: &Path, port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command
        .args(["--runs", runs.to_str().unwrap(), "open", "--port"])
        .arg(port.to_string())
        .stdin(Stdio::null());
    command
}

impl Offer {
    fn start(runs: &Path) -> Offer {
        Offer::start_with(&mut command(runs, 0))
    }

    fn start_with(command: &mut Command) -> Offer {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let file = address.trim();
        let file = file.strip_prefix("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:");
        let (port, path) = file.unwrap().split_once('/').unwrap();
        Offer {
            child: Ended(child),
            port: port.parse().unwrap(),
            path: format!("/{path}"),
        }
    }

    /// The head of the answer, and its body.
    fn ask(&self, method: &str, path: &str, more: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let host = format!("127.0.0.1:{}", self.port);
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|of| of == b"\r\n\r\n").unwrap() + 4;
        let body = answer.split_off(end);
        (String::from_utf8(answer).unwrap(), body)
    }

    fn is_on(&mut self) -> bool {
        self.child.0.try_wait().unwrap().is_none()
    }
}

fn origin(of: &str) -> String {
    format!("Origin: {of}\r\n")
}

#[test]
fn the_page_fetches_the_trace_and_the_command_ends() {
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0]), dir.path());
    let mut offer = Offer::start(dir.path());
    let path = offer.path.clone();

    let (head, body) = offer.ask("OPTIONS", &path, &origin(PAGE));
    assert!(
        head.starts_with("HTTP/1.1 204") && body.is_empty(),
        "{head}"
    );
    assert!(head.contains("Access-Control-Allow-Private-Network: true"));
    let (head, body) = offer.ask("HEAD", &path, &origin(PAGE));
    assert!(
        head.starts_with("HTTP/1.1 200") && body.is_empty(),
        "{head}"
    );
    assert!(offer.is_on(), "only a download ends it");

    let (head, body) = offer.ask("GET", &path, &origin(PAGE));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let allowed: Vec<&str> = head
        .lines()
        .filter(|line| line.contains("Allow-Origin"))
        .collect();
    assert_eq!(allowed, [format!("Access-Control-Allow-Origin: {PAGE}")]);
    assert!(
        head.contains(&format!("Content-Length: {}\r\n", body.len())),
        "{head}"
    );

    let file = dir.path().join("exported");
    let target = format!("perfetto://{}", file.display());
    let exported = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args([
            "--runs",
            dir.path().to_str().unwrap(),
            "export",
            "--to",
            &target,
        ])
        .output()
        .unwrap();
    assert!(exported.status.success(), "{exported:?}");
    assert!(
        body == std::fs::read(file).unwrap(),
        "it is what export writes"
    );
    assert!(offer.child.0.wait().unwrap().success());
}

#[test]
fn others_are_refused_and_do_not_end_it() {
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0]), dir.path());
    let mut offer = Offer::start(dir.path());
    let path = offer.path.clone();
    // One that asks nothing keeps nobody out.
    let _idle = TcpStream::connect(("127.0.0.1", offer.port)).unwrap();
    for (method, path, more, status) in [
        ("GET", &path, origin("https://evil.example"), "403"),
        ("GET", &path, origin("null"), "403"),
        (
            "OPTIONS",
            &path,
            origin("https://ui.perfetto.dev.evil.example"),
            "403",
        ),
        ("GET", &path, "Host: evil.example\r\n".to_owned(), "403"),
        ("GET", &"/".to_owned(), origin(PAGE), "404"),
        ("GET", &"/status".to_owned(), origin(PAGE), "404"),
        ("GET", &format!("{path}x"), origin(PAGE), "404"),
        ("POST", &path, origin(PAGE), "405"),
    ] {
        let (head, body) = offer.ask(method, path, &more);
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}")),
            "{path} {more}: {head}"
        );
        assert!(
            body.is_empty() && !head.contains("Access-Control"),
            "{head}"
        );
    }
    assert!(offer.is_on());
}

#[test]
fn ctrl_c_ends_it_and_no_file_is_left() {
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0]), dir.path());
    let temporary = dir.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = command(dir.path(), 0);
    let mut offer = Offer::start_with(command.env("TMPDIR", &temporary));
    assert!(offer.is_on());
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    let process = rustix::process::Pid::from_child(&offer.child.0);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    assert!(offer.child.0.wait().unwrap().success());
}

#[test]
fn a_taken_port_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    store(&busy(&[0]), dir.path());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let Output { status, stderr, .. } = command(dir.path(), port).output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{stderr}");
    for word in [
        &format!("port {port}"),
        "another program has it",
        "--to perfetto://FILE",
    ] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
}
