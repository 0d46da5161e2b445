//! The write interfaces against a small server, also a slow one.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Mutex;

#[derive(Clone, Debug)]
struct Seen {
    line: String,
    authorization: String,
    body: String,
}

/// Answers each request, on its own connection, with the next of `answers`; the last one repeats.
fn server(answers: Vec<&'static str>) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let store = Arc::clone(&seen);
    std::thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut line, mut length, mut authorization) = (String::new(), 0, String::new());
            reader.read_line(&mut line).unwrap();
            loop {
                let mut header = String::new();
                if reader.read_line(&mut header).unwrap_or(0) <= 2 {
                    break;
                }
                let (name, value) = header.trim().split_once(": ").unwrap_or_default();
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.parse().unwrap(),
                    "authorization" => authorization = value.to_owned(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body = String::from_utf8(body).unwrap();
            let answer = answers[std::cmp::min(index, answers.len() - 1)];
            store.lock().unwrap().push(Seen {
                line: line.trim().to_owned(),
                authorization,
                body,
            });
            if answer == "hang" {
                std::thread::sleep(Duration::from_millis(150));
                continue;
            }
            // A client may give up without failing the server.
            let (answer, body) = answer.split_once("\r\nX-Body: ").unwrap_or((answer, ""));
            let length = body.len();
            let _ = reader.get_mut().write_all(
                format!("HTTP/1.1 {answer}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                    .as_bytes(),
            );
        }
    });
    (base, seen)
}

const QUICK: Limits = Limits {
    batch_bytes: 64,
    queue: 2,
    request: Duration::from_millis(100),
    first_wait: Duration::from_millis(5),
    longest_wait: Duration::from_millis(20),
    patience: Duration::from_secs(20),
    closing: Duration::from_millis(400),
};

fn token_place(base: &str, dialect: Dialect) -> (tempfile::TempDir, HttpPlace) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "secret\n").unwrap();
    (
        dir,
        HttpPlace {
            base: base.into(),
            dialect,
            credentials: Credentials::Token { file: Some(file) },
        },
    )
}

#[test]
fn a_token_file_without_an_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    let long = dir.path().join("long");
    std::fs::File::create(&long)
        .unwrap()
        .set_len(8 << 30)
        .unwrap();
    for (file, why) in [
        (
            Path::new("/dev/zero"),
            "a character device, not a regular file",
        ),
        (&fifo, "a named pipe, not a regular file"),
        (&long, "larger than 64 KiB"),
    ] {
        let error = secret(Some(file), "UNUSED").unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains(&file.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn each_version_is_written_to_as_it_wants() {
    let cases = [
        (
            Dialect::Two {
                org: "my org".into(),
                bucket: "b/1".into(),
            },
            "POST /api/v2/write?org=my%20org&bucket=b%2F1&precision=ns HTTP/1.1",
            "Token secret",
        ),
        (
            Dialect::Three { db: "d".into() },
            "POST /api/v3/write_lp?db=d&precision=nanosecond HTTP/1.1",
            "Bearer secret",
        ),
        (
            Dialect::One {
                db: "d".into(),
                retention: Some("week".into()),
            },
            "POST /write?db=d&rp=week&precision=ns HTTP/1.1",
            "Token secret",
        ),
    ];
    for (dialect, line, authorization) in cases {
        let (base, seen) = server(vec!["204 No Content"]);
        let (_dir, place) = token_place(&base, dialect);
        let mut http = Http::open_with(&place, Pace::Stored, LIMITS).unwrap();
        http.first(b"run a=1i 1\n".to_vec()).unwrap();
        http.line(b"x a=1i 2\n".to_vec());
        http.line(b"x a=2i 3\n".to_vec());
        let delivery = http.finish();
        assert_eq!(
            (delivery.delivered, delivery.lost, delivery.confirmed),
            (3, 0, true)
        );
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 3);
        assert!(seen[0].line.starts_with("GET /ping "), "{:?}", seen[0]);
        assert_eq!(
            (seen[1].line.as_str(), seen[1].body.as_str()),
            (line, "run a=1i 1\n")
        );
        assert_eq!(
            (seen[2].line.as_str(), seen[2].body.as_str()),
            (line, "x a=1i 2\nx a=2i 3\n")
        );
        assert_eq!(seen[2].authorization, authorization);
    }
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    let ok = "204 No Content";
    let (base, seen) = server(vec![
        ok,
        ok,
        "503 Busy",
        "429 Slow down\r\nRetry-After: 0",
        "hang",
        ok,
    ]);
    let (_dir, place) = token_place(&base, Dialect::Three { db: "d".into() });
    let limits = Limits {
        closing: Duration::from_secs(20),
        ..QUICK
    };
    let mut http = Http::open_with(&place, Pace::Live, limits).unwrap();
    http.first(b"run a=1i 1\n".to_vec()).unwrap();
    http.line(b"x a=1i 2\n".to_vec());
    let delivery = http.finish();
    assert_eq!(
        (delivery.delivered, delivery.lost, delivery.retries),
        (2, 0, 3)
    );
    assert_eq!(
        seen.lock()
            .unwrap()
            .iter()
            .filter(|s| s.body.starts_with("x "))
            .count(),
        4
    );
}

/// Answers to a write that do not confirm the lines.
const NOT_WRITTEN: [&str; 8] = [
    "301 Moved Permanently\r\nLocation: http://elsewhere.example/\u{9b}2J",
    "302 Found\r\nLocation: /login",
    "303 See Other\r\nLocation: /login",
    "307 Temporary Redirect\r\nLocation: http://elsewhere.example/write",
    "308 Permanent Redirect",
    "200 OK\r\nContent-Type: text/html\r\nX-Body: <html>\u{1b}]0;log in\u{7}</html>",
    "201 Created",
    "202 Accepted",
];

#[test]
fn only_the_write_interfaces_own_answer_counts() {
    let ok = "204 No Content";
    for dialect in [
        Dialect::One {
            db: "d".into(),
            retention: None,
        },
        Dialect::Two {
            org: "o".into(),
            bucket: "b".into(),
        },
        Dialect::Three { db: "d".into() },
    ] {
        for answer in NOT_WRITTEN {
            // A client that followed the redirect would get a confirmation.
            let (base, seen) = server(vec![ok, answer, ok]);
            let (_dir, place) = token_place(&base, dialect.clone());
            let mut http = Http::open_with(&place, Pace::Stored, QUICK).unwrap();
            let error = http
                .first(b"run a=1i 1\n".to_vec())
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("({})", &answer[..3])), "{error}");
            assert!(
                error.chars().all(jitterscope_model::is_visible),
                "{error:?}"
            );
            if answer.starts_with('3') {
                assert!(error.contains("follows no redirect"), "{error}");
                let location = answer.split_once("Location: ").map_or("", |(_, to)| to);
                assert!(error.contains(&*visible(location)), "{error}");
            }
            drop(http.finish());
            assert_eq!(
                seen.lock().unwrap().len(),
                2,
                "{answer}: {:?}",
                seen.lock().unwrap()
            );

            let (base, seen) = server(vec![ok, ok, answer, ok]);
            let (_dir, place) = token_place(&base, dialect.clone());
            let mut http = Http::open_with(&place, Pace::Stored, QUICK).unwrap();
            http.first(b"run a=1i 1\n".to_vec()).unwrap();
            // One batch with this answer, and one that is written.
            let row = format!("x a=\"{}\" 2\n", "y".repeat(80));
            http.line(row.clone().into_bytes());
            http.line(row.into_bytes());
            let delivery = http.finish();
            assert_eq!(
                (delivery.delivered, delivery.lost, delivery.retries),
                (2, 1, 0),
                "{answer}"
            );
            assert!(delivery.problem.unwrap().contains(&answer[..3]));
            assert!(delivery.confirmed);
            let seen = seen.lock().unwrap();
            assert!(
                seen[1..].iter().all(|s| s.line.starts_with("POST ")),
                "{answer}: {seen:?}"
            );
        }
    }
}

