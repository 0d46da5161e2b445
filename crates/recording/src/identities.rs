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
    /// however short its life and whatever its name. `into_cgroup`: it begins in another control group than its maker's.
    pub(crate) fn born(
        &mut self,
        tid: i32,
        maker: i32,
        comm: Comm,
        thread: bool,
        into_cgroup: bool,
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
        if into_cgroup && let Some(owner) = &mut identity.owner {
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
#[path = "identities_tests.rs"]
mod tests;
