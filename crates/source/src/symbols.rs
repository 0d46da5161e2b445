//! Kernel function names by address, from `/proc/kallsyms`.

use jitterscope_model::{KernelAddr, SourceLoss, SourceProblem, SourceReport, SourceStatus};
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

impl SymbolsError {
    /// The source as a report has it.
    #[must_use]
    pub fn report(&self) -> SourceReport {
        let denied = match self {
            SymbolsError::Hidden { .. } => true,
            SymbolsError::Read(error) => error.kind() == io::ErrorKind::PermissionDenied,
            SymbolsError::Empty => false,
        };
        let problem = match self {
            SymbolsError::Hidden { kptr_restrict } => {
                SourceProblem::AddressesHidden { kptr_restrict: kptr_restrict.clone() }
            }
            SymbolsError::Empty => SourceProblem::NoFunctionNames,
            SymbolsError::Read(error) => {
                SourceProblem::FunctionNamesUnreadable { denied, system: error.to_string() }
            }
        };
        let status = if denied { SourceStatus::Denied } else { SourceStatus::Absent };
        SourceReport::limited("symbols", status, problem, SourceLoss::FunctionNames)
    }
}

/// Symbols that there is room for from the start, and bytes of their names: a kernel's with its modules. What is
/// not filled costs no memory, and growing would leave holes of the size of what was outgrown.
const USUAL: usize = 1 << 18;
const USUAL_NAMES: usize = 8 << 20;
/// Symbols of a block, which are read one after the other to find one.
const BLOCK: usize = 32;
/// The most bytes of a number in a block: seven bits of 64 in each.
const LONGEST_NUMBER: usize = 10;

/// Kernel functions by address, packed: a kernel has a hundred thousand.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    blocks: Vec<Block>,
    /// Of each symbol, in order of their addresses: how far it is behind the one before it (behind its block's
    /// address that of the first), how long its name is, and the name. That of what is no function is empty.
    packed: Vec<u8>,
    symbols: usize,
}

/// Where some symbols begin.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    start: u32,
}

/// Functions as they are listed.
struct Listed {
    symbols: Vec<Symbol>,
    names: String,
}

/// Where a function, or what is none, begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Symbol {
    address: u64,
    /// Where its name is.
    start: u32,
    /// That of what is no function is empty.
    length: u16,
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
        let mut listed =
            Listed { symbols: Vec::with_capacity(USUAL), names: String::with_capacity(USUAL_NAMES) };
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
            if !listed.push(address, if is_function { name } else { "" }) {
                break;
            }
        }
        if functions == 0 {
            return Err(SymbolsError::Empty);
        }
        if hidden == functions {
            return Err(SymbolsError::Hidden { kptr_restrict: "unknown".into() });
        }
        Ok(listed.pack())
    }

    /// A table that names exactly these addresses, and nothing between them.
    #[must_use]
    pub fn from_resolved<'a>(names: impl IntoIterator<Item = (KernelAddr, &'a str)>) -> Symbols {
        let mut listed = Listed { symbols: Vec::new(), names: String::new() };
        for (address, name) in names {
            listed.push(address.0, name);
            listed.push(address.0.saturating_add(1), "");
        }
        listed.pack()
    }

    /// The function that `address` lies in.
    #[must_use]
    pub fn name(&self, address: KernelAddr) -> Option<&str> {
        let index = self.blocks.partition_point(|block| block.address <= address.0).checked_sub(1)?;
        let block = self.blocks.get(index)?;
        let end = self.blocks.get(index + 1).map_or(self.packed.len(), |next| next.start as usize);
        let mut rest = self.packed.get(block.start as usize..end)?;
        let (mut at, mut found) = (block.address, &[][..]);
        while !rest.is_empty() {
            at = at.checked_add(take_number(&mut rest)?)?;
            if at > address.0 {
                break;
            }
            let length = usize::try_from(take_number(&mut rest)?).ok()?;
            (found, rest) = rest.split_at_checked(length)?;
        }
        std::str::from_utf8(found).ok().filter(|name| !name.is_empty())
    }

    /// How many addresses it knows, ends included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.symbols
    }

    /// Whether it knows none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.symbols == 0
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.packed.capacity()
    }
}

