//! Kernel function names by address, from `/proc/kallsyms`.

use jitterscope_model::KernelAddr;
use jitterscope_platform::Machine;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// How far behind the last known symbol an address is still believed to lie in it, bytes.
const LAST_SYMBOL_LENGTH: u64 = 1 << 16;
/// The longest line read; kernel symbols have at most 512 bytes.
const LONGEST_LINE: u64 = 4096;

/// Why there are no kernel names.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// The kernel shows zeros in place of the addresses.
    #[error("/proc/kallsyms hides the addresses (kernel.kptr_restrict is {kptr_restrict})")]
    Hidden {
        /// What the sysctl says, or `unknown`.
        kptr_restrict: String,
    },
    /// No text symbol in it.
    #[error("/proc/kallsyms lists no kernel function")]
    Empty,
    /// It cannot be read.
    #[error("/proc/kallsyms: {0}")]
    Read(#[from] io::Error),
}

/// Kernel functions sorted by address, names in one blob.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    addresses: Vec<u64>,
    /// Where each name ends in `names`; an empty name stands for what is not a function.
    ends: Vec<u32>,
    names: String,
}

impl Symbols {
    /// Reads the machine's `/proc/kallsyms`.
    ///
    /// # Errors
    /// It is absent, denied, empty, or shows no addresses.
    pub fn load(machine: &Machine) -> Result<Symbols, SymbolsError> {
        let file = File::open(machine.path("/proc/kallsyms"))?;
        match Symbols::parse(BufReader::new(file)) {
            Err(SymbolsError::Hidden { .. }) => Err(SymbolsError::Hidden {
                kptr_restrict: machine
                    .read_trimmed("/proc/sys/kernel/kptr_restrict")
                    .unwrap_or_else(|_| "unknown".into()),
            }),
            other => other,
        }
    }

    /// Reads text in the form of `/proc/kallsyms`, a line at a time. Lines that make no sense are
    /// skipped.
    ///
    /// # Errors
    /// Reading fails; there is no function; all addresses are zero.
    pub fn parse(mut text: impl BufRead) -> Result<Symbols, SymbolsError> {
        // (address, order in the file, where the name is): data symbols have no name.
        let mut found: Vec<(u64, u32, u32, u32)> = Vec::new();
        let mut blob = String::new();
        let mut line = Vec::new();
        let (mut functions, mut hidden) = (0u64, 0u64);
        loop {
            line.clear();
            if io::Read::take(&mut text, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some((address, kind, name)) = split(&line) else { continue };
            let is_function = matches!(kind, b't' | b'T' | b'w' | b'W');
            functions += u64::from(is_function);
            if address == 0 {
                hidden += u64::from(is_function);
                continue;
            }
            // Padding before a function: it hides the end of the one before and names nothing.
            if name.starts_with("__pfx_") || name.starts_with("__cfi_") {
                continue;
            }
            let name = if is_function { name } else { "" };
            let (Ok(start), Ok(order)) = (u32::try_from(blob.len()), u32::try_from(found.len())) else {
                break;
            };
            if u32::try_from(blob.len() + name.len()).is_err() {
                break;
            }
            blob.push_str(name);
            found.push((address, order, start, name.len() as u32));
        }
        if functions == 0 {
            return Err(SymbolsError::Empty);
        }
        if hidden == functions {
            return Err(SymbolsError::Hidden { kptr_restrict: "unknown".into() });
        }
        found.sort_unstable();
        Ok(Symbols::build(found.iter().map(|(address, _, start, length)| {
            (*address, &blob[*start as usize..(*start + *length) as usize])
        })))
    }

    /// A table that names exactly these addresses, and nothing between them.
    #[must_use]
    pub fn from_resolved<'a>(names: impl IntoIterator<Item = (KernelAddr, &'a str)>) -> Symbols {
        let mut list: Vec<(u64, &str)> =
            names.into_iter().flat_map(|(a, name)| [(a.0, name), (a.0.saturating_add(1), "")]).collect();
        // The end of one must not hide the beginning of the next.
        list.sort_by_key(|(address, name)| (*address, name.is_empty()));
        Symbols::build(list.into_iter())
    }

    /// Takes (address, name) in ascending order; of equal addresses the first named wins.
    fn build<'a>(sorted: impl Iterator<Item = (u64, &'a str)>) -> Symbols {
        let mut table = Symbols::default();
        let mut last_named = false;
        for (address, name) in sorted {
            if table.addresses.last() == Some(&address) {
                if last_named || name.is_empty() {
                    continue;
                }
                table.addresses.pop();
                table.ends.pop();
            } else if name.is_empty() && !last_named {
                continue;
            }
            table.push(address, name);
            last_named = !name.is_empty();
        }
        let end = table.addresses.last().and_then(|last| last.checked_add(LAST_SYMBOL_LENGTH));
        if let (true, Some(end)) = (last_named, end) {
            table.push(end, "");
        }
        table.addresses.shrink_to_fit();
        table.ends.shrink_to_fit();
        table.names.shrink_to_fit();
        table
    }

    fn push(&mut self, address: u64, name: &str) {
        self.names.push_str(name);
        // `parse` keeps the blob under 4 GiB; beyond that (only `from_resolved`) names come out empty.
        self.ends.push(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.addresses.push(address);
    }

    /// The function that `address` lies in.
    #[must_use]
    pub fn name(&self, address: KernelAddr) -> Option<&str> {
        let index = self.addresses.partition_point(|a| *a <= address.0).checked_sub(1)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        let name = self.names.get(start as usize..self.ends[index] as usize)?;
        (!name.is_empty()).then_some(name)
    }

    /// How many addresses it knows, ends included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.addresses.capacity() * 8 + self.ends.capacity() * 4 + self.names.capacity()
    }
}

