//! The names of profiles: ours, those that are computed, and the user's own.

use super::expand::named;
use super::{OURS, computed, load, users};
use crate::output;
use jitterscope_model::{PutInOrder, visible};
use std::ffi::OsString;

/// The value of `--profile` that asks for the list.
pub const LIST: &str = "list";
/// The most profiles of the user's own that are named.
const MOST: usize = 100;
/// The most edits that a name is away from the one that is meant.
const NEAR: usize = 3;

/// Names that exist: of a family of computed ones, the usual ones.
pub fn names() -> Vec<String> {
    let ours = OURS.iter().map(|(name, _)| (*name).to_owned());
    let mut all: Vec<String> = ours.chain(computed::usual()).chain(own()).collect();
    all.put_in_order();
    all.dedup();
    all
}

/// The names of the user's own profiles.
fn own() -> Vec<String> {
    let folder = users("NAME").and_then(|file| file.parent()?.read_dir().ok());
    let files = folder.into_iter().flatten().flatten();
    let named = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        name.strip_suffix(".toml").map(str::to_owned)
    });
    let mut all: Vec<String> = named.take(MOST).collect();
    all.put_in_order();
    all
}

/// That there is no profile of this name, the nearest one, and all there are.
pub(super) fn unknown(name: &str) -> String {
    let far = |known: &String| strsim::damerau_levenshtein(known, name);
    let nearest = names().into_iter().min_by_key(far);
    let nearest = nearest.filter(|known| far(known) <= NEAR);
    let meant = nearest.map_or_else(String::new, |known| {
        format!(", do you mean {}?", visible(&known))
    });
    let forms = computed::FORMS.iter().map(|(form, _)| (*form).to_owned());
    let ours = OURS.iter().map(|(name, _)| (*name).to_owned());
    let own = own().into_iter().map(|name| visible(&name).into_owned());
    let all: Vec<String> = forms.chain(ours).chain(own).collect();
    let folder = users("NAME").map_or_else(String::new, |path| {
        format!("; your own are files like {}", path.display())
    });
    format!(
        "there is no such profile{meant} (there are {}{folder})",
        all.join(", ")
    )
}

/// Whether the arguments ask for the list of profiles.
pub fn is_listed(given: &[OsString]) -> bool {
    let own = given.iter().position(|arg| arg == "--");
    let given = &given[..own.unwrap_or(given.len())];
    let record = given.iter().position(|arg| arg == "record");
    record.is_some_and(|at| named(&given[at + 1..]).is_some_and(|name| name == LIST))
}

/// Prints the profiles: name, limit and work.
///
/// # Errors
/// stdout is closed.
pub fn list() -> anyhow::Result<()> {
    let mut rows: Vec<[String; 3]> = computed::FORMS
        .iter()
        .map(|(form, means)| {
            [
                (*form).to_owned(),
                "computed".to_owned(),
                (*means).to_owned(),
            ]
        })
        .collect();
    let ours = OURS.iter().map(|(name, _)| (*name).to_owned());
    rows.extend(ours.chain(own()).map(|name| {
        let [limit, work] = match load(&name) {
            Ok(profile) => [profile.limit.to_string(), profile.title],
            Err(error) => ["wrong".to_owned(), error.to_string()],
        };
        [name, limit, work].map(|cell| visible(&cell).into_owned())
    }));
    let widest = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let (name, limit) = (widest(0), widest(1));
    let lines = rows
        .iter()
        .map(|row| format!("{:<name$}  {:>limit$}  {}\n", row[0], row[1], row[2]));
    output::result(&lines.collect::<String>())
}
