//! What threads belong to: process, user and control group, read from `/proc` while the threads live.

use crate::groups::{MoveNo, Moves, group_of};
use jitterscope_model::{Comm, KeyedMap, KeyedSet, Name, Owner, TaskIdentity};
use jitterscope_platform::{Machine, TaskStat};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum of remembered threads; when it is reached, all are forgotten and read again.
const CAPACITY: usize = 8_192;
/// How long an answer is used before a check that the id still belongs to the same thread.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long an ended thread is remembered: its last records are attributed within a drain or two.
const FORGET: Duration = Duration::from_secs(10);
/// Limit on threads read within [`WINDOW`], so that a storm of short threads does not delay the drain. At about 50 us
/// each, this is 0.2% of a CPU.
const MOST_ASKED: u32 = 32;
const WINDOW: Duration = Duration::from_millis(50);
/// Limit on successive names of a thread.
const MOST_NAMES: usize = 64;
/// Maximum length, in bytes, of the path of an executable, and of a list of CPUs: other users choose them.
const LONGEST: usize = 512;

/// Minimum age, in clock ticks, at which a thread is certain to be the one in the current records, whatever its name:
/// records are read within about a second.
const OLD: u64 = 200;
/// Clock ticks a second in `/proc`.
const TICKS: f64 = 100.0;

/// `PF_WQ_WORKER` in a task's flags.
const WORKER: u64 = 0x20;
/// Id of `kthreadd`, which creates the kernel threads once the machine has started.
const KTHREADD: i32 = 2;

/// Distinguishes threads that used the same id, and says whether it is a kernel thread.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Began {
    /// In the kernel's clock ticks since boot.
    at: u64,
    kernel: bool,
}

/// Ids are reused, so an answer applies only to the thread with this name and start time.
struct Known {
    started: Option<Began>,
    identity: TaskIdentity,
    read: MoveNo,
    confirmed: Instant,
    asked: Instant,
}

/// An old thread, found by its id alone: a thread that renames itself constantly never has the name of a record when it
/// is read.
struct Old {
    identity: TaskIdentity,
    read: MoveNo,
    asked: Instant,
}

/// The last identity given for each thread. It does not change within a turn, so that a replay gives the same answers
/// as the recording.
#[derive(Default)]
pub(crate) struct LastIdentities(KeyedMap<(i32, Comm), TaskIdentity>);

impl LastIdentities {
    pub(crate) fn turn(&mut self) {
        if self.0.len() >= CAPACITY {
            self.0.clear();
        }
    }

    /// The last identity given; empty if there was none.
    pub(crate) fn of(&self, tid: i32, comm: Comm) -> TaskIdentity {
        self.0.get(&(tid, comm)).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, tid: i32, comm: Comm, identity: TaskIdentity) {
        self.0.insert((tid, comm), identity);
    }
}

pub(crate) struct Identities {
    machine: Machine,
    known: KeyedMap<(i32, Comm), Known>,
    old: KeyedMap<i32, Old>,
    /// Identities inherited at creation: all that is known about a thread that ended before it was read.
    births: KeyedMap<i32, (MoveNo, TaskIdentity)>,
    moves: Moves,
    /// Renames per thread, as (old, new) in order.
    renames: KeyedMap<i32, VecDeque<(Comm, Comm)>>,
    /// Ids last seen as user space threads, whatever their names.
    of_user: KeyedSet<i32>,
    window: Instant,
    asked: u32,
}

impl Identities {
    pub(crate) fn new(machine: Machine) -> Identities {
        let (known, old, births, renames, of_user) = Default::default();
        Identities {
            moves: Moves::new(&machine),
            machine,
            known,
            old,
            births,
            renames,
            of_user,
            window: Instant::now(),
            asked: 0,
        }
    }

