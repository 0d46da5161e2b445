/// The name of another test of the same module in the form that `--exact` takes, for a test that starts its own binary
/// again. A test that does not exist does not compile.
#[macro_export]
macro_rules! name_of_test {
    ($test:ident) => {{
        let _: fn() = $test;
        match module_path!().split_once("::") {
            Some((_, module)) => format!("{module}::{}", stringify!($test)),
            None => stringify!($test).to_owned(),
        }
    }};
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_test_knows_its_name_in_its_binary() {
        let name = name_of_test!(a_test_knows_its_name_in_its_binary);
        assert_eq!(std::thread::current().name(), Some(&*name));
    }
}
