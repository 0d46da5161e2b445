//! The metrics of a watch: on a port of this machine, on a Unix socket, and in a file for node_exporter.

use super::serve::connections::{Connection, Connections, Hurried};
use super::serve::request::{BadRequest, Request};
use super::serve::{TO_ASK, TO_LISTEN};
use super::watch_args::MetricsArgs;
use crate::exit::UsageError;
use crate::output;
use jitterscope_platform::{HeldDir, OutputPlace, name_current_thread, set_nice};
use jitterscope_recording::watch::{Published, bind_trusted};
use jitterscope_view::metrics::{MetricsForm, metrics};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The path of the metrics.
const PATH: &str = "/metrics";
/// How often the file is written.
const EVERY: Duration = Duration::from_secs(10);
/// The stack of a thread: it may be locked in memory.
const STACK: usize = 256 << 10;
/// The name of node_exporter's files ends like this; it reads no others.
const ENDING: &str = "prom";

/// Where metrics can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    Port(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for MetricsAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<MetricsAddress, String> {
        let wrong =
            || "write an address and a port such as 127.0.0.1:9750, or unix:/path".to_owned();
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(MetricsAddress::Unix(path.into())),
            Some(_) => Err(wrong()),
            None => text.parse().map(MetricsAddress::Port).map_err(|_| wrong()),
        }
    }
}

/// What is bound and not served yet.
pub struct BoundMetrics {
    listener: Option<Bound>,
    file: Option<(HeldDir, OsString)>,
    /// Whether every host may be named in a request: another machine knows this one by names that we do not.
    open: bool,
}