    /// A thread was created: another one of its maker's process, or the first of a new process. `comm` is the name of
    /// both at that moment. Only `kthreadd` creates kernel threads, so every other thread is known not to be one,
    /// however short its life and whatever its name. `regrouped`: it does not begin in its maker's control group.
    pub(crate) fn born(
        &mut self,
        tid: i32,
        maker: i32,
        comm: Comm,
        (thread, regrouped): (bool, bool),
    ) {
        let kernel = Some(maker == KTHREADD && !thread);
        let mut identity = if thread {
            let of_maker = self.of(maker, comm);
            let named = of_maker
                .process
                .clone()
                .or_else(|| Some(comm.to_string().into()));
            TaskIdentity {
                process: named.filter(|_| of_maker.tgid.is_some()),
                kernel,
                // It may have been moved before it was seen.
                allowed: None,
                ..of_maker
            }
        } else {
            // The process's name and file are known once it executes a program. Only root can give it to another user.
            let owner = self.of(maker, comm).owner.map(|maker| Owner {
                uid: maker.uid.filter(|uid| *uid != 0),
                executable: None,
                ..maker
            });
            TaskIdentity {
                tgid: Some(tid),
                kernel,
                owner,
                ..TaskIdentity::default()
            }
        };
        if regrouped && let Some(owner) = &mut identity.owner {
            owner.cgroup = None;
        }
        identity.owner = identity.owner.and_then(Owner::known);
        if self.births.len() >= CAPACITY {
            self.births.clear();
        }
        self.renames.remove(&tid);
        self.moves.born(tid);
        self.births.insert(tid, (self.moves.now(), identity));
        self.of_user.remove(&tid);
        self.old.remove(&tid);
    }

    /// A thread takes another name; its identity stays the same.
    pub(crate) fn renamed(&mut self, tid: i32, old: Comm, comm: Comm) {
        if self.renames.len() >= CAPACITY && !self.renames.contains_key(&tid) {
            self.renames.clear();
        }
        let names = self.renames.entry(tid).or_default();
        if names.len() >= MOST_NAMES {
            names.pop_front();
        }
        names.push_back((old, comm));
    }

    /// A thread, or the process with this first thread, moved to another control group of a hierarchy.
    pub(crate) fn moved(&mut self, hierarchy: u32, tid: i32, path: &Name) {
        self.moves.moved(hierarchy, tid, path);
    }

    /// The current name of the thread that had this one, according to the records.
    fn name_by_now(&self, tid: i32, comm: Comm) -> Comm {
        let names = self.renames.get(&tid).into_iter().flatten();
        names.fold(
            comm,
            |name, (old, new)| if name == *old { *new } else { name },
        )
    }

    /// The identity inherited at creation, if that was seen. A thread whose id was a user space thread's at the last
    /// read counts as user space under any name: a name that lasts less than a drain is never found, and a name like a
    /// kernel thread's must not turn it into one.
    fn by_birth(&self, tid: i32) -> TaskIdentity {
        let born = self.births.get(&tid);
        let born = born.map_or_else(TaskIdentity::default, |(at, identity)| {
            self.moves.since(*at, tid, identity)
        });
        TaskIdentity {
            kernel: born.kernel.or(self.of_user.contains(&tid).then_some(false)),
            ..born
        }
    }

