//! Numbers of few bytes: LEB128, and zigzag for signed ones.

/// The longest number, bytes.
const LONGEST: usize = 10;

pub(super) fn put(to: &mut Vec<u8>, number: u64) {
    let mut rest = number;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// The difference of two numbers, which may wrap around.
pub(super) fn put_difference(to: &mut Vec<u8>, number: u64, previous: u64) {
    let difference = number.wrapping_sub(previous).cast_signed();
    put(to, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
}

/// The content of a batch that is not read yet. Every method returns `None` where it ends too early.
pub(super) struct Rest<'b>(pub(super) &'b [u8]);

impl<'b> Rest<'b> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn bytes(&mut self, count: u64) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for at in 0..LONGEST {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * at);
            // The tenth byte has room for one bit.
            if shifted >> (7 * at) != bits {
                return None;
            }
            number |= shifted;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn after(&mut self, previous: u64) -> Option<u64> {
        let number = self.number()?;
        let difference = (number >> 1) ^ (number & 1).wrapping_neg();
        Some(previous.wrapping_add(difference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_take_as_few_bytes_as_they_need_and_end_at_64_bits() {
        for (number, bytes) in [(0, 1), (127, 1), (128, 2), (1 << 35, 6), (u64::MAX, 10)] {
            let mut put_down = Vec::new();
            put(&mut put_down, number);
            assert_eq!(put_down.len(), bytes);
        }
        for bytes in [&[0xff; 10][..], &[0xff; 9], &[]] {
            assert_eq!(Rest(bytes).number(), None);
        }
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Rest(&largest).number(), Some(u64::MAX));
        largest[9] = 2;
        assert_eq!(Rest(&largest).number(), None);
    }

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, previous: u64) {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            put_difference(&mut bytes, number, previous);
            let mut rest = Rest(&bytes);
            prop_assert_eq!(rest.number(), Some(number));
            prop_assert_eq!(rest.after(previous), Some(number));
            prop_assert!(rest.0.is_empty());
        }
    }
}
