//! What every row of the table of formats promises: its schemes and usages are destinations, the help lists them, a
//! wrong option is refused, and a live run and a stored one are written alike.

use crate::common;

use common::stored_rows::{StoredRows, feed};
use jitterscope_export::{Destination, FORMATS, Format, Pace, export_redacted, export_run, help};
use jitterscope_model::RunFacts;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Every usage in the table with its format.
fn usages() -> impl Iterator<Item = (&'static Format, &'static str, &'static str)> {
    FORMATS.iter().flat_map(|format| {
        format
            .usage
            .iter()
            .map(move |(usage, what)| (*format, *usage, *what))
    })
}

/// A usage with places of this test filled in.
fn filled(usage: &str, place: &Path, port: u16) -> String {
    let place = place.to_str().unwrap();
    usage
        .replace("FILE", place)
        .replace("FOLDER", place)
        .replace("HOST:PORT", &format!("127.0.0.1:{port}"))
}

/// Accepts data at one port, by UDP or HTTP, and confirms it.
struct Server {
    port: u16,
    lines: Arc<AtomicU64>,
}

impl Server {
    fn start() -> Server {
        let (tcp, udp, port) = std::iter::repeat_with(|| {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = tcp.local_addr().unwrap().port();
            (tcp, UdpSocket::bind(("127.0.0.1", port)), port)
        })
        .find_map(|(tcp, udp, port)| Some((tcp, udp.ok()?, port)))
        .unwrap();
        let lines = Arc::new(AtomicU64::new(0));
        let (of_udp, of_tcp) = (Arc::clone(&lines), Arc::clone(&lines));
        std::thread::spawn(move || {
            let mut datagram = [0; 1 << 16];
            while let Ok(length) = udp.recv(&mut datagram) {
                of_udp.fetch_add(newlines(&datagram[..length]), Ordering::SeqCst);
            }
        });
        std::thread::spawn(move || {
            for stream in tcp.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let mut length = 0;
                for line in reader
                    .by_ref()
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                {
                    let (name, value) = line.split_once(": ").unwrap_or_default();
                    if name.eq_ignore_ascii_case("content-length") {
                        length = value.parse().unwrap();
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                of_tcp.fetch_add(newlines(&body), Ordering::SeqCst);
                let answer =
                    "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        });
        Server { port, lines }
    }

    /// The lines since the last call. UDP has no answer, so the call waits for them.
    fn taken(&self) -> u64 {
        for _ in 0..100 {
            if self.lines.load(Ordering::SeqCst) > 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.lines.swap(0, Ordering::SeqCst)
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// All bytes of a file, or of the files of a folder.
fn written(place: &Path) -> Vec<u8> {
    if !place.is_dir() {
        return fs::read(place).unwrap();
    }
    let mut files: Vec<PathBuf> = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| fs::read(file).unwrap())
        .collect()
}

#[test]
fn the_help_has_each_scheme_and_each_usage() {
    let help = help();
    for (format, usage, what) in usages() {
        assert!(help.contains(usage), "{usage}");
        what.lines()
            .for_each(|line| assert!(help.contains(line), "{usage}: {line}"));
        assert!(
            format.notes.is_empty() || help.contains(format.notes),
            "{usage}"
        );
        let scheme = usage.split_once("://").unwrap().0;
        assert!(format.schemes.contains(&scheme), "{usage}");
    }
    for scheme in FORMATS.iter().flat_map(|format| format.schemes) {
        // The help lists a scheme and its TLS variant once.
        let shown = scheme
            .strip_suffix('s')
            .filter(|plain| plain.ends_with("+http"))
            .unwrap_or(scheme);
        assert!(help.contains(&format!("{shown}://")), "{scheme}");
        let error = "xml://a".parse::<Destination>().unwrap_err().to_string();
        assert!(error.contains(scheme), "{error}");
    }
}

#[test]
fn a_usage_is_a_destination_and_a_wrong_option_of_it_is_named() {
    for (_, usage, _) in usages() {
        let text = filled(usage, Path::new("a"), 1);
        let destination: Destination = text.parse().unwrap();
        assert!(
            text.starts_with(&destination.to_string()),
            "{text}: {destination}"
        );
        assert_eq!(destination.scheme(), usage.split_once("://").unwrap().0);
        let sign = if text.contains('?') { '&' } else { '?' };
        let error = format!("{text}{sign}nonsense=1")
            .parse::<Destination>()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("'nonsense' is no option of it; there is "),
            "{error}"
        );
        let nowhere = format!("{}://", destination.scheme());
        let error = nowhere.parse::<Destination>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("'{nowhere}': ")), "{error}");
    }
}

#[test]
fn each_usage_writes_a_stored_run_and_the_same_while_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let run = common::run(dir.path());
    let rows = StoredRows::of(&run);
    // What is copied must be there: a run with a trace.
    let recorded = common::recorded("spin");
    let server = Server::start();
    for (n, (_, usage, _)) in usages().enumerate() {
        let place = |of: &str| dir.path().join(format!("{of}-{n}"));
        let text = filled(usage, &place("stored"), server.port);
        let stored: Destination = text.parse().unwrap();
        let of = if stored.is_copy() { &recorded } else { &run };
        let delivered = export_run(of, std::slice::from_ref(&stored))
            .unwrap()
            .remove(0);
        assert!(
            delivered.delivered > 0 && delivered.lost == 0,
            "{usage}: {delivered:?}"
        );
        let to_server = stored.path().is_none();
        let taken = if to_server { server.taken() } else { 0 };
        assert!(
            if to_server {
                taken > 0
            } else {
                !written(&place("stored")).is_empty()
            },
            "{usage}"
        );

        let live: Destination = filled(usage, &place("live"), server.port).parse().unwrap();
        if live.is_copy() {
            let error = live.open(Pace::Live).err().unwrap();
            assert!(
                error.is_usage() && error.to_string().contains("from a stored run only"),
                "{error}"
            );
            assert!(!place("live").exists(), "{usage}");
            assert!(
                export_redacted(&run, &[live]).is_err(),
                "{usage}: names are in the tables"
            );
            continue;
        }
        let mut sink = live.open(Pace::Live).unwrap();
        if to_server {
            sink.begin(&RunFacts::of(run.manifest())).unwrap();
            sink.rows(&rows.rows()).unwrap();
            let live = sink.end(run.manifest()).unwrap();
            assert_eq!(
                (live.delivered, live.lost),
                (delivered.delivered, 0),
                "{usage}: {live:?}"
            );
            assert!(server.taken() > 0, "{usage}");
        } else {
            assert_eq!(
                feed(sink.as_mut(), &rows.rows(), 7, run.manifest()).unwrap(),
                delivered,
                "{usage}"
            );
            assert_eq!(
                written(&place("live")),
                written(&place("stored")),
                "{usage}"
            );
        }
    }
}
