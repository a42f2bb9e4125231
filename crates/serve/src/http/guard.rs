//! Access control: programs on this machine may send requests, others need a token, and pages of other sites are rejected.

use std::net::{IpAddr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

use super::answer::refusal;
use crate::error::{Result, ServeError};

/// Environment variable that holds the token of clients.
pub use repoformer_models::endpoint::SERVE_TOKEN_VARIABLE as TOKEN_VARIABLE;

/// Access conditions of a server.
#[derive(Debug, Clone)]
pub struct RequestGuard {
    pub(crate) listen: SocketAddr,
    token: Option<String>,
}

impl RequestGuard {
    /// Creates the guard of an address, with the token that clients must send; an empty token counts as none.
    ///
    /// # Errors
    /// Other machines could reach the address, but there is no token.
    pub fn new(listen: SocketAddr, token: Option<String>) -> Result<Self> {
        let token = token.filter(|token| !token.trim().is_empty());
        let token = token.map(|token| token.trim().to_owned());
        if token.is_none() && !listen.ip().is_loopback() {
            return Err(ServeError::OpenToAll { listen });
        }
        Ok(Self { listen, token })
    }

    /// Returns why a request is rejected; `None` if it is accepted.
    fn refusal(&self, uri: &Uri, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        // If a header occurs more than once, programs disagree on which value counts.
        let only = |name: &str| {
            let mut all = headers.get_all(name).iter();
            let value = all.next()?.to_str().unwrap_or("?");
            Some(if all.next().is_some() { "?" } else { value })
        };
        if let Some(token) = &self.token {
            let given = only("authorization").and_then(|value| value.strip_prefix("Bearer "));
            let is_right =
                given.is_some_and(|given| same(given.trim().as_bytes(), token.as_bytes()));
            // A client with the token may use any host name of this machine; a web page does not have the token.
            return (!is_right).then_some((
                StatusCode::UNAUTHORIZED,
                "send the token of REPOFORMER_SERVE_TOKEN as the API key (Authorization: Bearer …)",
            ));
        }
        let host = only("host").and_then(|host| self.own(host));
        let named = uri.authority().map(|authority| self.own(authority.as_str()));
        if host.is_none() || named.is_some_and(|named| named != host) {
            let reason =
                "the header Host must name this server: an address or localhost, and its port";
            return Some((StatusCode::FORBIDDEN, reason));
        }
        let is_same = |origin: &str| {
            let scheme = origin.get(..7).filter(|text| text.eq_ignore_ascii_case("http://"));
            scheme.is_some() && self.own(&origin[7..]) == host
        };
        let is_foreign = only("origin").is_some_and(|origin| !is_same(origin))
            || only("sec-fetch-site").is_some_and(|site| !["none", "same-origin"].contains(&site));
        is_foreign
            .then_some((StatusCode::FORBIDDEN, "requests from pages of other sites are refused"))
    }

    /// Returns the name in a host with port, if it is one of this server's: an address or `localhost`. Any other name could be made to
    /// resolve to this machine by its owner.
    fn own(&self, host: &str) -> Option<Name> {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port),
            _ => (host, "80"),
        };
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || port.parse() != Ok(self.listen.port()) {
            return None;
        }
        let inner = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        match inner {
            Some(address) => address.parse().ok().map(|address| Name::Address(IpAddr::V6(address))),
            None if name.eq_ignore_ascii_case("localhost") => Some(Name::Localhost),
            None => name.parse().ok().map(|address| Name::Address(IpAddr::V4(address))),
        }
    }
}

/// Name of a server on its own machine.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    Localhost,
    Address(IpAddr),
}

/// Compares secrets in a time that does not reveal where they differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    // Digests are compared in constant time.
    blake3::hash(one) == blake3::hash(other)
}

/// Rejects requests that the guard does not allow.
pub(crate) async fn check(
    State(guard): State<Arc<RequestGuard>>,
    request: Request,
    next: Next,
) -> Response {
    match guard.refusal(request.uri(), request.headers()) {
        Some((status, reason)) => refusal(status, reason).into_response(),
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(token: Option<&str>) -> RequestGuard {
        RequestGuard { listen: "127.0.0.1:8012".parse().unwrap(), token: token.map(str::to_owned) }
    }

    fn status(guard: &RequestGuard, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        guard.refusal(&Uri::from_static("/"), &map).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn only_this_machine_by_its_own_names_may_ask() {
        let open = guard(None);
        for host in ["127.0.0.1:8012", "localhost:8012", "[::1]:8012", "LOCALHOST:8012"] {
            assert_eq!(status(&open, &[("host", host)]), None, "{host}");
        }
        for host in [
            "evil.example:8012",
            "127.0.0.1:80",
            "localhost",
            "127.0.0.1.evil.example:8012",
            "localhost.:8012",
            "localhost:+8012",
            "localhost:",
            "user@localhost:8012",
            "::1:8012",
            "[127.0.0.1]:8012",
            "127.1:8012",
        ] {
            assert_eq!(status(&open, &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(status(&open, &[]), Some(403));
        for (host, origin) in [
            ("localhost:8012", "http://localhost:8012"),
            ("localhost:8012", "HTTP://LOCALHOST:8012"),
            ("127.0.0.1:8012", "http://127.0.0.1:8012"),
            ("[::1]:8012", "http://[0:0:0:0:0:0:0:1]:8012"),
        ] {
            assert_eq!(status(&open, &[("host", host), ("origin", origin)]), None, "{origin}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost:3000",
            "file://",
            "",
            "http://203.0.113.5:8012",
            "http://127.0.0.1:8012",
            "https://localhost:8012",
            "http://localhost.:8012",
            "http://localhost",
            "http://user@localhost:8012",
            "http://localhost:8012/",
            "http://localhost:8012@evil.example:8012",
            "localhost:8012",
        ] {
            let headers = [("host", "localhost:8012"), ("origin", origin)];
            assert_eq!(status(&open, &headers), Some(403), "{origin}");
        }
        let own = [("host", "localhost:8012"), ("origin", "http://localhost:8012")];
        assert_eq!(status(&open, &[own[0], own[1], own[1]]), Some(403), "two origins");
        assert_eq!(status(&open, &[own[0], own[0]]), Some(403), "two hosts");
        // Neither header includes HTTP's default port.
        let usual = RequestGuard { listen: "127.0.0.1:80".parse().unwrap(), token: None };
        let headers = [("host", "localhost"), ("origin", "http://localhost:80")];
        assert_eq!(status(&usual, &headers), None);
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
