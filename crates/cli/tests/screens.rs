//! What users see on screens that need no privilege and no particular machine.

use jitterscope_testing::turn;

#[test]
fn screens() {
    // Some begin to record before what they show is found, and a CPU is measured by one recording at a time.
    let _turn = turn();
    trycmd::TestCases::new()
        .case("tests/cmd/*.toml")
        .case("tests/cmd/*.trycmd");
}
