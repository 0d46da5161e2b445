//! `serve`: stored runs in a browser, on this machine alone.

mod browser;
mod connections;
mod guard;
mod kept;
mod request;

use super::{compare_with, pictures};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use anyhow::Context;
use browser::{Opener, tunnel};
use clap::Args;
use connections::{Connections, Hurried};
use guard::{Admission, Guard};
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{DiffRules, diff};
use jitterscope_model::StallId;
use jitterscope_store::{RunReader, StoreError, list};
use jitterscope_view::html;
use kept::Kept;
use request::{BadRequest, Request};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Arguments of `serve`.
#[derive(Args, Debug)]
pub struct ServeArgs {
    /// The port on 127.0.0.1 [default: a free one]
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Open the page in a browser: not as root, but as the user who called sudo
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub redact: Redact,
}

/// How long a browser may take to ask, from when it connected.
const TO_ASK: Duration = Duration::from_secs(5);
/// How long it may take nothing of the answer.
const TO_LISTEN: Duration = Duration::from_secs(10);
/// Where the list is.
const LIST: &str = "/";
/// Where two are compared.
const COMPARE: &str = "/compare";
/// Where runs are.
const RUN: &str = "/run/";

/// What a server knows.
struct Server {
    guard: Guard,
    runs: PathBuf,
    redact: Redact,
    /// One page is made at a time: a large run takes memory.
    making: Mutex<Kept>,
}

/// An answer.
struct Answer {
    status: &'static str,
    kind: &'static str,
    more: String,
    body: Vec<u8>,
}

impl Answer {
    fn page(text: String) -> Answer {
        let (status, kind) = ("200 OK", "text/html; charset=utf-8");
        Answer {
            status,
            kind,
            more: String::new(),
            body: text.into_bytes(),
        }
    }

    fn json(text: String) -> Answer {
        let (status, kind) = ("200 OK", "application/json");
        Answer {
            status,
            kind,
            more: String::new(),
            body: text.into_bytes(),
        }
    }

    /// A page that says why there is no other.
    fn refusal(status: &'static str, heading: &str, why: &str) -> Answer {
        Answer {
            status,
            ..Answer::page(html::refusal(heading, why, LIST))
        }
    }

    fn plain(status: &'static str, text: impl std::fmt::Display) -> Answer {
        let kind = "text/plain; charset=utf-8";
        Answer {
            status,
            kind,
            more: String::new(),
            body: format!("{text}\n").into_bytes(),
        }
    }
}

/// Runs it, until it is ended.
///
/// # Errors
/// The port is taken, or there is no folder of runs.
pub fn run(args: &ServeArgs, places: &Places) -> anyhow::Result<Exit> {
    let opener = args.open.then(opener).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let text = format!("port {} of 127.0.0.1 cannot be had: {error}", args.port);
        anyhow::Error::from(UsageError(text))
    })?;
    let port = listener
        .local_addr()
        .context("the port cannot be learnt")?
        .port();
    let server = Server {
        guard: Guard::new(port)?,
        runs: places.runs()?,
        redact: args.redact,
        making: Mutex::default(),
    };
    output::result(&format!("{}\n", server.guard.address()))?;
    output::talk(
        "Whoever has this address can look at the runs. It works on this machine only; Ctrl-C ends it.",
    );
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("SUDO_USER").or_else(|| variable("USER"));
    if let Some(tunnel) = tunnel(variable("SSH_CONNECTION").as_deref(), user.as_deref(), port) {
        output::talk(format!("From where you are, this makes it yours: {tunnel}"));
    }
    if let Some(opener) = opener
        && let Err(why) = opener.open(&server.guard.address_once()?)
    {
        output::talk(why);
    }
    listen(&listener, &Arc::new(server))
}

fn opener() -> Result<Opener, UsageError> {
    let is_root = rustix::process::geteuid().is_root();
    Opener::choose(is_root, std::env::var("SUDO_USER").ok().as_deref())
}

fn listen(listener: &TcpListener, server: &Arc<Server>) -> ! {
    let connections = Arc::new(Connections::default());
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, most likely: those that are open will end.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let (server, connections) = (Arc::clone(server), Arc::clone(&connections));
        // Nobody hears of it who hangs up, or for whom no thread can be had.
        let _ = thread::Builder::new()
            .name("js-serve".into())
            .spawn(move || server.serve(&stream, &connections));
    }
}

impl Server {
    fn serve(&self, stream: &TcpStream, connections: &Connections) -> io::Result<()> {
        stream.set_write_timeout(Some(TO_LISTEN))?;
        let waiting = connections.waits(stream)?;
        let asked = Request::read(Hurried::new(stream, TO_ASK));
        drop(waiting);
        let (answer, with_body) = match asked {
            Ok(request) => match connections.is_answered() {
                Some(_one) => (self.answer(&request), request.method != "HEAD"),
                None => (
                    Answer::plain("503 Service Unavailable", "Too many ask at once."),
                    true,
                ),
            },
            Err(BadRequest::Malformed) => (
                Answer::plain("400 Bad Request", "This is no request."),
                true,
            ),
            Err(BadRequest::TooLong) => (
                Answer::plain(
                    "431 Request Header Fields Too Large",
                    "The request is too long.",
                ),
                true,
            ),
            Err(BadRequest::Ended) => return Ok(()),
        };
        send(stream, &answer, with_body)
    }

