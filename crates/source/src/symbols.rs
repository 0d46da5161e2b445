//! The symbol table of the kernel's functions, from `/proc/kallsyms`.

use jitterscope_model::{KernelAddr, SourceLoss, SourceProblem, SourceReport, SourceStatus};
use jitterscope_platform::Machine;
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// Assumed length of the last symbol, bytes.
const LAST_SYMBOL_LENGTH: u64 = 1 << 16;
/// The longest line that is read, bytes; kernel symbols have at most 512.
const LONGEST_LINE: u64 = 4096;

/// Why there are no kernel names.
#[derive(Debug, thiserror::Error)]
pub enum SymbolsError {
    /// The kernel shows zeros instead of addresses.
    #[error("/proc/kallsyms hides the addresses (kernel.kptr_restrict is {kptr_restrict})")]
    Hidden {
        /// The sysctl's value, or `unknown`.
        kptr_restrict: String,
    },
    /// It has no text symbol.
    #[error("/proc/kallsyms lists no kernel function")]
    Empty,
    #[error("/proc/kallsyms: {0}")]
    Read(#[from] io::Error),
}

impl SymbolsError {
    /// The source for a report.
    #[must_use]
    pub fn report(&self) -> SourceReport {
        let denied = match self {
            SymbolsError::Hidden { .. } => true,
            SymbolsError::Read(error) => error.kind() == io::ErrorKind::PermissionDenied,
            SymbolsError::Empty => false,
        };
        let problem = match self {
            SymbolsError::Hidden { kptr_restrict } => SourceProblem::AddressesHidden {
                kptr_restrict: kptr_restrict.clone(),
            },
            SymbolsError::Empty => SourceProblem::NoFunctionNames,
            SymbolsError::Read(error) => SourceProblem::FunctionNamesUnreadable {
                denied,
                system: error.to_string(),
            },
        };
        let status = if denied {
            SourceStatus::Denied
        } else {
            SourceStatus::Absent
        };
        SourceReport::limited("symbols", status, problem, SourceLoss::FunctionNames)
    }
}

/// Initial capacity in symbols, and in bytes of their names: enough for a kernel with its modules. Unused capacity
/// costs no memory, while growing would leave holes in the heap.
const USUAL: usize = 1 << 18;
const USUAL_NAMES: usize = 8 << 20;

/// Kernel functions sorted by address: one word each, and all names in one buffer.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    ranges: Vec<Range>,
    /// For each symbol: its distance from its range's address (upper half), and the position of its name.
    packed: Vec<u64>,
    /// Each name, after its length.
    names: Vec<u8>,
}

/// Symbols whose distances fit into half a word: a kernel and its modules need one or two ranges.
#[derive(Clone, Copy, Debug)]
struct Range {
    address: u64,
    /// The index of its first symbol.
    first: usize,
}

/// Functions in the order of the list: their addresses, and the positions of their names. Symbols other than functions
/// have no position.
struct Listed {
    symbols: Vec<[u64; 2]>,
    names: Vec<u8>,
}

/// The position of a missing name, for a symbol that is not a function.
const NOWHERE: u32 = u32::MAX;

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

    /// Parses text in the form of `/proc/kallsyms`, line by line. Skips malformed lines.
    ///
    /// # Errors
    /// Reading fails; there is no function; all addresses are zero.
    pub fn parse(mut text: impl BufRead) -> Result<Symbols, SymbolsError> {
        let mut table = Listed {
            symbols: Vec::with_capacity(USUAL),
            names: Vec::with_capacity(USUAL_NAMES),
        };
        let mut line = Vec::new();
        let (mut functions, mut hidden) = (0u64, 0u64);
        loop {
            line.clear();
            if io::Read::take(&mut text, LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some((address, kind, name)) = split(&line) else {
                continue;
            };
            let is_function = matches!(kind, b't' | b'T' | b'w' | b'W');
            functions += u64::from(is_function);
            if address == 0 {
                hidden += u64::from(is_function);
                continue;
            }
            // Padding before a function: it would hide the end of the previous function, and is not a name.
            if name.starts_with("__pfx_") || name.starts_with("__cfi_") {
                continue;
            }
            if !table.push(address, if is_function { name } else { "" }) {
                break;
            }
        }
        if functions == 0 {
            return Err(SymbolsError::Empty);
        }
        if hidden == functions {
            return Err(SymbolsError::Hidden {
                kptr_restrict: "unknown".into(),
            });
        }
        Ok(table.pack())
    }

    /// A table that names exactly these addresses, and none in between.
    #[must_use]
    pub fn from_resolved<'a>(names: impl IntoIterator<Item = (KernelAddr, &'a str)>) -> Symbols {
        let mut table = Listed {
            symbols: Vec::new(),
            names: Vec::new(),
        };
        for (address, name) in names {
            table.push(address.0, name);
            table.push(address.0.saturating_add(1), "");
        }
        table.pack()
    }

    /// The function that contains `address`.
    #[must_use]
    pub fn name(&self, address: KernelAddr) -> Option<&str> {
        let range = self
            .ranges
            .partition_point(|range| range.address <= address.0)
            .checked_sub(1)?;
        let Range {
            address: base,
            first,
        } = *self.ranges.get(range)?;
        let end = self
            .ranges
            .get(range + 1)
            .map_or(self.packed.len(), |next| next.first);
        let packed = self.packed.get(first..end)?;
        let offset = address.0 - base;
        let index = packed
            .partition_point(|symbol| symbol >> 32 <= offset)
            .checked_sub(1)?;
        let place = usize::try_from(packed.get(index)? & u64::from(u32::MAX)).ok()?;
        let (length, rest) = self.names.get(place..)?.split_first_chunk()?;
        std::str::from_utf8(rest.get(..u16::from_ne_bytes(*length).into())?).ok()
    }

    /// The number of its addresses, including ends of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether it has no addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Its size in memory, bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
            + self.packed.capacity() * size_of::<u64>()
            + self.names.capacity()
    }
}

