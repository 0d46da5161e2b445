//! Bounded reads of a foreign file: no length of it is trusted.

use super::error::TraceDatError;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any position.
pub trait ReadAt {
    /// Reads at most as many bytes as fit; fewer at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;

    /// The number of bytes.
    ///
    /// # Errors
    /// The file's state cannot be read.
    fn length(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < into.len() {
            let Some(place) = at.checked_add(read as u64) else {
                break;
            };
            match FileExt::read_at(self, &mut into[read..], place) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(self.len());
        let rest = &self[from..];
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(at, into)
    }

    fn length(&self) -> io::Result<u64> {
        self.as_slice().length()
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &R {
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(at, into)
    }

    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }
}

/// Reads numbers and texts one after another.
pub(crate) struct Cursor<'f> {
    file: &'f dyn ReadAt,
    pub(crate) at: u64,
    end: u64,
    /// What is read, for errors.
    what: &'static str,
}

impl<'f> Cursor<'f> {
    /// From `at` to the end of the file.
    pub(crate) fn new(
        file: &'f dyn ReadAt,
        at: u64,
        what: &'static str,
    ) -> Result<Cursor<'f>, TraceDatError> {
        let end = file.length()?;
        Ok(Cursor {
            file,
            at,
            end,
            what,
        })
    }

    /// Over `size` bytes from `at`, or to the end of the file.
    pub(crate) fn within(
        file: &'f dyn ReadAt,
        at: u64,
        size: u64,
        what: &'static str,
    ) -> Result<Cursor<'f>, TraceDatError> {
        let mut own = Cursor::new(file, at, what)?;
        own.end = own.end.min(at.saturating_add(size));
        Ok(own)
    }

    /// Names what follows.
    pub(crate) fn next(&mut self, what: &'static str) {
        self.what = what;
    }

    pub(crate) fn damaged(&self, why: &'static str) -> TraceDatError {
        TraceDatError::Damaged {
            what: self.what,
            why,
        }
    }

    fn ends(&self) -> TraceDatError {
        TraceDatError::Ends { what: self.what }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], TraceDatError> {
        let mut bytes = [0; N];
        if self.file.read_at(self.at, &mut bytes)? < N {
            return Err(self.ends());
        }
        self.at = self.at.saturating_add(N as u64);
        Ok(bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, TraceDatError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, TraceDatError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, TraceDatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, TraceDatError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Passes over `length` bytes. Returns where they begin.
    pub(crate) fn skip(&mut self, length: u64) -> Result<u64, TraceDatError> {
        let from = self.at;
        match from.checked_add(length) {
            Some(to) if to <= self.end => self.at = to,
            _ => return Err(self.ends()),
        }
        Ok(from)
    }

    /// Reads `length` bytes; more than `most` of them cannot be.
    pub(crate) fn bytes(&mut self, length: u64, most: usize) -> Result<Vec<u8>, TraceDatError> {
        let from = self.skip(length)?;
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= most)
            .ok_or_else(|| self.damaged("it is longer than it can be"))?;
        let mut bytes = vec![0; length];
        if self.file.read_at(from, &mut bytes)? < length {
            return Err(self.ends());
        }
        Ok(bytes)
    }

    /// A text of at most `most` bytes that a NUL ends.
    pub(crate) fn text(&mut self, most: usize) -> Result<String, TraceDatError> {
        let mut bytes = vec![0; most.saturating_add(1)];
        let read = self.file.read_at(self.at, &mut bytes)?;
        let Some(end) = bytes[..read].iter().position(|byte| *byte == 0) else {
            return Err(match read <= most {
                true => self.ends(),
                false => self.damaged("a name in it has no end"),
            });
        };
        self.at = self.at.saturating_add(end as u64 + 1);
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// These bytes must follow.
    pub(crate) fn expect<const N: usize>(&mut self, mark: &[u8; N]) -> Result<(), TraceDatError> {
        match self.array::<N>()? == *mark {
            true => Ok(()),
            false => Err(self.damaged("its mark is missing")),
        }
    }
}

/// A text in the file: the bytes up to a NUL, as far as they are readable.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = &bytes[..end.unwrap_or(bytes.len())];
    String::from_utf8_lossy(text).trim().to_owned()
}
