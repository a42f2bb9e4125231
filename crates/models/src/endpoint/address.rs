//! The URL of a server's API: parses what users write, builds request URLs, and masks secrets in messages.

use std::net::{IpAddr, Ipv4Addr};

use repoformer_store::error::{Error, Result};
use ureq::http::Uri;

use super::DEFAULT_KEY_VARIABLE;
use super::key::SharedKeys;

/// Replacement for secrets in messages.
pub const MASK: &str = "***";
/// Last path segments of URLs that users copy from a request instead of the server's address.
const REQUESTS: [&str; 4] = ["embeddings", "completions", "chat", "models"];

/// Address of an API, split at the position of a request's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Scheme, host, port and the path before the API's version, without a trailing slash.
    root: String,
    /// `/v1` or the URL's own version.
    version: String,
    /// `?name=value`, or empty.
    query: String,
    /// Host name in lower case, or IP address.
    host: String,
    port: u16,
}

impl Address {
    /// Parses a URL, which may end with `/v1`, a slash or a request's name (`/embeddings`).
    ///
    /// # Errors
    /// The URL has no scheme, a scheme other than `http` or `https`, no host, an invalid port, or a user name.
    pub(super) fn parse(given: &str) -> Result<Self> {
        let given = given.trim();
        // Text that is not a URL may be a key.
        let masked = |text: String| SharedKeys::of_program().get().mask_text(&text).into_owned();
        let wrong = |reason: String, hint: String| Error::Endpoint {
            url: masked(mask_url(given)),
            reason,
            hint: hint.into(),
            status: None,
        };
        let example = || "write it as http://localhost:8080/v1 or https://host/v1".to_owned();
        let Some((scheme, rest)) = given.split_once("://") else {
            let host = given.split('/').next().unwrap_or_default();
            let is_host = host.contains(['.', ':']) || is_local(host);
            let shown = if is_host { masked(mask_url(given)) } else { "HOST".into() };
            return Err(Error::Endpoint {
                url: shown.clone(),
                reason: "the URL has no scheme".into(),
                hint: format!("write http://{shown} or https://{shown}").into(),
                status: None,
            });
        };
        if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(Error::Endpoint {
                url: format!("{MASK}://{MASK}"),
                reason: "the scheme is not http or https".into(),
                hint: example().into(),
                status: None,
            });
        }
        if rest.split(['/', '?', '#']).next().is_none_or(str::is_empty) {
            return Err(wrong("the URL has no host".into(), example()));
        }
        if user_end(rest).is_some() {
            let hint = format!(
                "remove it, and set the environment variable {DEFAULT_KEY_VARIABLE} to the server's key"
            );
            return Err(wrong("the URL contains a user name or key".into(), hint));
        }
        if !given.is_ascii() {
            let hint = "write these characters as in %C3%A9, and hosts in the form xn--".to_owned();
            return Err(wrong("the URL contains characters other than ASCII".into(), hint));
        }
        let uri: Uri = given.parse().map_err(|e| wrong(format!("not a URL: {e}"), example()))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let host = uri.host().unwrap_or_default();
        let port = authority.strip_prefix(host).unwrap_or_default();
        if !port.is_empty() && uri.port_u16().is_none_or(|port| port == 0) {
            let hint = "write a number from 1 to 65535, as in :8080, or omit the port".into();
            // Text that is not a port may be a key.
            return Err(Error::Endpoint {
                url: format!("{scheme}://{MASK}"),
                reason: "its port is not a number from 1 to 65535".into(),
                hint,
                status: None,
            });
        }
        let (before, version) = split_path(uri.path());
        Ok(Self {
            root: format!("{}://{authority}{before}", scheme.to_ascii_lowercase()),
            version,
            query: uri.query().map(|q| format!("?{q}")).unwrap_or_default(),
            host: bare(host).to_ascii_lowercase(),
            port: uri.port_u16().unwrap_or(if scheme.eq_ignore_ascii_case("https") {
                443
            } else {
                80
            }),
        })
    }

    /// Returns the host's name in lower case, or its IP address.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the host's IP address, if the URL has one instead of a name.
    pub(super) fn ip_address(&self) -> Option<IpAddr> {
        ip_address(&self.host)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether the host is this machine, for which no proxy is used.
    pub(super) fn is_local(&self) -> bool {
        is_local(&self.host)
    }

    /// Returns the query of every request: `?name=value`, or empty.
    pub(super) fn query(&self) -> &str {
        &self.query
    }

    /// Returns the URL of a request. A path that begins with `/v1/` is placed under the API's version, any other directly under the root.
    pub(super) fn of(&self, path: &str) -> String {
        let (version, path) = match path.strip_prefix("/v1") {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => (self.version.as_str(), rest),
            _ => ("", path),
        };
        format!("{}{version}{path}{}", self.root, self.query)
    }
}

