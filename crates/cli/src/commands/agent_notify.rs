//! Messages of a service to systemd: datagrams to the socket of NOTIFY_SOCKET.

use jitterscope_platform::name_current_thread;
use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// Keep-alive messages per interval of systemd's watchdog.
const PART: u32 = 3;
/// How long the end may take before systemd is left to its own limit.
const LONGEST_END: Duration = Duration::from_secs(600);
/// The longest status, bytes.
const LONGEST: usize = 512;

/// The socket of systemd, if this process is a service.
#[derive(Debug)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// The interval of its keep-alive messages, if systemd expects them.
    every: Option<Duration>,
    /// When the last keep-alive message was sent.
    sent: Option<Instant>,
}

impl Notifier {
    /// As the environment of this process says.
    pub fn of_environment() -> Notifier {
        let variable = |name: &str| std::env::var(name).ok();
        let socket = std::env::var_os("NOTIFY_SOCKET");
        let (time, pid) = (variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"));
        Notifier::of(socket, time.as_deref(), pid.as_deref())
    }

    fn of(socket: Option<OsString>, time: Option<&str>, pid: Option<&str>) -> Notifier {
        let is_ours = pid.is_none_or(|pid| pid == std::process::id().to_string());
        let micros = time.filter(|_| is_ours).and_then(|time| time.parse().ok());
        Notifier {
            socket: socket.and_then(|socket| open(&socket)),
            every: micros
                .filter(|micros| *micros > 0)
                .map(|micros| Duration::from_micros(micros) / PART),
            sent: None,
        }
    }

    /// The service does its work.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", tidy(status)));
    }

    /// Sends a keep-alive message if one is due. Call it often.
    pub fn alive(&mut self) {
        let Some(every) = self.every else {
            return;
        };
        if self.sent.is_none_or(|sent| sent.elapsed() >= every) {
            self.sent = Some(Instant::now());
            self.tell("WATCHDOG=1");
        }
    }

    /// The service reads its settings again.
    pub fn reloading(&self) {
        let now = jitterscope_platform::monotonic_now();
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.0 / 1000));
    }

    /// The service ends. Saving may take a while, and [`Notifier::alive`] is not called meanwhile, so a thread sends the
    /// keep-alive messages.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=saving what is pending");
        let Some(every) = self.every else {
            return;
        };
        let Some((socket, address)) = &self.socket else {
            return;
        };
        let (Ok(socket), address) = (socket.try_clone(), address.clone()) else {
            return;
        };
        let begun = Instant::now();
        // Without it, systemd ends the service at its own limit.
        let _ = std::thread::Builder::new()
            .name("js-ending".into())
            .stack_size(128 << 10)
            .spawn(move || {
                name_current_thread("js-ending");
                while begun.elapsed() < LONGEST_END {
                    let _ = socket.send_to_addr(b"WATCHDOG=1", &address);
                    std::thread::sleep(every);
                }
            });
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            // The service goes on if systemd does not listen.
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}

/// A socket that never waits, and the address: a path, or a name that begins with `@`.
fn open(address: &OsString) -> Option<(UnixDatagram, SocketAddr)> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok()?,
        [b'/', ..] => SocketAddr::from_pathname(address).ok()?,
        _ => return None,
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.set_nonblocking(true).ok()?;
    Some((socket, address))
}

/// A status in one line of limited length.
fn tidy(status: &str) -> String {
    let mut tidy = String::new();
    for letter in status.chars() {
        if tidy.len() + letter.len_utf8() > LONGEST {
            break;
        }
        tidy.push(if letter.is_control() { ' ' } else { letter });
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 1024];
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let n = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    }

    #[test]
    fn a_service_says_what_systemd_asks_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let own = std::process::id().to_string();
        let mut notifier = Notifier::of(Some(path.into()), Some("600000"), Some(&own));
        notifier.ready("watching\nREADY=0");
        assert_eq!(heard(&socket), "READY=1\nSTATUS=watching READY=0");
        notifier.alive();
        notifier.alive();
        assert_eq!(heard(&socket), "WATCHDOG=1");
        notifier.reloading();
        let text = heard(&socket);
        assert!(text.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{text}");
        std::thread::sleep(Duration::from_millis(250));
        notifier.alive();
        assert_eq!(heard(&socket), "WATCHDOG=1");
        notifier.stopping();
        assert!(heard(&socket).starts_with("STOPPING=1\n"));
        assert_eq!(heard(&socket), "WATCHDOG=1", "it lives while it ends");
    }

    #[test]
    fn a_name_without_a_path_is_understood_and_a_wrong_one_is_silent() {
        let name = format!("jitterscope-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Notifier::of(Some(format!("@{name}").into()), None, None).ready("x");
        assert_eq!(heard(&socket), "READY=1\nSTATUS=x");
        for wrong in ["", "relative", "/none/such", "@"] {
            Notifier::of(Some(wrong.into()), Some("1"), None).ready("x");
        }
    }

    #[test]
    fn signs_of_life_are_for_the_process_that_was_asked() {
        let every = |time, pid| Notifier::of(None, time, pid).every;
        assert_eq!(every(Some("3000000"), None), Some(Duration::from_secs(1)));
        assert_eq!(every(Some("3000000"), Some("1")), None);
        assert_eq!(every(Some("x"), None), None);
        assert_eq!(every(Some("0"), None), None);
    }
}
