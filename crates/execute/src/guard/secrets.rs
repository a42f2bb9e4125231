//! Secrets withheld from code under test: environment variables, and paths that it finds empty.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{User, getuid};

/// Parts of names that indicate a secret.
const PARTS: [&str; 19] = [
    "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PSWD", "OAUTH", "BEARER", "PASSPHRASE", "CREDENTIAL",
    "APIKEY", "ACCESSKEY", "PRIVATEKEY", "KEYFILE", "AUTHORIZATION", "SSHPASS", "AUTH_SOCK",
    "COOKIE", "PASSCODE", "WEBHOOK",
];
/// Words in names, separated by `_`, `-` and `.`, that indicate a secret.
const WORDS: [&str; 12] = [
    "KEY", "KEYS", "PASS", "PWD", "AUTH", "PIN", "OTP", "TOTP", "HMAC", "SALT", "USERPIN",
    "SIGNATURE",
];
/// Last words of names that indicate a secret.
const LAST: [&str; 6] = ["PAT", "PW", "CRED", "CREDS", "JWT", "DSN"];
/// Suffixes of last words that indicate a secret, and last words with such a suffix that do not; `PWD` and `OLDPWD` are folders.
const ENDS: [&str; 4] = ["KEY", "KEYS", "PWD", "PASS"];
const OTHER: [&str; 16] = [
    "OLDPWD", "MONKEY", "MONKEYS", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY",
    "HOTKEYS", "COMPASS", "BYPASS", "TRESPASS", "OVERPASS", "UNDERPASS", "SURPASS",
];
/// Prefixes of keys, by issuer: GitHub, GitLab, Amazon, OpenAI and others, npm, Hugging Face, Slack, PyPI, Google, Docker, Groq, Vault,
/// SendGrid, DigitalOcean, Atlassian, Stripe, Supabase, Linear, Databricks, Replicate, xAI, NVIDIA, Perplexity, Tavily, Shopify, Facebook,
/// age, Figma, Notion, Postman, New Relic, Contentful; and JSON Web Tokens.
const KEYS: [&str; 50] = [
    "whsec_", "sbp_", "lin_api_", "dapi", "r8_", "xai-", "nvapi-", "pplx-", "tvly-", "shpat_",
    "shpss_", "GOCSPX-", "EAAC", "AGE-SECRET-KEY-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
    "github_pat_", "glpat-", "AKIA", "ASIA", "sk-", "sk_", "rk_", "npm_", "hf_", "xoxb-", "xoxp-",
    "pypi-", "AIza", "ya29.", "dckr_pat_", "eyJ", "xapp-", "xoxa-", "gsk_", "hvs.", "SG.",
    "dop_v1_", "doo_v1_", "glrt-", "ATATT", "ATCTT", "figd_", "ntn_", "PMAK-", "NRAK-", "CFPAT-",
];
/// Texts that precede a secret in a longer value, in lower case.
const BEFORE: [&str; 18] = [
    "-----begin", "bearer ", "basic ", "token ", "password=", "password:", "password\"",
    "password ", "pwd=", "accountkey=", "api_key=", "api-key=", "token=", "sig=",
    "hooks.slack.com/", "/api/webhooks/", "\"auth\":", ".atlasv1.",
];
/// Schemes that precede a colon and an address without a password.
const SCHEMES: [&str; 5] = ["mailto", "sip", "sips", "xmpp", "acct"];

/// Returns whether a variable's name or value indicates that it contains a secret, or the path to an agent that has one.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    let name = name.to_uppercase();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let is_named = name != "TOKENIZERS_PARALLELISM" && PARTS.iter().any(|part| name.contains(part));
    let mut words_of_name = name.split(['_', '-', '.']);
    let has_word = name != "PWD" && words_of_name.any(|word| WORDS.contains(&word));
    // Numeric seeds are for random number generators.
    let is_seed = name.split(['_', '-', '.']).any(|word| word == "SEED")
        && !value.trim().bytes().all(|byte| byte.is_ascii_digit());
    let last = name.rsplit('_').next().unwrap_or("");
    let has_end = name != "PWD" && ENDS.iter().any(|end| last.ends_with(end));
    let lower = value.to_lowercase().replace(char::is_whitespace, " ");
    let mut words = value.split(|c: char| c.is_whitespace() || "\"'`".contains(c));
    is_named
        || is_seed
        || has_word
        || LAST.contains(&last)
        || (has_end && !OTHER.contains(&last))
        || BEFORE.iter().any(|before| lower.contains(before))
        || words.any(|word| {
            let urls = word.match_indices("://").map(|(at, mark)| &word[at + mark.len()..]);
            holds_key(word)
                || holds_bot(word)
                || holds_pair(word)
                || urls.into_iter().any(has_user)
                || has_password(name, word)
        })
}

