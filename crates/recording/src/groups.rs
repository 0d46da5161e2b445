//! Control groups of threads: which of several hierarchies counts, and who moved since it was read.

use jitterscope_model::{KeyedMap, Name, TaskIdentity};
use jitterscope_platform::Machine;

/// Maximum length of a path in bytes: other users choose it.
const LONGEST: usize = 512;
/// Maximum of remembered moves; when it is reached, all are forgotten.
const MOST_MOVES: usize = 8_192;

/// The control group of a thread in one hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group<'t> {
    /// The number of the hierarchy: 0 for the unified one.
    hierarchy: u32,
    path: &'t str,
}

/// The groups in the text of `/proc/PID/cgroup` that may say what a thread belongs to, the most telling first. Version 1
/// has a group in each hierarchy: that of the CPU controller counts, which container runtimes and quotas use, then
/// systemd's own, then that of version 2.
fn groups(text: &str) -> impl Iterator<Item = Group<'_>> + Clone {
    let of = |is_it: fn(&str) -> bool| {
        text.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            let hierarchy = number.parse().ok()?;
            (is_it(controllers) && path.len() <= LONGEST).then_some(Group { hierarchy, path })
        })
    };
    let cpu = of(|controllers| controllers.split(',').any(|of| of == "cpu"));
    let systemd = of(|controllers| controllers == "name=systemd");
    let unified = of(str::is_empty);
    [cpu, systemd, unified].into_iter().flatten()
}

/// The group of a thread with this `/proc/PID/cgroup`. The topmost group says nothing, so another one counts then.
pub(crate) fn group_of(text: &str) -> Option<Name> {
    let all = groups(text);
    let telling = all.clone().find(|group| group.path != "/");
    telling
        .or_else(|| all.last())
        .map(|group| group.path.into())
}

/// A point in the order of moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MoveNo(u64);

/// The latest moves between groups, as recorded.
pub(crate) struct Moves {
    /// The hierarchies that count.
    hierarchies: Vec<u32>,
    /// By thread, or by process if all its threads moved.
    latest: KeyedMap<i32, (MoveNo, Name)>,
    now: MoveNo,
}

impl Moves {
    pub(crate) fn new(machine: &Machine) -> Moves {
        let own = machine.read("/proc/self/cgroup").unwrap_or_default();
        Moves {
            hierarchies: groups(&own).map(|group| group.hierarchy).collect(),
            latest: KeyedMap::default(),
            now: MoveNo::default(),
        }
    }

    /// After all moves so far.
    pub(crate) fn now(&self) -> MoveNo {
        self.now
    }

    /// A thread, or the process with this first thread, moved.
    pub(crate) fn moved(&mut self, hierarchy: u32, tid: i32, path: &Name) {
        // In one of several hierarchies the topmost group says nothing.
        let tells = path.as_ref() != "/" || self.hierarchies.len() == 1;
        if !self.hierarchies.contains(&hierarchy) || !tells || path.len() > LONGEST {
            return;
        }
        if self.latest.len() >= MOST_MOVES {
            self.latest.clear();
        }
        self.now.0 += 1;
        self.latest.insert(tid, (self.now, path.clone()));
    }

    /// The id belongs to a new thread.
    pub(crate) fn born(&mut self, tid: i32) {
        self.latest.remove(&tid);
    }

    /// An identity that was read or inherited at `since`, with the group that the thread moved to meanwhile.
    pub(crate) fn since(&self, since: MoveNo, tid: i32, identity: &TaskIdentity) -> TaskIdentity {
        let mut identity = identity.clone();
        let ids = [Some(tid), identity.tgid].into_iter().flatten();
        let moves = ids.filter_map(|id| self.latest.get(&id));
        if let Some((_, path)) = moves
            .filter(|(at, _)| *at > since)
            .max_by_key(|(at, _)| *at)
        {
            identity.owner.get_or_insert_default().cgroup = Some(path.clone());
        }
        identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_group_of_several_hierarchies_counts() {
        for (text, group) in [
            (
                "0::/system.slice/x.service\n",
                Some("/system.slice/x.service"),
            ),
            ("0::/\n", Some("/")),
            ("", None),
            ("nonsense\n1:cpu\n", None),
            // A container on a machine with both versions.
            (
                "4:cpu,cpuacct:/docker/1\n1:name=systemd:/docker/1\n0::/system.slice/containerd.service\n",
                Some("/docker/1"),
            ),
            // A service without a group of the CPU controller.
            (
                "4:cpu,cpuacct:/\n1:name=systemd:/system.slice/x.service\n0::/\n",
                Some("/system.slice/x.service"),
            ),
            (
                "4:cpu,cpuacct:/\n1:name=systemd:/\n0::/user.slice\n",
                Some("/user.slice"),
            ),
            ("9:memory:/big\n4:cpu,cpuacct:/\n0::/\n", Some("/")),
            ("2:cpuset:/box\n0::/a:b\n", Some("/a:b")),
        ] {
            assert_eq!(group_of(text).as_deref(), group, "{text}");
        }
        assert_eq!(group_of(&format!("0::/{}\n", "x".repeat(LONGEST))), None);
    }

    fn moves(own: &str) -> Moves {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), own).unwrap();
        Moves::new(&Machine::at(dir.path()))
    }

    fn group_after(moves: &Moves, since: MoveNo, tid: i32, tgid: i32) -> Option<String> {
        let identity = TaskIdentity {
            tgid: Some(tgid),
            ..TaskIdentity::default()
        };
        let owner = moves.since(since, tid, &identity).owner;
        owner.and_then(|owner| Some(owner.cgroup?.to_string()))
    }

    #[test]
    fn a_later_move_of_the_thread_or_its_process_counts() {
        let mut moves = moves("0::/\n");
        let first = moves.now();
        moves.moved(0, 7, &"/a".into());
        assert_eq!(group_after(&moves, first, 8, 7).as_deref(), Some("/a"));
        // What was read after the move is what it moved to, or newer.
        assert_eq!(group_after(&moves, moves.now(), 8, 7), None);
        moves.moved(0, 8, &"/b".into());
        assert_eq!(group_after(&moves, first, 8, 7).as_deref(), Some("/b"));
        moves.moved(0, 7, &"/".into());
        assert_eq!(group_after(&moves, first, 8, 7).as_deref(), Some("/"));
        moves.born(7);
        moves.born(8);
        assert_eq!(group_after(&moves, first, 8, 7), None);
    }

    #[test]
    fn moves_in_other_hierarchies_or_to_the_top_of_one_of_several_do_not_count() {
        let mut moves = moves("4:cpu:/\n3:memory:/x\n1:name=systemd:/\n0::/\n");
        let first = moves.now();
        moves.moved(3, 7, &"/a".into());
        moves.moved(4, 7, &"/".into());
        moves.moved(4, 7, &"x".repeat(LONGEST + 1).into());
        assert_eq!(group_after(&moves, first, 7, 7), None);
        moves.moved(1, 7, &"/b".into());
        assert_eq!(group_after(&moves, first, 7, 7).as_deref(), Some("/b"));
        for tid in 0..2 * MOST_MOVES as i32 {
            moves.moved(4, tid, &"/c".into());
        }
        assert!(moves.latest.len() <= MOST_MOVES);
    }
}
