//! Numbers of any size and byte order, bit by bit.

use super::types::Int;

/// Reads from a part of a packet. The part begins at a multiple of every alignment.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    /// In bits.
    pub(super) at: u64,
    /// The end of what is there, in bits.
    end: u64,
}

impl<'a> Bits<'a> {
    /// From a bit of `bytes` up to another one.
    pub(super) fn new(bytes: &'a [u8], at: u64, end: u64) -> Bits<'a> {
        let end = end.min(bytes.len() as u64 * 8);
        Bits { bytes, at, end }
    }

    /// Passes over the bits before the next multiple of `align`.
    pub(super) fn align(&mut self, align: u32) -> Option<()> {
        let align = u64::from(align.max(1));
        self.at = self.at.checked_next_multiple_of(align)?;
        (self.at <= self.end).then_some(())
    }

    pub(super) fn pass(&mut self, bits: u64) -> Option<()> {
        self.at = self.at.checked_add(bits)?;
        (self.at <= self.end).then_some(())
    }

    /// A number, sign-extended if it is signed.
    pub(super) fn int(&mut self, of: &Int) -> Option<u64> {
        self.align(of.align)?;
        let from = self.at;
        self.pass(of.size.into())?;
        let value = self.bits(from, of.size, of.big_endian);
        let unused = 64 - of.size;
        Some(match of.signed {
            true => ((value << unused) as i64 >> unused) as u64,
            false => value,
        })
    }

    /// Bits that are there.
    fn bits(&self, from: u64, size: u32, big_endian: bool) -> u64 {
        let first = (from / 8) as usize;
        let last = ((from + u64::from(size)).div_ceil(8)) as usize;
        let own = &self.bytes[first..last];
        // At most nine bytes.
        let fold = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
        let inside = (from % 8) as u32;
        let value = match big_endian {
            true => {
                let behind = own.len() as u32 * 8 - inside - size;
                own.iter().fold(0, fold) >> behind
            }
            false => own.iter().rev().fold(0, fold) >> inside,
        };
        let mask = u64::MAX >> (64 - size);
        value as u64 & mask
    }

    /// Bytes; they begin at a byte.
    pub(super) fn bytes(&mut self, length: u64) -> Option<&'a [u8]> {
        self.align(8)?;
        let from = (self.at / 8) as usize;
        self.pass(length.checked_mul(8)?)?;
        self.bytes.get(from..(self.at / 8) as usize)
    }

    /// Bytes up to a NUL, which is passed over.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        self.align(8)?;
        let rest = self
            .bytes
            .get((self.at / 8) as usize..(self.end / 8) as usize)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        self.pass((length as u64 + 1) * 8)?;
        Some(&rest[..length])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(size: u32, signed: bool, big_endian: bool) -> Int {
        Int {
            size,
            align: 1,
            signed,
            big_endian,
            is_text: false,
            is_time: false,
        }
    }

    #[test]
    fn numbers_of_both_byte_orders_lie_side_by_side() {
        // 5 bits and 27 bits, as LTTng's compact header has them.
        let word = 0x0123_4567_u32 << 5 | 9;
        let bytes = word.to_le_bytes();
        let mut bits = Bits::new(&bytes, 0, 32);
        assert_eq!(bits.int(&int(5, false, false)), Some(9));
        assert_eq!(bits.int(&int(27, false, false)), Some(0x123_4567));
        assert_eq!(bits.int(&int(1, false, false)), None);
        let bytes = (9_u32 << 27 | 0x123_4567).to_be_bytes();
        let mut bits = Bits::new(&bytes, 0, 32);
        assert_eq!(bits.int(&int(5, false, true)), Some(9));
        assert_eq!(bits.int(&int(27, false, true)), Some(0x123_4567));
        let mut bits = Bits::new(&[0xff; 9], 3, 72);
        assert_eq!(bits.int(&int(64, true, false)), Some(u64::MAX));
        let mut bits = Bits::new(&[0, 0x80], 0, 16);
        assert_eq!(
            bits.int(&int(16, true, false)),
            Some(i64::from(i16::MIN) as u64)
        );
    }
}