    /// The identity of the thread with this id and name. Only the inherited identity is returned if the thread ended
    /// before it was read, if its id or name now belongs to another thread or name, or if too many threads were read at
    /// once.
    pub(crate) fn of(&mut self, tid: i32, comm: Comm) -> TaskIdentity {
        if tid <= 0 {
            return TaskIdentity::default();
        }
        let comm = self.name_by_now(tid, comm);
        let key = (tid, comm);
        if let Some(known) = self.known.get(&key)
            && known.asked.elapsed() < ASK_AGAIN
        {
            return self.moves.since(known.read, tid, &known.identity);
        }
        // A thread that renames itself constantly must not use up the limit for all.
        let old = self.old.get(&tid);
        if let Some(old) = old.filter(|old| old.asked.elapsed() < WINDOW) {
            return self.moves.since(old.read, tid, &old.identity);
        }
        if !self.may_ask() {
            // A recent answer is better than none.
            let still = self
                .known
                .get(&key)
                .filter(|known| known.confirmed.elapsed() < FORGET);
            let old = self.old.get(&tid);
            let old = old.filter(|old| old.asked.elapsed() < FORGET);
            return match (still, old) {
                (Some(known), _) => self.moves.since(known.read, tid, &known.identity),
                (None, Some(old)) => self.moves.since(old.read, tid, &old.identity),
                (None, None) => self.by_birth(tid),
            };
        }
        let now = Instant::now();
        let started = self.started(tid, comm);
        if let Some(known) = self.known.get_mut(&key) {
            known.asked = now;
            match started {
                Some(_) if started == known.started => {
                    known.confirmed = now;
                    // Only this part of the answer changes often: threads pin themselves after their start.
                    known.identity.allowed = allowed(&status(&self.machine, tid));
                    return self.moves.since(known.read, tid, &known.identity);
                }
                None if known.started.is_some() && known.confirmed.elapsed() < FORGET => {
                    return self.moves.since(known.read, tid, &known.identity);
                }
                _ => {}
            }
        }
        let read = self.moves.now();
        let identity = match started {
            // If it was read in between, it is the same thread only if its start time is unchanged.
            Some(Began { kernel, .. }) => {
                let identity = TaskIdentity {
                    kernel: Some(kernel),
                    ..self.read(tid)
                };
                Some(identity).filter(|_| self.started(tid, comm) == started)
            }
            None => None,
        };
        if let (Some(began), Some(identity)) = (started, &identity)
            && self.is_old(began.at)
        {
            if self.old.len() >= CAPACITY {
                self.old.clear();
            }
            let identity = identity.clone();
            self.old.insert(
                tid,
                Old {
                    identity,
                    read,
                    asked: now,
                },
            );
        }
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
                read,
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

    /// Whether a thread with this start time is older than the current records.
    fn is_old(&self, began: u64) -> bool {
        let uptime = self.machine.read("/proc/uptime").ok();
        let now = uptime.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        now.is_some_and(|now| began as f64 + OLD as f64 <= now * TICKS)
    }

    /// Which thread this is; `None` if no thread has this id and name and no old thread, renamed since, has this id.
    fn started(&mut self, tid: i32, comm: Comm) -> Option<Began> {
        // The thread's own file: for a process the kernel sums the times of all its threads.
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
        // Here the name of a worker is followed by its work.
        let worker = flags & WORKER != 0 && name.as_bytes().starts_with(comm.as_bytes());
        let is_called = Comm::new(name) == comm || worker;
        let at = stat.start_time()?;
        (is_called || self.is_old(at)).then_some(Began { at, kernel })
    }

    fn read(&self, tid: i32) -> TaskIdentity {
        let status = status(&self.machine, tid);
        let tgid = field(&status, "Tgid:").and_then(|number| number.parse().ok());
        let uid = field(&status, "Uid:").and_then(|number| number.parse().ok());
        let groups = self
            .machine
            .read(format!("/proc/{tid}/cgroup"))
            .unwrap_or_default();
        // While the thread lives, so does its process, and no other process has that id.
        let process = tgid.filter(|tgid| *tgid != tid).and_then(|tgid: i32| {
            let name = self.machine.read(format!("/proc/{tgid}/comm")).ok()?;
            Some(Comm::new(name.trim_end_matches('\n')).to_string().into())
        });
        // Kernel threads have none; only root can read those of other users.
        let executable = std::fs::read_link(self.machine.path(format!("/proc/{tid}/exe"))).ok();
        let executable = executable
            .filter(|path| path.as_os_str().len() <= LONGEST)
            .map(|path| Name::from(path.to_string_lossy()));
        let owner = Owner {
            uid,
            cgroup: group_of(&groups),
            executable,
        };
        TaskIdentity {
            tgid,
            process,
            owner: owner.known(),
            kernel: None,
            allowed: allowed(&status),
        }
    }
}

fn status(machine: &Machine, tid: i32) -> String {
    let read = machine.read(format!("/proc/{tid}/status"));
    read.unwrap_or_default()
}

/// The first word of a field in `/proc/PID/status`.
fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()
}

