//! How a user reaches the server: a browser on this machine, or a tunnel from another.

use crate::exit::UsageError;
use anyhow::Context;
use jitterscope_platform::{Machine, TrustedFolder, own_run_folder};
use rustix::fs::OFlags;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The time for a browser to read the page that leads to the server.
const TO_READ: Duration = Duration::from_secs(30);
/// The folder of such pages.
const FOLDER: &str = "open";

/// The user that opens the browser.
#[derive(Debug, PartialEq, Eq)]
pub struct Opener {
    own: u32,
    /// The user who called sudo, by name and id: a browser must not run as root.
    other: Option<(String, u32)>,
}

impl Opener {
    /// `own`: the user id of this process.
    ///
    /// # Errors
    /// This process is root, without sudo.
    pub fn choose(own: u32, by_sudo: Option<(String, u32)>) -> Result<Opener, UsageError> {
        let other = by_sudo.filter(|(name, user)| *user != 0 && name != "root" && is_name(name));
        match (own, other) {
            (0, None) => Err(UsageError(
                "--open: a browser does not run as root; open the address that is printed yourself"
                    .into(),
            )),
            (0, other) => Ok(Opener { own, other }),
            (own, _) => Ok(Opener { own, other: None }),
        }
    }

    /// Starts the browser. Every user of this machine can read a program's arguments, so the browser gets a file that
    /// only its user can read and that leads to the address.
    ///
    /// # Errors
    /// The file cannot be made, or no browser starts.
    pub fn open(&self, address: &str) -> anyhow::Result<()> {
        let page = WayIn::make(self, address).context("the page that leads to it")?;
        let mut command = match &self.other {
            None => Command::new("xdg-open"),
            Some((user, _)) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--", "xdg-open"]);
                command
            }
        };
        let mut child = command
            .arg(page.url())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context(command.get_program().to_string_lossy().into_owned())?;
        thread::spawn(move || {
            // Waits for the process, so that no zombie stays.
            let _ = child.wait();
            thread::sleep(TO_READ);
            drop(page);
        });
        Ok(())
    }
}

/// A page that leads to the server; dropping it removes it.
struct WayIn {
    folder: TrustedFolder,
    name: String,
}

impl WayIn {
    fn make(opener: &Opener, address: &str) -> anyhow::Result<WayIn> {
        let folder = own_run_folder(&Machine::host(), opener.own, FOLDER)?;
        // Killed servers leave theirs.
        for name in folder.names()? {
            let server = name.strip_suffix(".html").unwrap_or(&name);
            if !Machine::host().exists(format!("/proc/{server}")) {
                folder.remove(&name)?;
            }
        }
        let name = format!("{}.html", std::process::id());
        folder.remove(&name)?;
        let mut file = folder.make_file(&name, OFlags::WRONLY, 0o600)?;
        let page = WayIn { folder, name };
        write!(
            file,
            "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n<title>jitterscope</title>\n\
             <p><a href=\"{address}\">Runs of jitterscope</a></p>\n"
        )?;
        if let Some((_, user)) = opener.other {
            rustix::fs::fchown(&file, Some(rustix::fs::Uid::from_raw(user)), None)?;
        }
        Ok(page)
    }

    fn url(&self) -> String {
        format!("file://{}", self.folder.path().join(&self.name).display())
    }
}

impl Drop for WayIn {
    fn drop(&mut self) {
        // The next server removes leftovers.
        let _ = self.folder.remove(&self.name);
    }
}

/// Whether a user name cannot be taken for an option.
fn is_name(user: &str) -> bool {
    !user.is_empty()
        && !user.starts_with('-')
        && user
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-$".contains(&b))
}

/// The command for a tunnel to a port of this machine, for a user who came by ssh. `connection`: the value of
/// `SSH_CONNECTION`: client, its port, server, its port.
pub fn tunnel(connection: Option<&str>, user: Option<&str>, port: u16) -> Option<String> {
    let mut words = connection?.split_whitespace();
    let (server, ssh_port) = (words.nth(2)?, words.next()?);
    let plain = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b".:_-".contains(&b))
    };
    let user = user
        .filter(|user| is_name(user))
        .map(|user| format!("{user}@"))
        .unwrap_or_default();
    if !(plain(server) && ssh_port.parse::<u16>().is_ok()) {
        return None;
    }
    let other = if ssh_port == "22" {
        String::new()
    } else {
        format!(" -p {ssh_port}")
    };
    Some(format!(
        "ssh{other} -N -L {port}:127.0.0.1:{port} {user}{server}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_never_runs_as_root() {
        let ann = || Some(("ann".to_owned(), 1000));
        for (own, by_sudo, other) in [(1000, None, None), (1000, ann(), None), (0, ann(), ann())] {
            let opener = Opener::choose(own, by_sudo).unwrap();
            assert_eq!(opener, Opener { own, other });
        }
        for (user, number) in [
            ("root", 0),
            ("root", 1000),
            ("toor", 0),
            ("", 1000),
            ("--help", 1000),
            ("a b", 1000),
            ("a;b", 1000),
        ] {
            assert!(
                Opener::choose(0, Some((user.into(), number))).is_err(),
                "{user:?}"
            );
        }
        assert!(Opener::choose(0, None).is_err());
    }

    #[test]
    fn a_session_over_ssh_gets_the_tunnel_command() {
        let command = tunnel(Some("192.0.2.7 50000 192.0.2.1 22"), Some("ann"), 8000);
        assert_eq!(
            command.as_deref(),
            Some("ssh -N -L 8000:127.0.0.1:8000 ann@192.0.2.1")
        );
        let command = tunnel(Some("192.0.2.7 50000 192.0.2.1 2222"), None, 8000);
        assert_eq!(
            command.as_deref(),
            Some("ssh -p 2222 -N -L 8000:127.0.0.1:8000 192.0.2.1")
        );
        for connection in [
            None,
            Some(""),
            Some("a b"),
            Some("a 1 `x` 22"),
            Some("a 1 b x"),
        ] {
            assert_eq!(tunnel(connection, None, 8000), None);
        }
    }
}
