//! What threads belong to: process, user and control group, asked of `/proc` while they live.

use jitterscope_model::{Comm, KeyedMap, KeyedSet, Name, Owner, TaskIdentity};
use jitterscope_platform::{Machine, TaskStat};
use std::time::{Duration, Instant};

/// Threads remembered; beyond it all are forgotten and asked for again.
const CAPACITY: usize = 8_192;
/// How long an answer is believed before it is asked whether it is still the same thread.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long a thread that is gone is remembered: its last records are attributed within a drain or two.
const FORGET: Duration = Duration::from_secs(10);
/// Threads asked for within [`WINDOW`], so that a storm of short ones does not hold up the drain: at some
/// 50 us each these are two thousandths of a CPU.
const MOST_ASKED: u32 = 32;
const WINDOW: Duration = Duration::from_millis(50);
/// The longest path of a control group that is kept, bytes: whoever may make groups chooses their names.
const LONGEST_CGROUP: usize = 512;

/// `PF_WQ_WORKER` of a task's flags.
const WORKER: u64 = 0x20;
/// Id of `kthreadd`, which makes the kernel's own threads once the machine has started.
const KTHREADD: i32 = 2;

/// Which thread of its id it is, and whether it is one of the kernel's own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Began {
    /// In the kernel's clock ticks since boot.
    at: u64,
    kernel: bool,
}

/// Ids are used again: an answer is that of a thread of this name which began at this time.
struct Known {
    started: Option<Began>,
    identity: TaskIdentity,
    /// When it was last confirmed.
    confirmed: Instant,
    /// When it was last asked for.
    asked: Instant,
}

/// The identity last given for each thread, kept alike while recording and in a replay: within a turn the answer
/// for a thread does not change.
#[derive(Default)]
pub(crate) struct LastIdentities(KeyedMap<(i32, Comm), TaskIdentity>);

impl LastIdentities {
    /// A turn begins.
    pub(crate) fn turn(&mut self) {
        if self.0.len() >= CAPACITY {
            self.0.clear();
        }
    }

    /// The last one given; empty where none was.
    pub(crate) fn of(&self, tid: i32, comm: Comm) -> TaskIdentity {
        self.0.get(&(tid, comm)).cloned().unwrap_or_default()
    }

    /// The answer from now on.
    pub(crate) fn set(&mut self, tid: i32, comm: Comm, identity: TaskIdentity) {
        self.0.insert((tid, comm), identity);
    }
}

/// Answers, remembered.
pub(crate) struct Identities {
    machine: Machine,
    known: KeyedMap<(i32, Comm), Known>,
    /// What threads that were seen to be made belong to by that: all there is to know of one that ended before
    /// it was asked for.
    births: KeyedMap<i32, TaskIdentity>,
    /// Ids last seen to be of threads of user space, whatever these called themselves.
    of_user: KeyedSet<i32>,
    window: Instant,
    asked: u32,
}

impl Identities {
    pub(crate) fn new(machine: Machine) -> Identities {
        let (known, births, of_user) = Default::default();
        Identities {
            machine,
            known,
            births,
            of_user,
            window: Instant::now(),
            asked: 0,
        }
    }

    /// A thread was made: one more of its maker's process, or the first of a new one. `comm` is the name that
    /// both bear at that moment. Only one thread makes the kernel's own: of all others it is known that they are
    /// none, however short their lives and whatever they call themselves.
    pub(crate) fn born(&mut self, tid: i32, maker: i32, comm: Comm, thread: bool) {
        let kernel = Some(maker == KTHREADD && !thread);
        let identity = if thread {
            let of_maker = self.of(maker, comm);
            let named = of_maker
                .process
                .clone()
                .or_else(|| Some(comm.to_string().into()));
            TaskIdentity {
                process: named.filter(|_| of_maker.tgid.is_some()),
                kernel,
                ..of_maker
            }
        } else {
            // Whose it will be is known when it has begun to run something.
            TaskIdentity {
                tgid: Some(tid),
                kernel,
                ..TaskIdentity::default()
            }
        };
        if self.births.len() >= CAPACITY {
            self.births.clear();
        }
        self.births.insert(tid, identity);
        self.of_user.remove(&tid);
    }

