//! `mcp`: what an assistant is answered, through the protocol's own client and line by line.

use crate::live::turn;
use crate::readme;
use crate::schema_check::conforms;

use jitterscope_testing::python;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CLIENT: [&str; 1] = ["mcp==1.30.0"];
/// Bytes of an answer of 10,000 tokens.
const BYTES: usize = 40_000;
const TOOLS: [&str; 8] = [
    "list", "report", "culprits", "marks", "stall", "diff", "audit", "doctor",
];

/// The largest stored runs: one of each kind.
fn runs(dir: &Path) -> Vec<String> {
    readme::copied(dir, readme::RUN);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/fixtures");
    let mut kinds = vec![readme::RUN.to_owned()];
    for entry in fs::read_dir(fixtures).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("manifest.json").is_file() {
            continue;
        }
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        fs::create_dir(dir.join(&name)).unwrap();
        for file in fs::read_dir(&folder).unwrap() {
            let file = file.unwrap();
            if file.file_type().unwrap().is_file() {
                fs::copy(file.path(), dir.join(&name).join(file.file_name())).unwrap();
            }
        }
        kinds.push(name);
    }
    assert!(kinds.len() > 5, "{kinds:?}");
    kinds
}

/// What the server answers to these lines, each line as it is.
fn answers(arguments: &[&str], current: &Path, lines: &[Vec<u8>]) -> Vec<String> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args(arguments)
        .current_dir(current)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let text = lines.join(&b"\n"[..]);
    let writer = std::thread::spawn(move || {
        let _ = input.write_all(&text);
    });
    let output = server.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn call(id: usize, tool: &str, arguments: &Value) -> Vec<u8> {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    call.to_string().into_bytes()
}

/// The text of each answer, and whether it is an error of the tool.
fn called(runs: &Path, calls: &[(&str, Value)]) -> Vec<(bool, String)> {
    let lines: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(id, (tool, arguments))| call(id, tool, arguments))
        .collect();
    let arguments = ["--runs", runs.to_str().unwrap(), "mcp"];
    let answers = answers(&arguments, Path::new("/"), &lines);
    assert_eq!(answers.len(), calls.len());
    let text = |(id, line): (usize, &String)| {
        assert!(line.len() < BYTES, "{:?}: {} bytes", calls[id], line.len());
        let answer: Value = serde_json::from_str(line).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        (result["isError"].as_bool().unwrap(), text.to_owned())
    };
    answers.iter().enumerate().map(text).collect()
}

#[test]
fn every_answer_is_below_ten_thousand_tokens() {
    // `doctor` mounts tracefs.
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    let mut calls = vec![
        ("list", json!({})),
        ("audit", json!({})),
        ("doctor", json!({})),
    ];
    for run in runs(dir.path()) {
        calls.push(("report", json!({"run": run})));
        calls.push(("report", json!({"run": run, "fields": ["machine"]})));
        calls.push(("report", json!({"run": run, "top": 1_000_000})));
        calls.push((
            "culprits",
            json!({"run": run, "by": "thread", "top": 1_000_000}),
        ));
        calls.push(("marks", json!({"run": run})));
        calls.push(("stall", json!({"run": run, "rank": 1})));
        calls.push(("diff", json!({"runs": [run, readme::RUN]})));
        calls.push(("audit", json!({"run": run})));
    }
    let answers = called(dir.path(), &calls);
    let mut good = 0;
    for ((tool, arguments), (is_error, text)) in calls.iter().zip(&answers) {
        if *is_error {
            continue;
        }
        good += 1;
        let document: Value = serde_json::from_str(text).unwrap();
        conforms("excerpt", &document);
        // Some runs do not state their machine.
        assert!(text.len() > 30, "{tool} {arguments}: {text}");
    }
    // Runs of other kinds are not compared, and short ones name no culprits to act upon.
    assert!(good > calls.len() * 2 / 3, "{answers:?}");
}