impl Listed {
    /// Adds the next symbol, in the order of the list; false if its name does not fit.
    fn push(&mut self, address: u64, name: &str) -> bool {
        if name.is_empty() {
            self.symbols.push([address, NOWHERE.into()]);
            return true;
        }
        let place = u32::try_from(self.names.len())
            .ok()
            .filter(|place| *place < NOWHERE);
        let (Some(place), Ok(length)) = (place, u16::try_from(name.len())) else {
            self.symbols.push([address, NOWHERE.into()]);
            return false;
        };
        self.names.extend_from_slice(&length.to_ne_bytes());
        self.names.extend_from_slice(name.as_bytes());
        self.symbols.push([address, place.into()]);
        true
    }

    /// Sorts the complete list in place. Of symbols with equal addresses, it keeps the first function. Of other
    /// symbols, it keeps only those that directly follow a function, as the end of that function.
    fn settle(&mut self) {
        let named = |symbol: [u64; 2]| symbol[1] < u64::from(NOWHERE);
        // Positions of names increase in the order of the list.
        self.symbols.sort_unstable();
        let mut kept: usize = 0;
        for at in 0..self.symbols.len() {
            let symbol = self.symbols[at];
            let last = kept.checked_sub(1).map(|last| self.symbols[last]);
            let ends = last.is_some_and(named);
            // Of equal addresses, a symbol with a name sorts first.
            let again = last.is_some_and(|last| last[0] == symbol[0]);
            if again || (!named(symbol) && !ends) {
                continue;
            }
            self.symbols[kept] = symbol;
            kept += 1;
        }
        self.symbols.truncate(kept);
        let last = self.symbols.last().filter(|last| named(**last));
        if let Some(end) = last.and_then(|last| last[0].checked_add(LAST_SYMBOL_LENGTH)) {
            self.push(end, "");
        }
    }

    /// Packs the complete list in place, two words into one, because a second allocation would leave a hole in the
    /// heap.
    fn pack(mut self) -> Symbols {
        self.settle();
        let mut ranges: Vec<Range> = Vec::new();
        let count = self.symbols.len();
        let mut words = self.symbols.into_flattened();
        for at in 0..count {
            let [address, place] = [words[2 * at], words[2 * at + 1]];
            let range = ranges.last().map(|range| range.address);
            let base = range
                .filter(|base| address - base <= u64::from(u32::MAX))
                .unwrap_or_else(|| {
                    ranges.push(Range { address, first: at });
                    address
                });
            words[at] = (address - base) << 32 | place;
        }
        words.truncate(count);
        words.shrink_to_fit();
        self.names.shrink_to_fit();
        Symbols {
            ranges,
            packed: words,
            names: self.names,
        }
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
    fn hidden_addresses_differ_from_absent_functions() {
        let hidden = "0000000000000000 T a\n0000000000000000 t b\n";
        assert!(matches!(
            Symbols::parse(hidden.as_bytes()),
            Err(SymbolsError::Hidden { .. })
        ));
        assert!(matches!(Symbols::parse(&b""[..]), Err(SymbolsError::Empty)));
    }

    #[test]
    fn resolved_names_stand_alone() {
        let table = Symbols::from_resolved([
            (KernelAddr(5), "a"),
            (KernelAddr(6), "b"),
            (KernelAddr(u64::MAX), "c"),
        ]);
        let name = |a| table.name(KernelAddr(a));
        assert_eq!(
            [name(4), name(5), name(6), name(7)],
            [None, Some("a"), Some("b"), None]
        );
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
