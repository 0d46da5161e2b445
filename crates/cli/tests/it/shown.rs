//! The commands that the documents show, run: on this machine, or on the run whose output they show.

use crate::live::{can_trace, program, turn};
use crate::stand_ins::{self, Followed};
use crate::{query, readme};
use jitterscope_testing::highest_cpu;
use jitterscope_testing::shown::{Block, Mark, Shown, blocks, documents};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The measured time of a recording in place of the document's: what is tested is that the command works.
const SHORT: &str = "200ms";
const RECORDS: [&str; 4] = ["record", "attach", "sljtest", "experiment"];
/// A line of a document that stands for any number of lines.
const LEFT_OUT: &str = "[...]";

fn all() -> Vec<Block> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    documents(&root)
        .iter()
        .flat_map(|(page, text)| blocks(page, text))
        .collect()
}

/// The arguments after this program's name; the block needs a mark if another program is started.
fn args(words: &[String]) -> Option<Vec<String>> {
    let of_cargo = ["cargo", "run", "--release", "--"];
    let args = match words {
        [program, args @ ..] if program == "jitterscope" => args,
        _ if words.starts_with(&of_cargo.map(String::from)) => &words[of_cargo.len()..],
        _ => return None,
    };
    Some(args.to_vec())
}

fn run(runs: &Path, args: &[impl AsRef<OsStr>], variables: &[(String, String)]) -> Output {
    let mut command = Command::new(program());
    if args[0].as_ref() == "query"
        && let Some(tools) = query::tools()
    {
        command.env("PATH", tools.join("bin"));
    }
    command
        .args(args)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env("JITTERSCOPE_RUNS", runs.join("runs"))
        .env("JITTERSCOPE_STATE", runs.join("state"))
        .env_remove("COLUMNS")
        .current_dir(runs)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Whether the shown lines are the printed ones, but for what the document leaves out.
fn alike(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((line, rest)) if line == LEFT_OUT => {
            (0..=printed.len()).any(|skipped| alike(rest, &printed[skipped..]))
        }
        Some((line, rest)) => {
            printed.first().is_some_and(|first| first == line) && alike(rest, &printed[1..])
        }
    }
}

fn compare(place: &str, typed: &str, shown: &[String], printed: &[String]) -> Result<(), String> {
    if alike(shown, printed) {
        return Ok(());
    }
    let (shown, printed) = (shown.join("\n"), printed.join("\n"));
    Err(format!(
        "{place}: {typed}\nshown:\n{shown}\nprinted:\n{printed}\n"
    ))
}

/// The lines of a text that do not depend on who reads the run, and when.
fn of_any_reader<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<String> {
    lines
        .map(str::trim_end)
        // Said while a recording begins, and what this machine would do about a run of another.
        .filter(|line| !line.starts_with("measuring CPU"))
        .filter(|line| !line.contains("jitterscope tune plan --run "))
        .map(str::to_owned)
        .collect()
}

/// A command on a stored run. A recording is answered by the report of the run, which is what it prints.
fn on_stored(block: &Block, shown: &Shown, id: &str, dir: &Path) -> Result<(), String> {
    let mut printed = Vec::new();
    for words in &shown.commands {
        let args =
            args(words).ok_or_else(|| format!("{}: {words:?} is not ours", block.place()))?;
        let args = match args[0].as_str() {
            "record" | "attach" => vec!["report".to_owned(), id.to_owned()],
            "query" if query::tools().is_none() => return Ok(()),
            _ => args,
        };
        let output = run(dir, &args, &shown.variables);
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}: {}: {why}", block.place(), shown.typed));
        }
        printed.extend(of_any_reader(
            String::from_utf8_lossy(&output.stdout).lines(),
        ));
    }
    if shown.output.is_empty() {
        return Ok(());
    }
    if block.differs.is_some() {
        return something(block, shown, &printed);
    }
    let expected = of_any_reader(shown.output.iter().map(String::as_str));
    compare(&block.place(), &shown.typed, &expected, &printed)
}

