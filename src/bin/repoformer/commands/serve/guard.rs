//! Access: this machine's programs may ask, and others with a token; no page of another site.

use std::net::{IpAddr, SocketAddr};

use anyhow::Result;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

use super::answer::refusal;
use crate::output::fail;

/// Variable that holds the token of clients.
const TOKEN_VARIABLE: &str = "REPOFORMER_SERVE_TOKEN";

/// Conditions of access.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    pub(super) listen: SocketAddr,
    token: Option<String>,
}

impl Guard {
    /// Guard of an address.
    ///
    /// # Errors
    /// Other machines could reach it without a token.
    pub(super) fn new(listen: SocketAddr) -> Result<Self> {
        let token = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.trim().is_empty());
        let token = token.map(|token| token.trim().to_owned());
        if token.is_none() && !listen.ip().is_loopback() {
            return fail(
                format!(
                    "--listen {listen}: other machines can reach this address, and {TOKEN_VARIABLE} is not set"
                ),
                format!(
                    "set {TOKEN_VARIABLE} to a secret that clients send as their API key, or listen on 127.0.0.1"
                ),
            );
        }
        Ok(Self { listen, token })
    }

    /// Says why a request is refused; `None` where it is not.
    fn refusal(&self, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        if let Some(token) = &self.token {
            let given = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
            let is_right =
                given.is_some_and(|given| same(given.trim().as_bytes(), token.as_bytes()));
            // Who has the token may ask by any name of this machine; a page has none.
            return (!is_right).then_some((
                StatusCode::UNAUTHORIZED,
                "send the token of REPOFORMER_SERVE_TOKEN as the API key (Authorization: Bearer …)",
            ));
        }
        if !text("host").is_some_and(|host| self.is_own(host)) {
            return Some((StatusCode::FORBIDDEN, "the header Host names another server"));
        }
        let is_own_origin = |origin: &str| {
            let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            host.is_some_and(|host| self.is_own(host))
        };
        let is_foreign = text("origin").is_some_and(|origin| !is_own_origin(origin))
            || matches!(text("sec-fetch-site"), Some("cross-site" | "same-site"));
        is_foreign.then_some((StatusCode::FORBIDDEN, "a page of another site may not ask"))
    }

    /// Whether a host with its port is this server's: an address, or this machine's name for itself. A name of the network may
    /// be made to lead here by whoever owns it.
    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let is_address = bare.parse::<IpAddr>().is_ok();
        port == Some(self.listen.port()) && (is_address || bare.eq_ignore_ascii_case("localhost"))
    }
}

/// Compares secrets in a time that does not tell where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    // Digests are compared in the same time wherever they differ.
    blake3::hash(one) == blake3::hash(other)
}

/// Refuses requests that the guard does not let through.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.refusal(request.headers()) {
        Some((status, reason)) => refusal(status, reason).into_response(),
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(token: Option<&str>) -> Guard {
        Guard { listen: "127.0.0.1:8012".parse().unwrap(), token: token.map(str::to_owned) }
    }

    fn status(guard: &Guard, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        guard.refusal(&map).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_this_machine_by_its_own_names_may_ask() {
        let open = guard(None);
        for host in ["127.0.0.1:8012", "localhost:8012", "[::1]:8012", "LOCALHOST:8012"] {
            assert_eq!(status(&open, &[("host", host)]), None, "{host}");
        }
        for host in
            ["evil.example:8012", "127.0.0.1:80", "localhost", "127.0.0.1.evil.example:8012"]
        {
            assert_eq!(status(&open, &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(status(&open, &[]), Some(403));
        let from = |origin| [("host", "localhost:8012"), ("origin", origin)];
        assert_eq!(status(&open, &from("http://localhost:8012")), None);
        for origin in ["http://evil.example", "null", "http://localhost:3000", "file://"] {
            assert_eq!(status(&open, &from(origin)), Some(403), "{origin}");
        }
        let site = [("host", "localhost:8012"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status(&open, &site), Some(403));
    }

    #[test]
    fn a_token_is_asked_for_where_one_is_set() {
        let closed = guard(Some("s3cret"));
        let with = |value| [("host", "localhost:8012"), ("authorization", value)];
        assert_eq!(status(&closed, &with("Bearer s3cret")), None);
        let by_name = [("host", "desk.example:8012"), ("authorization", "Bearer s3cret")];
        assert_eq!(status(&closed, &by_name), None);
        assert_eq!(status(&closed, &with("Bearer s3cre")), Some(401));
        assert_eq!(status(&closed, &[("host", "localhost:8012")]), Some(401));
    }
}