#[test]
fn an_endless_answer_is_cut() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
            // Until the client closes the connection.
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        }
    });
    let (_dir, place) = token_place(&base, Dialect::Three { db: "d".into() });
    let mut http = Http::open_with(&place, Pace::Stored, LIMITS).unwrap();
    let error = http
        .first(b"run a=1i 1\n".to_vec())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&"x".repeat(400)) && error.len() < 700,
        "{error}"
    );
    drop(http.finish());
}

#[test]
fn refusals_are_final_and_reported() {
    let ok = "204 No Content";
    let (base, _) = server(vec![ok, "404 Not Found"]);
    let (_dir, place) = token_place(&base, Dialect::Three { db: "d".into() });
    let mut http = Http::open_with(&place, Pace::Live, QUICK).unwrap();
    let error = http
        .first(b"run a=1i 1\n".to_vec())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("404") && error.contains("Create the database"),
        "{error}"
    );
    drop(http.finish());

    let (base, _) = server(vec![ok, ok, "400 Bad Request"]);
    let (_dir, place) = token_place(&base, Dialect::Three { db: "d".into() });
    let mut http = Http::open_with(&place, Pace::Live, QUICK).unwrap();
    http.first(b"run a=1i 1\n".to_vec()).unwrap();
    http.line(b"x a=1i 2\n".to_vec());
    let delivery = http.finish();
    assert_eq!(
        (delivery.delivered, delivery.lost, delivery.retries),
        (1, 1, 0)
    );
    assert!(delivery.problem.unwrap().contains("400"));
}

#[test]
fn a_live_run_is_never_held_up_and_every_line_is_accounted_for() {
    let ok = "204 No Content";
    let (base, _) = server(vec![ok, ok, "503 Busy"]);
    let (_dir, place) = token_place(&base, Dialect::Three { db: "d".into() });
    let mut http = Http::open_with(&place, Pace::Live, QUICK).unwrap();
    http.first(b"run a=1i 1\n".to_vec()).unwrap();
    let begun = Instant::now();
    for n in 0..1000 {
        http.line(format!("x a={n}i {n}\n").into_bytes());
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "the queue was waited for"
    );
    let delivery = http.finish();
    assert_eq!(delivery.delivered + delivery.lost, 1001);
    assert!(
        delivery.lost >= 900 && delivery.problem.is_some(),
        "{delivery:?}"
    );
}

#[test]
fn a_server_that_is_not_there_shows_when_the_target_is_opened() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let (_dir, place) = token_place(
        &format!("http://127.0.0.1:{port}"),
        Dialect::Three { db: "d".into() },
    );
    let error = Http::open(&place, Pace::Live).err().unwrap();
    assert!(matches!(error, ExportError::Unreachable { .. }), "{error}");
    assert!(
        is_here("http://localhost:1")
            && is_here("http://[::1]:1/x")
            && !is_here("http://10.0.0.1:1")
    );
}