    /// What it belongs to by its birth, as far as that was seen, and that it is of user space where the thread of
    /// this id was when it was last looked at, under any name: a name that lasts for less than a drain is never
    /// found there, and one like a kernel thread's must not make a kernel thread of it.
    fn by_birth(&self, tid: i32) -> TaskIdentity {
        let born = self.births.get(&tid).cloned().unwrap_or_default();
        TaskIdentity {
            kernel: born.kernel.or(self.of_user.contains(&tid).then_some(false)),
            ..born
        }
    }

    /// What the thread of this id and name belongs to. By its birth at most when it had ended before it was
    /// asked for, when another one has its id or it has another name by now, and when too many were asked for at
    /// once.
    pub(crate) fn of(&mut self, tid: i32, comm: Comm) -> TaskIdentity {
        if tid <= 0 {
            return TaskIdentity::default();
        }
        let key = (tid, comm);
        if let Some(known) = self.known.get(&key)
            && known.asked.elapsed() < ASK_AGAIN
        {
            return known.identity.clone();
        }
        if !self.may_ask() {
            // What was known a moment ago is better than nothing.
            let still = self
                .known
                .get(&key)
                .filter(|known| known.confirmed.elapsed() < FORGET);
            return still.map_or_else(|| self.by_birth(tid), |known| known.identity.clone());
        }
        let now = Instant::now();
        let started = self.started(tid, comm);
        if let Some(known) = self.known.get_mut(&key) {
            known.asked = now;
            match started {
                Some(_) if started == known.started => {
                    known.confirmed = now;
                    return known.identity.clone();
                }
                None if known.started.is_some() && known.confirmed.elapsed() < FORGET => {
                    return known.identity.clone();
                }
                _ => {}
            }
        }
        let identity = match started {
            // Asked in between, it is the same thread only if it still began when it did.
            Some(Began { kernel, .. }) => {
                let read = TaskIdentity {
                    kernel: Some(kernel),
                    ..self.read(tid)
                };
                Some(read).filter(|_| self.started(tid, comm) == started)
            }
            None => None,
        };
        let started = started.filter(|_| identity.is_some());
        let identity = identity.unwrap_or_else(|| self.by_birth(tid));
        if self.known.len() >= CAPACITY {
            self.known.clear();
        }
        self.known.insert(
            key,
            Known {
                started,
                identity: identity.clone(),
                confirmed: now,
                asked: now,
            },
        );
        identity
    }

    fn may_ask(&mut self) -> bool {
        if self.window.elapsed() >= WINDOW {
            (self.window, self.asked) = (Instant::now(), 0);
        }
        self.asked += 1;
        self.asked <= MOST_ASKED
    }

    /// Which thread it is; `None` when there is none of this id and name.
    fn started(&mut self, tid: i32, comm: Comm) -> Option<Began> {
        // Of a thread: for a process the kernel adds up the times of all its threads.
        let stat = TaskStat::of_thread(&self.machine, tid, tid)?;
        let (name, flags) = (stat.name(), stat.flags()?);
        let kernel = stat.is_kernel_thread()?;
        if kernel {
            self.of_user.remove(&tid);
        } else {
            if self.of_user.len() >= CAPACITY {
                self.of_user.clear();
            }
            self.of_user.insert(tid);
        }
        // Here a worker's name has its work behind it.
        let worker = flags & WORKER != 0 && name.as_bytes().starts_with(comm.as_bytes());
        if Comm::new(name) != comm && !worker {
            return None;
        }
        Some(Began {
            at: stat.start_time()?,
            kernel,
        })
    }

