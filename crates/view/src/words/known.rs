//! Explanations of public names: one for each name that `analyze` lists. Those of functions come from the kernel's
//! documentation and source.

use super::{Table, functions, threads};
use jitterscope_analyze::{KnownName, NameList};

/// The explanation, in a phrase.
pub(super) fn does(known: KnownName) -> Option<&'static str> {
    table(known.list)
        .iter()
        .find(|(name, _)| *name == known.name)
        .map(|(_, phrase)| *phrase)
}

fn table(of: NameList) -> Table {
    match of {
        NameList::Timers => functions::TIMERS,
        NameList::Work => functions::WORK,
        NameList::Calls => functions::CALLS,
        NameList::Softirqs => functions::SOFTIRQS,
        NameList::Vectors => functions::VECTORS,
        NameList::Nmis => functions::NMIS,
        NameList::Faults => functions::FAULTS,
        NameList::Threads => threads::WHOLE,
        NameList::ThreadPrefixes => threads::PREFIXES,
        NameList::Daemons => threads::DAEMONS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_phrase_and_each_phrase_its_name() {
        for list in NameList::ALL {
            let reported: Vec<&str> = table(list).iter().map(|(name, _)| *name).collect();
            assert_eq!(reported, list.names(), "{list:?}");
            assert!(
                list.names()
                    .iter()
                    .all(|name| does(KnownName { list, name }).is_some())
            );
        }
    }

    #[test]
    fn phrases_are_short_parts_of_sentences() {
        for (name, phrase) in NameList::ALL.into_iter().flat_map(table) {
            assert!(
                phrase.len() <= 72 && !phrase.is_empty(),
                "{name}: {}",
                phrase.len()
            );
            assert!(!phrase.ends_with('.'), "{name}");
        }
    }
}
