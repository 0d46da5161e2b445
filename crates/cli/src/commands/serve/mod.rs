//! `serve`: stored runs in a browser, on this machine only.

pub mod browser;
pub mod connections;
pub mod guard;
mod kept;
pub mod request;

use super::{compare_with, pictures};
use crate::exit::{Exit, UsageError};
use crate::output;
use crate::places::Places;
use crate::redact::Redact;
use anyhow::Context;
use browser::{Opener, tunnel};
use clap::Args;
use connections::{Connections, Hurried};
use guard::Guard;
use jitterscope_analyze::Redactor;
use jitterscope_analyze::compare::{DiffRules, diff};
use jitterscope_model::{RunHead, StallId};
use jitterscope_platform::{Machine, own_user};
use jitterscope_store::{RunReader, StoreError};
use jitterscope_view::{html, list};
use kept::Kept;
use request::{BadRequest, Request};
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// The time for a request, from the connection on.
pub const TO_ASK: Duration = Duration::from_secs(5);
/// How long a browser may stall the answer.
pub const TO_LISTEN: Duration = Duration::from_secs(10);
/// The path of the list, below the secret.
const LIST: &str = "";
/// The path of the comparison.
const COMPARE: &str = "compare";
/// The list, relative to the comparison.
const FROM_COMPARE: &str = "./";
const RUN: &str = "run/";
/// The list, relative to a run.
const FROM_RUN: &str = "../";

/// The state of a server.
struct Server {
    guard: Guard,
    runs: PathBuf,
    redact: Redact,
    /// One page is made at a time, because a large run takes memory.
    making: Mutex<Kept>,
}

struct Answer {
    status: &'static str,
    kind: &'static str,
    more: &'static str,
    body: Arc<str>,
}

impl Answer {
    fn page(text: Arc<str>) -> Answer {
        let (status, kind) = ("200 OK", "text/html; charset=utf-8");
        Answer {
            status,
            kind,
            more: "",
            body: text,
        }
    }

    fn json(text: Arc<str>) -> Answer {
        let (status, kind) = ("200 OK", "application/json");
        Answer {
            status,
            kind,
            more: "",
            body: text,
        }
    }

    /// A page that explains a refusal.
    fn refusal(status: &'static str, heading: &str, why: &str, list: &str) -> Answer {
        Answer {
            status,
            ..Answer::page(html::refusal(heading, why, list).into())
        }
    }

    fn plain(status: &'static str, text: impl std::fmt::Display) -> Answer {
        let kind = "text/plain; charset=utf-8";
        Answer {
            status,
            kind,
            more: "",
            body: format!("{text}\n").into(),
        }
    }
}

/// Runs `serve` until it is ended.
///
/// # Errors
/// The port is taken, or there is no folder of runs.
pub fn run(args: &ServeArgs, places: &Places) -> anyhow::Result<Exit> {
    let opener = args.open.then(opener).transpose()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        let text = format!("port {} of 127.0.0.1 is not available: {error}", args.port);
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
        && let Err(why) = opener.open(&server.guard.address())
    {
        output::talk(format!("No browser was opened: {why:#}."));
    }
    listen(&listener, &Arc::new(server))
}

fn opener() -> Result<Opener, UsageError> {
    let variable = |name| std::env::var(name).ok();
    let (user, number) = (variable("SUDO_USER"), variable("SUDO_UID"));
    let by_sudo = user.zip(number.and_then(|number| number.parse().ok()));
    Opener::choose(own_user(&Machine::host()), by_sudo)
}

fn listen(listener: &TcpListener, server: &Arc<Server>) -> ! {
    let connections = Arc::new(Connections::<TcpStream>::default());
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Probably no free descriptors: open connections will end.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let stream = Arc::new(stream);
        let (server, connections) = (Arc::clone(server), Arc::clone(&connections));
        // If the client hung up, or no thread can start, there is no one to report to.
        let _ = thread::Builder::new()
            .name("js-serve".into())
            .spawn(move || server.serve(&stream, &connections));
    }
}

