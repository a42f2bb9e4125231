//! Environment variables that code under test does not get.

/// Parts of names.
const PARTS: [&str; 14] = [
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "ACCESSKEY",
    "PRIVATEKEY", "KEYFILE", "AUTHORIZATION", "SSHPASS", "AUTH_SOCK", "COOKIE",
];
/// Words of names, between `_`, `-` and `.`.
const WORDS: [&str; 4] = ["KEY", "KEYS", "PASS", "PWD"];
/// Last words of names.
const LAST: [&str; 7] = ["PAT", "PW", "CRED", "CREDS", "AUTH", "JWT", "DSN"];
/// Ends of last words of names, and last words that end so and mean something else; `PWD` and `OLDPWD` are folders.
const ENDS: [&str; 4] = ["KEY", "KEYS", "PWD", "PASS"];
const OTHER: [&str; 16] = [
    "OLDPWD", "MONKEY", "MONKEYS", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY",
    "HOTKEYS", "COMPASS", "BYPASS", "TRESPASS", "OVERPASS", "UNDERPASS", "SURPASS",
];
/// Prefixes of keys, by issuer: GitHub, GitLab, Amazon, OpenAI and others, npm, Hugging Face, Slack, PyPI,
/// Google, Docker; and JSON Web Tokens.
const KEYS: [&str; 21] = [
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA", "sk-", "sk_",
    "rk_", "npm_", "hf_", "xoxb-", "xoxp-", "pypi-", "AIza", "ya29.", "dckr_pat_", "eyJ",
];
/// Texts before a secret in a longer value, in lower case.
const BEFORE: [&str; 14] = [
    "-----begin", "bearer ", "basic ", "password=", "password:", "password\"", "password ", "pwd=",
    "accountkey=", "api_key=", "api-key=", "token=", "sig=", "hooks.slack.com/",
];
/// What stands before a colon and an address without a password.
const SCHEMES: [&str; 5] = ["mailto", "sip", "sips", "xmpp", "acct"];

/// Whether a variable's name or value says that it holds a secret, or the way to an agent that does.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_uppercase();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let is_named = name != "TOKENIZERS_PARALLELISM" && PARTS.iter().any(|part| name.contains(part));
    let mut words_of_name = name.split(['_', '-', '.']);
    let has_word = name != "PWD" && words_of_name.any(|word| WORDS.contains(&word));
    let last = name.rsplit('_').next().unwrap_or("");
    let has_end = name != "PWD" && ENDS.iter().any(|end| last.ends_with(end));
    let lower = value.to_lowercase().replace(char::is_whitespace, " ");
    let mut words = value.split(|c: char| c.is_whitespace() || "\"'`".contains(c));
    is_named
        || has_word
        || LAST.contains(&last)
        || (has_end && !OTHER.contains(&last))
        || BEFORE.iter().any(|before| lower.contains(before))
        || words.any(|word| {
            let urls = word.match_indices("://").map(|(at, mark)| &word[at + mark.len()..]);
            holds_key(word) || urls.into_iter().any(has_user) || has_password(name, word)
        })
}

/// Whether a word holds a key of an issuer, at its beginning or behind a sign that neither keys nor paths have.
fn holds_key(word: &str) -> bool {
    let between = |c: char| c.is_ascii_punctuation() && !"-_./".contains(c);
    let is_key = |part: &str| {
        KEYS.iter().any(|key| part.strip_prefix(key).is_some_and(|rest| rest.len() >= 12))
    };
    word.split(between).any(is_key)
}

/// Whether a URL, from its host on, names a user with a password, or with a name as long as a key. A password may hold slashes.
fn has_user(url: &str) -> bool {
    let before = |text: &str| text.split_once('@').map(|(user, _)| user.to_owned());
    let host = url.split('/').next().unwrap_or("");
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    before(host).is_some_and(|user| user.contains(':') || user.len() >= 20)
        || (url.contains('@') && host.split_once(':').is_some_and(|(_, port)| !is_port(port)))
}

