//! What users see on screens that need no privilege and no particular machine.

#[test]
fn screens() {
    trycmd::TestCases::new().case("tests/cmd/*.toml").case("tests/cmd/*.trycmd");
}
