//! Kernel functions in kernel events: each has a number of the file's own, so that no kernel address is in it.

use super::stream::Texts;
use jitterscope_model::KernelAddr;
use std::collections::{BTreeMap, HashMap};

/// The largest number of functions. More only a hostile trace names.
const MOST: usize = 1 << 16;
/// The name of a function that the run does not name.
const UNNAMED: &str = "unnamed function";

#[derive(Default)]
pub(super) struct Functions {
    numbers: HashMap<KernelAddr, u64>,
    names: BTreeMap<KernelAddr, String>,
    /// Functions that were written before their name was known.
    unnamed: HashMap<KernelAddr, u64>,
}

impl Functions {
    /// The number of a function; `None` for none, and where there are too many.
    pub(super) fn number(&mut self, address: KernelAddr, texts: &mut Texts) -> Option<u64> {
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        if address == KernelAddr(0) || self.numbers.len() >= MOST {
            return None;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(address, number);
        match self.names.get(&address) {
            Some(name) => texts.function(number, name),
            None => {
                self.unnamed.insert(address, number);
            }
        }
        Some(number)
    }

    /// Names functions. Those that were written before get their names with the next packet.
    pub(super) fn learn(
        &mut self,
        names: impl IntoIterator<Item = (KernelAddr, String)>,
        texts: &mut Texts,
    ) {
        for (address, name) in names {
            if let Some(number) = self.unnamed.remove(&address) {
                texts.function(number, &name);
            }
            self.names.insert(address, name);
        }
    }

    /// Gives those that are still without a name a word for that: a viewer would show their numbers as addresses.
    pub(super) fn end(&mut self, texts: &mut Texts) {
        let mut unnamed: Vec<u64> = self.unnamed.drain().map(|(_, number)| number).collect();
        unnamed.sort_unstable();
        for number in unnamed {
            texts.function(number, UNNAMED);
        }
    }
}
