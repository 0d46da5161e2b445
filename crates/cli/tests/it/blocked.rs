//! `attach` on threads that block for a known reason, for a time that they measure themselves.

use crate::live;

use jitterscope_testing::skip;
use live::{can_trace, jitterscope, json, stderr, turn};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Threads `bk-REASON` that each wait for one thing several times, one thread after the other. Prints what each
/// measured around its calls, in nanoseconds. A helper ends the waits: it sleeps, then acts.
const PROGRAM: &str = r#"
import fcntl, mmap, os, select, signal, socket, sys, threading, time

ROUNDS, LENGTH = 8, 0.025
folder = sys.argv[1]
results = []

class Helper:
    """Acts LENGTH after each request."""
    def __init__(self, act):
        self.asked, self.ask = os.pipe()
        self.act = act
        threading.Thread(target=self.run, daemon=True).start()
    def run(self):
        open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('bk-helper')
        while os.read(self.asked, 1) == b'x':
            time.sleep(LENGTH)
            self.act()
    def soon(self):
        os.write(self.ask, b'x')

def waits(reason, wait, prepare=lambda: None, rounds=ROUNDS):
    def run():
        open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write('bk-' + reason)
        total = 0
        for _ in range(rounds):
            prepare()
            begin = time.monotonic_ns()
            wait()
            total += time.monotonic_ns() - begin
        results.append((reason, total))
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

waits('timer', lambda: time.sleep(LENGTH))

lock = threading.Lock()
lock.acquire()
holder = Helper(lock.release)
# A released lock stays with the waiter, who has then taken it for the next round.
waits('lock', lock.acquire, holder.soon)

def of(reason, wait, act):
    helper = Helper(act)
    waits(reason, wait, helper.soon)

r, w = os.pipe()
of('pipe', lambda: os.read(r, 1), lambda: os.write(w, b'x'))

poll = select.poll()
poll.register(r, select.POLLIN)
waits('poll', lambda: poll.poll(LENGTH * 1000))

a, b = socket.socketpair()
of('network', lambda: a.recv(1), lambda: b.send(b'x'))

server = socket.socket()
server.bind(('127.0.0.1', 0))
server.listen()
client = socket.create_connection(server.getsockname())
served, _ = server.accept()
of('network-tcp', lambda: served.recv(1), lambda: client.send(b'x'))

path = os.path.join(folder, 'lock')
held, wanted = open(path, 'w'), open(path, 'w')
fcntl.flock(held, fcntl.LOCK_EX)
def hold_again():
    fcntl.flock(wanted, fcntl.LOCK_UN)
    fcntl.flock(held, fcntl.LOCK_EX)
    keeper.soon()
keeper = Helper(lambda: fcntl.flock(held, fcntl.LOCK_UN))
waits('file_lock', lambda: fcntl.flock(wanted, fcntl.LOCK_EX), hold_again)

def child():
    os.waitpid(os.posix_spawn('/bin/sleep', ['sleep', str(LENGTH)], os.environ), 0)
waits('child', child)

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
waits('signal', lambda: signal.sigtimedwait([signal.SIGUSR1], LENGTH))

big = os.open(os.path.join(folder, 'big'), os.O_RDWR | os.O_CREAT)
if os.major(os.fstat(big).st_dev):
    block = os.urandom(8 << 20)
    waits('disk', lambda: os.fsync(big), lambda: os.pwrite(big, block, 0), 3)
    pages = mmap.mmap(big, len(block), prot=mmap.PROT_READ)
    pages.madvise(mmap.MADV_RANDOM)
    def forget():
        os.posix_fadvise(big, 0, 0, os.POSIX_FADV_DONTNEED)
    def touch():
        for at in range(0, len(block), 1 << 20):
            pages[at]
    waits('file_fault', touch, forget, 3)

for reason, total in results:
    print(reason, total, file=sys.stderr)
"#;

fn attach(runs: &Path, folder: &Path) -> Output {
    let folder = folder.to_str().unwrap();
    let args = [
        "attach", "--json", "-q", "--", "python3", "-c", PROGRAM, folder,
    ];
    jitterscope(runs, &args)
}

fn ns(of: &Value, name: &str) -> f64 {
    of[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} in {of}"))
}

/// The time that a thread was blocked for one of these reasons.
fn blocked_on(thread: &Value, reasons: &[&str]) -> f64 {
    let rows = thread["blocked_on"].as_array().unwrap();
    let of = rows
        .iter()
        .filter(|row| reasons.iter().any(|reason| row["reason"] == *reason));
    of.map(|row| ns(row, "blocked_ns")).sum()
}

