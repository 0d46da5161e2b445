//! HTTP: its own thread sends one batch at a time.
//!
//! A bounded queue separates the measurement from the server. The thread retries while the server is slow or away. If
//! the queue fills up meanwhile, live rows are dropped and counted, because a measurement must not wait.

use super::carrier::Carrier;
use super::{Credentials, Dialect, HttpPlace};
use crate::error::ExportError;
use crate::pace::Pace;
use jitterscope_model::{Delivery, visible};
use jitterscope_platform::read_bounded;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use ureq::Agent;
use ureq::http::{HeaderValue, Response, StatusCode};

/// Limits of the buffered amount and of the retries.
#[derive(Clone, Copy)]
struct Limits {
    /// A batch is sent at this size, or at a flush.
    batch_bytes: usize,
    /// The number of batches that may wait for the server.
    queue: usize,
    /// The timeout of one request.
    request: Duration,
    /// The first wait between tries. It doubles up to `longest_wait`.
    first_wait: Duration,
    longest_wait: Duration,
    /// How long a batch is retried during the measurement.
    patience: Duration,
    /// The time for everything left at the end of the run.
    closing: Duration,
}

/// Up to 16 MiB may wait, in batches of full size.
const LIMITS: Limits = Limits {
    batch_bytes: 256 << 10,
    queue: 64,
    request: Duration::from_secs(10),
    first_wait: Duration::from_millis(100),
    longest_wait: Duration::from_secs(5),
    patience: Duration::from_secs(120),
    closing: Duration::from_secs(15),
};
/// The largest quoted part of a server's error, bytes.
const COMPLAINT: u64 = 400;
/// The only answer of a write interface that confirms delivery.
const WRITTEN: StatusCode = StatusCode::NO_CONTENT;

struct Batch {
    bytes: Vec<u8>,
    lines: u64,
}

/// Passes batches to the sending thread.
pub(crate) struct Http {
    server: Arc<Server>,
    batch: Batch,
    pace: Pace,
    queue: SyncSender<Batch>,
    worker: JoinHandle<Delivery>,
    closing: Arc<AtomicBool>,
    first: u64,
    dropped: u64,
}

impl Http {
    pub(super) fn open(place: &HttpPlace, pace: Pace) -> Result<Http, ExportError> {
        Http::open_with(place, pace, LIMITS)
    }

    fn open_with(place: &HttpPlace, pace: Pace, limits: Limits) -> Result<Http, ExportError> {
        let server = Arc::new(Server::new(place, limits)?);
        server.ping(place)?;
        let (queue, batches) = sync_channel(limits.queue);
        let closing = Arc::new(AtomicBool::new(false));
        let (of_worker, of_end) = (Arc::clone(&server), Arc::clone(&closing));
        let worker = std::thread::Builder::new()
            .name("js-influx".into())
            .spawn(move || send_all(&of_worker, &batches, &of_end))
            .map_err(ExportError::Thread)?;
        let batch = Batch {
            bytes: Vec::new(),
            lines: 0,
        };
        Ok(Http {
            server,
            batch,
            pace,
            queue,
            worker,
            closing,
            first: 0,
            dropped: 0,
        })
    }

    fn hand_over(&mut self) {
        if self.batch.lines == 0 {
            return;
        }
        let batch = std::mem::replace(
            &mut self.batch,
            Batch {
                bytes: Vec::new(),
                lines: 0,
            },
        );
        let lines = batch.lines;
        let taken = match self.pace {
            Pace::Stored => self.queue.send(batch).is_ok(),
            Pace::Live => match self.queue.try_send(batch) {
                Ok(()) => true,
                // The batch grows until the queue has room or the batch reaches its limit.
                Err(TrySendError::Full(batch))
                    if batch.bytes.len() < self.server.limits.batch_bytes =>
                {
                    self.batch = batch;
                    true
                }
                Err(_) => false,
            },
        };
        if !taken {
            self.dropped += lines;
        }
    }
}

impl Carrier for Http {
    fn first(&mut self, line: Vec<u8>) -> Result<(), ExportError> {
        match self.server.write(&line) {
            Answer::Taken => {
                self.first = 1;
                Ok(())
            }
            Answer::Refused(status, why) => Err(self.server.refusal(status, why)),
            Answer::Later(_, why) => Err(ExportError::Unreachable {
                url: self.server.url.clone(),
                why,
                hint: "",
            }),
        }
    }

    fn line(&mut self, line: Vec<u8>) {
        self.batch.bytes.extend_from_slice(&line);
        self.batch.lines += 1;
        if self.batch.bytes.len() >= self.server.limits.batch_bytes {
            self.hand_over();
        }
    }

    fn flush(&mut self) {
        self.hand_over();
    }

