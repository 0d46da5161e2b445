//! A recorded trace in two files: `context.json`, and `pages.bin`, where each page follows a head with its role (one
//! byte), CPU and length (four bytes each, little-endian).

use jitterscope_model::CpuId;
use jitterscope_source::{Role, TraceContext};
use std::path::{Path, PathBuf};

pub struct StoredPage {
    pub role: Role,
    pub cpu: CpuId,
    pub bytes: Vec<u8>,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/vm-1s")
}

#[allow(dead_code)]
pub fn write(folder: &Path, context: &TraceContext, pages: &[StoredPage]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join("context.json"),
        serde_json::to_string_pretty(context)? + "\n",
    )?;
    let mut out = Vec::new();
    for page in pages {
        out.push(page.role as u8);
        out.extend(page.cpu.0.to_le_bytes());
        out.extend((page.bytes.len() as u32).to_le_bytes());
        out.extend(&page.bytes);
    }
    std::fs::write(folder.join("pages.bin"), out)
}

#[allow(dead_code)]
pub fn read(folder: &Path) -> (TraceContext, Vec<StoredPage>) {
    let context =
        std::fs::read_to_string(folder.join("context.json")).expect("the fixture's context");
    let context = serde_json::from_str(&context).expect("a context");
    let bytes = std::fs::read(folder.join("pages.bin")).expect("the fixture's pages");
    let mut rest = &bytes[..];
    let mut pages = Vec::new();
    while let Some((role, tail)) = rest.split_first() {
        let (cpu, tail) = tail.split_first_chunk::<4>().expect("a CPU");
        let (length, tail) = tail.split_first_chunk::<4>().expect("a length");
        let (page, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
        let role = if *role == Role::Local as u8 {
            Role::Local
        } else {
            Role::Senders
        };
        pages.push(StoredPage {
            role,
            cpu: CpuId(u32::from_le_bytes(*cpu)),
            bytes: page.to_vec(),
        });
        rest = tail;
    }
    (context, pages)
}
