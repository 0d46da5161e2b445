//! UDP: there are no answers, so only the number of sent lines is known.

use super::carrier::Carrier;
use crate::error::ExportError;
use crate::pace::Pace;
use jitterscope_model::Delivery;
use std::io::ErrorKind;
use std::net::{ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// Bytes of a datagram that fits an Ethernet frame with IPv6 headers.
const DATAGRAM: usize = 1400;
/// The pause between datagrams of a stored run, because receivers have small buffers.
const STORED_GAP: Duration = Duration::from_micros(200);
/// The wait for a refusal of the last datagram. The next send reports the refusals of earlier ones.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Sends datagrams of whole lines.
pub(crate) struct Udp {
    socket: UdpSocket,
    pace: Pace,
    datagram: Vec<u8>,
    lines: u64,
    /// The number of lines in the last datagram.
    last: u64,
    delivery: Delivery,
}

impl Udp {
    pub(super) fn open(address: &str, pace: Pace) -> Result<Udp, ExportError> {
        let failed = |source| ExportError::Resolve {
            host: address.to_owned(),
            source,
        };
        let mut last = ErrorKind::NotFound.into();
        for to in address.to_socket_addrs().map_err(failed)? {
            let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            match UdpSocket::bind(from).and_then(|socket| socket.connect(to).map(|()| socket)) {
                Ok(socket) => {
                    // A live sender must not wait for a full socket buffer.
                    socket.set_nonblocking(pace == Pace::Live).map_err(failed)?;
                    let (datagram, delivery) = (Vec::with_capacity(DATAGRAM), Delivery::default());
                    return Ok(Udp {
                        socket,
                        pace,
                        datagram,
                        lines: 0,
                        last: 0,
                        delivery,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    fn send(&mut self) {
        if self.datagram.is_empty() {
            return;
        }
        let mut sent = self.socket.send(&self.datagram);
        // The next send reports an earlier datagram's refusal and sends nothing itself.
        if is_refusal(&sent) {
            self.refused();
            sent = self.socket.send(&self.datagram);
        }
        match sent {
            Ok(_) => {
                self.delivery.delivered += self.lines;
                self.last = self.lines;
            }
            Err(error) => {
                self.delivery.lost += self.lines;
                self.delivery.problem = Some(error.to_string());
            }
        }
        self.datagram.clear();
        self.lines = 0;
        if self.pace == Pace::Stored {
            std::thread::sleep(STORED_GAP);
        }
    }
}

impl Udp {
    /// The last datagram did not arrive: the port is closed.
    fn refused(&mut self) {
        self.delivery.problem = Some("nobody listens on that port (connection refused)".into());
        self.delivery.delivered -= self.last;
        self.delivery.lost += std::mem::take(&mut self.last);
    }
}

/// Whether the receiver reports a closed port.
fn is_refusal<T>(result: &std::io::Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::ConnectionRefused)
}

impl Carrier for Udp {
    fn first(&mut self, line: Vec<u8>) -> Result<(), ExportError> {
        self.line(line);
        self.send();
        Ok(())
    }

    fn line(&mut self, line: Vec<u8>) {
        if self.datagram.len() + line.len() > DATAGRAM {
            self.send();
        }
        self.datagram.extend_from_slice(&line);
        self.lines += 1;
    }

    fn flush(&mut self) {
        self.send();
    }

    fn finish(mut self) -> Delivery {
        self.send();
        let waits = self.socket.set_nonblocking(false);
        let waits = waits.and_then(|()| self.socket.set_read_timeout(Some(LAST_WORD)));
        if self.last > 0 && waits.is_ok() && is_refusal(&self.socket.recv(&mut [0; 1])) {
            self.refused();
        }
        self.delivery
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_to(address: &str, lines: usize) -> Delivery {
        let mut udp = Udp::open(address, Pace::Stored).unwrap();
        udp.first(b"a b=1\n".to_vec()).unwrap();
        (1..lines).for_each(|_| udp.line(vec![b'x'; 600]));
        udp.finish()
    }

    #[test]
    fn rows_for_a_port_where_nobody_listens_are_lost() {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = sent_to(&address, 9);
        assert_eq!((heard.delivered, heard.lost, heard.problem), (9, 0, None));
        drop(listener);
        for lines in [1, 2, 9] {
            let unheard = sent_to(&address, lines);
            assert_eq!(
                (unheard.delivered, unheard.lost),
                (0, lines as u64),
                "{unheard:?}"
            );
            assert!(unheard.problem.unwrap().contains("nobody listens"));
        }
    }
}
