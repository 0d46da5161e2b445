//! Any bytes as what a browser asks of `serve`, at once and in pieces.
#![no_main]

#[path = "../../crates/cli/src/commands/serve/request.rs"]
mod request;

use libfuzzer_sys::fuzz_target;
use request::{BadRequest, Request};

/// Bytes that come in more slowly than they are asked for.
struct Slowly<'b>(&'b [u8], usize);

impl std::io::Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(self.1).min(into.len());
        into[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (step, bytes) = input;
    let whole = Request::parse(bytes);
    // However it comes in, it is the same request; only one that is too long to be read is refused.
    match (
        Request::read(Slowly(bytes, usize::from(step).max(1))),
        &whole,
    ) {
        (Ok(read), whole) => assert_eq!(Ok(Some(read)), *whole),
        (Err(why), Ok(Some(_))) => assert_eq!(why, BadRequest::TooLong),
        (Err(_), Ok(None) | Err(_)) => {}
    }
    if let Ok(Some(request)) = whole {
        assert!(!request.method.is_empty());
        assert!(
            !request.path.contains('?') || bytes.windows(3).any(|w| w.eq_ignore_ascii_case(b"%3f"))
        );
        for (name, value) in &request.query {
            assert!(request.asked(name).is_some(), "{name} {value}");
        }
    }
});
