//! `serve`: stored runs in a browser, on this machine alone.

mod browser;
mod guard;
mod request;

use super::{compare_with, pictures};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use anyhow::Context;
use browser::{Opener, tunnel};
use clap::Args;
use guard::{Admission, Guard};
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{DiffRules, diff};
use jitterscope_model::StallId;
use jitterscope_store::{RunReader, list};
use jitterscope_view::html;
use request::{BadRequest, Request};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// Connections at a time; more wait.
const MOST: usize = 16;
/// How long a browser may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Where the list is.
const LIST: &str = "/";

/// What a server knows.
struct Server {
    guard: Guard,
    runs: PathBuf,
    redact: Redact,
    /// One page is made at a time: a large run takes memory.
    making: Mutex<()>,
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
        Answer { status, kind, more: String::new(), body: text.into_bytes() }
    }

    fn json(text: String) -> Answer {
        let (status, kind) = ("200 OK", "application/json");
        Answer { status, kind, more: String::new(), body: text.into_bytes() }
    }

    fn plain(status: &'static str, text: impl std::fmt::Display) -> Answer {
        let kind = "text/plain; charset=utf-8";
        Answer { status, kind, more: String::new(), body: format!("{text}\n").into_bytes() }
    }
}

/// Runs it, until it is ended.
///
/// # Errors
/// The port is taken, or there is no folder of runs.
pub fn run(args: &ServeArgs, places: &Places) -> anyhow::Result<Exit> {
    let opener = args.open.then(opener).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let told = format!("port {} of 127.0.0.1 cannot be had: {error}", args.port);
        anyhow::Error::from(UsageError(told))
    })?;
    let port = listener.local_addr().context("the port cannot be learnt")?.port();
    let server = Server {
        guard: Guard::new(port)?,
        runs: places.runs()?,
        redact: args.redact,
        making: Mutex::new(()),
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
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, most likely: those that are open will end.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if open.load(Ordering::Relaxed) >= MOST {
            drop(stream);
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let (server, open) = (Arc::clone(server), Arc::clone(&open));
        std::thread::spawn(move || {
            // Whoever hangs up is not told.
            let _ = server.serve(&stream);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

impl Server {
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (answer, with_body) = match Request::read(stream) {
            Ok(request) => (self.answer(&request), request.method != "HEAD"),
            Err(BadRequest::Malformed) => (Answer::plain("400 Bad Request", "This is no request."), true),
            Err(BadRequest::TooLong) => {
                (Answer::plain("431 Request Header Fields Too Large", "The request is too long."), true)
            }
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
                let more = format!("Set-Cookie: {cookie}\r\nLocation: {}\r\n", LIST);
                return Answer { more, ..Answer::plain("303 See Other", "Come in.") };
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
        let _one = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        let page = |text: Option<String>| text.map(Answer::page);
        let made = match request.path.as_str() {
            LIST => self.list(request.asked("q").unwrap_or_default()).map(page),
            "/compare" => self.compare(request.asked("a"), request.asked("b")).map(page),
            path => match path.strip_prefix("/run/").map(|of| of.split_once("/stall/").unwrap_or((of, ""))) {
                Some((id, "")) => self.run(id).map(page),
                Some((id, stall)) => self.stall(id, stall).map(|text| text.map(Answer::json)),
                None => return Answer::plain("404 Not Found", "There is nothing here."),
            },
        };
        match made {
            Ok(Some(answer)) => answer,
            Ok(None) => Answer::plain("404 Not Found", "There is no such run."),
            Err(error) => {
                let told = jitterscope_model::visible(&format!("{error:#}")).into_owned();
                Answer::plain("500 Internal Server Error", format_args!("It cannot be shown: {told}"))
            }
        }
    }

    fn list(&self, wanted: &str) -> anyhow::Result<Option<String>> {
        let (runs, problems) = list(&self.runs)?;
        let (runs, problems) = match self.redact.on {
            true => jitterscope_view::list::redacted(&runs, &problems),
            false => (runs, problems),
        };
        let heads: Vec<_> = runs.into_iter().map(|run| run.head).collect();
        Ok(Some(html::index(&heads, problems.len(), wanted)))
    }

    /// The folder of the run with this id, of those in the list: no name reaches the file system.
    fn folder(&self, id: &str) -> anyhow::Result<Option<PathBuf>> {
        let (runs, _) = list(&self.runs)?;
        Ok(runs.into_iter().rev().find(|run| run.head.id == id).map(|run| run.path))
    }

    fn run(&self, id: &str) -> anyhow::Result<Option<String>> {
        let Some(folder) = self.folder(id)? else { return Ok(None) };
        let (page, ..) = pictures::page_of(&RunReader::open(&folder)?, self.redact, Some(LIST))?;
        Ok(Some(page))
    }

    /// One stall of a run, for its page.
    fn stall(&self, id: &str, stall: &str) -> anyhow::Result<Option<String>> {
        let Ok(stall) = stall.parse().map(StallId) else { return Ok(None) };
        let Some(folder) = self.folder(id)? else { return Ok(None) };
        pictures::stall_of(&RunReader::open(&folder)?, stall, self.redact)
    }

    fn compare(&self, a: Option<&str>, b: Option<&str>) -> anyhow::Result<Option<String>> {
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        if a == b {
            anyhow::bail!("choose two different runs");
        }
        let (Some(a), Some(b)) = (self.folder(a)?, self.folder(b)?) else { return Ok(None) };
        let mut redactor = self.redact.on.then(Redactor::new);
        let mut side = |folder: &Path| {
            let name = folder.to_str().context("the run's folder has a name that is no text")?;
            compare_with::side(&self.runs, name, &mut redactor)
        };
        let sides = [side(&a)?, side(&b)?];
        let found = diff(&sides, DiffRules::default(), &[], &compare_with::answers);
        let newest = pictures::newest(&found);
        let found = if self.redact.on { compare_with::without_paths(found) } else { found };
        Ok(Some(pictures::page_of_diff(&found, &newest, &mut redactor, Some(LIST))?))
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