/// Returns whether a word contains an issuer's key, at its beginning or after a character that neither keys nor paths contain.
fn holds_key(word: &str) -> bool {
    let between = |c: char| c.is_ascii_punctuation() && !"-_./".contains(c);
    let is_key = |part: &str| {
        KEYS.iter().any(|key| part.strip_prefix(key).is_some_and(|rest| rest.len() >= 12))
    };
    // Keys of crates.io.
    let is_short = |part: &str| {
        let rest = part.strip_prefix("cio").filter(|rest| rest.len() == 32);
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    word.split(between).any(|part| is_key(part) || is_short(part))
}

/// Returns whether a word contains the key of a Telegram bot: a number of 8 to 10 digits, then `:AA` and 33 more characters.
fn holds_bot(word: &str) -> bool {
    let of_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    word.match_indices(":AA").any(|(at, mark)| {
        let (before, key) = (&word[..at], &word[at + mark.len()..]);
        let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
        (8..=10).contains(&digits) && key.bytes().take_while(of_key).count() == 33
    })
}

/// Returns whether a word contains `user:password` in base64, of at least twelve characters.
fn holds_pair(word: &str) -> bool {
    let of_base64 = |c: char| c.is_ascii_alphanumeric() || "+/-_".contains(c);
    let is_pair = |part: &str| {
        let text = (part.len() >= 12).then(|| from_base64(part)).flatten();
        let pair = text.as_deref().and_then(|text| text.split_once(':'));
        pair.is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
    };
    word.split(|c| !of_base64(c)).any(is_pair)
}

/// Decodes base64, if the text in it is printable ASCII.
fn from_base64(text: &str) -> Option<String> {
    let value = |byte| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        })
    };
    let (mut decoded, mut bits, mut count) = (String::new(), 0_u32, 0);
    for byte in text.bytes() {
        (bits, count) = ((bits << 6) | u32::from(value(byte)?), count + 6);
        if count >= 8 {
            count -= 8;
            let byte = (bits >> count) as u8;
            if !(b' '..=b'~').contains(&byte) {
                return None;
            }
            decoded.push(char::from(byte));
        }
    }
    Some(decoded)
}

/// Returns whether a URL, given from its host on, contains a user with a password, or a user name as long as a key. A password may contain
/// slashes.
fn has_user(url: &str) -> bool {
    let before = |text: &str| text.split_once('@').map(|(user, _)| user.to_owned());
    let host = url.split('/').next().unwrap_or("");
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    before(host).is_some_and(|user| user.contains(':') || user.len() >= 20)
        || (url.contains('@') && host.split_once(':').is_some_and(|(_, port)| !is_port(port)))
}

/// Returns whether a word is `user:password@host`, and not a path, an email address, or a version or digest of a package.
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

/// Files and folders in the home folder that contain keys and passwords, or command histories with some.
const SECRETS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".oci",
    ".password-store",
    ".terraform.d",
    ".codex",
    ".claude",
    ".claude.json",
    ".gemini",
    ".config/anthropic",
    ".config/openai",
    ".config/glab-cli",
    ".config/wandb",
    ".config/doctl",
    ".config/sops",
    ".config/age",
    ".config/pip",
    ".config/uv",
    ".config/pypoetry/auth.toml",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".vault-token",
    ".databrickscfg",
    ".kaggle",
    ".boto",
    ".s3cfg",
    ".mozilla",
    ".config/mozilla",
    ".thunderbird",
    ".config/vivaldi",
    ".config/opera",
    ".config/Code",
    ".config/Code - Insiders",
    ".config/VSCodium",
    ".config/Cursor",
    ".cursor",
    ".config/Windsurf",
    ".config/opencode",
    ".local/share/opencode",
    ".continue",
    ".aider.conf.yml",
    ".config/goose",
    "snap/firefox",
    "snap/chromium",
    "snap/brave",
    "snap/opera",
    "snap/thunderbird",
    "snap/code",
    ".var/app",
    ".config/Bitwarden",
    ".config/keepassxc",
    ".config/filezilla",
    ".config/Slack",
    ".config/heroku",
    ".config/stripe",
    ".config/ngrok",
    ".config/hcloud",
    ".config/scw",
    ".config/helm",
    ".fly",
    ".pulumi",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet",
    ".config/NuGet",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".mylogin.cnf",
    ".msmtprc",
    ".config/msmtp",
    ".authinfo",
    ".authinfo.gpg",
    ".openai",
    ".modal.toml",
    ".snowflake",
    ".vercel",
    ".local/share/com.vercel.cli",
    ".supabase",
    ".wrangler",
    ".config/.wrangler",
    ".streamlit/secrets.toml",
    ".sbt/.credentials",
    ".ivy2/.credentials",
    ".dockercfg",
    ".smbcredentials",
    ".subversion/auth",
    ".mutt",
    ".muttrc",
    ".config/solana",
    ".ethereum",
    ".bitcoin",
    ".electrum",
    ".config/JetBrains",
    ".config/zed",
    ".ipython/profile_default/history.sqlite",
    ".Rhistory",
    ".irb_history",
    ".gdb_history",
    ".lesshst",
    ".config/gcloud",
    ".config/gh",
    ".config/github-copilot",
    ".config/containers/auth.json",
    ".config/hub",
    ".config/rclone",
    ".config/op",
    ".config/chromium",
    ".config/google-chrome",
    ".local/share/keyrings",
    ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens",
    ".huggingface/token",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".pypirc",
    ".npmrc",
    ".pgpass",
    ".my.cnf",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".bash_history",
    ".local/share/fish",
    ".config/fish/fish_variables",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".viminfo",
    ".zsh_history",
    ".python_history",
    ".psql_history",
    ".node_repl_history",
    ".terraformrc",
    ".dbt",
    ".config/kaggle",
    ".yarnrc.yml",
    ".Renviron",
    ".snowsql",
    ".config/snowflake",
    ".local/share/kwalletd",
    ".pki",
    ".config/io.datasette.llm",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".vast_api_key",
    ".config/vastai",
    ".cloudflared",
    ".ngrok2",
    ".doppler",
    ".copilot",
    ".qwen",
    ".tsh",
    ".local/share/atuin",
    ".local/share/uv/credentials",
];

