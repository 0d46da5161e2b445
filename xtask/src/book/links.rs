//! Whether every relative link of the documents leads somewhere: to a file, and to a heading in it.

use crate::shell;
use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Documents outside `docs/`.
const BESIDE: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];

/// Fails with the list of links that lead nowhere, and of pages that the book leaves out.
pub fn check() -> anyhow::Result<()> {
    let root = shell::root();
    let mut pages: Vec<PathBuf> = BESIDE.iter().map(|page| root.join(page)).collect();
    let docs = root.join("docs");
    let of_book = markdown(&docs)?;
    pages.extend(of_book.iter().cloned());
    let (links, mut broken) = broken(&pages, &root)?;
    let summary = docs.join("SUMMARY.md");
    let listed: BTreeSet<PathBuf> = links_of(&fs::read_to_string(&summary)?)
        .map(|link| docs.join(link))
        .collect();
    for page in of_book.iter().filter(|page| **page != summary) {
        if !listed.contains(page) {
            broken.push(format!("{}: SUMMARY.md does not list it", page.display()));
        }
    }
    ensure!(
        links > 100,
        "only {links} links were found: the check is blind"
    );
    if broken.is_empty() {
        eprintln!("{links} links in {} pages lead somewhere", pages.len());
        return Ok(());
    }
    bail!("{}", broken.join("\n"))
}

/// Fails with the list of links that lead nowhere in a tree of files whose documents lie in `folder`.
pub fn check_packed(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let (links, broken) = broken(&markdown(folder)?, root)?;
    ensure!(links > 100, "only {links} links were found in a package");
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

/// The number of links of the pages, and those that lead nowhere, each with the reason. Absolute paths begin at `root`.
fn broken(pages: &[PathBuf], root: &Path) -> anyhow::Result<(usize, Vec<String>)> {
    let mut broken = Vec::new();
    let mut links = 0;
    for page in pages {
        let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
        for link in links_of(&text) {
            links += 1;
            if let Some(why) = objection(page, &link, root)? {
                broken.push(format!("{}: {link}: {why}", page.display()));
            }
        }
    }
    Ok((links, broken))
}

/// All pages below a folder.
fn markdown(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(markdown(&path)?);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Why a link leads nowhere; `None` if it leads somewhere, or to another machine.
fn objection(page: &Path, link: &str, root: &Path) -> anyhow::Result<Option<String>> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(None);
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.parent().context("a page lies in a folder")?;
    let to = match file {
        "" => page.to_owned(),
        _ => match file.strip_prefix('/') {
            Some(file) => root.join(file),
            None => folder.join(file),
        },
    };
    if !to.exists() {
        return Ok(Some("there is no such file".into()));
    }
    if heading.is_empty() {
        return Ok(None);
    }
    let text = fs::read_to_string(&to).with_context(|| to.display().to_string())?;
    Ok((!anchors(&text).contains(heading)).then(|| "there is no such heading".into()))
}

/// The targets of a page's links, without those of code.
fn links_of(text: &str) -> impl Iterator<Item = String> {
    prose(text).into_iter().flat_map(|line| {
        let mut found = Vec::new();
        let mut code = false;
        for (index, _) in line.match_indices(['`', ']']) {
            let rest = &line[index..];
            if rest.starts_with('`') {
                code = !code;
            } else if let Some(target) = rest.strip_prefix("](").filter(|_| !code) {
                found.extend(target.split_once(')').map(|(target, _)| target.to_owned()));
            }
        }
        found
    })
}

/// The anchors of a page's headings, as mdBook and repositories derive them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).into_iter().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let words = line.trim_start_matches('#').trim().to_lowercase();
            let kept = words.chars().filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            });
            kept.collect()
        })
        .collect()
}

/// The lines outside blocks of code.
fn prose(text: &str) -> Vec<&str> {
    let mut code = false;
    text.lines()
        .filter(|line| {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            !code && !fence
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_documents_leads_somewhere() {
        check().unwrap();
    }

    #[test]
    fn a_link_that_leads_nowhere_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("a.md");
        let text = "# One `thing`, more\n[x](b.md) `[y](z.md)` [z](#one-thing-more) [w](#other)\n\
                    ```\n[v](u.md)\n# no heading\n```\n[web](https://example.org/)\n";
        fs::write(&page, text).unwrap();
        let links: Vec<String> = links_of(text).collect();
        assert_eq!(
            links,
            ["b.md", "#one-thing-more", "#other", "https://example.org/"]
        );
        let broken = |link: &str| objection(&page, link, dir.path()).unwrap().is_some();
        let all: Vec<bool> = links.iter().map(|link| broken(link)).collect();
        assert_eq!(all, [true, false, true, false]);
        assert!(!broken("/a.md") && broken("/etc/passwd"));
        assert!(!anchors(text).contains("no-heading"));
    }
}