fn threads(report: &Value) -> &Vec<Value> {
    report["threads"].as_array().unwrap()
}

fn named<'a>(report: &'a Value, name: &str) -> &'a Value {
    let of = |thread: &&Value| thread["comm"] == name;
    threads(report)
        .iter()
        .find(of)
        .unwrap_or_else(|| panic!("no {name} in {:#}", report["threads"]))
}

/// Checks that the reasons of each thread sum to its blocked time.
fn assert_sums(report: &Value) {
    for thread in threads(report) {
        let rows = thread["blocked_on"].as_array().unwrap();
        let sum: u64 = rows
            .iter()
            .map(|row| row["blocked_ns"].as_u64().unwrap())
            .sum();
        assert_eq!(thread["blocked_ns"].as_u64(), Some(sum), "{thread:#}");
    }
}

#[test]
fn each_reason_and_its_time_are_those_of_the_program() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    if Command::new("python3").arg("-V").output().is_err() {
        return skip("there is no python3");
    }
    let (runs, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = attach(runs.path(), folder.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    assert_sums(&report);
    let text = stderr(&output);
    let measured: Vec<(&str, f64)> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(reason, total)| Some((reason, total.parse().ok()?)))
        .collect();
    assert!(measured.len() >= 9, "{text}");
    for (reason, wall) in &measured {
        let name = format!("bk-{reason}");
        let thread = named(&report, &name);
        let others = ns(thread, "running_ns") + ns(thread, "waiting_ns");
        match *reason {
            "disk" => {
                let disk = blocked_on(thread, &["disk", "writeback"]);
                assert!(disk > 0.98 * blocked_on(thread, REASONS), "{thread:#}");
                assert!(disk < 1.02 * wall, "{wall} in {thread:#}");
            }
            // A thread that is preempted meanwhile need not sleep: its page has come.
            "file_fault" if blocked_on(thread, REASONS) == 0.0 => {
                skip("waits for pages of a file: they came before the thread slept");
            }
            "file_fault" => {
                let fault = blocked_on(thread, &["file_fault"]);
                assert!(fault > 0.9 * blocked_on(thread, REASONS), "{thread:#}");
                assert!(fault < 1.02 * wall, "{wall} in {thread:#}");
            }
            reason => {
                let own = blocked_on(thread, &[reason.split('-').next().unwrap()]);
                assert!(own < 1.02 * wall, "{wall} in {thread:#}");
                // After its wait the interpreter may wait for a CPU, and for its global lock.
                let lock = blocked_on(thread, &["lock"]);
                let rest = if reason == "lock" { 0.0 } else { lock };
                assert!(own + others + rest > 0.98 * wall, "{wall} in {thread:#}");
            }
        }
    }
    if !measured.iter().any(|(reason, _)| *reason == "disk") {
        skip("waits for a disk: the temporary folder is not on one");
    }
    // The same verdicts come from the stored trace.
    let again = json(&jitterscope(
        runs.path(),
        &["report", "--reattribute", "--json"],
    ));
    assert_eq!(again["threads"], report["threads"]);
}

/// What a read, a write or a sync may wait for.
const REASONS: &[&str] = &[
    "disk",
    "writeback",
    "page_lock",
    "file_fault",
    "memory_fault",
    "reclaim",
    "kernel_lock",
];

#[test]
fn without_stacks_the_time_is_there_and_its_reason_is_not() {
    let _turn = turn();
    if !can_trace() {
        return;
    }
    let runs = tempfile::tempdir().unwrap();
    let sleeps = ["--", "sleep", "1"];
    let condition = ["--fail-if", "blocked(timer)>50%"];
    let args = [
        &["attach", "--json", "-q", "--no-stacks"],
        &condition[..],
        &sleeps,
    ]
    .concat();
    let output = jitterscope(runs.path(), &args);
    // The condition cannot be decided.
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("unknown reason"),
        "{}",
        stderr(&output)
    );
    let report = json(&output);
    assert_sums(&report);
    let rows = named(&report, "sleep")["blocked_on"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["reason"], "not_recorded");
    assert_eq!(rows[0]["unknown_because"], "off");
    let args = [&["attach", "--json", "-q"], &condition[..], &sleeps].concat();
    let output = jitterscope(runs.path(), &args);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}