enum Bound {
    Port(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

/// Metrics that are served and written until this is dropped.
pub struct ServedMetrics {
    server: Option<(JoinHandle<()>, Arc<AtomicBool>, MetricsAddress)>,
    file: Option<(JoinHandle<()>, Sender<()>)>,
}

impl BoundMetrics {
    /// Binds what the arguments name, and writes nothing yet.
    ///
    /// # Errors
    /// A port is taken or other machines could reach it unasked, another user could change the socket's folder, or the
    /// file has the wrong ending or no folder.
    pub fn bind(args: &MetricsArgs) -> Result<BoundMetrics, UsageError> {
        let listener = match &args.metrics {
            None => None,
            Some(MetricsAddress::Port(at)) => Some(port(*at, args.metrics_open)?),
            Some(MetricsAddress::Unix(path)) => {
                let wrong = |error| UsageError(format!("--metrics: {error}"));
                let listener = bind_trusted(path).map_err(wrong)?;
                Some(Bound::Unix(listener, path.clone()))
            }
        };
        Ok(BoundMetrics {
            listener,
            file: args.metrics_file.as_deref().map(file).transpose()?,
            open: args.metrics_open,
        })
    }

    /// Serves and writes what a watch publishes, on threads with the affinity of the caller.
    ///
    /// # Errors
    /// The kernel refuses a thread.
    pub fn serve(self, published: &Published) -> io::Result<ServedMetrics> {
        let mut served = ServedMetrics {
            server: None,
            file: None,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let shared = Arc::new(Shared {
            published: published.clone(),
            stop: Arc::clone(&stop),
            open: self.open,
        });
        served.server = match self.listener {
            None => None,
            Some(Bound::Port(listener, at)) => {
                let accept = move || Ok(listener.accept()?.0);
                let thread = listen(accept, shared)?;
                Some((thread, stop, MetricsAddress::Port(at)))
            }
            Some(Bound::Unix(listener, path)) => {
                let accept = move || Ok(listener.accept()?.0);
                let thread = listen(accept, shared)?;
                Some((thread, stop, MetricsAddress::Unix(path)))
            }
        };
        if let Some((folder, name)) = self.file {
            let (end, ended) = channel();
            let published = published.clone();
            let write = move || {
                quiet("js-metrics-file");
                let mut failed = None;
                loop {
                    let why = write(&folder, &name, &published).err();
                    // Each failure is reported once.
                    if let Some(why) = &why
                        && failed.as_ref() != Some(why)
                    {
                        output::talk(format_args!("--metrics-file: {why}"));
                    }
                    failed = why;
                    match ended.recv_timeout(EVERY) {
                        Err(RecvTimeoutError::Timeout) => {}
                        _ => break,
                    }
                }
                // A reader would take it for the state of a running watch.
                let _ = folder.remove_file(&name);
            };
            served.file = Some((builder("js-metrics-file").spawn(write)?, end));
        }
        Ok(served)
    }
}

impl Drop for ServedMetrics {
    fn drop(&mut self) {
        if let Some((thread, stop, address)) = self.server.take() {
            stop.store(true, Ordering::Release);
            // It waits for a connection: this is the last one.
            let woken = match &address {
                MetricsAddress::Port(at) => TcpStream::connect_timeout(at, TO_ASK).is_ok(),
                MetricsAddress::Unix(path) => UnixStream::connect(path).is_ok(),
            };
            if woken {
                let _ = thread.join();
            }
            if let MetricsAddress::Unix(path) = &address {
                let _ = std::fs::remove_file(path);
            }
        }
        if let Some((thread, end)) = self.file.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn builder(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.into()).stack_size(STACK)
}

/// Gives way to everything else.
fn quiet(name: &str) {
    name_current_thread(name);
    set_nice(19);
}

fn port(at: SocketAddr, open: bool) -> Result<Bound, UsageError> {
    if !at.ip().is_loopback() && !open {
        let text = format!(
            "--metrics {at}: other machines could read it there; use 127.0.0.1, or add --metrics-open"
        );
        return Err(UsageError(text));
    }
    let wrong = |error: io::Error| UsageError(format!("--metrics {at}: {error}"));
    let listener = TcpListener::bind(at).map_err(wrong)?;
    let mut bound = listener.local_addr().map_err(wrong)?;
    if at.port() == 0 {
        output::talk(format_args!("metrics: http://{bound}{PATH}"));
    }
    // Every address of this machine includes the loopback's.
    if bound.ip().is_unspecified() {
        bound.set_ip(match bound.is_ipv4() {
            true => std::net::Ipv4Addr::LOCALHOST.into(),
            false => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    Ok(Bound::Port(listener, bound))
}

fn file(path: &Path) -> Result<(HeldDir, OsString), UsageError> {
    let wrong = |why: String| UsageError(format!("--metrics-file {}: {why}", path.display()));
    if path.extension() != Some(OsStr::new(ENDING)) {
        let why = "its name must end in .prom, because node_exporter reads no other file";
        return Err(wrong(why.into()));
    }
    let place = OutputPlace::find(path).map_err(|error| wrong(error.to_string()))?;
    let name = place.name().to_owned();
    let folder = place.folder().reopen();
    Ok((folder.map_err(|error| wrong(error.to_string()))?, name))
}

/// Writes the file anew under a hidden name and gives it its name: a reader sees the old text or the new one.
fn write(folder: &HeldDir, name: &OsStr, published: &Published) -> Result<(), String> {
    let Some((status, totals)) = published.look() else {
        return Ok(());
    };
    let text = metrics(&status, &totals, MetricsForm::Prometheus);
    let mut partial = OsString::from(".");
    partial.push(name);
    partial.push(".partial");
    let _ = folder.remove_file(&partial);
    let mut file = folder
        .create_output(&partial)
        .map_err(|error| error.to_string())?;
    let written = file
        .write_all(&text)
        .map_err(|error| error.to_string())
        .and_then(|()| {
            let renamed = folder.rename(&partial, name);
            renamed.map_err(|error| error.to_string())
        });
    if written.is_err() {
        let _ = folder.remove_file(&partial);
    }
    written
}

/// What every connection needs.
struct Shared {
    published: Published,
    stop: Arc<AtomicBool>,
    open: bool,
}

/// Accepts connections until `shared.stop` is set.
fn listen<C>(
    mut accept: impl FnMut() -> io::Result<C> + Send + 'static,
    shared: Arc<Shared>,
) -> io::Result<JoinHandle<()>>
where
    C: Connection + Send + Sync + 'static,
    for<'c> &'c C: Write,
{
    builder("js-metrics").spawn(move || {
        quiet("js-metrics");
        let connections = Arc::new(Connections::<C>::default());
        loop {
            let accepted = accept();
            if shared.stop.load(Ordering::Acquire) {
                break;
            }
            let Ok(stream) = accepted else {
                // Probably no free descriptors: open connections will end.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let stream = Arc::new(stream);
            let (shared, connections) = (Arc::clone(&shared), Arc::clone(&connections));
            // If no thread can start, or the client hung up, there is nobody to tell.
            let _ = builder("js-metrics").spawn(move || {
                let waiting = connections.waits(&stream);
                let asked = Request::read(Hurried::new(&*stream, TO_ASK));
                drop(waiting);
                let _ = shared.answer(&*stream, asked);
                let _ = stream.end();
            });
        }
    })
}

impl Shared {
    fn answer<C>(&self, stream: &C, asked: Result<Request, BadRequest>) -> io::Result<()>
    where
        C: Connection,
        for<'c> &'c C: Write,
    {
        stream.write_patience(TO_LISTEN)?;
        let plain = |status, text: &str| {
            (
                status,
                "text/plain; charset=utf-8",
                text.as_bytes().to_vec(),
            )
        };
        let with_body = asked.as_ref().is_ok_and(|of| of.method == "GET");
        let (status, kind, body) = match asked {
            Err(BadRequest::Ended) => return Ok(()),
            Err(_) => plain("400 Bad Request", "This is no request.\n"),
            Ok(request) if !self.open && !is_here(&request.host) => {
                let text = "Refused: ask by an address, or as localhost.\n";
                plain("403 Forbidden", text)
            }
            Ok(request) if !matches!(request.method.as_str(), "GET" | "HEAD") => {
                plain("405 Method Not Allowed", "Only to be read.\n")
            }
            Ok(request) if request.path != PATH => {
                plain("404 Not Found", "The metrics are at /metrics.\n")
            }
            Ok(request) => match self.published.look() {
                None => plain("503 Service Unavailable", "The watch begins.\n"),
                Some((status, totals)) => {
                    let form = MetricsForm::accepted(&request.accept);
                    let text = metrics(&status, &totals, form);
                    ("200 OK", form.media_type(), text)
                }
            },
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let mut to = stream;
        to.write_all(head.as_bytes())?;
        if with_body {
            to.write_all(&body)?;
        }
        to.flush()
    }
}

/// Whether a request names this machine by an address, as localhost, or not at all. A page of another site that had its
/// name point here would name that.
fn is_here(host: &[String]) -> bool {
    let is_address =
        |host: &str| host.parse::<SocketAddr>().is_ok() || host.parse::<std::net::IpAddr>().is_ok();
    host.iter().all(|host| {
        let name = host
            .rsplit_once(':')
            .map_or(host.as_str(), |(name, _)| name);
        is_address(host) || name == "localhost"
    })
}

/// Metrics that can be replaced while they are served.
#[derive(Clone, Default)]
pub struct MetricsSlot(Arc<Mutex<Slot>>);

#[derive(Default)]
struct Slot {
    bound: Option<BoundMetrics>,
    served: Option<ServedMetrics>,
}

impl MetricsSlot {
    pub fn new(bound: BoundMetrics) -> MetricsSlot {
        MetricsSlot(Arc::new(Mutex::new(Slot {
            bound: Some(bound),
            served: None,
        })))
    }

    /// Serves what was bound.
    pub fn serve(&self, published: &Published) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bound) = slot.bound.take() else {
            return;
        };
        match bound.serve(published) {
            Ok(served) => slot.served = Some(served),
            Err(error) => output::talk(format_args!("no thread for metrics: {error}")),
        }
    }

    /// Ends what is served, and serves what other arguments name. What was served goes on if those are wrong.
    ///
    /// # Errors
    /// As [`BoundMetrics::bind`].
    pub fn replace(
        &self,
        before: &MetricsArgs,
        args: &MetricsArgs,
        published: &Published,
    ) -> Result<(), UsageError> {
        if before == args {
            return Ok(());
        }
        // The same place cannot be bound twice.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).served = None;
        let bound = BoundMetrics::bind(args);
        let (bound, result) = match bound {
            Ok(bound) => (Some(bound), Ok(())),
            Err(error) => {
                let again = BoundMetrics::bind(before);
                if let Err(why) = &again {
                    output::talk(format_args!("metrics are no longer served: {why}"));
                }
                (again.ok(), Err(error))
            }
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).bound = bound;
        self.serve(published);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let of = |text: &str| text.parse::<MetricsAddress>();
        assert_eq!(
            of("127.0.0.1:9750"),
            Ok(MetricsAddress::Port(([127, 0, 0, 1], 9750).into()))
        );
        assert_eq!(of("unix:/run/m"), Ok(MetricsAddress::Unix("/run/m".into())));
        for text in ["9750", "localhost:1", "unix:m", "", "127.0.0.1", "unix:"] {
            assert!(of(text).unwrap_err().contains("127.0.0.1:9750"), "{text}");
        }
    }

    #[test]
    fn other_machines_must_be_asked_for() {
        let args = |open| MetricsArgs {
            metrics: Some("0.0.0.0:0".parse().unwrap()),
            metrics_open: open,
            metrics_file: None,
        };
        let Err(refused) = BoundMetrics::bind(&args(false)) else {
            panic!("it is bound");
        };
        assert!(refused.to_string().contains("--metrics-open"), "{refused}");
        assert!(BoundMetrics::bind(&args(true)).is_ok());
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let here = |host: &str| is_here(&[host.to_owned()]);
        for host in [
            "127.0.0.1:9750",
            "localhost",
            "localhost:1",
            "[::1]:9750",
            "::1",
        ] {
            assert!(here(host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9750",
            "127.0.0.1.evil.example:1",
            "",
        ] {
            assert!(!here(host), "{host}");
        }
        assert!(is_here(&[]), "a client of a socket names none");
    }

    #[test]
    fn a_file_that_node_exporter_does_not_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = file(&dir.path().join("a.txt")).unwrap_err();
        assert!(refused.to_string().contains("end in .prom"), "{refused}");
        assert!(file(&dir.path().join("none/a.prom")).is_err());
        assert!(file(&dir.path().join("a.prom")).is_ok());
    }
}
