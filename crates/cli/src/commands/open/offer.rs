//! Offers one file on a port of this machine to one page of one origin, until it was fetched.

use crate::commands::serve::connections::{Connections, Hurried};
use crate::commands::serve::guard::{equal, secret};
use crate::commands::serve::request::{BadRequest, Request};
use crate::commands::serve::{TO_ASK, TO_LISTEN};
use anyhow::Context;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The page that may read the file. Its address is in the `Origin` of its requests.
const PAGE: &str = "https://ui.perfetto.dev";
/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// The bytes that are sent at a time.
const PIECE: usize = 64 << 10;

/// How an offer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Fetched,
    /// By a signal.
    Ended,
}

/// A file on offer.
pub struct Offer {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// What every connection needs.
struct Shared {
    hosts: [String; 2],
    /// `/SECRET-NAME`. Every user of this machine can reach the port, so the name has a secret that only the printed
    /// address has.
    path: String,
    file: File,
    length: u64,
    connections: Connections,
    fetched: AtomicBool,
}

impl Offer {
    /// Offers a file under a name with this id in it.
    ///
    /// # Errors
    /// The system has no random bytes, or the file has no length.
    pub fn new(listener: TcpListener, port: u16, id: &str, file: File) -> anyhow::Result<Offer> {
        let length = file.metadata().context("the trace's length")?.len();
        let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
        let shared = Shared {
            hosts: ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}")),
            path: format!("/{}-{id}.perfetto-trace", secret()?),
            file,
            length,
            connections: Connections::default(),
            fetched: AtomicBool::new(false),
        };
        Ok(Offer {
            listener,
            shared: Arc::new(shared),
        })
    }

    /// The address of the file.
    pub fn address(&self) -> String {
        format!("http://{}{}", self.shared.hosts[0], self.shared.path)
    }

    /// Answers requests until the file was fetched, or until `stop` is set.
    ///
    /// # Errors
    /// The port fails.
    pub fn wait(&self, stop: &AtomicBool) -> anyhow::Result<Outcome> {
        self.listener
            .set_nonblocking(true)
            .context("the port cannot be watched")?;
        loop {
            if self.shared.fetched.load(Ordering::Acquire) {
                return Ok(Outcome::Fetched);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(Outcome::Ended);
            }
            // An error is probably a lack of free descriptors: open connections will end.
            let Ok((stream, _)) = self.listener.accept() else {
                thread::sleep(LOOK);
                continue;
            };
            let stream = Arc::new(stream);
            let shared = Arc::clone(&self.shared);
            // If the client hung up, or no thread can start, there is no one to report to.
            let _ = thread::Builder::new()
                .name("js-open".into())
                .spawn(move || shared.serve(&stream));
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The file; without its body for a request that asks only for the head.
    File {
        body: bool,
    },
    /// The page may fetch.
    Allowed,
    Refused(&'static str),
}

impl Shared {
    fn serve(&self, stream: &Arc<TcpStream>) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(TO_LISTEN))?;
        let waiting = self.connections.waits(stream);
        let asked = Request::read(Hurried::new(&**stream, TO_ASK));
        drop(waiting);
        let answer = match &asked {
            Ok(request) => self.answer(request),
            Err(BadRequest::Ended) => return Ok(()),
            Err(BadRequest::Malformed | BadRequest::TooLong) => Answer::Refused("400 Bad Request"),
        };
        match answer {
            Answer::Refused(status) => {
                let head =
                    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                (&**stream).write_all(head.as_bytes())
            }
            Answer::Allowed => {
                let head = format!(
                    "HTTP/1.1 204 No Content\r\n{}Access-Control-Allow-Methods: GET\r\n\
                     Access-Control-Allow-Private-Network: true\r\nConnection: close\r\n\r\n",
                    allowed()
                );
                (&**stream).write_all(head.as_bytes())
            }
            Answer::File { body } => self.send(stream, body),
        }
    }

    fn answer(&self, request: &Request) -> Answer {
        // A page under another name that leads here (DNS rebinding) has that name as its host.
        let [host] = &request.host[..] else {
            return Answer::Refused("403 Forbidden");
        };
        if !self.hosts.contains(host) || request.origin.iter().any(|origin| origin != PAGE) {
            return Answer::Refused("403 Forbidden");
        }
        if !equal(&request.path, &self.path) {
            return Answer::Refused("404 Not Found");
        }
        match request.method.as_str() {
            "GET" => Answer::File { body: true },
            "HEAD" => Answer::File { body: false },
            "OPTIONS" => Answer::Allowed,
            _ => Answer::Refused("405 Method Not Allowed"),
        }
    }

    /// Sends the file, and waits until the client has it.
    fn send(&self, mut stream: &TcpStream, body: bool) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {}\r\n{}Connection: close\r\n\
             Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\r\n",
            self.length,
            allowed()
        );
        stream.write_all(head.as_bytes())?;
        if !body {
            return Ok(());
        }
        let mut piece = vec![0; PIECE];
        let mut at = 0;
        while at < self.length {
            // Each connection reads at its own place.
            let n = self.file.read_at(&mut piece, at)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            stream.write_all(&piece[..n])?;
            at += n as u64;
        }
        stream.shutdown(Shutdown::Write)?;
        // The client closes when it has read everything.
        let mut rest = Hurried::new(stream, TO_LISTEN);
        while rest.read(&mut piece).is_ok_and(|n| n > 0) {}
        self.fetched.store(true, Ordering::Release);
        Ok(())
    }
}

/// Lets the page read the answer, and no other.
fn allowed() -> String {
    format!("Access-Control-Allow-Origin: {PAGE}\r\nVary: Origin\r\n")
}