impl Listed {
    /// Takes the next symbol, in the order of the list; whether its name fits.
    fn push(&mut self, address: u64, name: &str) -> bool {
        let place = u32::try_from(self.names.len()).ok().zip(u16::try_from(name.len()).ok());
        let fits = place.filter(|(start, length)| start.checked_add((*length).into()).is_some());
        if fits.is_some() {
            self.names.push_str(name);
        }
        let (start, length) = fits.unwrap_or_default();
        self.symbols.push(Symbol { address, start, length });
        fits.is_some()
    }

    /// All were taken: sorts them where they are. Of equal addresses the first named wins; of what is no function
    /// only the beginning behind one is kept, which ends it.
    fn settle(&mut self) {
        // Names lie in the order of the list.
        self.symbols.sort_unstable();
        let mut kept: usize = 0;
        for at in 0..self.symbols.len() {
            let symbol = self.symbols[at];
            let last = kept.checked_sub(1).map(|last| self.symbols[last]);
            let ends = last.is_some_and(|last| last.length > 0);
            match last {
                Some(last) if last.address == symbol.address => {
                    if ends || symbol.length == 0 {
                        continue;
                    }
                    kept -= 1;
                }
                _ if symbol.length == 0 && !ends => continue,
                _ => {}
            }
            self.symbols[kept] = symbol;
            kept += 1;
        }
        self.symbols.truncate(kept);
        let last = self.symbols.last().filter(|last| last.length > 0);
        if let Some(end) = last.and_then(|last| last.address.checked_add(LAST_SYMBOL_LENGTH)) {
            self.push(end, "");
        }
    }

    /// All were taken.
    fn pack(mut self) -> Symbols {
        self.settle();
        let mut packed = Vec::with_capacity(self.names.len() + self.symbols.len() * (LONGEST_NUMBER + 2));
        let mut blocks = Vec::with_capacity(self.symbols.len().div_ceil(BLOCK));
        let mut kept = 0;
        for symbols in self.symbols.chunks(BLOCK) {
            // Names are no longer than 4 GiB together; what does not fit beside their lengths is left out.
            let (Some(first), Ok(start)) = (symbols.first(), u32::try_from(packed.len())) else { break };
            blocks.push(Block { address: first.address, start });
            let mut before = first.address;
            for symbol in symbols {
                let start = symbol.start as usize;
                let name = self.names.get(start..start + usize::from(symbol.length)).unwrap_or_default();
                put_number(&mut packed, symbol.address - before);
                put_number(&mut packed, name.len() as u64);
                packed.extend_from_slice(name.as_bytes());
                before = symbol.address;
            }
            kept += symbols.len();
        }
        packed.shrink_to_fit();
        Symbols { blocks, packed, symbols: kept }
    }
}

/// Seven bits a byte, the lowest first; the highest bit of all but the last is set.
fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..LONGEST_NUMBER as u32 * 7).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
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
        fn a_number_is_read_as_it_was_put(number in any::<u64>(), behind in any::<u8>()) {
            for number in [number, number >> 40, number & 0x7f, u64::MAX] {
                let mut bytes = Vec::new();
                put_number(&mut bytes, number);
                prop_assert!(bytes.len() <= LONGEST_NUMBER);
                bytes.push(behind);
                let mut rest = &bytes[..];
                prop_assert_eq!((take_number(&mut rest), rest), (Some(number), &[behind][..]));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), asked in any::<u64>()) {
            if let Ok(table) = Symbols::parse(&bytes[..]) {
                let _ = table.name(KernelAddr(asked));
            }
        }

        #[test]
        fn every_function_finds_itself(addresses in prop::collection::btree_set(1u64..u64::MAX / 2, 1..150)) {
            let text: String = addresses.iter().map(|a| format!("{a:016x} t f{a}\n")).collect();
            let table = Symbols::parse(text.as_bytes()).unwrap();
            for a in addresses {
                prop_assert_eq!(table.name(KernelAddr(a)).map(str::to_owned), Some(format!("f{a}")));
            }
        }
    }
}