#[test]
fn cursors_lead_through_the_whole_report() {
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    let output = Command::new(env!("CARGO_BIN_EXE_jitterscope"))
        .args([
            "--runs",
            dir.path().to_str().unwrap(),
            "report",
            readme::RUN,
            "--json",
        ])
        .output()
        .unwrap();
    let whole: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (pointer, fields) in [
        ("/attribution/culprits", "attribution.culprits"),
        ("/worst", "worst"),
    ] {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let arguments =
                json!({"run": readme::RUN, "top": 4, "fields": [fields], "cursor": cursor});
            let (is_error, text) = called(dir.path(), &[("report", arguments)]).remove(0);
            assert!(!is_error, "{text}");
            let page: Value = serde_json::from_str(&text).unwrap();
            let list = page.get("page").or_else(|| page.pointer(pointer)).unwrap();
            found.push(list.as_array().unwrap().clone());
            let left = page["left_out"].as_array().cloned().unwrap_or_default();
            let next = left.iter().find(|of| of["at"] == pointer);
            let Some(next) = next else { break };
            cursor = Some(next["cursor"].as_str().unwrap().to_owned());
        }
        let all = whole.pointer(pointer).unwrap().as_array().unwrap();
        let found = found.concat();
        assert_eq!(found.len(), all.len());
        let same = |(a, b): (&Value, &Value)| {
            ["kind", "name", "total_ns", "stall", "duration_ns"]
                .iter()
                .all(|name| a.get(name) == b.get(name))
        };
        assert!(found.iter().zip(all).all(same), "{pointer}");
    }
}

#[test]
fn no_run_outside_of_the_folder_is_read_unless_the_user_named_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("runs");
    fs::create_dir(&store).unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    let run = readme::copied(&outside, readme::RUN);
    let full = run.to_str().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let relative = format!("../outside/{name}");
    let store = store.to_str().unwrap();
    let ask = |arguments: &[&str]| -> Vec<bool> {
        let mut lines = Vec::new();
        for run in [full, &relative, name, &format!("./{name}")] {
            lines.push(call(1, "report", &json!({"run": run})));
            lines.push(call(1, "diff", &json!({"runs": [run, run]})));
            lines.push(call(1, "audit", &json!({"run": run})));
        }
        // Started where the run would be found by its name.
        let answers = answers(
            &[&["--runs", store, "mcp"], arguments].concat(),
            &outside,
            &lines,
        );
        let is_refused = |line: &String| {
            let answer: Value = serde_json::from_str(line).unwrap();
            let text = answer["result"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned();
            let is_error = answer["result"]["isError"] == true;
            is_error && text.contains("no run")
        };
        answers.iter().map(is_refused).collect()
    };
    assert_eq!(ask(&[]), [true; 12]);
    let named = ask(&[full]);
    assert!(!named[0] && !named[1] && !named[2], "{named:?}");
    assert_eq!(named[3..], [true; 9]);
}

#[test]
fn what_is_asked_wrongly_is_answered_in_words() {
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    let run = readme::RUN;
    for (tool, arguments, says) in [
        ("report", json!({}), "missing field `run`"),
        ("report", json!({"run": 5}), "invalid type"),
        (
            "report",
            json!({"run": run, "fieldz": ["worst"]}),
            "no argument 'fieldz'; it has",
        ),
        (
            "report",
            json!({"run": run, "fields": ["wrost"]}),
            "did you mean worst?",
        ),
        (
            "report",
            json!({"run": run, "cursor": "x"}),
            "a cursor is a list and a position",
        ),
        ("report", json!({"run": "nothing"}), "nothing"),
        (
            "report",
            json!({"run": run, "since": "yesterday"}),
            "a moment is",
        ),
        (
            "culprits",
            json!({"run": run, "by": "colour"}),
            "unknown variant",
        ),
        ("stall", json!({"run": run}), "one of stall, rank and at"),
        (
            "stall",
            json!({"run": run, "rank": 1, "stall": 2}),
            "one of stall, rank and at",
        ),
        (
            "stall",
            json!({"run": run, "stall": 99_999_999}),
            "no stall of that number",
        ),
        ("diff", json!({"runs": [run]}), "name 2 to 64"),
        ("stall", json!({"run": run, "rank": 1001}), "at most 1000"),
        ("audit", json!({"cpus": "x"}), "cpus: "),
    ] {
        let (is_error, text) = called(dir.path(), &[(tool, arguments.clone())]).remove(0);
        assert!(
            is_error && text.contains(says),
            "{tool} {arguments}: {text}"
        );
    }
}

