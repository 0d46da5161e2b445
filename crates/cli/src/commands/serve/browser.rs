//! How a person gets to the server: a browser here, or a tunnel from elsewhere.

use crate::exit::UsageError;
use std::process::{Command, Stdio};

/// How `--open` starts a browser.
#[derive(Debug, PartialEq, Eq)]
pub enum Opener {
    /// As who we are.
    Own,
    /// As the user who called sudo: a browser must not run as root.
    As(String),
}

impl Opener {
    /// # Errors
    /// We are root, and nobody called sudo.
    pub fn choose(is_root: bool, sudo_user: Option<&str>) -> Result<Opener, UsageError> {
        match (is_root, sudo_user) {
            (false, _) => Ok(Opener::Own),
            (true, Some(user)) if user != "root" && is_name(user) => {
                Ok(Opener::As(user.to_owned()))
            }
            (true, _) => Err(UsageError(
                "--open: a browser does not run as root; open the address that is printed yourself"
                    .into(),
            )),
        }
    }

    /// Starts the browser; says why where that is not possible.
    pub fn open(&self, address: &str) -> Result<(), String> {
        let mut command = match self {
            Opener::Own => Command::new("xdg-open"),
            Opener::As(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--", "xdg-open"]);
                command
            }
        };
        let started = command
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(mut child) => {
                // Whatever becomes of it: it is waited for, so that nothing is left of it.
                std::thread::spawn(move || child.wait());
                Ok(())
            }
            Err(error) => Err(format!("no browser was opened: {error}")),
        }
    }
}

/// A user's name that cannot be taken for an option.
fn is_name(user: &str) -> bool {
    !user.is_empty()
        && !user.starts_with('-')
        && user
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-$".contains(&b))
}

/// The command that reaches a port of this machine from where somebody came by ssh. `connection`: as sshd says
/// in `SSH_CONNECTION`: client, its port, server, its port.
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
        assert_eq!(Opener::choose(false, None).unwrap(), Opener::Own);
        assert_eq!(
            Opener::choose(true, Some("ann")).unwrap(),
            Opener::As("ann".into())
        );
        for user in [
            None,
            Some("root"),
            Some(""),
            Some("--help"),
            Some("a b"),
            Some("a;b"),
        ] {
            assert!(Opener::choose(true, user).is_err(), "{user:?}");
        }
    }

    #[test]
    fn who_came_by_ssh_is_told_the_tunnel() {
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
