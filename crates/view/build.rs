//! Embeds the bundle of `web/` where `cargo xtask web` has built it; nothing is built or fetched here.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo says where this is");
    let out = env::var("OUT_DIR").expect("cargo says where files go");
    let built = Path::new(&root).join("../../web/dist");
    println!("cargo::rerun-if-changed=build.rs");
    let file = |name: &str| {
        let path = built.join(name);
        if !path.is_file() {
            // Watching what is not there would build this crate again each time; `cargo xtask web` touches this
            // file when it has made the bundle.
            return None;
        }
        println!("cargo::rerun-if-changed={}", path.display());
        Some(path)
    };
    let (script, style) = (file("page.js"), file("page.css"));
    let code = match (script, style) {
        (Some(script), Some(style)) => {
            fs::copy(script, Path::new(&out).join("page.js")).expect("the bundle can be copied");
            fs::copy(style, Path::new(&out).join("page.css")).expect("the bundle can be copied");
            "/// The script.\npub(super) const SCRIPT: Option<&str> = Some(include_str!(concat!(env!(\"OUT_DIR\"), \"/page.js\")));\n\
             /// Its style.\npub(super) const STYLE: Option<&str> = Some(include_str!(concat!(env!(\"OUT_DIR\"), \"/page.css\")));\n"
        }
        _ => {
            "/// The script.\npub(super) const SCRIPT: Option<&str> = None;\n\
             /// Its style.\npub(super) const STYLE: Option<&str> = None;\n"
        }
    };
    fs::write(Path::new(&out).join("bundle.rs"), code)
        .expect("the build's folder can be written to");
}
