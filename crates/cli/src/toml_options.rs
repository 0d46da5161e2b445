//! Options of commands in TOML files.

use toml::de::DeValue;

/// The values of an option: `None` for one without a value; none for one that is off.
///
/// # Errors
/// It is no option: a table, a time or a fraction.
pub fn values(value: &DeValue<'_>) -> Result<Vec<Option<String>>, String> {
    Ok(match value {
        DeValue::String(text) => vec![Some(text.to_string())],
        DeValue::Integer(number) => vec![Some(number.as_str().to_owned())],
        DeValue::Boolean(true) => vec![None],
        DeValue::Boolean(false) => Vec::new(),
        DeValue::Array(all) => {
            let each = all.iter().map(|value| values(value.get_ref()));
            each.collect::<Result<Vec<_>, _>>()?.concat()
        }
        _ => return Err("is no option".to_owned()),
    })
}

/// The argument of an option with this long name.
pub fn argument(name: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("--{name}={value}"),
        None => format!("--{name}"),
    }
}

/// What clap says of wrong arguments, in a line.
pub fn first_line(error: &clap::Error) -> String {
    let said = error.to_string();
    let first = said.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}
