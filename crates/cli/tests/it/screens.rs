//! Screens that need no privilege and no particular machine.

use jitterscope_testing::turn;

#[test]
fn screens() {
    // Some begin to record before their error, and only one recording at a time may measure a CPU.
    let _turn = turn();
    trycmd::TestCases::new()
        .case("tests/cmd/*.toml")
        .case("tests/cmd/*.trycmd");
}
