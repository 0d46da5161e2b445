//! Enough of Thrift's compact protocol to see the sizes that a table claims before the Parquet library trusts them. The
//! footer of a table and its page headers use this protocol.

/// The deepest nesting of structs that is walked. Parquet nests six deep.
const DEEPEST: usize = 16;

/// The outcome of walking a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    /// The struct's length in bytes.
    pub(crate) length: usize,
    /// The number of structs, the outer one included.
    pub(crate) structs: usize,
}

/// Walks through the struct at the beginning of `bytes` and passes each number to `show`, with the ids of the fields
/// that lead to it. Elements of a list have the path of the list. `None` if the struct is malformed, cut short, or
/// repeats a field (two parsers could then read different values).
pub(crate) fn walk(bytes: &[u8], show: &mut dyn FnMut(&[i16], i64)) -> Option<Walked> {
    let mut walk = Walk {
        bytes,
        at: 0,
        path: Vec::new(),
        structs: 0,
    };
    walk.structure(show)?;
    Some(Walked {
        length: walk.at,
        structs: walk.structs,
    })
}

struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
    path: Vec<i16>,
    structs: usize,
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return None;
        }
        self.at += usize::try_from(count).ok()?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn structure(&mut self, show: &mut dyn FnMut(&[i16], i64)) -> Option<()> {
        if self.path.len() > DEEPEST {
            return None;
        }
        self.structs += 1;
        let mut last = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let id = match head >> 4 {
                0 => i16::try_from(self.signed()?).ok()?,
                step => last.checked_add(i16::from(step))?,
            };
            if id <= last {
                return None;
            }
            last = id;
            self.path.push(id);
            // The type of a boolean field is its value.
            if !matches!(head & 0xf, 1 | 2) {
                self.value(head & 0xf, show)?;
            }
            self.path.pop();
        }
    }

    fn value(&mut self, kind: u8, show: &mut dyn FnMut(&[i16], i64)) -> Option<()> {
        match kind {
            1..=3 => self.skip(1),
            4..=6 => {
                let number = self.signed()?;
                show(&self.path, number);
                Some(())
            }
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.number()?,
                    count => count.into(),
                };
                // Each element takes at least one byte.
                (0..count).try_for_each(|_| self.value(head & 0xf, show))
            }
            11 => {
                let count = self.number()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.value(kinds >> 4, show)?;
                    self.value(kinds & 0xf, show)
                })
            }
            12 => self.structure(show),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers with their paths.
    type Numbers = Vec<(Vec<i16>, i64)>;

    fn numbers(bytes: &[u8]) -> Option<(Walked, Numbers)> {
        let mut seen = Vec::new();
        let walked = walk(bytes, &mut |path, number| {
            seen.push((path.to_vec(), number))
        })?;
        Some((walked, seen))
    }

    #[test]
    fn numbers_are_shown_with_the_way_to_them() {
        // 1: i32 -1; 3: text "ab"; 4: struct { 1: true, 2: i64 300 }; 20: list of i32 [1, 2]
        let bytes = [
            0x15, 1, 0x28, 2, b'a', b'b', 0x1c, 0x11, 0x16, 0xd8, 0x04, 0, 0x09, 40, 0x25, 2, 4, 0,
            99,
        ];
        let (walked, seen) = numbers(&bytes).unwrap();
        let length = bytes.len() - 1;
        assert_eq!(walked, Walked { length, structs: 2 });
        let wanted = [
            (vec![1], -1),
            (vec![4, 2], 300),
            (vec![20], 1),
            (vec![20], 2),
        ];
        assert_eq!(seen, wanted);
        for cut in 0..length {
            assert_eq!(numbers(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn what_is_there_twice_or_too_deep_or_longer_than_all_is_refused() {
        assert_eq!(numbers(&[0x15, 2, 0x05, 2, 2, 0]), None, "field 1 again");
        assert_eq!(numbers(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]), None);
        assert_eq!(
            numbers(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 2, 0]),
            None
        );
        let deep = [vec![0x1c; 100], vec![0; 101]].concat();
        assert_eq!(numbers(&deep), None);
        let shallow = [vec![0x1c; 5], vec![0; 6]].concat();
        assert_eq!(numbers(&shallow).unwrap().0.structs, 6);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some((walked, seen)) = numbers(&bytes) {
                prop_assert!(walked.length <= bytes.len() && walked.structs + seen.len() <= bytes.len());
            }
        }
    }
}
