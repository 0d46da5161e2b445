//! The sockets of a watch: one for a person in another terminal, one for the application.
//!
//! Both are polled between two turns of the drain and never waited for, so no client holds up the measurement. A client
//! writes a line and, on the socket for persons, reads a line of JSON.

use jitterscope_model::{CpuSet, PutInOrder};
use jitterscope_platform::{
    AccessError, HeldDir, Machine, TrustError, effective_user, own_run_folder,
};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folders of control sockets, within the user's run folder; only this user may enter the inner one.
const WATCHES: &str = "watch";
const CONTROL: &str = "control";
/// Connections at once, the longest line of one, and bytes read of one in a turn.
const MOST_CLIENTS: usize = 32;
const LONGEST_LINE: usize = 4096;
/// A client that says nothing for this long is let go, unless it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a person asks of a running watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Saves a moment: that of this time, nanoseconds since the epoch, or now. Answered when the run is written.
    Save {
        at_ns: Option<u64>,
    },
    Status,
    Stop,
}

/// Why a socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("{}: it exists and is no socket of a watch that has ended", path.display())]
    Taken { path: PathBuf },
    #[error("{}: a process listens there", path.display())]
    InUse { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// A listening socket, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    number: u64,
    stream: UnixStream,
    line: Vec<u8>,
    heard: Instant,
    /// Whether it gets an answer that is not there yet.
    waits: bool,
    over: bool,
}

/// A line of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) client: u64,
    pub(super) text: String,
}

