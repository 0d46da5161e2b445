//! `serve`, for clients that reach its port.

use crate::common;
use crate::live::Ended;

use crate::stored;

use common::busy;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use stored::store;

struct Server {
    child: Ended,
    port: u16,
    /// `/SECRET`.
    home: String,
}

impl Server {
    fn start(runs: &Path) -> Server {
        Server::start_with(Command::new(env!("CARGO_BIN_EXE_jitterscope")), runs, &[])
    }

    fn start_with(mut command: Command, runs: &Path, more: &[&str]) -> Server {
        let mut child = command
            .args(["--runs", runs.to_str().unwrap(), "serve"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let (port, home) = address
            .trim()
            .strip_prefix("http://127.0.0.1:")
            .unwrap()
            .split_once('/')
            .unwrap();
        Server {
            child: Ended(child),
            port: port.parse().unwrap(),
            home: format!("/{}", home.strip_suffix('/').unwrap()),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// The whole answer to a client with the secret, including its head.
    fn get(&self, path: &str) -> String {
        self.get_at(&format!("{}{path}", self.home))
    }

    /// The whole answer, including its head.
    fn get_at(&self, path: &str) -> String {
        let mut stream = self.connect();
        let host = format!("127.0.0.1:{}", self.port);
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
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
    // Half a request each: they count as silent ones.
    for mut stream in idle.iter().step_by(2) {
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
    }
    for _ in 0..3 {
        assert_eq!(server.status("/"), "200");
    }
    drop(idle);
}

#[test]
fn nothing_is_shown_without_the_secret_and_no_page_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = id(&store(&busy(&[0]), dir.path()));
    let server = Server::start(dir.path());
    let secret = server.home.trim_start_matches('/');
    // The last digit is random, too: another one than the secret's.
    let last = if secret.ends_with('0') { '1' } else { '0' };
    for path in [
        "/".to_owned(),
        format!("/run/{run}"),
        format!("/?token={secret}"),
        format!("/{}{last}/", &secret[..31]),
    ] {
        let answer = server.get_at(&path);
        assert!(answer.starts_with("HTTP/1.1 403"), "{path}: {answer}");
        assert!(!answer.contains(secret), "{path}: {answer}");
    }
    for path in ["/", &format!("/run/{run}")] {
        let answer = server.get(path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(!answer.contains(secret), "{path}: {answer}");
        // A cookie would be sent to every port of this machine.
        assert!(!answer.contains("Set-Cookie"), "{path}: {answer}");
    }
}

#[test]
fn two_hundred_who_ask_at_once_are_all_answered_soon() {
    let dir = tempfile::tempdir().unwrap();
    let run = id(&store(&busy(&[0]), dir.path()));
    let server = Server::start(dir.path());
    // Waiting strangers do not block others.
    let idle: Vec<TcpStream> = (0..40).map(|_| server.connect()).collect();
    // Nobody asked before, so the server has no copy of the page.
    let page = format!("/run/{run}");
    let begun = Instant::now();
    let statuses: Vec<String> = std::thread::scope(|scope| {
        let (server, page) = (&server, page.as_str());
        let ask = move |at: usize| if at.is_multiple_of(2) { "/" } else { page };
        let asked: Vec<_> = (0..200)
            .map(|at| scope.spawn(move || server.status(ask(at))))
            .collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let took = begun.elapsed();
    assert!(
        statuses.iter().all(|status| status == "200"),
        "{statuses:?}"
    );
    assert!(took < Duration::from_secs(5), "{took:?}");
    drop(idle);
}

/// A browser that records its arguments, its user, and the content that it finds.
fn browser(folder: &Path) -> std::ffi::OsString {
    let script = folder.join("xdg-open");
    let text = "#!/bin/sh\nfile=${1#file://}\n{ id -u; echo \"$1\"; stat -c %a:%u \"$file\"; cat \"$file\"; } > \"$0.tmp\"\nmv \"$0.tmp\" \"$0.said\"\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap()
}

#[test]
fn the_arguments_of_a_browser_do_not_let_others_in() {
    let dir = tempfile::tempdir().unwrap();
    let bin = tempfile::tempdir().unwrap();
    let path = browser(bin.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command.env("PATH", path);
    let mut user = rustix::process::geteuid().as_raw();
    if user == 0 {
        user = 65_534;
        command.env("SUDO_USER", "nobody").env("SUDO_UID", "65534");
    }
    let server = Server::start_with(command, dir.path(), &["--open"]);
    let said = bin.path().join("xdg-open.said");
    let until = Instant::now() + Duration::from_secs(20);
    while !said.exists() {
        assert!(Instant::now() < until, "no browser was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = fs::read_to_string(said).unwrap();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], user.to_string(), "{said}");
    let file = lines[1].strip_prefix("file:///").unwrap();
    assert!(!file.contains(server.home.trim_matches('/')), "{said}");
    assert_eq!(lines[2], format!("600:{user}"), "{said}");
    let address = format!("http://127.0.0.1:{}{}/", server.port, server.home);
    assert!(said.contains(&format!("url={address}\"")), "{said}");
    // The next server removes the file of a killed one.
    drop(server);
    let file = Path::new("/").join(file);
    assert!(file.exists());
    let path = browser(bin.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    command.env("PATH", path);
    command.env("SUDO_USER", "nobody").env("SUDO_UID", "65534");
    let next = Server::start_with(command, dir.path(), &["--open"]);
    let until = Instant::now() + Duration::from_secs(20);
    while file.exists() {
        assert!(Instant::now() < until, "{} is left", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = file.with_file_name(format!("{}.html", next.child.0.id()));
    drop(next);
    let _ = fs::remove_file(left);
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
            answer.contains(&format!(
                "<a href=\"{}/\">To the list of runs</a>",
                server.home
            )),
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
    // A damaged run is not the client's mistake.
    fs::write(a.join("stalls.parquet"), b"no table").unwrap();
    let answer = server.get(&format!("/run/{a_id}"));
    assert!(
        answer.starts_with("HTTP/1.1 500") && answer.contains("stalls.parquet"),
        "{answer}"
    );
}