/// `ffffffff81000000 T name [module]`.
fn split(line: &[u8]) -> Option<(u64, u8, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let address = words.next()?;
    if address.len() > 16 || !address.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let address = u64::from_str_radix(address, 16).ok()?;
    let kind = words.next()?;
    Some((address, *kind.as_bytes().first()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "0000000000001000 T first\n0000000000001000 T alias\n0000000000001100 t __pfx_second\n\
        0000000000001110 t second\n0000000000001200 D data\n0000000000001300 D more\n\
        0000000000002000 t third\t[mod]\nnonsense\n00x T y\n";

    #[test]
    fn an_address_is_named_by_the_function_it_lies_in() {
        let table = Symbols::parse(TEXT.as_bytes()).unwrap();
        let name = |a| table.name(KernelAddr(a));
        assert_eq!(name(0xfff), None);
        assert_eq!(name(0x1000), Some("first"));
        assert_eq!(name(0x10ff), Some("first"));
        assert_eq!(name(0x1110), Some("second"));
        assert_eq!(name(0x1250), None);
        assert_eq!(name(0x1350), None);
        assert_eq!(name(0x2010), Some("third"));
        assert_eq!(name(0x2000 + LAST_SYMBOL_LENGTH), None);
    }

    #[test]
    fn hidden_addresses_are_told_from_no_functions() {
        let hidden = "0000000000000000 T a\n0000000000000000 t b\n";
        assert!(matches!(Symbols::parse(hidden.as_bytes()), Err(SymbolsError::Hidden { .. })));
        assert!(matches!(Symbols::parse(&b""[..]), Err(SymbolsError::Empty)));
    }

    #[test]
    fn resolved_names_stand_alone() {
        let table =
            Symbols::from_resolved([(KernelAddr(5), "a"), (KernelAddr(6), "b"), (KernelAddr(u64::MAX), "c")]);
        let name = |a| table.name(KernelAddr(a));
        assert_eq!([name(4), name(5), name(6), name(7)], [None, Some("a"), Some("b"), None]);
        assert_eq!(name(u64::MAX), Some("c"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), asked in any::<u64>()) {
            if let Ok(table) = Symbols::parse(&bytes[..]) {
                let _ = table.name(KernelAddr(asked));
            }
        }

        #[test]
        fn every_function_finds_itself(addresses in prop::collection::btree_set(1u64..u64::MAX / 2, 1..50)) {
            let text: String = addresses.iter().map(|a| format!("{a:016x} t f{a}\n")).collect();
            let table = Symbols::parse(text.as_bytes()).unwrap();
            for a in addresses {
                prop_assert_eq!(table.name(KernelAddr(a)).map(str::to_owned), Some(format!("f{a}")));
            }
        }
    }
}