impl Listener {
    /// Makes a socket that only this user can connect to, in a folder that no other user can change. Replaces the socket
    /// of a process that has ended.
    ///
    /// # Errors
    /// As [`bind_trusted`].
    pub(super) fn make(path: &Path) -> Result<Listener, SocketError> {
        let listener = bind_trusted(path)?;
        let io = |source| SocketError::Io {
            path: path.to_path_buf(),
            source,
        };
        listener.set_nonblocking(true).map_err(io)?;
        Ok(Listener {
            listener,
            path: path.to_path_buf(),
            clients: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that have arrived.
    pub(super) fn lines(&mut self, next: &mut u64) -> Vec<Line> {
        while self.clients.len() < MOST_CLIENTS
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                *next += 1;
                self.clients.push(Client {
                    number: *next,
                    stream,
                    line: Vec::new(),
                    heard: Instant::now(),
                    waits: false,
                    over: false,
                });
            }
        }
        let mut lines = Vec::new();
        for client in &mut self.clients {
            client.read(&mut lines);
        }
        self.clients
            .retain(|client| !client.over && (client.waits || client.heard.elapsed() < PATIENCE));
        lines
    }

    /// Notes that a client gets its answer later.
    pub(super) fn let_wait(&mut self, number: u64) {
        let client = self.clients.iter_mut().find(|of| of.number == number);
        if let Some(client) = client {
            (client.waits, client.over) = (true, false);
        }
    }

    /// Answers a client, and lets it go.
    pub(super) fn answer(&mut self, number: u64, answer: &impl Serialize) {
        let Some(at) = self.clients.iter().position(|of| of.number == number) else {
            return;
        };
        let client = self.clients.swap_remove(at);
        if let Ok(mut text) = serde_json::to_vec(answer) {
            text.push(b'\n');
            // It reads a few KiB at once, or goes without an answer.
            let mut stream = client.stream;
            let _ = stream.write_all(&text);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Client {
    /// Reads what has arrived. The rest of a line that is too long is left out.
    fn read(&mut self, lines: &mut Vec<Line>) {
        let mut bytes = [0; LONGEST_LINE];
        let read = match self.stream.read(&mut bytes) {
            Ok(0) => {
                self.over = true;
                0
            }
            Ok(read) => read,
            Err(error) => {
                let later = [ErrorKind::WouldBlock, ErrorKind::Interrupted];
                self.over |= !later.contains(&error.kind());
                0
            }
        };
        if read > 0 {
            self.heard = Instant::now();
        }
        for byte in &bytes[..read] {
            match byte {
                b'\n' => self.end_line(lines),
                _ if self.line.len() < LONGEST_LINE => self.line.push(*byte),
                _ => {}
            }
        }
        // A last line may lack its end.
        if self.over && !self.line.is_empty() {
            self.end_line(lines);
        }
    }

    fn end_line(&mut self, lines: &mut Vec<Line>) {
        lines.push(Line {
            client: self.number,
            text: String::from_utf8_lossy(&self.line).into_owned(),
        });
        self.line.clear();
    }
}

/// Binds a socket that only this user can connect to, in a folder that no other user can change. Replaces the socket of a
/// process that has ended.
///
/// # Errors
/// Another user could change the folder, something else is there, or the path is too long for a socket.
pub fn bind_trusted(path: &Path) -> Result<UnixListener, SocketError> {
    let io = |source| SocketError::Io {
        path: path.to_path_buf(),
        source,
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let name = path
        .file_name()
        .ok_or_else(|| io(ErrorKind::InvalidInput.into()))?;
    let held = HeldDir::trusted(folder)?;
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(io(error)),
        Ok(of) if !of.file_type().is_socket() => {
            return Err(SocketError::Taken {
                path: path.to_path_buf(),
            });
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                held.remove_file(name)?;
            }
            Err(error) => return Err(io(error)),
            Ok(_) => {
                return Err(SocketError::InUse {
                    path: path.to_path_buf(),
                });
            }
        },
    }
    // In a folder of its own, nobody else can connect before its mode is set.
    let inner = format!(".jitterscope-{}", std::process::id());
    let _ = held.remove_tree(&inner);
    held.make_dir(&inner)?;
    let bound = bind(&folder.join(&inner).join("s"), path);
    let _ = held.remove_tree(&inner);
    bound.map_err(io)
}

fn bind(at: &Path, path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(at)?;
    std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(at, path)?;
    Ok(listener)
}

/// The folder of this user's control sockets.
fn control_folder(machine: &Machine) -> Result<PathBuf, SocketError> {
    let user = effective_user();
    let outer = own_run_folder(machine, user, WATCHES)?;
    let inner = outer.path().join(CONTROL);
    // It is made with mode 0700.
    HeldDir::trusted_or_made(&inner)?;
    Ok(inner)
}

/// The control socket of a watch of these CPUs.
///
/// # Errors
/// As [`Listener::make`].
pub(super) fn control(machine: &Machine, cpus: &CpuSet) -> Result<Listener, SocketError> {
    // The path of a socket has at most 107 bytes. No two watches have the same first CPU.
    let first = cpus.first().unwrap_or_default();
    Listener::make(&control_folder(machine)?.join(format!("cpu{first}")))
}

/// The control sockets of this user's running watches. Removes those of watches that were killed.
///
/// # Errors
/// The folder is not to be trusted or cannot be read.
pub fn running(machine: &Machine) -> Result<Vec<PathBuf>, SocketError> {
    let path = control_folder(machine)?;
    let folder = HeldDir::trusted(&path)?;
    let mut found = Vec::new();
    for entry in folder.entries()? {
        let socket = path.join(&entry.name);
        match UnixStream::connect(&socket) {
            Ok(_) => found.push(socket),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                let _ = folder.remove_file(&entry.name);
            }
            Err(_) => {}
        }
    }
    found.put_in_order();
    Ok(found)
}

/// Asks a running watch, and waits for its answer: JSON.
///
/// # Errors
/// It cannot be reached, or gave no answer in this time.
pub fn ask(socket: &Path, request: &Request, patience: Duration) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    stream.take(1 << 20).read_to_string(&mut answer)?;
    match answer.is_empty() {
        true => Err(ErrorKind::UnexpectedEof.into()),
        false => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn lines(listener: &mut Listener) -> Vec<String> {
        let mut next = 0;
        let lines = listener.lines(&mut next);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn an_answer_of_many_hours_arrives_whole_though_the_client_reads_late() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mut listener = Listener::make(&path).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"status\n").unwrap();
        let mut next = 0;
        let line = listener.lines(&mut next).pop().unwrap();
        // 24 hours of eight culprits with names of 300 bytes.
        let answer = "x".repeat(24 * 8 * 350);
        listener.answer(line.client, &answer);
        let mut heard = String::new();
        client.read_to_string(&mut heard).unwrap();
        assert_eq!(heard.trim_end().len(), answer.len() + 2);
    }

    #[test]
    fn a_line_arrives_whole_however_it_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mut listener = Listener::make(&path).unwrap();
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"la").unwrap();
        assert!(lines(&mut listener).is_empty());
        client.write_all(b"te\nagain\nrest").unwrap();
        assert_eq!(lines(&mut listener), ["late", "again"]);
        drop(client);
        assert_eq!(lines(&mut listener), ["rest"]);
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_client_without_end_costs_a_bounded_amount() {
        let dir = tempfile::tempdir().unwrap();
        let mut listener = Listener::make(&dir.path().join("s")).unwrap();
        let mut client = UnixStream::connect(listener.path()).unwrap();
        client.set_nonblocking(true).unwrap();
        for _ in 0..100 {
            let _ = client.write(&[b'x'; 4096]);
            assert!(lines(&mut listener).is_empty());
        }
        assert!(listener.clients[0].line.len() <= LONGEST_LINE);
        let more: Vec<_> = (0..2 * MOST_CLIENTS)
            .map(|_| UnixStream::connect(listener.path()).unwrap())
            .collect();
        lines(&mut listener);
        assert_eq!(listener.clients.len(), MOST_CLIENTS);
        drop(more);
    }

    #[test]
    fn what_another_user_could_change_and_what_is_there_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            Listener::make(&open.join("s")),
            Err(SocketError::Access(_))
        ));
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(matches!(
            Listener::make(&file),
            Err(SocketError::Taken { .. })
        ));
        let path = dir.path().join("s");
        let first = Listener::make(&path).unwrap();
        assert!(matches!(
            Listener::make(&path),
            Err(SocketError::InUse { .. })
        ));
        // As a killed process leaves it.
        std::mem::forget(first.listener.try_clone().unwrap());
        drop(first);
        let stale = UnixListener::bind(&path).unwrap();
        drop(stale);
        Listener::make(&path).unwrap();
    }
}
