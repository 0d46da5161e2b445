//! Who is connected. A browser opens connections that it may never use, and every user of this machine can open
//! some: those that only wait must not keep out one that asks.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that have not asked yet; of more the oldest is closed.
const WAITING: usize = 32;
/// Requests that are being answered.
const ANSWERED: usize = 32;

/// Those that are open.
#[derive(Default)]
pub struct Connections {
    /// The oldest first, by number.
    waiting: Mutex<VecDeque<(u64, TcpStream)>>,
    last: std::sync::atomic::AtomicU64,
    answered: AtomicUsize,
}

/// One that has not asked yet, as long as this lives.
pub struct Waiting<'c>(&'c Connections, u64);

/// One that is being answered, as long as this lives.
pub struct Answered<'c>(&'c Connections);

impl Connections {
    /// A new connection, which makes room for itself.
    pub fn waits(&self, stream: &TcpStream) -> io::Result<Waiting<'_>> {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let stream = stream.try_clone()?;
        let mut waiting = self.waiting();
        waiting.push_back((number, stream));
        if waiting.len() > WAITING
            && let Some((_, oldest)) = waiting.pop_front()
        {
            // Its thread reads the end, and goes. One that has gone already needs no closing.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(Waiting(self, number))
    }

    /// A request that is being answered; `None` where there are too many.
    pub fn is_answered(&self) -> Option<Answered<'_>> {
        let one = Answered(self);
        (self.answered.fetch_add(1, Ordering::Relaxed) < ANSWERED).then_some(one)
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting().retain(|(number, _)| *number != self.1);
    }
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        self.0.answered.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that is read until a moment and no longer, however its bytes trickle in.
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

    /// Two ends of a connection.
    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, listener.accept().unwrap().0)
    }

    #[test]
    fn the_oldest_that_waits_makes_room_for_the_newest() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = Connections::default();
        let pairs: Vec<_> = (0..WAITING + 3).map(|_| pair(&listener)).collect();
        let waiting: Vec<_> = pairs
            .iter()
            .map(|(_, there)| connections.waits(there).unwrap())
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
    fn so_many_are_answered_at_a_time() {
        let connections = Connections::default();
        let all: Vec<_> = (0..ANSWERED)
            .map(|_| connections.is_answered().unwrap())
            .collect();
        assert!(connections.is_answered().is_none());
        drop(all);
        assert!(connections.is_answered().is_some());
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