/// Returns the home folders of this user, or of all users for root, who could read them. `HOME` may name another folder. Call this outside
/// of the run's namespaces, in which the user has another number.
pub(super) fn homes() -> Vec<PathBuf> {
    let own = User::from_uid(getuid()).ok().flatten().map(|user| user.dir);
    let known = if getuid().is_root() { fs::read("/etc/passwd") } else { Ok(Vec::new()) };
    let known = known.unwrap_or_default();
    let of_line = |line: &[u8]| {
        let home = line.split(|byte| *byte == b':').nth(5)?;
        Some(PathBuf::from(OsStr::from_bytes(home)))
    };
    let all = known.split(|byte| *byte == b'\n').filter_map(of_line);
    let named = std::env::var_os("HOME").map(PathBuf::from);
    let mut homes: Vec<PathBuf> = named.into_iter().chain(own).chain(all).collect();
    homes.retain(|home| home.is_absolute() && home.is_dir());
    homes.sort();
    homes.dedup();
    homes
}

/// Variables that name the place of a file or folder which is otherwise in a home folder.
const MOVED: [(&str, &str); 21] = [
    ("XDG_CONFIG_HOME", ".config/"),
    ("XDG_DATA_HOME", ".local/share/"),
    ("CARGO_HOME", ".cargo/"),
    ("HF_HOME", ".cache/huggingface/"),
    ("XDG_CACHE_HOME", ".cache/"),
    ("GNUPGHOME", ".gnupg"),
    ("KUBECONFIG", ".kube"),
    ("DOCKER_CONFIG", ".docker"),
    ("AWS_CONFIG_FILE", ".aws"),
    ("AWS_SHARED_CREDENTIALS_FILE", ".aws"),
    ("PGPASSFILE", ".pgpass"),
    ("NPM_CONFIG_USERCONFIG", ".npmrc"),
    ("NETRC", ".netrc"),
    ("GOOGLE_APPLICATION_CREDENTIALS", ".config/gcloud"),
    ("CLOUDSDK_CONFIG", ".config/gcloud"),
    ("AZURE_CONFIG_DIR", ".azure"),
    ("GH_CONFIG_DIR", ".config/gh"),
    ("HF_TOKEN_PATH", ".huggingface/token"),
    ("REGISTRY_AUTH_FILE", ".config/containers/auth.json"),
    ("CLAUDE_CONFIG_DIR", ".claude"),
    ("CODEX_HOME", ".codex"),
];

/// Returns the places of secrets that are otherwise below a folder of a home folder.
fn moved_places(place: &Path, folder: &str) -> Vec<PathBuf> {
    let names = SECRETS.iter().filter_map(|name| name.strip_prefix(folder));
    names.map(|name| if name.is_empty() { place.to_owned() } else { place.join(name) }).collect()
}

