//! The document around a page, with its content security policy.

use super::bundle;
use super::markup::Markup;
use crate::chart::theme;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");

/// The script's data of one run.
pub(super) struct Data {
    /// The rows, in base64.
    pub(super) rows: String,
    /// The frames of some stalls, in base64.
    pub(super) frames: String,
}

/// A served page with forms that go back to its server.
pub(super) fn served(title: &str, body: &str) -> String {
    written(title, body, &[], "form-action 'self'")
}

/// A served page of a run: its script may request more of the run from its own server only.
pub(super) fn asking(title: &str, body: &str, data: &[Data]) -> String {
    written(title, body, data, "form-action 'none'; connect-src 'self'")
}

/// A stand-alone document. Its policy blocks all loading and all scripts except its own, which it names by their
/// digests.
pub(super) fn document(title: &str, body: &str, data: &[Data]) -> String {
    written(title, body, data, "form-action 'none'")
}

fn written(title: &str, body: &str, data: &[Data], more: &'static str) -> String {
    let script = (!data.is_empty()).then_some(bundle::SCRIPT);
    let style = format!(
        "{STYLE}{}{}",
        theme::of_page(),
        script.map_or("", |_| bundle::STYLE)
    );
    let scripts = script.map_or_else(
        || "'none'".into(),
        |script| format!("'sha256-{}'", digest(script)),
    );
    let policy = format!(
        "default-src 'none'; script-src {scripts}; style-src 'sha256-{}'; img-src data:; font-src data:; \
         base-uri 'none'; {more}",
        digest(&style)
    );
    let mut out = Markup::default();
    out.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"")
        .text(&policy)
        .raw("\">\n");
    out.raw("<meta name=\"referrer\" content=\"no-referrer\">\n");
    out.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    out.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    out.element("<title>", title, "</title>\n");
    out.raw("<style>")
        .piece(&style)
        .raw("</style>\n</head>\n<body>\n")
        .piece(body);
    if let Some(script) = script {
        // Base64 has no character that could end the element.
        for data in data {
            for (class, block) in [("rows", &data.rows), ("frames", &data.frames)] {
                out.raw("<script type=\"application/octet-stream\" class=\"")
                    .raw(class)
                    .raw("\">")
                    .piece(block);
                out.raw("</script>\n");
            }
        }
        out.raw("<script>").piece(script).raw("</script>\n");
    }
    out.raw("</body>\n</html>\n");
    out.into_string()
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