/// Whether a word is `user:password@host`: no path, no address of electronic mail, no version or digest of a package.
fn has_password(name: &str, word: &str) -> bool {
    let parts = word.split_once(':').and_then(|(user, rest)| {
        let (password, host) = rest.rsplit_once('@')?;
        Some((user.rsplit(['=', ',', ';', '(', '{', '[', '<']).next()?, password, host))
    });
    parts.is_some_and(|(user, password, host)| {
        let host = host.split([':', '/', '?', ',']).next().unwrap_or("");
        let numbers = host.split('.').filter(|part| part.parse::<u32>().is_ok()).count();
        let is_version = numbers == host.split('.').count() && numbers < 4;
        let is_of_user = |c: char| c.is_alphanumeric() || "._%+-".contains(c);
        name != "LANGUAGE"
            && !user.is_empty()
            && user.chars().all(is_of_user)
            && !SCHEMES.contains(&user)
            && !password.is_empty()
            && !password.starts_with('/')
            && host.starts_with(|c: char| c.is_alphanumeric() || c == '[')
            && host.chars().all(|c| c.is_alphanumeric() || "-._[(%".contains(c))
            && !is_version
            && !host.starts_with("sha256")
            && !host.starts_with("sha512")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_hold_secrets_are_told_by_name_or_value() {
        for (name, value) in [
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("MY_ACCESSKEY", "x"),
            ("GPG_PASSPHRASE", "x"),
            ("DB_PASS", "x"),
            ("DBPASS", "x"),
            ("MYKEY", "x"),
            ("SIGNING_KEYFILE", "/x"),
            ("AUTHORIZATION", "x"),
            ("DBPWD", "x"),
            ("npm_config__auth", "x"),
            ("GITHUB_PAT_2", "x"),
            ("OPENAI_API_KEY_PROD", "x"),
            ("DB_PASS_PROD", "x"),
            ("KEY_OPENAI", "x"),
            ("pass.of.db", "x"),
            ("A", "key:sk-ant-0123456789abcdef"),
            ("A", "(sk-ant-0123456789abcdef)"),
            ("A", "a|sk-0123456789abcdef"),
            ("A", "[ghp_0123456789abcdef]<x>"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("A", "ghp_0123456789abcdef"),
            ("A", "sk-0123456789abcdef"),
            ("A", "\"sk-0123456789abcdef\""),
            ("A", "--key 'sk-0123456789abcdef'"),
            ("A", "{\"a\":\"ghp_0123456789abcdef\"}"),
            ("A", "eyJhbGciOiJIUzI1NiJ9.e30.x"),
            ("A", "-----BEGIN RSA PRIVATE KEY-----\nx"),
            ("A", "Authorization: Bearer abc"),
            ("A", "Bearer\tabc"),
            ("A", "Server=db;Password=x;"),
            ("A", "postgres://user:password@host/db"),
            ("A", "postgres://u:pa/ss@host/db"),
            ("A", "user:password@host"),
            ("A", "dsn=user:p@ss=w@10.0.0.1:5432/db"),
            ("A", "https://pypi.org/simple https://user:pw@private/simple"),
            ("A", "https://a.org,https://user:pw@b.org"),
            ("A", "https://0123456789abcdef0123@host"),
            ("A", "https://host/?api_key=x"),
        ] {
            assert!(is_secret(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("PWD", "/home/u"),
            ("OLDPWD", "/home/u"),
            ("OLDPWDS", "/home/u"),
            ("HOME", "/home/u"),
            ("TOKENIZERS_PARALLELISM", "false"),
            ("PATH", "/usr/bin:/bin:/opt/python@3.11/bin"),
            ("LANG", "C.UTF-8"),
            ("LANGUAGE", "de:sr@latin"),
            ("COMPASS", "north"),
            ("MONKEY", "x"),
            ("GIT_AUTHOR_EMAIL", "a@b.c"),
            ("A", "Name <mailto:a@b.c>"),
            ("A", "mailto:a@b.c"),
            ("A", "git@github.com:org/repository"),
            ("A", "python:3.12@sha256:0123456789abcdef"),
            ("A", "npm:react@18.2.0"),
            ("TERMCAP", r"xterm:am:@7=\EOF:"),
            ("PS1", r"${debian_chroot:+($debian_chroot)}\u@\h:\w\$ "),
            ("CARGO_PKG_AUTHORS", "A <a@b.c>:B <c@d.e>"),
            ("GITHUB_WORKFLOW_REF", "o/r/.github/workflows/x.yml@refs/heads/main"),
            ("PIP_INDEX_URL", "https://pypi.org/simple"),
            ("A", "http://localhost:8080/@scope/package"),
            ("A", "https://github.com/organisation/repository@main"),
            ("A", "unix:path=/run/user/1000/bus"),
            ("KEYBOARD", "sk"),
            ("KEYBOARD_LAYOUT", "x"),
            ("PASSENGER_COUNT", "3"),
            ("MONKEY_PATCH", "x"),
            ("COMPASS_DIRECTION", "north"),
            ("PATH", "/opt/sk-tools-and-others/bin:/usr/bin"),
            ("A", "task-sk-0123456789abcdef"),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }
}