#[test]
fn lines_that_are_no_questions_are_refused_by_the_protocol() {
    let dir = tempfile::tempdir().unwrap();
    let long = vec![b' '; (1 << 20) + 10];
    let lines: Vec<Vec<u8>> = [
        &b"{"[..],
        b"",
        b"[]",
        br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
        br#"{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}"#,
        br#"{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tune"}}"#,
        br#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
        b"\xff\xfe",
        &long,
        br#"{"jsonrpc": "2.0", "id": "last", "method": "ping"}"#,
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    let answers = answers(
        &["--runs", dir.path().to_str().unwrap(), "mcp"],
        Path::new("/"),
        &lines,
    );
    let codes: Vec<Value> = answers
        .iter()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            answer
                .pointer("/error/code")
                .cloned()
                .unwrap_or_else(|| answer["id"].clone())
        })
        .collect();
    let expected = [-32700, -32600, -32601, -32602, -32600, -32700, -32600].map(Value::from);
    assert_eq!(
        codes,
        [&expected[..], &[json!("last")]].concat(),
        "{answers:#?}"
    );
}

#[test]
fn the_protocols_own_client_reads_the_tools_and_their_answers() {
    let Some(tools): Option<PathBuf> = python(Path::new(env!("CARGO_TARGET_TMPDIR")), &CLIENT)
    else {
        return;
    };
    // `doctor` mounts tracefs.
    let _turn = turn();
    let dir = tempfile::tempdir().unwrap();
    readme::copied(dir.path(), readme::RUN);
    let calls = json!([
        ["list", {}],
        ["report", {"run": "latest"}],
        ["culprits", {"run": readme::RUN, "top": 3}],
        ["stall", {"run": readme::RUN, "rank": 1}],
        ["report", {"run": "nothing"}],
        ["doctor", {}],
    ]);
    let output = Command::new(tools.join("bin/python"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/mcp_client.py"))
        .args([
            &calls.to_string(),
            env!("CARGO_BIN_EXE_jitterscope"),
            "--runs",
        ])
        .args([dir.path().as_os_str(), "mcp".as_ref()])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["server"], "jitterscope");
    assert_eq!(said["version"], "2025-11-25");
    let names: Vec<&str> = said["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| {
            assert_eq!(
                (&tool[1], &tool[2]["type"]),
                (&json!(true), &json!("object"))
            );
            tool[0].as_str().unwrap()
        })
        .collect();
    assert_eq!(names, TOOLS);
    let answers = said["answers"].as_array().unwrap();
    let errors: Vec<bool> = answers.iter().map(|of| of["error"] == true).collect();
    assert_eq!(
        errors,
        [false, false, false, false, true, false],
        "{answers:?}"
    );
    let document = |at: usize| -> Value {
        serde_json::from_str(answers[at]["text"].as_str().unwrap()).unwrap()
    };
    assert_eq!(document(0)["runs"][0]["id"], readme::RUN);
    assert_eq!(document(1)["run"]["id"], readme::RUN);
    assert_eq!(document(2)["attribution"]["culprits"][0]["name"], "ls");
    assert_eq!(document(3)["stall"]["duration_ns"], 5_009_384);
}
