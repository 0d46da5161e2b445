//! The open connections. A browser opens connections that it may never use, and every user of this machine can open
//! some: waiting connections must not keep out one with a request.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The largest number of connections without a request; beyond it the oldest is closed.
const WAITING: usize = 256;

#[derive(Default)]
pub struct Connections {
    /// The oldest first, by number.
    waiting: Mutex<VecDeque<(u64, Arc<TcpStream>)>>,
    last: AtomicU64,
}

/// A connection without a request; dropping this removes it from the list.
pub struct Waiting<'c>(&'c Connections, u64);

impl Connections {
    /// Adds a new connection; closes the oldest if there is no room.
    pub fn waits(&self, stream: &Arc<TcpStream>) -> Waiting<'_> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting();
        waiting.push_back((number, Arc::clone(stream)));
        if waiting.len() > WAITING
            && let Some((_, oldest)) = waiting.pop_front()
        {
            // Its thread reads the end and exits. The error of an already closed one does not matter.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Waiting(self, number)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<TcpStream>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting().retain(|(number, _)| *number != self.1);
    }
}

/// A connection with a deadline for reading, however slowly its bytes arrive.
pub struct Hurried<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl<'s> Hurried<'s> {
    pub fn new(stream: &'s TcpStream, patience: Duration) -> Hurried<'s> {
        Hurried {
            stream,
            until: Instant::now() + patience,
        }
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    /// The two ends of a connection.
    fn pair(listener: &TcpListener) -> (TcpStream, Arc<TcpStream>) {
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, Arc::new(listener.accept().unwrap().0))
    }

    #[test]
    fn the_oldest_that_waits_makes_room_for_the_newest() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let pairs: Vec<_> = (0..WAITING + 3).map(|_| pair(&listener)).collect();
        let waiting: Vec<_> = pairs
            .iter()
            .map(|(_, there)| connections.waits(there))
            .collect();
        let ended = |mut stream: &TcpStream| {
            stream
                .set_read_timeout(Some(Duration::from_millis(50)))
                .unwrap();
            matches!(stream.read(&mut [0; 1]), Ok(0))
        };
        let closed = pairs.iter().take_while(|(here, _)| ended(here)).count();
        assert_eq!(closed, 3);
        drop(waiting);
        assert!(connections.waiting().is_empty());
    }

    #[test]
    fn bytes_that_trickle_in_do_not_buy_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (mut here, there) = pair(&listener);
        let mut hurried = Hurried::new(&there, Duration::from_millis(200));
        let mut got = 0;
        let error = loop {
            here.write_all(b"x").unwrap();
            match hurried.read(&mut [0; 1]) {
                Ok(n) => got += n,
                Err(error) => break error,
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(
            got > 0
                && matches!(
                    error.kind(),
                    io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock
                ),
            "{error}"
        );
    }
}