/// The CPUs that a thread may run on, from its status.
fn allowed(status: &str) -> Option<Name> {
    let list = field(status, "Cpus_allowed_list:").filter(|list| list.len() <= LONGEST);
    list.map(Name::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc_of(root: &std::path::Path, tid: i32, comm: &str, started: u64, uid: u32) {
        proc_with(root, (tid, comm), started, uid, 0x40_0000);
    }

    fn pinned(root: &std::path::Path, tid: i32, cpus: &str) {
        let path = root.join(format!("proc/{tid}/status"));
        let status = std::fs::read_to_string(&path).unwrap();
        let rest = status.lines().filter(|line| !line.starts_with("Cpus_"));
        let rest: String = rest.map(|line| format!("{line}\n")).collect();
        std::fs::write(path, format!("{rest}Cpus_allowed_list:\t{cpus}\n")).unwrap();
    }

    #[test]
    fn allowed_cpus_are_those_of_the_last_look() {
        let dir = tempfile::tempdir().unwrap();
        proc_of(dir.path(), 42, "hog", 100, 1000);
        let mut identities = Identities::new(Machine::at(dir.path()));
        let comm = Comm::new("hog");
        pinned(dir.path(), 42, "0-3");
        assert_eq!(identities.of(42, comm).allowed.as_deref(), Some("0-3"));
        pinned(dir.path(), 42, "1");
        assert_eq!(identities.of(42, comm).allowed.as_deref(), Some("0-3"));
        identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
        assert_eq!(identities.of(42, comm).allowed.as_deref(), Some("1"));
        // Another user can make it arbitrarily long.
        let every_other: Vec<String> = (0..400).map(|cpu| (2 * cpu).to_string()).collect();
        pinned(dir.path(), 42, &every_other.join(","));
        identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
        assert_eq!(identities.of(42, comm).allowed, None);
        // A thread that ended before it was read may have been pinned to other CPUs than its maker.
        pinned(dir.path(), 42, "1");
        identities.born(43, 42, comm, (true, false));
        let born = identities.of(43, Comm::new("worker"));
        assert_eq!((born.tgid, born.allowed), (Some(7), None));
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
        std::fs::write(dir.join("cgroup"), "1:cpu:/\n0::/system.slice/x.service\n").unwrap();
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
            (Some(1000), Some("/system.slice/x.service"))
        );
        // Another thread's name, an idle thread, and an ended thread.
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
        // Another thread of the same name reuses the id.
        proc_of(dir.path(), 42, "a) (b", 200, 33);
        identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
        assert_eq!(identities.of(42, comm).owner.unwrap().uid, Some(33));
        // It has ended, but its last records are still being attributed.
        std::fs::remove_dir_all(dir.path().join("proc/42")).unwrap();
        identities.known.get_mut(&(42, comm)).unwrap().asked -= 2 * ASK_AGAIN;
        assert_eq!(identities.of(42, comm).owner.unwrap().uid, Some(33));
        let known = identities.known.get_mut(&(42, comm)).unwrap();
        (known.asked, known.confirmed) =
            (known.asked - 2 * ASK_AGAIN, known.confirmed - 2 * FORGET);
        assert_eq!(identities.of(42, comm), of_user);
    }

    #[test]
    fn a_thread_that_took_another_name_is_still_whose_it_was() {
        let dir = tempfile::tempdir().unwrap();
        proc_of(dir.path(), 42, "c", 100, 1000);
        let mut identities = Identities::new(Machine::at(dir.path()));
        let name = Comm::new;
        for (old, new) in [("a", "b"), ("b", "a"), ("a", "c")] {
            identities.renamed(42, name(old), name(new));
        }
        for comm in ["a", "b", "c"] {
            assert_eq!(identities.of(42, name(comm)).tgid, Some(7), "{comm}");
        }
        assert_eq!(identities.of(42, name("d")).tgid, None);
        // The names of the id's last thread do not apply to the next one.
        identities.born(42, 9, name("x"), (false, false));
        assert_eq!(identities.of(42, name("b")).tgid, Some(42));
    }

    #[test]
    fn who_has_ended_before_it_was_asked_for_is_known_by_its_birth() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), "0::/\n").unwrap();
        proc_of(dir.path(), 7, "rustc", 100, 1000);
        let mut identities = Identities::new(Machine::at(dir.path()));
        let rustc = Comm::new("rustc");
        // The first thread of process 7 creates another, which creates a third; only the first is alive.
        identities.born(42, 7, rustc, (true, false));
        identities.born(43, 42, rustc, (true, false));
        for (tid, comm) in [(42, "opt cgu.3"), (43, "lto cgu.9")] {
            let found = identities.of(tid, Comm::new(comm));
            assert_eq!(
                (found.tgid, found.process.as_deref()),
                (Some(7), Some("rustc")),
                "{comm}"
            );
            assert_eq!(found.owner.and_then(|owner| owner.uid), Some(1000));
        }
        // A process of its own with the same user: only root can give it to another.
        identities.born(44, 7, rustc, (false, false));
        let found = identities.of(44, Comm::new("ld"));
        let of_user = TaskIdentity {
            kernel: Some(false),
            ..TaskIdentity::default()
        };
        let made = TaskIdentity {
            tgid: Some(44),
            ..of_user.clone()
        };
        let group = Owner {
            cgroup: Some("/system.slice/x.service".into()),
            ..Owner::default()
        };
        let hers = TaskIdentity {
            owner: Some(Owner {
                uid: Some(1000),
                ..group.clone()
            }),
            ..made.clone()
        };
        assert_eq!(found, hers);
        proc_of(dir.path(), 9, "cron", 100, 0);
        identities.born(45, 9, Comm::new("cron"), (false, false));
        let by_root = TaskIdentity {
            tgid: Some(45),
            owner: Some(group),
            ..made
        };
        assert_eq!(identities.of(45, Comm::new("job")), by_root);
        // It moves to another group, and a process of its own begins in yet another one.
        identities.moved(0, 45, &"/system.slice/job.service".into());
        let mut group_of = |tid, comm| {
            let owner = identities.of(tid, Comm::new(comm)).owner;
            owner.and_then(|owner| owner.cgroup)
        };
        assert_eq!(
            group_of(45, "more").as_deref(),
            Some("/system.slice/job.service")
        );
        identities.born(46, 45, Comm::new("more"), (false, true));
        identities.born(47, 45, Comm::new("more"), (false, false));
        let mut group_of = |tid, comm| {
            let owner = identities.of(tid, Comm::new(comm)).owner;
            owner.and_then(|owner| owner.cgroup)
        };
        assert_eq!(group_of(46, "new"), None);
        assert_eq!(
            group_of(47, "new").as_deref(),
            Some("/system.slice/job.service")
        );
        // Nothing is known about the maker, so nothing is known about the thread: its name at creation is not reported
        // as its process's.
        identities.born(51, 50, Comm::new("gone"), (true, false));
        assert_eq!(identities.of(51, Comm::new("worker")), of_user);
        // The id is reused.
        identities.born(42, 1, rustc, (false, false));
        assert_eq!(identities.of(42, Comm::new("cc")).tgid, Some(42));
    }

    #[test]
    fn who_renames_itself_all_the_time_is_known_by_its_id() {
        let dir = tempfile::tempdir().unwrap();
        proc_of(dir.path(), 42, "n0", 1000, 1000);
        proc_of(dir.path(), 43, "young", 4900, 1000);
        std::os::unix::fs::symlink("/opt/thief", dir.path().join("proc/42/exe")).unwrap();
        std::fs::write(dir.path().join("proc/uptime"), "50.00 80.00\n").unwrap();
        let mut identities = Identities::new(Machine::at(dir.path()));
        // It has none of these names when it is read, and its reads must not use up the limit for other threads.
        for n in 1..20 * MOST_ASKED {
            let found = identities.of(42, Comm::new(&format!("n{n}")));
            assert_eq!((found.tgid, found.kernel), (Some(7), Some(false)));
            let owner = found.owner.unwrap();
            assert_eq!(
                (owner.uid, owner.executable.as_deref()),
                (Some(1000), Some("/opt/thief"))
            );
        }
        assert!(identities.asked < MOST_ASKED / 2, "{}", identities.asked);
        // A thread that started just now may not be the one in the record.
        assert_eq!(identities.of(43, Comm::new("other")).tgid, None);
        assert_eq!(identities.of(43, Comm::new("young")).tgid, Some(7));
        // Its id is reused.
        proc_of(dir.path(), 9, "sh", 100, 33);
        identities.born(42, 9, Comm::new("sh"), (false, false));
        std::fs::remove_dir_all(dir.path().join("proc/42")).unwrap();
        let next = identities.of(42, Comm::new("m1"));
        let owner = next.owner.unwrap();
        assert_eq!((next.tgid, owner.uid), (Some(42), Some(33)));
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
        // A name that it had too briefly to be found under it.
        proc_of(dir.path(), 54, "sleeps", 9, 1000);
        assert_eq!(kernel(54, "kworker/0:3"), Some(false));
        // A worker reuses its id.
        proc_with(dir.path(), (51, "kworker/1:8"), 10, 0, 0x0420_8060);
        assert_eq!(kernel(51, "kworker/1:8"), Some(true));
        assert_eq!(kernel(51, "kworker/1:7"), None);
    }

    #[test]
    fn who_made_a_thread_shows_whether_it_is_one_of_the_kernels_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut identities = Identities::new(Machine::at(dir.path()));
        let comm = Comm::new("kworker/1:7");
        // All of them ended before they could be read.
        identities.born(60, 4711, comm, (false, false));
        identities.born(61, 4711, comm, (true, false));
        identities.born(62, KTHREADD, comm, (false, false));
        let mut kernel = |tid| identities.of(tid, comm).kernel;
        assert_eq!(
            [kernel(60), kernel(61), kernel(62)],
            [Some(false), Some(false), Some(true)]
        );
    }

    #[test]
    fn a_late_name_turns_no_known_thread_into_a_kernel_thread() {
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