/// Returns the existing paths with secrets: those in these home folders, or where variables say, and the system's, which root
/// could read.
pub(super) fn secret_places(homes: &[PathBuf]) -> Vec<PathBuf> {
    let of_user = homes.iter().flat_map(|home| SECRETS.iter().map(|name| home.join(name)));
    let moved = MOVED.iter().flat_map(|(variable, folder)| {
        let places = std::env::var_os(variable).unwrap_or_default();
        // `KUBECONFIG` may name several; `/dev/null` means none.
        let places = std::env::split_paths(&places)
            .filter(|place| place.is_absolute() && !place.starts_with("/dev"));
        places.map(|place| moved_places(&place, folder)).collect::<Vec<_>>()
    });
    let system = [
        "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
        "/etc/sudoers.d", "/etc/ssl/private", "/run/secrets", "/run/credentials",
    ];
    // With a network, the rest of `/run` is visible. Podman's keys are there.
    let of_sessions = fs::read_dir("/run/user").into_iter().flatten().flatten();
    let of_sessions = of_sessions.map(|folder| folder.path().join("containers/auth.json"));
    let keys = fs::read_dir("/etc/ssh").into_iter().flatten().flatten().map(|entry| entry.path());
    let keys = keys.filter(|path| path.to_string_lossy().ends_with("_key"));
    let system = system.map(PathBuf::from).into_iter().chain(of_sessions);
    let all = of_user.chain(moved.flatten()).chain(system).chain(keys);
    let mut found: Vec<PathBuf> = all.filter(|path| path.exists()).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_looked_for_in_each_home() {
        let own = User::from_uid(getuid()).unwrap().unwrap().dir;
        assert!(homes().contains(&own) || !own.is_dir(), "{own:?}");
        let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let homes = homes.each_ref().map(|home| home.path().to_owned());
        let keys = homes.each_ref().map(|home| home.join(".ssh"));
        keys.iter().for_each(|keys| fs::create_dir(keys).unwrap());
        let found = secret_places(&homes);
        assert!(keys.iter().all(|keys| found.contains(keys)), "{found:?}");
        let moved = moved_places(Path::new("/x"), ".cache/huggingface/");
        assert_eq!(moved, ["/x/token", "/x/stored_tokens"].map(PathBuf::from));
        assert_eq!(moved_places(Path::new("/x"), ".gnupg"), [PathBuf::from("/x")]);
    }

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
            ("DOCKER_AUTH_CONFIG", "{}"),
            ("A", r#"{"auths":{"host":{"auth":"eA=="}}}"#),
            ("A", "registry.example.com dXNlcjpzZWNyZXRwYXNzd29yZA=="),
            ("A", "x=dTpzZWNyZXQ/Pz8_"),
            ("A", "xapp-1-A0123456789-1234567890123-abcdef"),
            ("A", "gsk_0123456789abcdef"),
            ("A", "hvs.0123456789abcdef"),
            ("A", "SG.0123456789abcdef.0123456789abcdef"),
            ("A", "dop_v1_0123456789abcdef"),
            ("A", "glrt-0123456789abcdef0123"),
            ("A", "whsec_0123456789abcdef"),
            ("A", "AGE-SECRET-KEY-1QYQSZQGPQYQSZ"),
            ("A", "Token 0123456789abcdef"),
            ("DB_PSWD", "x"),
            ("MY_OAUTH2", "x"),
            ("APP_SALT", "x"),
            ("A", "ATATT3xFfGF0123456789abcdef"),
            ("CARD_PIN", "1234"),
            ("X_PASSCODE", "1234"),
            ("OTP", "1234"),
            ("HMAC_OF_APP", "x"),
            ("WALLET_SEED", "twelve words"),
            ("X_WEBHOOK", "https://host/x"),
            ("A", "https://discord.com/api/webhooks/1/x"),
            ("A", "figd_0123456789abcdef"),
            ("A", "ntn_0123456789abcdef"),
            ("A", "PMAK-0123456789abcdef"),
            ("A", "NRAK-0123456789ABCDEF"),
            ("A", "CFPAT-0123456789abcdef"),
            ("A", "0123456789abcd.atlasv1.0123456789abcdef"),
            ("A", "registry=cio0123456789abcdefGHIJKLMNOPQRSTUV"),
            ("A", "12345678:AA0123456789abcdef0123456789-_abc-_"),
            ("A", "https://api.telegram.org/bot1234567890:AA0123456789abcdef0123456789-_abcde/x"),
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
            ("RANDOM_SEED", "42"),
            ("SPINNER", "x"),
            ("A", "/usr/lib/python3/dist-packages:/usr/share/java/library"),
            ("A", "0123456789abcdef0123456789abcdef01234567"),
            ("KEYBOARD_LAYOUT", "x"),
            ("PASSENGER_COUNT", "3"),
            ("MONKEY_PATCH", "x"),
            ("COMPASS_DIRECTION", "north"),
            ("PATH", "/opt/sk-tools-and-others/bin:/usr/bin"),
            ("A", "task-sk-0123456789abcdef"),
            ("A", "cio0123456789abcdefGHIJKLMNOPQRSTU"),
            ("A", "1234567:AA0123456789abcdef0123456789-_abcde"),
            ("A", "12345678:AA0123456789abcdef"),
        ] {
            assert!(!is_secret(name, value), "{name}={value}");
        }
    }
}
