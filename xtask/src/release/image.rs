//! The container image: one layer from scratch, in the layout of the Open Container Initiative, made without a daemon.

use super::deb;
use super::layout::{DOC, Unpacked};
use crate::dist::{FLEET, archive, copy};
use anyhow::Context;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Makes `jitterscope-VERSION-ARCH.oci.tar`.
pub fn make(unpacked: &Unpacked, time: u64, out: &Path) -> anyhow::Result<PathBuf> {
    let (version, arch) = (
        &unpacked.release.version,
        deb::arch(unpacked.release.machine),
    );
    let stage = tempfile::Builder::new()
        .prefix("jitterscope-image-")
        .tempdir()?;
    let [root, image] = ["root", "image"].map(|name| stage.path().join(name));
    fill(unpacked, &root)?;
    let blobs = image.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;

    let [layer, packed] = ["layer.tar", "layer.tar.gz"].map(|name| stage.path().join(name));
    archive::tar(&root, ".", &layer, time)?;
    super::layout::compress(&layer, &packed)?;
    let uncompressed = archive::digest(&layer)?;
    let layer = kept(&blobs, &fs::read(&packed)?, LAYER)?;
    let created = rfc3339(time)?;
    let config = json!({
        "architecture": arch,
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": ["/usr/bin/jitterscope"],
            "Cmd": ["record"],
            "Env": ["PATH=/usr/bin", "JITTERSCOPE_RUNS=/runs"],
            "WorkingDir": "/",
            "Labels": labels(version),
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{uncompressed}")] },
        "history": [{ "created": created, "created_by": "cargo xtask release" }],
    });
    let config = kept(&blobs, &serde_json::to_vec(&config)?, CONFIG)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": [layer],
        "annotations": labels(version),
    });
    let mut manifest = kept(&blobs, &serde_json::to_vec(&manifest)?, MANIFEST)?;
    manifest["platform"] = json!({ "architecture": arch, "os": "linux" });
    manifest["annotations"] =
        json!({ "org.opencontainers.image.ref.name": format!("jitterscope:{version}") });
    let index = json!({ "schemaVersion": 2, "manifests": [manifest] });
    fs::write(image.join("index.json"), serde_json::to_vec(&index)?)?;
    fs::write(
        image.join("oci-layout"),
        r#"{"imageLayoutVersion":"1.0.0"}"#,
    )?;
    archive::set_modes(&image)?;
    let path = out.join(format!("jitterscope-{version}-{arch}.oci.tar"));
    archive::tar(&image, ".", &path, time)?;
    Ok(path)
}

/// The program, its licences, and a folder for runs that every user of the container may write to.
fn fill(unpacked: &Unpacked, root: &Path) -> anyhow::Result<()> {
    let doc = root.join(DOC);
    fs::create_dir_all(&doc)?;
    fs::create_dir_all(root.join("usr/bin"))?;
    for program in ["jitterscope", FLEET] {
        copy(&unpacked.at(program), &root.join("usr/bin").join(program))?;
    }
    for file in [
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "THIRD-PARTY.txt",
        "RUST-LIBRARY.html",
        "SBOM.cdx.json",
    ] {
        copy(&unpacked.at(file), &doc.join(file))?;
    }
    archive::set_modes(root)?;
    let runs = root.join("runs");
    fs::create_dir(&runs)?;
    fs::set_permissions(&runs, std::os::unix::fs::PermissionsExt::from_mode(0o1777))?;
    Ok(())
}

fn labels(version: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "jitterscope",
        "org.opencontainers.image.description": "finds what steals time from CPUs, and names it",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    })
}

/// Stores a blob by its digest and returns its descriptor.
fn kept(blobs: &Path, bytes: &[u8], kind: &str) -> anyhow::Result<Value> {
    let fresh = blobs.join("fresh");
    fs::write(&fresh, bytes)?;
    let digest = archive::digest(&fresh)?;
    fs::rename(&fresh, blobs.join(&digest))?;
    Ok(json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": bytes.len() }))
}

fn rfc3339(time: u64) -> anyhow::Result<String> {
    let date = Command::new("date")
        .args(["-u", "-d", &format!("@{time}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .context("date cannot be started")?;
    Ok(String::from_utf8(date.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let blob = kept(dir.path(), b"hello", "text/plain").unwrap();
        let digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        assert_eq!(blob["digest"], format!("sha256:{digest}"));
        assert_eq!(blob["size"], 5);
        assert_eq!(fs::read(dir.path().join(digest)).unwrap(), b"hello");
        assert_eq!(rfc3339(1_700_000_000).unwrap(), "2023-11-14T22:13:20Z");
    }
}
