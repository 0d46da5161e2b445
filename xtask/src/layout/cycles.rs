//! Files of a crate that need each other: neither can then be read, moved or tested without the other.
//!
//! A file needs another where it names something of it by a path through `crate`, `super` or `self`, also where a
//! module between them hands the name on. What a module's own file says of the files below it does not count: it
//! declares them. Tests do not count either.

use super::words::{without_tests, words};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// A module by the names on its way from the root; the root has none.
type Module = Vec<String>;

/// Names may be handed on so often.
const HANDED_ON: usize = 8;

/// The files of a crate, by their modules.
#[derive(Default)]
pub(super) struct Files {
    files: BTreeMap<Module, Paths>,
}

/// What a file names.
#[derive(Default)]
struct Paths {
    /// Absolute.
    named: Vec<Module>,
    /// What a name that it imports stands for.
    imported: BTreeMap<String, Module>,
}

impl Files {
    /// Files by their paths below `src`.
    pub(super) fn of<'t>(files: impl IntoIterator<Item = (&'t Path, &'t str)>) -> Files {
        let files: Vec<(Module, &str)> = files
            .into_iter()
            .map(|(path, text)| (module(path), text))
            .collect();
        let known: BTreeSet<Module> = files.iter().map(|(module, _)| module.clone()).collect();
        let mut all = Files::default();
        for (module, text) in files {
            if module.last().is_none_or(|name| name != "tests") {
                let paths = paths(&module, text, &known);
                all.files.insert(module, paths);
            }
        }
        all
    }

    /// The file that has what a path names.
    fn file_of<'a>(&'a self, path: &[String], handed_on: usize) -> Option<&'a Module> {
        let long = (0..=path.len())
            .rev()
            .find(|long| self.files.contains_key(&path[..*long]))?;
        let (module, paths) = self.files.get_key_value(&path[..long])?;
        match path.get(long).and_then(|name| paths.imported.get(name)) {
            Some(meant) if handed_on < HANDED_ON => {
                let on: Module = meant.iter().chain(&path[long + 1..]).cloned().collect();
                self.file_of(&on, handed_on + 1)
            }
            _ => Some(module),
        }
    }

    /// Which files each needs.
    fn needs(&self) -> BTreeMap<&Module, BTreeSet<&Module>> {
        let needed = |from: &Module, paths: &Paths| {
            let files = paths.named.iter().filter_map(|path| self.file_of(path, 0));
            files
                .filter(|to| !to.starts_with(from))
                .fold(BTreeSet::new(), |mut all, to| {
                    // Borrowed of `self`, as the map of them is.
                    all.extend(self.files.get_key_value(to).map(|(to, _)| to));
                    all
                })
        };
        self.files
            .iter()
            .map(|(from, paths)| (from, needed(from, paths)))
            .collect()
    }

    /// What is wrong: the shortest way from a file back to it, of each group of files that need each other. `halves`
    /// are pairs of files of which the first may need the second all the same; one of them that is of no use is wrong,
    /// too.
    pub(super) fn objections(&self, halves: &[(&str, &str)]) -> Vec<String> {
        let mut needs = self.needs();
        let mut found = Vec::new();
        for (from, to) in halves {
            let parts = |path: &str| -> Module { path.split('/').map(str::to_owned).collect() };
            let (from, to) = (parts(from), parts(to));
            let is_of_use = needs
                .get(&to)
                .is_some_and(|_| ways(&needs, &to).contains_key(&from));
            if !(needs.get_mut(&from).is_some_and(|of| of.remove(&to)) && is_of_use) {
                let (from, to) = (name(&from), name(&to));
                found.push(format!(
                    "{from} and {to} do not need each other: take them out of the table"
                ));
            }
        }
        found.extend(cycles(&needs).into_iter().map(|(way, of)| {
            format!(
                "{of} files need each other: {}; what both need belongs in a third",
                way.join(" -> ")
            )
        }));
        found
    }
}