    fn read(&self, tid: i32) -> TaskIdentity {
        let status = self
            .machine
            .read(format!("/proc/{tid}/status"))
            .unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()
        };
        let tgid = field("Tgid:").and_then(|number| number.parse().ok());
        let uid = field("Uid:").and_then(|number| number.parse().ok());
        let groups = self
            .machine
            .read(format!("/proc/{tid}/cgroup"))
            .unwrap_or_default();
        let cgroup = groups.lines().find_map(|line| line.strip_prefix("0::"));
        let cgroup = cgroup
            .filter(|path| path.len() <= LONGEST_CGROUP)
            .map(Name::from);
        // While the thread lives, its process does, and the id is that of no other.
        let process = tgid.filter(|tgid| *tgid != tid).and_then(|tgid: i32| {
            let name = self.machine.read(format!("/proc/{tgid}/comm")).ok()?;
            Some(Comm::new(name.trim_end_matches('\n')).to_string().into())
        });
        TaskIdentity {
            tgid,
            process,
            owner: uid.map(|uid| Owner { uid, cgroup }),
            kernel: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc_of(root: &std::path::Path, tid: i32, comm: &str, started: u64, uid: u32) {
        proc_with(root, (tid, comm), started, uid, 0x40_0000);
    }

    fn proc_with(
        root: &std::path::Path,
        (tid, comm): (i32, &str),
        started: u64,
        uid: u32,
        flags: u64,
    ) {
        let dir = root.join(format!("proc/{tid}"));
        std::fs::create_dir_all(&dir).unwrap();
        let (before, after) = ("0 ".repeat(5), "0 ".repeat(12));
        let stat = format!("{tid} ({comm}) S {before}{flags} {after}{started} 0 0\n");
        let task = dir.join(format!("task/{tid}"));
        std::fs::create_dir_all(&task).unwrap();
        std::fs::write(task.join("stat"), stat).unwrap();
        let status = format!("Name:\t{comm}\nTgid:\t7\nPid:\t{tid}\nUid:\t{uid}\t0\t0\t0\n");
        std::fs::write(dir.join("status"), status).unwrap();
        std::fs::write(
            dir.join("cgroup"),
            "1:cpu:/old\n0::/system.slice/x.service\n",
        )
        .unwrap();
    }

    #[test]
    fn a_thread_is_known_by_id_and_name_as_long_as_it_is_the_same_one() {
        let dir = tempfile::tempdir().unwrap();
        proc_of(dir.path(), 42, "a) (b", 100, 1000);
        let mut identities = Identities::new(Machine::at(dir.path()));
        let comm = Comm::new("a) (b");
        let found = identities.of(42, comm);
        assert_eq!(found.tgid, Some(7));
        let owner = found.owner.unwrap();
        assert_eq!(
            (owner.uid, owner.cgroup.as_deref()),
            (1000, Some("/system.slice/x.service"))
        );
        // Another one's name, an idle thread, and one that is gone.
        let of_user = TaskIdentity {
            kernel: Some(false),
            ..TaskIdentity::default()
        };
        assert_eq!(identities.of(42, Comm::new("other")), of_user);
        assert_eq!(
            identities.of(0, Comm::new("swapper/0")),
            TaskIdentity::default()
        );
        assert_eq!(identities.of(43, comm), TaskIdentity::default());
        // The id is used again by a thread of the same name.
        proc_of(dir.path(), 42, "a) (b", 200, 33);
        identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
        assert_eq!(identities.of(42, comm).owner.unwrap().uid, 33);
        // Gone, but its last records are still being attributed.
        std::fs::remove_dir_all(dir.path().join("proc/42")).unwrap();
        identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
        assert_eq!(identities.of(42, comm).owner.unwrap().uid, 33);
        let known = identities.known.get_mut(&(42, comm)).unwrap();
        (known.asked, known.confirmed) =
            (known.asked - 2 * ASK_AGAIN, known.confirmed - 2 * FORGET);
        assert_eq!(identities.of(42, comm), of_user);
    }

    #[test]
    fn who_has_ended_before_it_was_asked_for_is_known_by_its_birth() {
        let dir = tempfile::tempdir().unwrap();
        proc_of(dir.path(), 7, "rustc", 100, 1000);
        let mut identities = Identities::new(Machine::at(dir.path()));
        let rustc = Comm::new("rustc");
        // The first thread of process 7 makes another, which makes a third; all that lives is the first.
        identities.born(42, 7, rustc, true);
        identities.born(43, 42, rustc, true);
        for (tid, comm) in [(42, "opt cgu.3"), (43, "lto cgu.9")] {
            let found = identities.of(tid, Comm::new(comm));
            assert_eq!(
                (found.tgid, found.process.as_deref()),
                (Some(7), Some("rustc")),
                "{comm}"
            );
            assert_eq!(found.owner.map(|owner| owner.uid), Some(1000));
        }
        // A process of its own, whoever made it.
        identities.born(44, 7, rustc, false);
        let found = identities.of(44, Comm::new("ld"));
        let of_user = TaskIdentity {
            kernel: Some(false),
            ..TaskIdentity::default()
        };
        assert_eq!(
            found,
            TaskIdentity {
                tgid: Some(44),
                ..of_user.clone()
            }
        );
        // Of the maker nothing is known, so nothing is of the thread: its name at birth is not said to be its
        // process's.
        identities.born(51, 50, Comm::new("gone"), true);
        assert_eq!(identities.of(51, Comm::new("worker")), of_user);
        // The id is used again.
        identities.born(42, 1, rustc, false);
        assert_eq!(identities.of(42, Comm::new("cc")).tgid, Some(42));
    }

    #[test]
    fn the_kernels_own_threads_are_known_by_their_flags_whatever_their_names() {
        let dir = tempfile::tempdir().unwrap();
        proc_with(
            dir.path(),
            (50, "kworker/1:2-events_freezable"),
            9,
            0,
            0x0420_8060,
        );
        proc_of(dir.path(), 51, "kworker/1:9", 9, 1000);
        proc_with(dir.path(), (52, "rcu_preempt"), 9, 0, 0x0020_8040);
        let mut identities = Identities::new(Machine::at(dir.path()));
        let mut kernel = |tid, comm| identities.of(tid, Comm::new(comm)).kernel;
        assert_eq!(kernel(50, "kworker/1:2"), Some(true));
        assert_eq!(kernel(51, "kworker/1:9"), Some(false));
        assert_eq!(kernel(52, "rcu_preempt"), Some(true));
        assert_eq!(kernel(53, "gone"), None);
        // A name that it bore for too short a time to be found under it.
        proc_of(dir.path(), 54, "sleeps", 9, 1000);
        assert_eq!(kernel(54, "kworker/0:3"), Some(false));
        // Its id is used again by a worker.
        proc_with(dir.path(), (51, "kworker/1:8"), 10, 0, 0x0420_8060);
        assert_eq!(kernel(51, "kworker/1:8"), Some(true));
        assert_eq!(kernel(51, "kworker/1:7"), None);
    }

    #[test]
    fn who_made_a_thread_shows_whether_it_is_one_of_the_kernels_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut identities = Identities::new(Machine::at(dir.path()));
        let comm = Comm::new("kworker/1:7");
        // All of them are gone before anybody could look.
        identities.born(60, 4711, comm, false);
        identities.born(61, 4711, comm, true);
        identities.born(62, KTHREADD, comm, false);
        let mut kernel = |tid| identities.of(tid, comm).kernel;
        assert_eq!(
            [kernel(60), kernel(61), kernel(62)],
            [Some(false), Some(false), Some(true)]
        );
    }

