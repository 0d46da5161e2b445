//! The open connections. A browser opens connections that it may never use, and every user of this machine can open
//! some: waiting connections must not keep out one with a request.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The largest number of connections without a request; beyond it the oldest is closed.
const WAITING: usize = 256;

/// What both sorts of connections can do.
pub trait Connection {
    fn end(&self) -> io::Result<()>;
    fn patience(&self, time: Duration) -> io::Result<()>;
    fn write_patience(&self, time: Duration) -> io::Result<()>;
    fn receive(&self, into: &mut [u8]) -> io::Result<usize>;
}

macro_rules! connections {
    ($($stream:ty),*) => {
        $(impl Connection for $stream {
            fn end(&self) -> io::Result<()> {
                self.shutdown(Shutdown::Both)
            }

            fn patience(&self, time: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(time))
            }

            fn write_patience(&self, time: Duration) -> io::Result<()> {
                self.set_write_timeout(Some(time))
            }

            fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
                (&mut &*self).read(into)
            }
        })*
    };
}

connections!(TcpStream, UnixStream);

pub struct Connections<C = TcpStream> {
    /// The oldest first, by number.
    waiting: Mutex<VecDeque<(u64, Arc<C>)>>,
    last: AtomicU64,
}

impl<C> Default for Connections<C> {
    fn default() -> Connections<C> {
        Connections {
            waiting: Mutex::default(),
            last: AtomicU64::default(),
        }
    }
}

/// A connection without a request; dropping this removes it from the list.
pub struct Waiting<'c, C = TcpStream>(&'c Connections<C>, u64);

impl<C: Connection> Connections<C> {
    /// Adds a new connection; closes the oldest if there is no room.
    pub fn waits(&self, stream: &Arc<C>) -> Waiting<'_, C> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let mut waiting = self.waiting();
        waiting.push_back((number, Arc::clone(stream)));
        if waiting.len() > WAITING
            && let Some((_, oldest)) = waiting.pop_front()
        {
            // Its thread reads the end and exits. The error of an already closed one does not matter.
            let _ = oldest.end();
        }
        Waiting(self, number)
    }
}

impl<C> Connections<C> {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(u64, Arc<C>)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Drop for Waiting<'_, C> {
    fn drop(&mut self) {
        self.0.waiting().retain(|(number, _)| *number != self.1);
    }
}

/// A connection with a deadline for reading, however slowly its bytes arrive.
pub struct Hurried<'s, C = TcpStream> {
    stream: &'s C,
    until: Instant,
}

impl<'s, C: Connection> Hurried<'s, C> {
    pub fn new(stream: &'s C, patience: Duration) -> Hurried<'s, C> {
        Hurried {
            stream,
            until: Instant::now() + patience,
        }
    }
}

impl<C: Connection> Read for Hurried<'_, C> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.patience(left)?;
        self.stream.receive(into)
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
        let connections = Connections::<TcpStream>::default();
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
        let mut hurried = Hurried::new(&*there, Duration::from_millis(200));
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
