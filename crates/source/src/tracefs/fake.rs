//! A tracefs of plain files that a recording cannot distinguish from the kernel's.

use super::Tracefs;
use super::writer::{Live, TracefsWriter};
use crate::context::{FormatText, TraceContext};
use jitterscope_platform::{FileError, Machine};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fs, io};
use tempfile::TempDir;

/// The start time of this process in the fake `/proc`.
pub(super) const START: u64 = 4242;
const ROOT: &str = "/sys/kernel/tracing";

/// The fields of both function graph events.
const GRAPH_FIELDS: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:unsigned long func;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int depth;\toffset:16;\tsize:4;\tsigned:1;\n";

/// A fake machine with tracefs.
pub(super) struct Fake {
    pub(super) dir: TempDir,
    pub(super) writer: Arc<FakeWriter>,
}

#[derive(Debug)]
pub(super) struct FakeWriter {
    live: Live,
    /// A mount adds a line to this file.
    mountinfo: PathBuf,
    /// Every step in order: `mkdir local`, `local/tracing_on=0`, `rmdir local`.
    log: Mutex<Vec<String>>,
    /// Prefixes of steps that are refused.
    refusals: Mutex<Vec<(String, Errno)>>,
    /// `system:event` that new instances do not have.
    lacking: Vec<String>,
    /// Whether an instance may have the tracer function_graph.
    pub(super) graph_in_instances: bool,
    cpus: u32,
}

/// Events that are newer than the recorded fixture.
fn later_events() -> [FormatText; 6] {
    let of = |system: &str, event: &str, id: u32, fields: &[&str]| {
        let mut text = format!("name: {event}\nID: {id}\nformat:\n");
        let common = [
            "unsigned short common_type",
            "unsigned char common_flags",
            "int common_pid",
        ];
        for (at, field) in common.iter().chain(fields).enumerate() {
            text += &format!("\tfield:{field};\toffset:{};\tsize:4;\tsigned:1;\n", at * 4);
            text += if at + 1 == common.len() { "\n" } else { "" };
        }
        FormatText {
            system: system.into(),
            event: event.into(),
            text,
        }
    };
    [
        of(
            "signal",
            "signal_generate",
            9001,
            &["int sig", "int code", "pid_t pid"],
        ),
        of("task", "task_newtask", 9002, &["pid_t pid"]),
        of(
            "task",
            "task_rename",
            9003,
            &["pid_t pid", "char newcomm[16]"],
        ),
        of(
            "sched",
            "sched_stat_runtime",
            9004,
            &["pid_t pid", "u64 runtime"],
        ),
        // Events that only a user asks for.
        of("net", "netif_rx", 9005, &["int len"]),
        of("block", "block_rq_issue", 9006, &["dev_t dev", "int bytes"]),
    ]
}

/// `/proc/PID/stat` of a process.
pub(super) fn stat(pid: u32, start: u64) -> String {
    format!("{pid} (a (b) c) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {start} 1000 10\n")
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Fake {
    pub(super) fn new() -> Fake {
        Fake::lacking(&[])
    }

    pub(super) fn lacking(events: &[&str]) -> Fake {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path.trim_start_matches('/'));
        let pid = std::process::id();
        put(
            &at("/proc/self/mountinfo"),
            "32 23 0:12 / /sys/kernel/tracing rw - tracefs none rw\n",
        );
        put(&at("/proc/self/stat"), &stat(pid, START));
        put(&at(&format!("/proc/{pid}/stat")), &stat(pid, START));
        put(
            &at(&format!("{ROOT}/trace_clock")),
            "[local] global mono_raw x86-tsc\n",
        );
        put(
            &at(&format!("{ROOT}/available_tracers")),
            "function_graph function nop\n",
        );
        put(
            &at(&format!("{ROOT}/set_graph_function")),
            "#### all functions enabled ####\n",
        );
        let functions =
            "__set_task_comm\nvmstat_update\nprocess_one_work\nhandle_softirqs\nmodular [mod]\n";
        put(
            &at(&format!("{ROOT}/available_filter_functions")),
            functions,
        );
        for (event, id) in [("funcgraph_entry", 11), ("funcgraph_exit", 10)] {
            let text = format!("name: {event}\nID: {id}\nformat:\n{GRAPH_FIELDS}");
            put(&at(&format!("{ROOT}/events/ftrace/{event}/format")), &text);
        }
        put(&at("/sys/devices/system/cpu/online"), "0-3\n");
        put(&at("/proc/sys/kernel/osrelease"), "6.12.1\n");
        fs::create_dir_all(at(&format!("{ROOT}/instances"))).unwrap();
        fs::create_dir_all(at(&format!("{ROOT}/events"))).unwrap();
        let writer = FakeWriter {
            live: Live { is_host: false },
            mountinfo: at("/proc/self/mountinfo"),
            log: Mutex::default(),
            refusals: Mutex::default(),
            lacking: events.iter().map(|e| (*e).to_owned()).collect(),
            graph_in_instances: true,
            cpus: 4,
        };
        Fake {
            dir,
            writer: Arc::new(writer),
        }
    }

    pub(super) fn machine(&self) -> Machine {
        Machine::at(self.dir.path())
    }

    pub(super) fn open(&self) -> Tracefs {
        Tracefs::open_with(&self.machine(), self.writer.clone()).unwrap()
    }

    pub(super) fn put(&self, path: &str, text: &str) {
        put(&self.machine().path(path), text);
    }

    /// Adds an instance as a killed process would have left it.
    pub(super) fn left(&self, name: &str) {
        fs::create_dir_all(self.machine().path(format!("{ROOT}/instances/{name}"))).unwrap();
    }

    pub(super) fn instances(&self) -> Vec<String> {
        self.machine().list(format!("{ROOT}/instances"))
    }

    /// Refuses every step with this prefix.
    pub(super) fn refuse(&self, step: &str, error: Errno) {
        self.writer
            .refusals
            .lock()
            .unwrap()
            .push((step.into(), error));
    }

    pub(super) fn log(&self) -> Vec<String> {
        self.writer.log.lock().unwrap().clone()
    }
}

