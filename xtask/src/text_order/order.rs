//! The order of functions in a program's text, by who calls them.

use std::collections::{BTreeMap, BTreeSet};

/// What follows the name of a function until its hash, which differs from one compiler and build to the next.
const HASH: &str = "17h";

/// A function of the program.
pub(super) struct Function {
    /// Where it is linked to.
    pub(super) address: u64,
    /// Its bytes.
    size: u64,
    /// Its symbol, as a pattern that fits it whatever the hashes in it are.
    name: String,
}

impl Function {
    /// `address size kind symbol`, as nm prints it; `None` for what is no function.
    pub(super) fn parse(line: &str) -> Option<Function> {
        let mut words = line.split(' ');
        let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
        let (address, size) = (number(words.next())?, number(words.next())?);
        words
            .next()
            .filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
        Some(Function {
            address,
            size,
            name: without_hashes(words.next()?),
        })
    }
}

/// A symbol with a star in place of each hash: the last part of the older form of symbols, those of crates in the
/// newer one.
fn without_hashes(symbol: &str) -> String {
    // What the compiler adds to make a name unique.
    let plain = symbol
        .split_once(".llvm.")
        .map_or(symbol, |(plain, _)| plain);
    if let Some(at) = plain.rfind(HASH).filter(|_| plain.starts_with("_ZN")) {
        return format!("{}{HASH}*", &plain[..at]);
    }
    if !plain.starts_with("_R") {
        return plain.to_owned();
    }
    let mut parts = plain.split("Cs");
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hash = part
            .find('_')
            .filter(|at| part[..*at].bytes().all(|b| b.is_ascii_alphanumeric()));
        match hash {
            Some(at) => name = name + "Cs*" + &part[at..],
            None => name = name + "Cs" + part,
        }
    }
    if plain.len() < symbol.len() {
        name + "*"
    } else {
        name
    }
}

/// Names of what is called: what a group calls before what only later ones do, and within a group those first of
/// which most bytes are called, for copies of a generic function differ by their hashes alone.
pub(super) fn ordered(functions: &[Function], groups: &[BTreeSet<u64>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    // A symbol may have several names.
    let functions: Vec<&Function> = functions
        .iter()
        .filter(|of| seen.insert(of.address))
        .collect();
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for function in &functions {
        *sizes.entry(&function.name).or_default() += function.size;
    }
    let (mut placed, mut order) = (BTreeSet::new(), Vec::new());
    for group in groups {
        let mut called: BTreeMap<&str, u64> = BTreeMap::new();
        for function in functions.iter().filter(|of| group.contains(&of.address)) {
            *called.entry(&function.name).or_default() += function.size;
        }
        let percent =
            |name: &str, called: u64| called * 100 / sizes.get(name).copied().unwrap_or(0).max(1);
        let mut names: Vec<(u64, &str)> = called
            .iter()
            .map(|(name, size)| (percent(name, *size), *name))
            .collect();
        names.retain(|(_, name)| placed.insert(*name));
        names.sort_by(|(a, name), (b, other)| b.cmp(a).then(name.cmp(other)));
        order.extend(names.into_iter().map(|(_, name)| name.to_owned()));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_left_open() {
        let old = "_ZN4core3ptr13drop_in_place17h0123456789abcdefE";
        assert_eq!(without_hashes(old), "_ZN4core3ptr13drop_in_place17h*");
        assert_eq!(
            without_hashes(&format!("{old}.llvm.123")),
            "_ZN4core3ptr13drop_in_place17h*"
        );
        assert_eq!(
            without_hashes("_RNvNtCsjrHSEGnQ3l9_3std2rtCs1_4core"),
            "_RNvNtCs*_3std2rtCs*_4core"
        );
        assert_eq!(without_hashes("_RNvCsa_1b.llvm.7"), "_RNvCs*_1b*");
        assert_eq!(without_hashes("ZSTD_decompress"), "ZSTD_decompress");
    }

    #[test]
    fn what_is_called_most_stands_first_within_its_group() {
        let lines = [
            "0000000000001000 0000000000000010 t _ZN4half17h1111111111111111E",
            "0000000000001010 0000000000000010 t _ZN4half17h2222222222222222E",
            "0000000000001020 0000000000000010 T whole",
            "0000000000001020 0000000000000010 T alias",
            "0000000000001030 0000000000000010 T later",
            "0000000000001040 0000000000000010 T never",
            "0000000000001050 0000000000000010 d data",
            "                 U elsewhere",
        ];
        let functions: Vec<Function> = lines
            .iter()
            .filter_map(|line| Function::parse(line))
            .collect();
        assert_eq!(functions.len(), 6);
        let groups = [
            BTreeSet::from([0x1000, 0x1020]),
            BTreeSet::from([0x1010, 0x1030]),
        ];
        assert_eq!(
            ordered(&functions, &groups),
            ["whole", "_ZN4half17h*", "later"]
        );
    }
}