/// The shortest way from a file back to it, of each group of files that need each other, with the number of files in
/// that group.
fn cycles(needs: &BTreeMap<&Module, BTreeSet<&Module>>) -> Vec<(Vec<String>, usize)> {
    let reached: BTreeMap<_, _> = needs
        .keys()
        .map(|from| (*from, ways(needs, from)))
        .collect();
    let mut reported: BTreeSet<&Module> = BTreeSet::new();
    let mut found = Vec::new();
    for (from, to) in &reached {
        if !to.contains_key(from) || reported.contains(from) {
            continue;
        }
        let group: Vec<&Module> = to
            .keys()
            .copied()
            .filter(|other| reached[other].contains_key(from))
            .collect();
        reported.extend(&group);
        let shortest = group
            .iter()
            .map(|file| way(&reached[file], file))
            .min_by_key(Vec::len);
        found.extend(shortest.map(|way| (way, group.len())));
    }
    found
}

/// Every file that one leads to, and the file before it on a shortest way.
fn ways<'a>(
    needs: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
    from: &'a Module,
) -> BTreeMap<&'a Module, &'a Module> {
    let mut before = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(file) = next.pop_front() {
        for to in needs.get(file).into_iter().flatten() {
            if !before.contains_key(to) {
                before.insert(*to, file);
                next.push_back(to);
            }
        }
    }
    before
}

/// The files on a shortest way from one back to it.
fn way(before: &BTreeMap<&Module, &Module>, file: &Module) -> Vec<String> {
    let mut way = vec![name(file)];
    let mut at = before[file];
    while at != file {
        way.push(name(at));
        at = before[at];
    }
    way.push(name(file));
    way.reverse();
    way
}

/// As a person names it.
fn name(module: &Module) -> String {
    if module.is_empty() {
        "(root)".into()
    } else {
        module.join("/")
    }
}

fn module(path: &Path) -> Module {
    let mut parts: Module = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        parts.pop();
    }
    parts
}

/// What a file names, `known` being all modules that have a file.
fn paths(of: &Module, text: &str, known: &BTreeSet<Module>) -> Paths {
    let words = without_tests(words(text));
    let mut found = Paths::default();
    // Modules within the file: `super` there is another one.
    let mut braces: Vec<Option<&str>> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let behind = at.checked_sub(1).map(|before| words[before]);
        match *word {
            "{" => braces.push((at > 1 && words[at - 2] == "mod").then(|| words[at - 1])),
            "}" => drop(braces.pop()),
            "use" => {
                let here = here(of, &braces);
                for (path, called) in tree(&words[at + 1..], &[]).0 {
                    if let Some(path) = absolute(&path, &here, known) {
                        found.imported.insert(called, path);
                    }
                }
            }
            _ => {}
        }
        let begins = matches!(*word, "crate" | "super" | "self") && behind != Some("::");
        if begins && words.get(at + 1) == Some(&"::") {
            let here = here(of, &braces);
            let paths = tree(&words[at..], &[]).0;
            found.named.extend(
                paths
                    .iter()
                    .filter_map(|(path, _)| absolute(path, &here, known)),
            );
        }
    }
    found
}

/// The module that a place within a file is in.
fn here(of: &Module, braces: &[Option<&str>]) -> Module {
    of.iter()
        .cloned()
        .chain(braces.iter().flatten().map(|name| (*name).to_owned()))
        .collect()
}

/// The paths of `a::{b, c::d as e}`, each with the name that it gets, and how many words they take.
fn tree(words: &[&str], before: &[String]) -> (Vec<(Module, String)>, usize) {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if *word == "{" {
            let mut all = Vec::new();
            while let Some(word) = words.get(at) {
                match *word {
                    "}" => return (all, at + 1),
                    "," => at += 1,
                    _ => {
                        let (more, took) = tree(&words[at..], &path);
                        all.extend(more);
                        at += took.max(1);
                    }
                }
            }
            return (all, at);
        }
        // `a::{self}` is `a`.
        if *word != "self" || path.is_empty() {
            path.push((*word).to_owned());
        }
        if words.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    let mut called = path.last().cloned().unwrap_or_default();
    if words.get(at) == Some(&"as") {
        called = words.get(at + 1).map_or(called, |word| (*word).to_owned());
        at += 2;
    }
    (vec![(path, called)], at)
}

