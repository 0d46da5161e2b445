//! Interned names: records contain a number instead.

use jitterscope_model::{Comm, KeyedMap, Name};
use std::sync::Arc;

/// Maximum of distinct names of each sort. There are as many as programs, interrupts and vectors; only deliberate
/// renaming exceeds it.
const MOST: usize = 1 << 16;

/// A thread's name; [`NameTable::comm`] has the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CommId(pub(crate) u32);

impl CommId {
    /// No record had the name.
    pub(crate) const UNKNOWN: CommId = CommId(u32::MAX);
}

/// A name of an interrupt, a vector or a workqueue; [`NameTable::name`] has the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NameId(pub(crate) u32);

impl NameId {
    /// Beyond the table's limit.
    pub(crate) const UNKNOWN: NameId = NameId(u32::MAX);
}

/// Size of the caches of recent names, which avoid a full hash.
const RECENT: usize = 64;

/// The names of all records of a recording.
#[derive(Clone, Debug)]
pub(crate) struct NameTable {
    comms: Vec<Comm>,
    comm_ids: KeyedMap<Comm, CommId>,
    /// A cache of recent threads' names, indexed by a few of their bytes.
    recent_comms: [CommId; RECENT],
    names: Vec<Name>,
    name_ids: KeyedMap<Name, NameId>,
    /// A cache of recent other names, indexed by address: a decoder reuses the same text.
    recent_names: [NameId; RECENT],
}

impl Default for NameTable {
    fn default() -> NameTable {
        NameTable {
            comms: Vec::new(),
            comm_ids: KeyedMap::default(),
            recent_comms: [CommId::UNKNOWN; RECENT],
            names: Vec::new(),
            name_ids: KeyedMap::default(),
            recent_names: [NameId::UNKNOWN; RECENT],
        }
    }
}

impl NameTable {
    /// The number of a thread's name.
    pub(crate) fn comm_id(&mut self, comm: Comm) -> CommId {
        let words = u128::from_le_bytes(comm.0);
        let place = ((words ^ words >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        let recent = self.recent_comms[place as usize];
        if self.comm(recent) == Some(comm) {
            return recent;
        }
        let id = self.comm_id_in_full(comm);
        self.recent_comms[place as usize] = id;
        id
    }

    fn comm_id_in_full(&mut self, comm: Comm) -> CommId {
        if let Some(known) = self.comm_ids.get(&comm) {
            return *known;
        }
        if self.comms.len() >= MOST {
            return CommId::UNKNOWN;
        }
        let id = CommId(self.comms.len() as u32);
        self.comms.push(comm);
        self.comm_ids.insert(comm, id);
        id
    }

    /// The number of another name.
    pub(crate) fn name_id(&mut self, name: &Name) -> NameId {
        let place = (name.as_ptr().addr() >> 4) % RECENT;
        let recent = self.recent_names[place];
        // The table keeps its texts alive, so no other text can have the same address.
        if self
            .name(recent)
            .is_some_and(|known| Arc::ptr_eq(known, name))
        {
            return recent;
        }
        let id = self.name_id_in_full(name);
        self.recent_names[place] = id;
        id
    }

    fn name_id_in_full(&mut self, name: &Name) -> NameId {
        if let Some(known) = self.name_ids.get(name) {
            return *known;
        }
        if self.names.len() >= MOST {
            return NameId::UNKNOWN;
        }
        let id = NameId(self.names.len() as u32);
        self.names.push(name.clone());
        self.name_ids.insert(name.clone(), id);
        id
    }

    /// The text of a thread's name.
    pub(crate) fn comm(&self, id: CommId) -> Option<Comm> {
        self.comms.get(id.0 as usize).copied()
    }

    /// The text of another name.
    pub(crate) fn name(&self, id: NameId) -> Option<&Name> {
        self.names.get(id.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_one_number_and_beyond_the_table_they_are_unknown() {
        let mut table = NameTable::default();
        let (sh, make) = (
            table.comm_id(Comm::new("sh")),
            table.comm_id(Comm::new("make")),
        );
        assert_ne!(sh, make);
        assert_eq!(table.comm_id(Comm::new("sh")), sh);
        assert_eq!(table.comm(make), Some(Comm::new("make")));
        let timer = table.name_id(&"local_timer".into());
        assert_eq!(table.name(timer).map(|name| &**name), Some("local_timer"));
        for n in 0..MOST {
            table.comm_id(Comm::new(&format!("t{n}")));
        }
        assert_eq!(table.comm_id(Comm::new("one more")), CommId::UNKNOWN);
        assert_eq!(table.comm_id(Comm::new("sh")), sh);
        assert_eq!(table.comm(CommId::UNKNOWN), None);
    }
}