impl Server {
    fn serve(&self, stream: &Arc<TcpStream>, connections: &Connections) -> io::Result<()> {
        stream.set_write_timeout(Some(TO_LISTEN))?;
        let waiting = connections.waits(stream);
        let asked = Request::read(Hurried::new(&**stream, TO_ASK));
        drop(waiting);
        let (answer, with_body) = match asked {
            Ok(request) => (self.answer(&request), request.method != "HEAD"),
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

    /// A refusal neither waits nor blocks others; an admitted request waits for its page.
    fn answer(&self, request: &Request) -> Answer {
        let path = match self.guard.admit(request) {
            Ok(path) => path,
            Err(why) => return Answer::plain("403 Forbidden", format_args!("Refused: {why}.")),
        };
        if !matches!(request.method.as_str(), "GET" | "HEAD") {
            return Answer {
                more: "Allow: GET, HEAD\r\n",
                ..Answer::plain("405 Method Not Allowed", "Only to be looked at.")
            };
        }
        let (made, for_script) = match path {
            LIST => {
                let list = self.list(request);
                (list.map(|page| Some(page.into())), false)
            }
            COMPARE => (self.compare(request.asked("a"), request.asked("b")), false),
            path => match path
                .strip_prefix(RUN)
                .map(|of| of.split_once("/stall/").unwrap_or((of, "")))
            {
                Some((id, "")) => (self.run(id), false),
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
                self.guard.home(),
            ),
            (Err(error), for_script) => {
                let (status, heading) = kind_of(&error);
                let error = self.redact.error(error);
                match for_script {
                    true => {
                        Answer::plain(status, jitterscope_model::visible(&format!("{error:#}")))
                    }
                    false => {
                        let why = format!("{error:#}.");
                        Answer::refusal(status, heading, &why, self.guard.home())
                    }
                }
            }
        }
    }

    fn list(&self, request: &Request) -> anyhow::Result<String> {
        let (runs, problems) = jitterscope_store::list(&self.runs)?;
        let (runs, problems) = match self.redact.on {
            true => list::redacted(&runs, &problems),
            false => (runs, problems),
        };
        let heads: Vec<_> = runs
            .into_iter()
            .map(|run| RunHead {
                label: list::label(&run),
                ..run.head
            })
            .collect();
        let wanted = request.asked("q").unwrap_or_default();
        let chosen = ["a", "b"].map(|side| request.asked(side));
        Ok(html::index(&heads, problems.len(), wanted, chosen))
    }

    /// The folder of the run with this id, from the list, so that no text from a request reaches the file system. Of
    /// several it is this user's.
    fn folder(&self, id: &str) -> anyhow::Result<Option<PathBuf>> {
        let (mut runs, _) = jitterscope_store::list(&self.runs)?;
        runs.retain(|run| run.head.id == id);
        let own = runs.iter().rposition(jitterscope_store::RunEntry::is_own);
        let at = own.or(runs.len().checked_sub(1));
        Ok(at.map(|at| runs.swap_remove(at).path))
    }

    fn run(&self, id: &str) -> anyhow::Result<Option<Arc<str>>> {
        let Some(folder) = self.folder(id)? else {
            return Ok(None);
        };
        let page = self.kept().page(&[&folder], || {
            let reader = RunReader::open(&folder)?;
            Ok(pictures::page_of(&reader, self.redact, Some(FROM_RUN))?.0)
        })?;
        Ok(Some(page))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One stall of a run, for its page.
    fn stall(&self, id: &str, stall: &str) -> anyhow::Result<Option<Arc<str>>> {
        let Ok(stall) = stall.parse().map(StallId) else {
            return Ok(None);
        };
        let Some(folder) = self.folder(id)? else {
            return Ok(None);
        };
        let _one_at_a_time = self.kept();
        let found = pictures::stall_of(&RunReader::open(&folder)?, stall, self.redact)?;
        Ok(found.map(Arc::from))
    }

    fn compare(&self, a: Option<&str>, b: Option<&str>) -> anyhow::Result<Option<Arc<str>>> {
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
        let page = self.kept().page(&[&a, &b], || self.comparison(&a, &b))?;
        Ok(Some(page))
    }

    fn comparison(&self, a: &Path, b: &Path) -> anyhow::Result<String> {
        let mut redactor = self.redact.on.then(Redactor::new);
        let name = |folder: &Path| {
            let name = folder.to_str().map(str::to_owned);
            name.context("the run's folder has a name that is no text")
        };
        let sides = compare_with::sides(&self.runs, &[name(a)?, name(b)?], &mut redactor)?;
        let found = diff(&sides, DiffRules::default(), &[], &compare_with::answers);
        let newest = pictures::newest(&found);
        let found = if self.redact.on {
            compare_with::without_paths(found)
        } else {
            found
        };
        pictures::page_of_diff(&found, &newest, &mut redactor, Some(FROM_COMPARE))
    }
}

/// The status of an error (the client's or the server's mistake), and the heading of its page.
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
        stream.write_all(answer.body.as_bytes())?;
    }
    stream.flush()
}
