//! Compressed parts of a file of version 7.

use super::error::TraceDatError;
use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::FrameDecoder;

/// The largest window of a zstd frame, bytes: a frame here holds a few pages or one description.
const LARGEST_WINDOW: u64 = 16 << 20;

/// How parts are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    Zstd,
    Zlib,
}

impl Compression {
    /// The one that the file names.
    ///
    /// # Errors
    /// It is not one that we read.
    pub(super) fn of(name: String) -> Result<Compression, TraceDatError> {
        match name.as_str() {
            "none" => Ok(Compression::None),
            "zstd" => Ok(Compression::Zstd),
            "zlib" => Ok(Compression::Zlib),
            _ => Err(TraceDatError::Compression { name }),
        }
    }
}

/// Expands compressed bytes, one part after another.
pub(super) struct Expander {
    compression: Compression,
    zstd: FrameDecoder,
}

impl Expander {
    pub(super) fn new(compression: Compression) -> Expander {
        let mut zstd = FrameDecoder::new();
        zstd.set_max_window_size(LARGEST_WINDOW);
        Expander { compression, zstd }
    }

    /// Expands `bytes` so that they fill `out`. False if they are not such data; then `out` has any content.
    pub(super) fn expand(&mut self, bytes: &[u8], out: &mut [u8]) -> bool {
        match self.compression {
            Compression::None => match bytes.get(..out.len()) {
                Some(bytes) => {
                    out.copy_from_slice(bytes);
                    true
                }
                None => false,
            },
            Compression::Zstd => self.zstd.decode_all(bytes, out).ok() == Some(out.len()),
            Compression::Zlib => {
                let mut decoder = Decompress::new(true);
                let status = decoder.decompress(bytes, out, FlushDecompress::Finish);
                status.ok() == Some(Status::StreamEnd) && decoder.total_out() == out.len() as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, FlushCompress};

    #[test]
    fn what_is_no_such_data_or_of_another_length_is_refused() {
        let plain = b"page page page page page page".repeat(9);
        let mut zlib = vec![0; 1024];
        let mut made = Compress::new(flate2::Compression::default(), true);
        made.compress(&plain, &mut zlib, FlushCompress::Finish)
            .unwrap();
        zlib.truncate(made.total_out() as usize);
        let zstd = ruzstd::encoding::compress_to_vec(
            plain.as_slice(),
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        for (compression, bytes) in [
            (Compression::Zlib, &zlib),
            (Compression::Zstd, &zstd),
            (Compression::None, &plain),
        ] {
            let mut expander = Expander::new(compression);
            let mut out = vec![0; plain.len()];
            assert!(
                expander.expand(bytes, &mut out) && out == plain,
                "{compression:?}"
            );
            let mut longer = vec![0; plain.len() + 1];
            assert!(!expander.expand(bytes, &mut longer), "{compression:?}");
            assert!(
                !expander.expand(&bytes[..bytes.len() / 2], &mut out),
                "{compression:?}"
            );
            assert!(!expander.expand(&[], &mut out), "{compression:?}");
            // One that failed does not spoil the next.
            assert!(
                expander.expand(bytes, &mut out) && out == plain,
                "{compression:?}"
            );
        }
        assert!(Compression::of("lz4".into()).is_err());
    }
}
