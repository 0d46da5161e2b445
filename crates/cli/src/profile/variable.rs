//! Values of a profile that a variable of the environment gives: those that another tool's users set already.

use jitterscope_model::CpuSet;
use jitterscope_platform::current_affinity;
use toml::de::{DeTable, DeValue};

/// The value of a table with `env`, the name of the variable, `unit`, which its number has (`us` and the like, or `cpus`
/// for that many CPUs, the highest first), and `default`, used if the variable is not set. `None` without either.
///
/// # Errors
/// The table has another key, or the variable is no whole number.
pub fn value(
    table: &DeTable<'_>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
    let [mut env, mut unit, mut default] = [const { None }; 3];
    for (key, value) in table {
        let place = match key.get_ref().as_ref() {
            "env" => &mut env,
            "unit" => &mut unit,
            "default" => &mut default,
            other => {
                return Err(format!(
                    "unknown key '{other}': there are env, unit and default"
                ));
            }
        };
        match value.get_ref() {
            DeValue::String(text) => *place = Some(text.to_string()),
            _ => return Err(format!("{} is no text", key.get_ref())),
        }
    }
    let (Some(env), Some(unit)) = (env, unit) else {
        return Err("a variable has the keys env and unit".to_owned());
    };
    let Some(text) = variable(&env).filter(|text| !text.is_empty()) else {
        return Ok(default);
    };
    let number: u32 = text
        .parse()
        .map_err(|_| format!("{env}={text} is no whole number"))?;
    if unit == "cpus" {
        return highest(number)
            .map(Some)
            .map_err(|why| format!("{env}={text}: {why}"));
    }
    Ok(Some(format!("{number}{unit}")))
}

/// So many of the CPUs that this process may use, as a list.
fn highest(count: u32) -> Result<String, String> {
    let allowed = current_affinity().map_err(|error| error.to_string())?;
    let allowed: Vec<_> = allowed.iter().collect();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 || count > allowed.len() {
        return Err(format!("this process may use {} CPUs", allowed.len()));
    }
    let chosen: CpuSet = allowed[allowed.len() - count..].iter().copied().collect();
    Ok(chosen.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, set: Option<&str>) -> Result<Option<String>, String> {
        let table = DeTable::parse(text).unwrap();
        value(table.get_ref(), |name| {
            assert_eq!(name, "A");
            set.map(str::to_owned)
        })
    }

    #[test]
    fn a_variable_has_a_unit_and_a_default() {
        let with_default = "env = 'A'\nunit = 'us'\ndefault = '20us'";
        assert_eq!(of(with_default, Some("50")), Ok(Some("50us".to_owned())));
        for unset in [None, Some("")] {
            assert_eq!(of(with_default, unset), Ok(Some("20us".to_owned())));
        }
        assert_eq!(of("env = 'A'\nunit = 's'", None), Ok(None));
    }

    #[test]
    fn a_number_of_cpus_is_a_list_of_the_highest() {
        let highest = jitterscope_testing::highest_cpu().to_string();
        let cpus = "env = 'A'\nunit = 'cpus'";
        assert_eq!(of(cpus, Some("1")), Ok(Some(highest)));
        for wrong in ["0", "100000"] {
            let error = of(cpus, Some(wrong)).unwrap_err();
            assert!(error.contains("this process may use"), "{error}");
        }
    }

    #[test]
    fn wrong_variables_and_tables_are_refused() {
        let error = of("env = 'A'\nunit = 'us'", Some("-5")).unwrap_err();
        assert_eq!(error, "A=-5 is no whole number");
        assert!(of("env = 'A'", None).is_err());
        assert!(of("env = 'A'\nunit = 'us'\nelse = '1'", None).is_err());
        assert!(of("env = 1\nunit = 'us'", None).is_err());
    }
}