/// Splits a path into the part before the API's version and the version.
fn split_path(path: &str) -> (String, String) {
    let mut segments: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    while segments.last().is_some_and(|last| REQUESTS.contains(last)) {
        segments.pop();
    }
    let at = segments.iter().position(|segment| is_version(segment));
    let join = |parts: &[&str]| parts.iter().map(|part| format!("/{part}")).collect();
    match at {
        Some(at) => (join(&segments[..at]), join(&segments[at..])),
        None => (join(&segments), "/v1".into()),
    }
}

/// Returns whether a path segment is an API version: `v1`, `v4`, `v1beta`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
        && rest.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_local(host: &str) -> bool {
    let is_address = ip_address(host).is_some_and(|ip| ip.is_loopback() || ip.is_unspecified());
    is_address || bare(host).eq_ignore_ascii_case("localhost")
}

/// Returns a host without brackets and without the trailing dot that a name may have.
pub(super) fn bare(host: &str) -> &str {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}

/// Parses an IP address in any form that operating systems accept (`127.1`, `0x7f000001`, `[::ffff:127.0.0.1]`).
pub(super) fn ip_address(host: &str) -> Option<IpAddr> {
    if host.contains(':') {
        Some(IpAddr::V6(bare(host).parse().ok()?).to_canonical())
    } else {
        ipv4_address(host)
    }
}

