//! The HTTP client under `object_store`: the one that the other program has, and no second one.

use http_body_util::BodyExt;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientOptions, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::Agent;
use ureq::http::Request;

/// The timeout of one request, the transfer included.
const REQUEST: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);
/// The largest object that is read, bytes.
const LARGEST: u64 = 512 << 20;
/// Says that no server has sent its time.
const UNKNOWN: i64 = i64::MIN;

/// By how many seconds this machine's clock is ahead of the server's, by its last answer.
#[derive(Clone, Debug)]
pub(crate) struct ClockAhead(Arc<AtomicI64>);

impl Default for ClockAhead {
    fn default() -> ClockAhead {
        ClockAhead(Arc::new(AtomicI64::new(UNKNOWN)))
    }
}

impl ClockAhead {
    pub(crate) fn seconds(&self) -> Option<i32> {
        let known = self.0.load(Ordering::Relaxed);
        (known != UNKNOWN)
            .then(|| i32::try_from(known.clamp(i32::MIN.into(), i32::MAX.into())).ok())?
    }

    /// Takes the time of an answer: `Date` of RFC 9110, to the second.
    fn take(&self, date: &str) {
        let Ok(theirs) = jiff::fmt::rfc2822::parse(date) else {
            return;
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let ours = since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0));
        let ahead = ours.saturating_sub(theirs.timestamp().as_second());
        self.0.store(ahead, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Connector(pub(crate) ClockAhead);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> Result<HttpClient> {
        let tls = ureq::tls::TlsConfig::builder()
            .root_certs(ureq::tls::RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(rustls::crypto::ring::default_provider().into())
            .build();
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A signature holds for the server that the user named.
            .max_redirects(0)
            .timeout_global(Some(REQUEST))
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("jitterscope/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Ok(HttpClient::new(Service {
            agent: config.into(),
            ahead: self.0.clone(),
        }))
    }
}

#[derive(Debug)]
struct Service {
    agent: Agent,
    ahead: ClockAhead,
}

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect().await?.to_bytes().to_vec();
        // This program does one thing at a time, on one thread: waiting here holds up nothing.
        let request = Request::from_parts(parts, bytes);
        let response = self.agent.run(request).map_err(failed)?;
        let (parts, body) = response.into_parts();
        if let Some(date) = parts
            .headers
            .get("date")
            .and_then(|date| date.to_str().ok())
        {
            self.ahead.take(date);
        }
        let bytes = body.into_with_config().limit(LARGEST).read_to_vec();
        let bytes = bytes.map_err(failed)?;
        Ok(HttpResponse::from_parts(parts, bytes.into()))
    }
}

fn failed(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::Io(_) | ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
            HttpErrorKind::Connect
        }
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_compared_with_the_date_of_an_answer() {
        let ahead = ClockAhead::default();
        assert_eq!(ahead.seconds(), None);
        ahead.take("no date");
        assert_eq!(ahead.seconds(), None);
        let now = jiff::Timestamp::now();
        let before = now - jiff::SignedDuration::from_secs(100);
        let text = jiff::fmt::rfc2822::to_string(&before.to_zoned(jiff::tz::TimeZone::UTC));
        ahead.take(&text.unwrap());
        assert!((99..=102).contains(&ahead.seconds().unwrap()), "{ahead:?}");
    }
}
