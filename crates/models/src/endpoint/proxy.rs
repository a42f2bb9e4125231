//! The proxy for a server, from the same environment variables that `curl` and other programs read.

use std::env::VarError;
use std::net::IpAddr;

use ureq::Proxy;

use super::address::{Address, bare, ip_address};

/// Variables that choose a proxy; the first non-empty one is used.
const PROXIES: [&str; 6] =
    ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];
/// Variables that list the hosts for which no proxy is used.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Environment variable with an invalid value. It is an error, because keys and prompts would otherwise bypass the user's proxy or be sent
/// through the wrong one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongVariable {
    pub(super) reason: String,
    pub(super) hint: &'static str,
}

/// Returns the proxy for a server; `None` for this machine.
///
/// # Errors
/// A variable names a proxy that is not an HTTP proxy, or an invalid exception.
pub(super) fn find(
    address: &Address,
    variable: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Option<Proxy>, WrongVariable> {
    if address.is_local() {
        return Ok(None);
    }
    let mut found = None;
    for name in PROXIES {
        let proxy = match variable(name) {
            Err(VarError::NotPresent) => continue,
            Ok(value) if value.is_empty() => continue,
            Ok(value) => parse(&value),
            Err(VarError::NotUnicode(_)) => None,
        };
        let proxy = proxy.ok_or_else(|| WrongVariable {
            reason: format!("the variable {name} does not name an HTTP proxy"),
            hint: "set it to http://HOST:PORT, or leave it empty; HTTPS and SOCKS proxies are not supported",
        })?;
        found.get_or_insert(proxy);
    }
    for name in EXCEPTIONS.into_iter().filter(|_| found.is_some()) {
        let list = match variable(name) {
            Err(VarError::NotPresent) => continue,
            Ok(list) => list,
            Err(VarError::NotUnicode(_)) => "/".into(),
        };
        let entries = list.split([',', ' ', '\t', '\r', '\n']).filter(|entry| !entry.is_empty());
        for (number, entry) in (1..).zip(entries) {
            match is_exception(address, entry) {
                Some(true) => return Ok(None),
                Some(false) => {}
                None => {
                    return Err(WrongVariable {
                        reason: format!("entry {number} of the variable {name} is not a host"),
                        hint: "write hosts, domains (.example.com), addresses or networks (10.0.0.0/8), with or without a port, or * for all",
                    });
                }
            }
        }
    }
    Ok(found)
}

fn parse(value: &str) -> Option<Proxy> {
    let proxy = Proxy::new(value).ok()?;
    let authority = proxy.uri().authority()?;
    let place = authority.as_str().rsplit('@').next()?;
    // ureq ignores an invalid port, so check it here.
    let has_port = place.len() > authority.host().len();
    let is_port = !has_port || authority.port_u16().is_some_and(|port| port > 0);
    (is_port && proxy.uri().scheme_str() == Some("http")).then_some(proxy)
}

/// Returns whether an entry of the exceptions matches a server: by host or parent domain, by address or network, or by a prefix of these
/// (`10.*`), and by port if the entry has one. `None` if the entry is invalid.
fn is_exception(address: &Address, entry: &str) -> Option<bool> {
    if entry == "*" {
        return Some(true);
    }
    if let Some((network, length)) = entry.split_once('/') {
        let (ip, length) = (ip_address(network)?, length.parse::<u32>().ok()?);
        // `::ffff:10.0.0.0/104` is an IPv4 network.
        let is_mapped = network.contains(':') && ip.is_ipv4();
        let length = if is_mapped { length.checked_sub(96)? } else { length };
        return is_in_network(address.ip_address(), ip, length);
    }
    let (host, port) = match entry.rsplit_once(':') {
        // An IPv6 address.
        Some((before, _)) if before.contains(':') && !before.ends_with(']') => (entry, None),
        Some((host, port)) => (host, Some(port.parse::<u16>().ok()?)),
        None => (entry, None),
    };
    let is_port = port.is_none_or(|port| port == address.port());
    if let Some(ip) = ip_address(host) {
        return Some(is_port && address.ip_address() == Some(ip));
    }
    let is_number = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let beginning =
        host.strip_suffix('*').or(Some(host).filter(|host| is_number && host.ends_with('.')));
    let domain =
        bare(host.strip_prefix('*').unwrap_or(host).trim_start_matches('.')).to_lowercase();
    let is_name = |name: &str| {
        name.contains(char::is_alphanumeric)
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let own = address.host();
    match beginning {
        Some(beginning) if is_name(beginning) => {
            Some(is_port && own.starts_with(&beginning.to_lowercase()))
        }
        None if is_name(&domain) => {
            let before = own.strip_suffix(&*domain);
            Some(is_port && before.is_some_and(|before| before.is_empty() || before.ends_with('.')))
        }
        _ => None,
    }
}

/// Returns whether an address has the first bits of a network; `None` if the network has fewer bits than that.
fn is_in_network(host: Option<IpAddr>, network: IpAddr, length: u32) -> Option<bool> {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    let (network, most) = bits(network);
    if length > most {
        return None;
    }
    let Some((host, _)) = host.map(bits).filter(|(_, bits)| *bits == most) else {
        return Some(false);
    };
    Some((host ^ network).checked_shr(128 - length).unwrap_or_default() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the proxy's host, empty if there is none, or the reason why a variable is rejected.
    fn found(url: &str, variables: &[(&str, &str)]) -> String {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).ok_or(VarError::NotPresent)
        };
        match find(&Address::parse(url).unwrap(), variable) {
            Ok(proxy) => proxy.map(|proxy| proxy.host().to_owned()).unwrap_or_default(),
            Err(wrong) => wrong.reason,
        }
    }

    #[test]
    fn the_first_variable_that_is_not_empty_names_the_proxy() {
        for (value, host) in [
            ("http://proxy:3128", "proxy"),
            ("HTTP://user:password@proxy", "proxy"),
            ("proxy:3128", "proxy"),
            ("", "second"),
        ] {
            let variables = [("ALL_PROXY", value), ("http_proxy", "http://second:1")];
            assert_eq!(found("http://model.example", &variables), host, "{value}");
        }
        for value in [
            "https://proxy:3128",
            "socks5://proxy",
            "ftp://proxy",
            " http://proxy",
            "http://",
            "\n",
            "http://proxy:99999",
            "http://proxy:0",
            "http://user:password@proxy:x",
        ] {
            let variables = [("ALL_PROXY", "http://first"), ("HTTPS_PROXY", value)];
            let reason = found("http://model.example", &variables);
            assert_eq!(reason, "the variable HTTPS_PROXY does not name an HTTP proxy", "{value}");
            assert_eq!(found("http://localhost:1", &variables), "");
        }
    }

    #[test]
    fn no_proxy_is_used_for_exceptions() {
        let is_used = |url: &str, list: &str| {
            let proxy = ("HTTP_PROXY", "http://proxy");
            let found = [("NO_PROXY", list), ("no_proxy", list)]
                .map(|exceptions| found(url, &[proxy, exceptions]));
            assert_eq!(found[0] == "proxy", found[1] == "proxy", "{list}");
            assert!(["proxy", ""].contains(&&*found[0]), "{list}: {}", found[0]);
            found[0] == "proxy"
        };
        let (host, ip) = ("http://api.model.example:8080", "https://10.1.2.3");
        for (url, lists) in [
            (host, &["api.model.example", "API.Model.Example.", "model.example", ".example"][..]),
            (
                host,
                &["*.model.example", "*example", "api.*", "*", " *", "a,* ", "a\tmodel.example"],
            ),
            (
                host,
                &[
                    "a, model.example", "model.example ,a", "a model.example", "a,,example",
                    "\nexample\n",
                ],
            ),
            (host, &["api.model.example:8080", ".example:8080", "[::1],example"]),
            ("http://model.example.", &["model.example"]),
            (
                ip,
                &[
                    "10.1.2.3", "10.1.2.3:443", "10.0.0.0/8", "0.0.0.0/0", "10.1.2.3/32", "10.",
                    "10.1.*",
                ],
            ),
            (ip, &["10.66051", "::ffff:10.1.2.3", "0xa010203", "::ffff:10.0.0.0/104"]),
            ("http://10.66051", &["10.1.2.3", "10.66051"]),
            ("http://[fe80::1]:8", &["fe80::1", "[fe80::1]", "[FE80::1]:8", "fe80::/10", "::/0"]),
        ] {
            for list in lists {
                assert!(!is_used(url, list), "{url} {list:?}");
            }
        }
        for (url, lists) in [
            (
                host,
                &["", " , ", "model", "el.example", "other.example", "api.model.example:80", "api"]
                    [..],
            ),
            (host, &["10.0.0.0/8", "0.0.0.0/0", "127.1"]),
            (ip, &["10.1.2.4", "10.1.2.3:80", "11.0.0.0/8", "::/0", "1.2.3", "10.1.2.2/32", "11."]),
        ] {
            for list in lists {
                assert!(is_used(url, list), "{url} {list:?}");
            }
        }
        for wrong in ["a,http://b", "a b:x", "a, b/8", "x 10.0.0.0/33", "a *b*", "a .", "a u@b"] {
            let variables = [("HTTP_PROXY", "http://proxy"), ("NO_PROXY", wrong)];
            let reason = found(host, &variables);
            assert_eq!(reason, "entry 2 of the variable NO_PROXY is not a host", "{wrong}");
            assert_eq!(found(host, &variables[1..]), "", "there is no proxy");
        }
    }
}