/// A path from the root of the crate; `None` of one into another crate.
fn absolute(path: &[String], here: &Module, known: &BTreeSet<Module>) -> Option<Module> {
    let first = path.first()?.as_str();
    let mut base = here.clone();
    let rest = match first {
        "crate" => {
            base.clear();
            &path[1..]
        }
        "self" => &path[1..],
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            base.truncate(base.len().saturating_sub(ups));
            &path[ups..]
        }
        // A module below, without `self::`.
        _ => {
            base.push(first.to_owned());
            if !known.contains(&base) {
                return None;
            }
            &path[1..]
        }
    };
    base.extend(rest.iter().cloned());
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let files = Files::of(files.iter().map(|(path, text)| (Path::new(*path), *text)));
        cycles_of(&files)
    }

    fn cycles_of(files: &Files) -> Vec<String> {
        let all = super::cycles(&files.needs());
        all.into_iter()
            .map(|(way, of)| format!("{} of {of}", way.join(" -> ")))
            .collect()
    }

    #[test]
    fn halves_of_one_thing_may_need_each_other_and_are_reported_once_they_do_not() {
        let both = [
            ("a.rs", "use crate::b::B;"),
            ("x/b.rs", ""),
            ("b.rs", "use crate::a::A;"),
        ];
        let files = Files::of(both.map(|(path, text)| (Path::new(path), text)));
        assert_eq!(files.objections(&[]).len(), 1);
        assert_eq!(files.objections(&[("a", "b")]), [""; 0]);
        assert_eq!(files.objections(&[("b", "a")]), [""; 0]);
        // What is still in the way, and what there is no need for.
        assert_eq!(files.objections(&[("a", "x/b")]).len(), 2);
        let one = Files::of(
            [("a.rs", "use crate::b::B;"), ("b.rs", "")]
                .map(|(path, text)| (Path::new(path), text)),
        );
        assert_eq!(one.objections(&[("a", "b")]).len(), 1);
        assert_eq!(one.objections(&[("gone", "b")]).len(), 1);
    }

    #[test]
    fn files_that_need_each_other_are_found_whatever_way_they_say_it() {
        assert_eq!(
            cycles(&[("a.rs", "use crate::b::B;"), ("b.rs", "use crate::c::C;")]),
            [""; 0]
        );
        let both = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn f() { super::a::g() }"),
        ];
        assert_eq!(cycles(&both), ["a -> b -> a of 2"]);
        let braces = [
            ("x/a.rs", "use super::{q, b::{self, B}};"),
            ("x/b.rs", "pub(super) use super::a::{A as C};"),
        ];
        assert_eq!(cycles(&braces), ["x/a -> x/b -> x/a of 2"]);
        // The shortest of those that a group has.
        let three = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::{a::A, b::B};"),
        ];
        assert_eq!(cycles(&three), ["b -> c -> b of 3"]);
    }

    #[test]
    fn a_name_that_is_handed_on_leads_to_the_file_that_has_it() {
        let lib = (
            "lib.rs",
            "mod a; mod b; pub use a::A; pub use crate::b::{B as D};",
        );
        assert_eq!(
            cycles(&[lib, ("a.rs", "use crate::D;"), ("b.rs", "use crate::A;")]),
            ["a -> b -> a of 2"]
        );
        assert_eq!(
            cycles(&[lib, ("a.rs", "use crate::D;"), ("b.rs", "use crate::C;")]),
            [""; 0]
        );
        // In a circle without a file at its end.
        let round = [("lib.rs", "pub use a::A;"), ("a.rs", "pub use crate::A;")];
        assert_eq!(cycles(&round), [""; 0]);
    }

    #[test]
    fn a_module_may_name_what_is_below_it_and_tests_may_name_anything() {
        let below = [
            ("a/mod.rs", "mod b; use self::b::B; use crate::a::b::C;"),
            ("a/b.rs", "use super::A;"),
        ];
        assert_eq!(cycles(&below), [""; 0]);
        let tests = [
            (
                "a.rs",
                "use crate::b::B; #[cfg(test)] mod tests { use super::*; }",
            ),
            (
                "b.rs",
                "#[cfg(test)] mod tests { use crate::a::A; } mod inner { use super::B; }",
            ),
            ("b/tests.rs", "use crate::a::A;"),
        ];
        assert_eq!(cycles(&tests), [""; 0]);
        // Another crate's module of the same name.
        assert_eq!(
            cycles(&[
                ("a.rs", "use b::B; use crate::b::B;"),
                ("b.rs", "use a::A;")
            ]),
            [""; 0]
        );
    }
}