    fn answer(&self, request: &Request) -> Answer {
        match self.guard.admit(request) {
            Admission::Refused(why) => {
                return Answer::plain("403 Forbidden", format_args!("Refused: {why}."));
            }
            Admission::Welcome { cookie } => {
                let to = place(request);
                let more = format!("Set-Cookie: {cookie}\r\nLocation: {to}\r\n");
                return Answer {
                    more,
                    ..Answer::plain("303 See Other", "Come in.")
                };
            }
            Admission::Granted => {}
        }
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            let allow = "Allow: GET, HEAD\r\n".to_owned();
            return Answer {
                more: allow,
                ..Answer::plain("405 Method Not Allowed", "Only to be looked at.")
            };
        }
        let mut kept = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let (made, for_script) = match request.path.as_str() {
            LIST => (
                self.list(request.asked("q").unwrap_or_default()).map(Some),
                false,
            ),
            COMPARE => (
                self.compare(&mut kept, request.asked("a"), request.asked("b")),
                false,
            ),
            path => match path
                .strip_prefix(RUN)
                .map(|of| of.split_once("/stall/").unwrap_or((of, "")))
            {
                Some((id, "")) => (self.run(&mut kept, id), false),
                Some((id, stall)) => (self.stall(id, stall), true),
                None => (Ok(None), false),
            },
        };
        match (made, for_script) {
            (Ok(Some(text)), false) => Answer::page(text),
            (Ok(Some(text)), true) => Answer::json(text),
            (Ok(None), true) => Answer::plain("404 Not Found", "There is no such stall."),
            (Ok(None), false) => Answer::refusal(
                "404 Not Found",
                "Not found",
                "There is no such run, nor another page here.",
            ),
            (Err(error), for_script) => {
                let (status, heading) = kind_of(&error);
                match for_script {
                    true => {
                        Answer::plain(status, jitterscope_model::visible(&format!("{error:#}")))
                    }
                    false => Answer::refusal(status, heading, &format!("{error:#}.")),
                }
            }
        }
    }

    fn list(&self, wanted: &str) -> anyhow::Result<String> {
        let (runs, problems) = list(&self.runs)?;
        let (runs, problems) = match self.redact.on {
            true => jitterscope_view::list::redacted(&runs, &problems),
            false => (runs, problems),
        };
        let heads: Vec<_> = runs.into_iter().map(|run| run.head).collect();
        Ok(html::index(&heads, problems.len(), wanted))
    }

    /// The folder of the run with this id, of those in the list: no name reaches the file system.
    fn folder(&self, id: &str) -> anyhow::Result<Option<PathBuf>> {
        let (runs, _) = list(&self.runs)?;
        Ok(runs
            .into_iter()
            .rev()
            .find(|run| run.head.id == id)
            .map(|run| run.path))
    }

    fn run(&self, kept: &mut Kept, id: &str) -> anyhow::Result<Option<String>> {
        let Some(folder) = self.folder(id)? else {
            return Ok(None);
        };
        let page = kept.page(&[&folder], || {
            Ok(pictures::page_of(&RunReader::open(&folder)?, self.redact, Some(LIST))?.0)
        })?;
        Ok(Some(page))
    }

    /// One stall of a run, for its page.
    fn stall(&self, id: &str, stall: &str) -> anyhow::Result<Option<String>> {
        let Ok(stall) = stall.parse().map(StallId) else {
            return Ok(None);
        };
        let Some(folder) = self.folder(id)? else {
            return Ok(None);
        };
        pictures::stall_of(&RunReader::open(&folder)?, stall, self.redact)
    }

    fn compare(
        &self,
        kept: &mut Kept,
        a: Option<&str>,
        b: Option<&str>,
    ) -> anyhow::Result<Option<String>> {
        let (Some(a), Some(b)) = (a, b) else {
            return Err(UsageError(
                "a comparison is of two runs: choose one as A and one as B".into(),
            )
            .into());
        };
        if a == b {
            return Err(UsageError(format!("A and B are the same run, {a}: choose two")).into());
        }
        let (Some(a), Some(b)) = (self.folder(a)?, self.folder(b)?) else {
            return Ok(None);
        };
        kept.page(&[&a, &b], || self.comparison(&a, &b)).map(Some)
    }

    fn comparison(&self, a: &Path, b: &Path) -> anyhow::Result<String> {
        let mut redactor = self.redact.on.then(Redactor::new);
        let mut side = |folder: &Path| {
            let name = folder
                .to_str()
                .context("the run's folder has a name that is no text")?;
            compare_with::side(&self.runs, name, &mut redactor)
        };
        let sides = [side(a)?, side(b)?];
        let found = diff(&sides, DiffRules::default(), &[], &compare_with::answers);
        let newest = pictures::newest(&found);
        let found = if self.redact.on {
            compare_with::without_paths(found)
        } else {
            found
        };
        pictures::page_of_diff(&found, &newest, &mut redactor, Some(LIST))
    }
}

/// Where somebody who brought the token wanted to go: the same place without it.
fn place(request: &Request) -> String {
    let here = [LIST, COMPARE].contains(&request.path.as_str()) || request.path.starts_with(RUN);
    if here {
        request.address_without("token")
    } else {
        LIST.into()
    }
}

/// Whose mistake an error is, as a status, and what the page is called that tells it.
fn kind_of(error: &anyhow::Error) -> (&'static str, &'static str) {
    if error.is::<UsageError>() {
        return ("400 Bad Request", "That cannot be shown");
    }
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::NoSuchRun { .. }) => ("404 Not Found", "Not found"),
        _ => ("500 Internal Server Error", "It could not be shown"),
    }
}

fn send(mut stream: &TcpStream, answer: &Answer, with_body: bool) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\nCross-Origin-Opener-Policy: same-origin\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\r\n",
        answer.status,
        answer.kind,
        answer.body.len(),
        answer.more
    );
    stream.write_all(head.as_bytes())?;
    if with_body {
        stream.write_all(&answer.body)?;
    }
    stream.flush()
}