impl FakeWriter {
    /// Logs a step; returns the refusal that applies to it, if any.
    fn step(&self, step: String) -> io::Result<()> {
        let refused = self
            .refusals
            .lock()
            .unwrap()
            .iter()
            .find(|(s, _)| step.starts_with(s))
            .map(|(_, e)| *e);
        self.log.lock().unwrap().push(step);
        refused.map_or(Ok(()), |errno| Err(errno.into()))
    }

    /// `/sys/kernel/tracing/instances/jitterscope-1-2-local/x` as `local/x`.
    fn short(path: &str) -> &str {
        let name = path
            .strip_prefix("/sys/kernel/tracing/instances/")
            .unwrap_or(path);
        name.strip_prefix(&format!("jitterscope-{}-{START}-", std::process::id()))
            .unwrap_or(name)
    }
}

impl TracefsWriter for FakeWriter {
    fn make_dir(&self, machine: &Machine, path: &str) -> io::Result<()> {
        self.step(format!("mkdir {}", Self::short(path)))?;
        self.live.make_dir(machine, path)?;
        let context = include_str!("../../tests/fixtures/vm-1s/context.json");
        let context: TraceContext = serde_json::from_str(context).unwrap();
        let file = |name: &str, text: &str| put(&machine.path(format!("{path}/{name}")), text);
        file("trace_clock", "[local] global mono_raw x86-tsc\n");
        for (name, text) in [
            ("tracing_on", "1"),
            ("buffer_percent", "50"),
            ("options/overwrite", "1"),
            ("options/stacktrace", "0"),
            ("options/event-fork", "0"),
        ] {
            file(name, text);
        }
        file("trace", "# tracer: nop\n");
        let tracers = if self.graph_in_instances {
            "function_graph function nop\n"
        } else {
            "function nop\n"
        };
        file("available_tracers", tracers);
        file("current_tracer", "nop\n");
        file("buffer_size_kb", "1410");
        file("tracing_cpumask", "f");
        for empty in ["set_event", "set_event_pid", "set_event_notrace_pid"] {
            file(empty, "");
        }
        file("events/header_page", &context.header_page);
        let stack = "name: kernel_stack\nID: 4\nformat:\n";
        file("events/ftrace/kernel_stack/format", stack);
        for format in context.formats.iter().chain(&later_events()) {
            if self
                .lacking
                .contains(&format!("{}:{}", format.system, format.event))
            {
                continue;
            }
            let folder = format!("events/{}/{}", format.system, format.event);
            file(&format!("{folder}/format"), &format.text);
            file(&format!("{folder}/enable"), "0");
            file(&format!("{folder}/filter"), "none\n");
            file(&format!("{folder}/trigger"), "# Available triggers:\n");
        }
        for cpu in 0..self.cpus {
            file(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), "1410");
            file(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"), "");
            file(
                &format!("per_cpu/cpu{cpu}/stats"),
                "entries: 0\noverrun: 0\n",
            );
        }
        Ok(())
    }

    fn remove_dir(&self, machine: &Machine, path: &str) -> io::Result<()> {
        self.step(format!("rmdir {}", Self::short(path)))?;
        fs::remove_dir_all(machine.path(path))
    }

    fn write(&self, machine: &Machine, path: &str, value: &str) -> Result<(), FileError> {
        self.step(format!("{}={value}", Self::short(path)))
            .map_err(|source| FileError {
                path: machine.shown(path),
                source,
            })?;
        if path.ends_with("trace_clock") {
            let clocks = "local global mono_raw x86-tsc".replace(value, &format!("[{value}]"));
            return self.live.write(machine, path, &clocks);
        }
        if path.ends_with("/filter") && value == "0" {
            return self.live.write(machine, path, "none\n");
        }
        if let Some((instance, event)) = path
            .strip_suffix("/enable")
            .and_then(|path| path.split_once("/events/"))
        {
            let (list, event) = (format!("{instance}/set_event"), event.replace('/', ":"));
            let listed = machine.read(&list)?;
            let mut listed: BTreeSet<&str> = listed.lines().collect();
            if value == "1" {
                listed.insert(&event);
            } else {
                listed.remove(&*event);
            }
            let lines = listed.into_iter().map(|event| format!("{event}\n"));
            put(&machine.path(&list), &lines.collect::<String>());
        }
        self.live.write(machine, path, value)
    }

    fn empty(&self, machine: &Machine, path: &str) -> Result<(), FileError> {
        self.step(format!("empty {}", Self::short(path)))
            .map_err(|source| FileError {
                path: machine.shown(path),
                source,
            })?;
        self.live.empty(machine, path)
    }

    fn mount(&self, kind: &str, name: &str, at: &str) -> io::Result<()> {
        self.step(format!("mount {kind} {at} as {name}"))?;
        let mounts = fs::read_to_string(&self.mountinfo)?;
        put(
            &self.mountinfo,
            &format!("{mounts}40 23 0:12 / {at} rw - {kind} {name} rw\n"),
        );
        Ok(())
    }

    fn unmount(&self, at: &str) -> io::Result<()> {
        self.step(format!("unmount {at}"))?;
        let mounts = fs::read_to_string(&self.mountinfo)?;
        let others = mounts
            .lines()
            .filter(|line| !line.contains(&format!(" {at} ")))
            .map(|line| format!("{line}\n"));
        put(&self.mountinfo, &others.collect::<String>());
        Ok(())
    }
}