    fn finish(mut self) -> Delivery {
        self.closing.store(true, Ordering::Release);
        // The measurement is over: now the sender may wait for room.
        self.pace = Pace::Stored;
        self.hand_over();
        drop(self.queue);
        let mut delivery = self.worker.join().unwrap_or_else(|_| Delivery {
            problem: Some("the sending thread panicked; this is a bug".into()),
            ..Delivery::default()
        });
        delivery.delivered += self.first;
        delivery.lost += self.dropped;
        if self.dropped > 0 && delivery.problem.is_none() {
            delivery.problem = Some("the server was slower than the rows came".into());
        }
        delivery
    }
}

fn send_all(server: &Server, batches: &Receiver<Batch>, closing: &AtomicBool) -> Delivery {
    let mut delivery = Delivery {
        confirmed: true,
        ..Delivery::default()
    };
    let mut last_call: Option<Instant> = None;
    for batch in batches {
        match deliver(
            server,
            &batch,
            closing,
            &mut last_call,
            &mut delivery.retries,
        ) {
            Ok(()) => delivery.delivered += batch.lines,
            Err(why) => {
                delivery.lost += batch.lines;
                delivery.problem = Some(why);
            }
        }
    }
    delivery
}

/// Sends one batch, with retries.
fn deliver(
    server: &Server,
    batch: &Batch,
    closing: &AtomicBool,
    last_call: &mut Option<Instant>,
    retries: &mut u64,
) -> Result<(), String> {
    let begun = Instant::now();
    let limits = server.limits;
    let mut wait = limits.first_wait;
    let mut asked_to_wait = None;
    loop {
        let why = match server.write(&batch.bytes) {
            Answer::Taken => return Ok(()),
            Answer::Refused(status, why) => return Err(format!("refused ({status}): {why}")),
            Answer::Later(after, why) => {
                asked_to_wait = after.or(asked_to_wait);
                why
            }
        };
        let mut pause = asked_to_wait.take().unwrap_or(wait).min(limits.patience);
        wait = (wait * 2).min(limits.longest_wait);
        // Waits in small steps, to notice the end of the run.
        loop {
            if last_call.is_none() && closing.load(Ordering::Acquire) {
                *last_call = Some(Instant::now() + limits.closing);
            }
            if last_call.is_some_and(|end| Instant::now() >= end)
                || begun.elapsed() >= limits.patience
            {
                return Err(why);
            }
            if pause.is_zero() {
                break;
            }
            let step = pause.min(limits.first_wait);
            std::thread::sleep(step);
            pause -= step;
        }
        *retries += 1;
    }
}

/// The outcome of a batch.
enum Answer {
    Taken,
    /// Permanent: a retry would fail too.
    Refused(u16, String),
    /// Temporary: retry after this time, if the server named one.
    Later(Option<Duration>, String),
}

/// One server's write interface.
struct Server {
    agent: Agent,
    url: String,
    authorization: Option<String>,
    limits: Limits,
}

