//! UDP: nobody answers, so all that is known is what was sent.

use super::carrier::Carrier;
use crate::error::ExportError;
use crate::pace::Pace;
use jitterscope_model::Delivery;
use std::io::ErrorKind;
use std::net::{ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// Bytes of a datagram that fit an Ethernet frame with IPv6 headers.
const DATAGRAM: usize = 1400;
/// Between the datagrams of a stored run, for receivers do not buffer much.
const STORED_GAP: Duration = Duration::from_micros(200);

/// Sends datagrams of whole lines.
pub(crate) struct Udp {
    socket: UdpSocket,
    pace: Pace,
    datagram: Vec<u8>,
    lines: u64,
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
                    // A live sender may not wait for a full socket buffer.
                    socket.set_nonblocking(pace == Pace::Live).map_err(failed)?;
                    let (datagram, delivery) = (Vec::with_capacity(DATAGRAM), Delivery::default());
                    return Ok(Udp {
                        socket,
                        pace,
                        datagram,
                        lines: 0,
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
        // An earlier datagram's refusal is reported at the next send, which then sends nothing.
        if matches!(&sent, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
            self.delivery.problem = Some("nobody listens on that port (connection refused)".into());
            sent = self.socket.send(&self.datagram);
        }
        match sent {
            Ok(_) => self.delivery.delivered += self.lines,
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
        self.delivery
    }
}
