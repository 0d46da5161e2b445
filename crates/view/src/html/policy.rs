//! The document around a page: what it may do.

use super::bundle;
use super::markup::Markup;
use crate::chart::theme;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("page.css");

/// What the script of a page reads.
pub(super) struct Data {
    /// The rows of the run, in base64.
    pub(super) rows: String,
    /// The frames of some stalls, in base64.
    pub(super) frames: String,
}

/// A page that is served and has forms, which go back to where it came from.
pub(super) fn served(title: &str, body: &str) -> String {
    written(title, body, None, "form-action 'self'")
}

/// A page of a run that is served: its script may ask where it came from, and nobody else, for more of the run.
pub(super) fn asking(title: &str, body: &str, data: Option<&Data>) -> String {
    written(title, body, data, "form-action 'none'; connect-src 'self'")
}

/// A whole document that stands alone. Its policy lets nothing load, and nothing run but the script that is in it: each is
/// named by its digest.
pub(super) fn document(title: &str, body: &str, data: Option<&Data>) -> String {
    written(title, body, data, "form-action 'none'")
}

fn written(title: &str, body: &str, data: Option<&Data>, more: &'static str) -> String {
    let script = data.and(bundle::SCRIPT);
    let style = format!(
        "{STYLE}{}{}",
        theme::of_page(),
        script.and(bundle::STYLE).unwrap_or_default()
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
    if let (Some(data), Some(script)) = (data, script) {
        // Base64 has no character that could end it.
        for (id, block) in [("data", &data.rows), ("frames", &data.frames)] {
            out.raw("<script type=\"application/octet-stream\" id=\"")
                .raw(id)
                .raw("\">")
                .piece(block);
            out.raw("</script>\n");
        }
        out.raw("<script>").piece(script).raw("</script>\n");
    }
    out.raw("</body>\n</html>\n");
    out.into_string()
}

fn digest(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}