impl Server {
    fn new(place: &HttpPlace, limits: Limits) -> Result<Server, ExportError> {
        if !cfg!(feature = "tls") && place.base.starts_with("https:") {
            return Err(ExportError::WithoutTls {
                url: place.base.clone(),
            });
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirected write loses its body (301, 302) or sends the lines to a server that the user did not name.
            .max_redirects(0)
            .timeout_global(Some(limits.request))
            .timeout_connect(Some(limits.request / 2))
            .user_agent(concat!("jitterscope/", env!("CARGO_PKG_VERSION")));
        #[cfg(feature = "tls")]
        let config = config.tls_config(
            ureq::tls::TlsConfig::builder()
                .root_certs(ureq::tls::RootCerts::PlatformVerifier)
                .unversioned_rustls_crypto_provider(rustls::crypto::ring::default_provider().into())
                .build(),
        );
        let mut config = config;
        if is_here(&place.base) {
            // A remote proxy cannot reach this machine's loopback.
            config = config.proxy(None);
        }
        let authorization = match &place.credentials {
            Credentials::Nobody => None,
            Credentials::Password { user, file } => {
                let password = secret(file.as_deref(), "INFLUX_PASSWORD")?.unwrap_or_default();
                Some(format!("Token {user}:{password}"))
            }
            Credentials::Token { file } => {
                let scheme = if matches!(place.dialect, Dialect::Three { .. }) {
                    "Bearer"
                } else {
                    "Token"
                };
                secret(file.as_deref(), "INFLUX_TOKEN")?.map(|token| format!("{scheme} {token}"))
            }
        };
        Ok(Server {
            agent: config.build().into(),
            url: write_url(place),
            authorization,
            limits,
        })
    }

    /// Checks that the server responds. Any answer will do: the first write shows a refusal.
    fn ping(&self, place: &HttpPlace) -> Result<(), ExportError> {
        let url = format!("{}/ping", place.base);
        let mut request = self.agent.get(&url);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        match request.call() {
            Ok(_) => Ok(()),
            Err(error) => {
                let why = why(&error);
                let hint = hint(&why);
                Err(ExportError::Unreachable {
                    url: place.base.clone(),
                    why,
                    hint,
                })
            }
        }
    }

    fn write(&self, lines: &[u8]) -> Answer {
        let mut request = self
            .agent
            .post(&self.url)
            .content_type("text/plain; charset=utf-8");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        match request.send(lines) {
            Ok(response) => self.judge(response),
            Err(error) => Answer::Later(None, why(&error)),
        }
    }

    /// Judges an answer. All three versions confirm a write by 204. Any other success comes from something else: a
    /// proxy, a login page, another service on that port.
    fn judge(&self, mut response: Response<ureq::Body>) -> Answer {
        let status = response.status();
        let mut text = Vec::new();
        // Reading the body lets the connection be used again.
        let _ = response
            .body_mut()
            .as_reader()
            .take(COMPLAINT)
            .read_to_end(&mut text);
        if status == WRITTEN {
            return Answer::Taken;
        }
        let said = one_line(&text);
        if status.is_redirection() {
            return Answer::Refused(
                status.as_u16(),
                self.moved(response.headers().get("Location")),
            );
        }
        if status.is_success() {
            let said = if said.is_empty() {
                said
            } else {
                format!(": {said}")
            };
            let why = format!(
                "a write is answered by 204, so nothing was written by InfluxDB there{said}"
            );
            return Answer::Refused(status.as_u16(), why);
        }
        let why = if said.is_empty() {
            status.to_string()
        } else {
            said
        };
        if status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT
        {
            let after = response.headers().get("Retry-After");
            let after = after
                .and_then(|value| value.to_str().ok()?.trim().parse().ok())
                .map(Duration::from_secs);
            return Answer::Later(after, why);
        }
        Answer::Refused(status.as_u16(), why)
    }

    /// The error text for a redirect.
    fn moved(&self, location: Option<&HeaderValue>) -> String {
        let Some(location) = location else {
            return "it redirects, without saying where to, and a write follows no redirect".into();
        };
        let location = one_line(location.as_bytes());
        format!(
            "it redirects to {location}; a write follows no redirect, so give that server's URL as the target"
        )
    }

    fn refusal(&self, status: u16, why: String) -> ExportError {
        let hint = match status {
            401 | 403 => {
                ". Give a token in INFLUX_TOKEN or token_file=, or user= with INFLUX_PASSWORD"
            }
            404 => ". Create the database or bucket first, or name another",
            _ => "",
        };
        ExportError::Refused {
            url: self.url.clone(),
            status,
            why,
            hint,
        }
    }
}

/// The cause, without the library's own prefix.
fn why(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Advice about a failed handshake. ureq does not expose the error types, so the text decides.
fn hint(why: &str) -> &'static str {
    if why.contains("certificate") {
        ". If you trust it, name a file with its authority's certificate in SSL_CERT_FILE"
    } else if why.contains("InvalidContentType") {
        ". It does not speak TLS there: leave out the s of https"
    } else {
        ""
    }
}

/// A server's text in one line, bounded, and without terminal control characters.
fn one_line(text: &[u8]) -> String {
    let text = &text[..text.len().min(COMPLAINT as usize)];
    let text = String::from_utf8_lossy(text);
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// The write URL. Each version has its own name for the precision.
fn write_url(place: &HttpPlace) -> String {
    let base = &place.base;
    match &place.dialect {
        Dialect::One { db, retention } => {
            let retention = retention
                .as_ref()
                .map(|rp| format!("&rp={}", encoded(rp)))
                .unwrap_or_default();
            format!("{base}/write?db={}{retention}&precision=ns", encoded(db))
        }
        Dialect::Two { org, bucket } => {
            format!(
                "{base}/api/v2/write?org={}&bucket={}&precision=ns",
                encoded(org),
                encoded(bucket)
            )
        }
        Dialect::Three { db } => format!(
            "{base}/api/v3/write_lp?db={}&precision=nanosecond",
            encoded(db)
        ),
    }
}

fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~');
    text.bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

fn is_here(base: &str) -> bool {
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let host = authority
        .rsplit_once(':')
        .map_or(authority, |(host, _)| host);
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The longest token file, bytes. Tokens have about a hundred bytes, signed ones a few thousand.
const LONGEST_TOKEN: u64 = 64 << 10;

fn secret(file: Option<&Path>, variable: &str) -> Result<Option<String>, ExportError> {
    let Some(path) = file else {
        return Ok(std::env::var(variable).ok().filter(|s| !s.is_empty()));
    };
    let failed = |source| ExportError::Token {
        path: path.to_path_buf(),
        source,
    };
    let bytes = read_bounded(path, LONGEST_TOKEN).map_err(|error| failed(error.into_io()))?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) => Err(failed(io::Error::new(
            io::ErrorKind::InvalidData,
            error.utf8_error(),
        ))),
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