/// Output that is not compared is not empty either.
fn something(block: &Block, shown: &Shown, printed: &[String]) -> Result<(), String> {
    match printed.is_empty() {
        true => Err(format!("{}: {} prints nothing", block.place(), shown.typed)),
        false => Ok(()),
    }
}

/// A command that changes nothing, in place of one that changes the machine; `None` if it changes nothing itself.
fn harmless(args: &[String]) -> Option<Vec<String>> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let made = match &words[..] {
        ["tune", "apply", rest @ ..] => [&["tune", "plan"], rest].concat(),
        ["tune", "rollback", ..] => vec!["tune", "status"],
        ["experiment", rest @ ..] => [&["experiment", "--dry-run"], rest].concat(),
        _ => return None,
    };
    Some(made.into_iter().map(String::from).collect())
}

/// The arguments of a recording of a moment.
fn shortened(mut args: Vec<String>) -> Vec<String> {
    let command = args.first().cloned().unwrap_or_default();
    if command == "guard" {
        let shorter = [("-n", "2"), ("--retry", "1"), ("--wait-quiet", SHORT)];
        for (option, value) in shorter {
            if let Some(at) = args.iter().position(|arg| arg == option) {
                args[at + 1] = value.to_owned();
            }
        }
    }
    if let Some(at) = args.iter().position(|arg| arg == "--for")
        && command == "tune"
    {
        args[at + 1] = SHORT.to_owned();
    }
    if !RECORDS.contains(&command.as_str()) {
        return args;
    }
    let own = args
        .iter()
        .position(|arg| arg == "--")
        .unwrap_or(args.len());
    let runs_a_command = own < args.len();
    let given = args[..own]
        .iter()
        .position(|arg| ["-d", "--duration"].contains(&arg.as_str()));
    match given {
        Some(at) => args[at + 1] = SHORT.to_owned(),
        // It lasts as long as the command.
        None if runs_a_command => {}
        None if command == "sljtest" => {}
        None => args.extend(["--duration", SHORT].map(String::from)),
    }
    args
}

/// What varies from machine to machine and from run to run, as one sign each: numbers, their units, bars.
fn pattern(line: &str) -> String {
    let mut made = String::new();
    for word in line.split_whitespace() {
        let word = word.trim_end_matches([',', ';']);
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".,%".contains(c));
        let varies = unit.len() < word.len() && ["", "s", "ms", "us", "ns"].contains(&unit);
        let is_bar = word.chars().all(|c| c == '*');
        let is_unit = ["s", "ms", "us", "ns"].contains(&word);
        match (varies, is_bar, is_unit) {
            (true, ..) => made.push('#'),
            (_, true, _) | (_, _, true) => continue,
            _ => made.push_str(word),
        }
        made.push(' ');
    }
    made
}

/// A command on this machine, for a moment.
fn on_this_machine(block: &Block, shown: &Shown, dir: &Path) -> Result<(), String> {
    let mut printed = Vec::new();
    let mut replaced = false;
    for words in &shown.commands {
        let Some(args) = args(words) else {
            return Err(format!("{}: '{}' needs a mark", block.place(), words[0]));
        };
        let instead = harmless(&args);
        replaced |= instead.is_some();
        let mut args = shortened(instead.unwrap_or(args));
        let followed = Followed::of(&mut args);
        let output = run(dir, &args, &shown.variables);
        drop(followed);
        let is_judged = |arg: &String| arg.starts_with("--fail") || arg == "--profile";
        let fine: &[i32] = match args.iter().any(is_judged) {
            true => &[0, 3, 4],
            false => &[0],
        };
        let code = output.status.code();
        if !code.is_some_and(|code| fine.contains(&code)) {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "{}: {} ended with {code:?}: {why}",
                block.place(),
                args.join(" ")
            ));
        }
        printed.extend(String::from_utf8_lossy(&output.stdout).lines().map(pattern));
    }
    if shown.output.is_empty() {
        return Ok(());
    }
    if replaced || block.differs.is_some() {
        return something(block, shown, &printed);
    }
    let kept = |line: &String| match line == LEFT_OUT {
        true => line.clone(),
        false => pattern(line),
    };
    let expected: Vec<String> = shown.output.iter().map(kept).collect();
    compare(&block.place(), &shown.typed, &expected, &printed)
}