/// Parses an IPv4 address of up to four numbers, decimal, octal (`010`) or hexadecimal; the last number fills all remaining bytes.
fn ipv4_address(host: &str) -> Option<IpAddr> {
    let number = |text: &str| {
        let (digits, radix) = match text.as_bytes() {
            [b'0', b'x' | b'X', _, ..] => (&text[2..], 16),
            [b'0', _, ..] => (&text[1..], 8),
            _ => (text, 10),
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
        u32::from_str_radix(digits, radix).ok().filter(|_| is_number)
    };
    let numbers: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = numbers.split_last()?;
    let is_byte = first.iter().all(|byte| *byte < 256);
    if first.len() > 3 || !is_byte || u64::from(*last) >> (8 * (4 - first.len())) != 0 {
        return None;
    }
    let bytes = (0..).zip(first).map(|(at, byte)| byte << (24 - 8 * at));
    Some(Ipv4Addr::from_bits(bytes.sum::<u32>() + last).into())
}

/// Returns the position of the `@` that ends a user name or key. A key may contain characters that end a host, in which case its beginning
/// looks like an invalid port.
fn user_end(after_scheme: &str) -> Option<usize> {
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let is_wrong = !port.bytes().all(|byte| byte.is_ascii_digit() || byte == b']');
    if authority.contains('@') {
        let start = after_scheme.split('?').next().unwrap_or_default();
        return start.rfind('@');
    }
    if is_wrong { after_scheme.rfind('@') } else { None }
}

/// Returns a URL for messages: without user name and password, and without the values of its query.
pub(super) fn mask_url(url: &str) -> String {
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let (user, rest) = match user_end(rest) {
        Some(end) => (format!("{MASK}@"), &rest[end + 1..]),
        None => (String::new(), rest),
    };
    let (start, query) =
        rest.split_once('?').map_or((rest, None), |(start, query)| (start, Some(query)));
    let mut shown = format!("{scheme}{user}{start}");
    shown.extend(query.map(|_| '?'));
    for pair in query.into_iter().flat_map(|query| query.split_inclusive(['&', ';'])) {
        let bare = pair.trim_end_matches(['&', ';']);
        shown.push_str(&match named_value(bare) {
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.into(),
        });
        shown.push_str(&pair[bare.len()..]);
    }
    shown
}

/// Returns name and value of a query parameter; `None` if it is a value without a name, which may end with `=` as base64 does.
pub(super) fn named_value(pair: &str) -> Option<(&str, &str)> {
    pair.split_once('=').filter(|(_, value)| !value.trim_start_matches('=').is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::*;

    #[test]
    fn every_form_of_a_url_is_asked_at_the_same_place() {
        let forms = [
            "http://h:8080",
            "http://h:8080/",
            " http://h:8080/v1",
            "http://h:8080/v1/",
            "HTTP://h:8080/v1//",
            "http://h:8080/v1/embeddings",
            "http://h:8080/v1/chat/completions/",
        ];
        for form in forms {
            let address = Address::parse(form).unwrap();
            assert_eq!(address.of("/v1/embeddings"), "http://h:8080/v1/embeddings", "{form}");
            assert_eq!(address.of("/tokenize"), "http://h:8080/tokenize", "{form}");
        }
        let of = |url: &str| Address::parse(url).unwrap().of("/v1/embeddings");
        assert_eq!(of("https://h"), "https://h/v1/embeddings");
        assert_eq!(of("https://[::1]:8/x"), "https://[::1]:8/x/v1/embeddings");
        assert_eq!(of("https://h/api/v4"), "https://h/api/v4/embeddings");
        assert_eq!(of("https://h/v1beta/openai/"), "https://h/v1beta/openai/embeddings");
        assert_eq!(of("https://h/v1?a=b"), "https://h/v1/embeddings?a=b");
        assert_eq!(of("https://h/vault"), "https://h/vault/v1/embeddings");
    }

    #[test]
    fn what_is_no_url_is_refused_with_the_way_out() {
        for (url, reason, hint) in [
            ("localhost:8080", "no scheme", "http://localhost:8080"),
            ("", "no scheme", "http://"),
            ("ftp://h", "the scheme is not http or https", "http://localhost"),
            ("http://", "no host", "http://localhost"),
            ("http:///v1", "no host", "http://localhost"),
            ("http://h:/v1", "its port is not a number", ":8080"),
            ("http://h:99999", "its port is not a number", "65535"),
            ("http://h:0", "its port is not a number", "65535"),
            ("http://h:sk-123", "its port is not a number", "65535"),
            ("http://h o", "not a URL", "http://localhost"),
            ("http://h/v1?key=été-sk-123", "ASCII", "%C3%A9"),
            ("http://u:sk/123@h/v1", "user name or key", "REPOFORMER_API_KEY"),
            ("http://sk-123@h/v1", "user name or key", "REPOFORMER_API_KEY"),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
            assert!(
                error.hint().unwrap().to_string().contains(hint),
                "{error}: {:?}",
                error.hint()
            );
            assert!(!format!("{error}{:?}{error:?}", error.hint()).contains("sk-123"));
        }
    }

    #[test]
    fn keys_are_masked() {
        assert_eq!(mask_url("http://h:1/v1"), "http://h:1/v1");
        assert_eq!(mask_url("http://u:p@h/v1?key=K&x&v=2"), "http://***@h/v1?key=***&***&v=***");
        assert_eq!(mask_url("u:p@h/v1"), "***@h/v1");
        // Keys without a parameter name.
        for (query, shown) in [
            ("?K=", "?***"),
            ("?K==", "?***"),
            ("?a=1&K==&b=2", "?a=***&***&b=***"),
            ("?K;a=1", "?***;a=***"),
            ("?a=1;K=", "?a=***;***"),
            ("?a==K", "?a=***"),
            ("?&&", "?***&***&"),
        ] {
            assert_eq!(mask_url(&format!("http://h/v1{query}")), format!("http://h/v1{shown}"));
        }
        // Keys that contain characters which end a host.
        assert_eq!(mask_url("http://u:a/b?c@h/v1?d=e"), "http://***@h/v1?d=***");
        assert_eq!(mask_url("http://u:a/b@c@h:1/v1"), "http://***@h:1/v1");
        assert_eq!(mask_url("http://[::1]:8/@x?a=b@c"), "http://[::1]:8/@x?a=***");
    }

    #[test]
    fn this_machine_is_known() {
        let is_local = |host: &str| Address::parse(&format!("http://{host}")).unwrap().is_local();
        for host in [
            "localhost:1", "LOCALHOST.", "127.0.0.2", "[::1]:1", "127.1", "127.0.1:8", "0x7f.1",
            "017700000001", "2130706433", "0.0.0.0", "0", "[::]", "[::ffff:127.0.0.1]:8",
            "[::ffff:7f00:2]", "[0:0:0:0:0:0:0:1]",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "localhost.example", "10.0.0.1", "128.1", "126.255.255.255", "[::2]",
            "[::ffff:10.0.0.1]", "127.1.example", "1.127.0.0.1", "127.0.0.256", "127.16777216",
            "4294967296", "0x", "127.-1", "localhosts", "[fe80::1]",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn what_is_no_url_is_not_repeated_if_it_may_be_a_key() {
        SharedKeys::of_program().add(Key::new("sk-live.Tz5Rq8Wm2Kx9"));
        for url in [
            "rk-Zq7VxP2mLw9TdKf4HsJy",
            "ftp://rk-Zq7VxP2mLw9TdKf4HsJy/v1",
            "rk-Zq7VxP2mLw9TdKf4HsJy://h",
            "rk-Zq7VxP2m/Lw9TdKf4HsJy",
            "sk-live.Tz5Rq8Wm2Kx9",
            "http://sk-live.Tz5Rq8Wm2Kx9:x",
        ] {
            let error = Address::parse(url).unwrap_err();
            let shown = format!("{error} {:?} {error:?}", error.hint());
            assert!(!shown.contains("Zq7V") && !shown.contains("Tz5R"), "{shown}");
        }
    }
}
