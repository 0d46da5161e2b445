//! `influx+https`: only a server that proves its identity gets data.

#![cfg(feature = "tls")]

use jitterscope_testing::turn;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A certificate authority for this test.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The received requests: first line and body.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// A server on loopback with the identity `name`, certified by `authority`, that accepts everything. Returns its port
/// too.
fn server(name: &str, authority: &CertifiedIssuer<'_, KeyPair>) -> (u16, Seen) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Seen::default();
    let store = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust the server hangs up halfway.
            if let Some(request) = answer(StreamOwned::new(session, stream)) {
                store.lock().unwrap().push(request);
            }
        }
    });
    (port, seen)
}

fn answer(stream: impl Read + Write) -> Option<(String, String)> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header).ok()? <= 2 {
            break;
        }
        if let Some(number) = header.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = number.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    reader.get_mut().write_all(answer).ok()?;
    reader.get_mut().flush().ok()?;
    Some((line.trim().to_owned(), String::from_utf8(body).ok()?))
}

fn sampler(folder: &Path, port: u16, duration: &str, trusted: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jitterscope"));
    let target = format!("influx+https://localhost:{port}/?db=jitter");
    let runs = tempfile::tempdir().unwrap();
    command
        .args([
            "sampler",
            "-d",
            duration,
            "-o",
            "csv://j.csv",
            "-o",
            &target,
        ])
        .current_dir(folder)
        .env("JITTERSCOPE_RUNS", runs.path());
    command
        .env_remove("SSL_CERT_FILE")
        .env_remove("SSL_CERT_DIR")
        .stdin(Stdio::null());
    if let Some(file) = trusted {
        command.env("SSL_CERT_FILE", file);
    }
    command.output().unwrap()
}

/// Checks that nothing was measured, sent or written, and that the error gives advice.
fn refused(folder: &Path, output: &Output, begun: Instant) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("certificate") && stderr.contains("SSL_CERT_FILE"),
        "{stderr}"
    );
    assert!(begun.elapsed() < Duration::from_secs(60), "it measured");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{stderr}");
}

#[test]
fn only_a_server_with_a_trusted_certificate_gets_anything() {
    let _turn = turn();
    let (dir, trusted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (ours, theirs) = (authority(), authority());
    let ca = trusted.path().join("ca.pem");
    fs::write(&ca, ours.pem()).unwrap();

    let (unknown, seen) = server("localhost", &theirs);
    for trust in [None, Some(ca.as_path())] {
        let begun = Instant::now();
        refused(
            dir.path(),
            &sampler(dir.path(), unknown, "3600", trust),
            begun,
        );
    }
    assert!(
        seen.lock().unwrap().is_empty(),
        "who is not trusted sees no request"
    );

    let (misnamed, seen) = server("elsewhere.invalid", &ours);
    let begun = Instant::now();
    refused(
        dir.path(),
        &sampler(dir.path(), misnamed, "3600", Some(&ca)),
        begun,
    );
    assert!(
        seen.lock().unwrap().is_empty(),
        "nor does who has another's name"
    );

    let (trusted, seen) = server("localhost", &ours);
    let output = sampler(dir.path(), trusted, "300ms", Some(&ca));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let seen = seen.lock().unwrap();
    assert!(seen[0].0.starts_with("GET /ping "), "{seen:?}");
    assert!(
        seen[1].0.starts_with("POST /write?db=jitter&precision=ns "),
        "{seen:?}"
    );
    assert!(seen[1].1.starts_with("jitter_run,"), "{seen:?}");
    let sent: usize = seen.iter().map(|(_, body)| body.lines().count()).sum();
    let message = format!("localhost:{trusted}: {sent} rows");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(sent > 1 && stderr.contains(&message), "{message}: {stderr}");
}

#[test]
fn a_server_without_tls_is_reported_as_such() {
    let _turn = turn();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let output = sampler(dir.path(), port, "3600", None);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("does not speak TLS"), "{stderr}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
