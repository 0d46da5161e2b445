//! Puts the functions that a recording calls side by side in the program: the kernel maps 64 KiB of a program's text
//! around each page that is touched, so that functions which lie among others cost three times their size in memory.
//!
//! Which these are stands in `text-order`, which `cargo xtask text-order` writes. A name that the program does not
//! have is passed over, and a function that is not listed lies where the linker puts it.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// Set where the linker takes no such script.
const LEAVE_OUT: &str = "JITTERSCOPE_NO_TEXT_ORDER";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=text-order");
    println!("cargo::rerun-if-env-changed={LEAVE_OUT}");
    if env::var("PROFILE")? != "release" || !linker_takes_scripts() {
        return Ok(());
    }
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let list = fs::read_to_string(Path::new(&root).join("text-order"))?;
    let mut script = String::from("SECTIONS {\n  .text.recording : {\n");
    for name in list.lines().filter(|line| !line.starts_with('#')) {
        // What the compiler takes for rarely called has a section with a name of its own.
        script.push_str(&format!("    *(.text.{name} .text.unlikely.{name})\n"));
    }
    // With INSERT it adds to the linker's own script instead of taking its place.
    script.push_str("  }\n} INSERT BEFORE .text;\n");
    let path = Path::new(&env::var("OUT_DIR")?).join("text-order.ld");
    fs::write(&path, script)?;
    println!("cargo::rustc-link-arg-bins=-T{}", path.display());
    Ok(())
}

/// GNU ld and LLVM's, which the compiler brings, do; somebody's own choice of another may not.
fn linker_takes_scripts() -> bool {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // Each flag, or a flag and its value; a path among them may have any name.
    let chosen = |flag: &str| {
        let option = flag.trim_start_matches("-C").trim_start_matches("-Z");
        option.starts_with("link")
    };
    let usual = env::var_os("RUSTC_LINKER").is_none() && !flags.split('\x1f').any(chosen);
    usual
        && env::var_os(LEAVE_OUT).is_none()
        && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
}