    #[test]
    fn a_name_that_comes_when_no_more_are_asked_for_makes_no_kernel_thread_of_a_known_one() {
        let dir = tempfile::tempdir().unwrap();
        proc_of(dir.path(), 51, "sleeps", 9, 1000);
        let mut identities = Identities::new(Machine::at(dir.path()));
        assert_eq!(identities.of(51, Comm::new("sleeps")).kernel, Some(false));
        (identities.window, identities.asked) =
            (Instant::now() + Duration::from_secs(60), MOST_ASKED);
        assert_eq!(
            identities.of(51, Comm::new("kworker/1:9")).kernel,
            Some(false)
        );
        assert_eq!(identities.of(52, Comm::new("kworker/1:9")).kernel, None);
    }

    #[test]
    fn a_storm_of_threads_is_not_asked_for_one_by_one() {
        let dir = tempfile::tempdir().unwrap();
        for tid in 1..200 {
            proc_of(dir.path(), tid, "bash", 1, 0);
        }
        let mut identities = Identities::new(Machine::at(dir.path()));
        identities.window = Instant::now() + Duration::from_secs(60);
        let known = (1..200)
            .filter(|tid| identities.of(*tid, Comm::new("bash")).tgid.is_some())
            .count();
        assert_eq!(known, MOST_ASKED as usize);
    }
}