#[test]
fn stored_runs_print_what_the_documents_show() {
    let (mut ran, mut compared, mut wrong) = (0, 0, Vec::new());
    for block in all() {
        let Mark::Run(id) = &block.mark else { continue };
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        std::fs::create_dir(&runs).unwrap();
        let ids: Vec<&str> = id.split(',').map(str::trim).collect();
        for id in &ids {
            readme::copied(&runs, id);
        }
        stand_ins::files(dir.path());
        for shown in &block.commands {
            ran += 1;
            compared += usize::from(!shown.output.is_empty() && block.differs.is_none());
            wrong.extend(on_stored(&block, shown, ids[0], dir.path()).err());
        }
    }
    eprintln!("{ran} commands ran on stored runs, and the output of {compared} is compared");
    assert!(
        compared >= 5,
        "the output of {compared} commands is compared"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shown_commands_work_on_this_machine() {
    let all = all();
    let of = |wanted: fn(&Mark) -> bool| all.iter().filter(move |block| wanted(&block.mark));
    let stored = of(|mark| matches!(mark, Mark::Run(_))).count();
    let examples = of(|mark| matches!(mark, Mark::Example(_))).count();
    let live: Vec<&Block> = of(|mark| *mark == Mark::Live).collect();
    let _turn = turn();
    if !can_trace() || highest_cpu() == 0 {
        jitterscope_testing::skip(&format!(
            "{} blocks of commands in the documents: they record as root, on CPU 1",
            live.len()
        ));
        return;
    }
    let (mut ran, mut wrong) = (0, Vec::new());
    for block in &live {
        let dir = tempfile::tempdir().unwrap();
        stand_ins::files(dir.path());
        for shown in &block.commands {
            ran += 1;
            wrong.extend(on_this_machine(block, shown, dir.path()).err());
        }
    }
    eprintln!(
        "{} blocks of commands: {} ran on this machine ({ran} commands), {stored} on stored runs, {examples} are \
         parsed only",
        all.len(),
        live.len(),
    );
    assert!(ran > 40, "{ran} commands ran here");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn left_out_lines_and_numbers_may_differ() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(alike(&lines("a\n[...]\nd"), &lines("a\nb\nc\nd")));
    assert!(alike(&lines("a\n[...]"), &lines("a")));
    assert!(!alike(&lines("a\n[...]\nd"), &lines("a\nb\nc")));
    assert!(!alike(&lines("a"), &lines("a\nb")));
    assert_eq!(
        pattern("10.7ns  32  0.0000%  ***"),
        pattern("9ns 1,234 1.5%")
    );
    assert_ne!(pattern("culprit 1 us"), pattern("victim 1 us"));
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(shortened(words("record -d 60s")), words("record -d 200ms"));
    assert_eq!(
        shortened(words("attach -- java -d 5")),
        words("attach -- java -d 5")
    );
    assert_eq!(shortened(words("report -d")), words("report -d"));
}

#[test]
fn a_command_that_changes_the_machine_has_one_in_its_place() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let of = |text: &str| harmless(&words(text)).map(|args| args.join(" "));
    assert_eq!(
        of("tune apply --only vmstat --cpus 1").as_deref(),
        Some("tune plan --only vmstat --cpus 1")
    );
    assert_eq!(of("tune rollback --only x").as_deref(), Some("tune status"));
    assert_eq!(
        of("experiment --knob x").as_deref(),
        Some("experiment --dry-run --knob x")
    );
    assert_eq!(of("tune plan --only x"), None);
}
