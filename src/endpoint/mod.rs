//! Servers that speak OpenAI's protocol (llama.cpp, vLLM, Ollama, hosted ones): one request, one JSON answer.
//!
//! A request is sent again where that may help: no connection, a time-out, an answer that breaks off, and the statuses
//! 408, 429, 500, 502, 503 and 504. Everything else fails at once, with the server's own message.

use std::env::VarError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::HeaderValue;
use ureq::tls::{RootCerts, TlsConfig};

mod address;
mod answer;
mod retry;
#[cfg(test)]
pub(crate) mod test_server;
#[cfg(test)]
mod tests;

pub(crate) use answer::excerpt;

use address::{Address, MASK, masked};
use answer::Context;
use retry::{Again, Failure};

use crate::error::{Error, Result};

/// The environment variable that a key is taken from where no other is named.
pub const DEFAULT_KEY_VARIABLE: &str = "REPOFORMER_API_KEY";

/// What every such server answers, if only by refusing it.
const GREETING: &str = "/v1/models";

/// How long an answer to that is waited for.
const LONGEST_GREETING: Duration = Duration::from_secs(20);

/// How a server is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name of the environment variable that holds the server's key, which must be set; `None`: [`DEFAULT_KEY_VARIABLE`]
    /// where that is set.
    pub key_variable: Option<String>,
    /// Time for one request, from the connection to the end of the answer.
    pub timeout: Duration,
    /// Time for the connection alone.
    pub connect_timeout: Duration,
    /// How often a request is sent again.
    pub retries: u32,
    /// The wait before a request is sent for the second time; doubled with each further one.
    pub first_delay: Duration,
    /// The longest such wait.
    pub longest_delay: Duration,
    /// The longest that a request waits in all because a server asks for it (`Retry-After`); what is longer ends the asking.
    pub longest_retry_after: Duration,
}

impl Default for Settings {
    /// Ten minutes a request, for a server under load answers late; five retries in about a quarter of a minute.
    fn default() -> Self {
        Self {
            key_variable: None,
            timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(10),
            retries: 5,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(30),
            longest_retry_after: Duration::from_secs(300),
        }
    }
}

impl Settings {
    /// For hundreds of long requests in a row: a server that refuses for a minute (429) or restarts is waited for, two
    /// minutes and a half at most, or an hour where it asks for that.
    pub fn patient() -> Self {
        Self {
            retries: 10,
            longest_retry_after: Duration::from_secs(3600),
            ..Self::default()
        }
    }
}

/// Told of each wait before a request is sent again, in words.
type Notice = dyn Fn(&str) + Send + Sync;

/// A server's API. Cheap to clone; connections are shared and kept.
///
/// ```
/// use repoformer::endpoint::{Endpoint, Settings};
/// let endpoint = Endpoint::new("http://localhost:8080", Settings::default())?;
/// assert_eq!(endpoint.url("/v1/embeddings"), "http://localhost:8080/v1/embeddings");
/// assert_eq!(endpoint.url("/tokenize"), "http://localhost:8080/tokenize");
/// let error = Endpoint::new("localhost:8080", Settings::default()).unwrap_err();
/// assert_eq!(error.to_string(), "localhost:8080: the URL has no scheme");
/// # Ok::<(), repoformer::error::Error>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    address: Address,
    settings: Settings,
    key: Option<Key>,
    agent: ureq::Agent,
    notice: Option<Arc<Notice>>,
}

/// A server's key, which no message shows.
#[derive(Clone)]
struct Key {
    secret: String,
    header: HeaderValue,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url("/v1"))
            .field("key", &self.key.as_ref().map(|_| MASK))
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Of the server at this URL, with or without `/v1` at its end. The proxy of `ALL_PROXY`, `HTTPS_PROXY` or
    /// `HTTP_PROXY` is used, but for the hosts of `NO_PROXY` and for this machine itself.
    ///
    /// # Errors
    /// The URL is none, or the variable that was named for the key is not set or holds none.
    pub fn new(url: &str, settings: Settings) -> Result<Self> {
        Self::with_environment(url, settings, |name| std::env::var(name))
    }

    fn with_environment(
        url: &str,
        settings: Settings,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Self> {
        let address = Address::parse(url)?;
        let key = Key::from_environment(url, settings.key_variable.as_deref(), variable)?;
        let mut config = ureq::Agent::config_builder()
            .timeout_global(Some(settings.timeout))
            .timeout_connect(Some(settings.connect_timeout))
            // The body of an error says what is wrong; a redirect would turn a POST into a GET.
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // Whom this machine trusts: servers within a company have certificates of its own.
            .tls_config(
                TlsConfig::builder()
                    .root_certs(RootCerts::PlatformVerifier)
                    .build(),
            )
            .user_agent(concat!("repoformer/", env!("CARGO_PKG_VERSION")));
        if address.is_local() {
            config = config.proxy(None);
        }
        Ok(Self {
            address,
            settings,
            key,
            agent: config.build().new_agent(),
            notice: None,
        })
    }

    /// With a function that is told of each wait before a request is sent again.
    #[must_use]
    pub fn on_retry(mut self, notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(notice));
        self
    }

    /// The URL of a request, as messages show it: keys in it are masked.
    pub fn url(&self, path: &str) -> String {
        masked(&self.address.of(path))
    }

    /// How the server is asked.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends JSON and returns the JSON of the answer. A path that begins with `/v1/` lies below the API's version
    /// (`/v1/embeddings`), any other beside it (llama.cpp's `/tokenize`).
    ///
    /// # Errors
    /// [`Error::Endpoint`] with what came instead, once all retries are used up or at once where none can help.
    pub fn post_json(&self, path: &str, body: &Value) -> Result<Value> {
        Ok(self.post_json_timed(path, body)?.0)
    }

    /// The same with the time from the last request to its answer: what was waited before, because the server refused, is no
    /// part of it.
    ///
    /// # Errors
    /// As [`post_json`](Self::post_json).
    pub fn post_json_timed(&self, path: &str, body: &Value) -> Result<(Value, Duration)> {
        self.exchange(path, Some(body.to_string().as_bytes()))
    }

    /// The JSON that lies at a path (`/v1/models`).
    ///
    /// # Errors
    /// As [`post_json`](Self::post_json).
    pub fn get_json(&self, path: &str) -> Result<Value> {
        Ok(self.exchange(path, None)?.0)
    }

    /// That somebody answers there, whatever it is: a first word before many requests, so that a wrong address is not asked
    /// again and again.
    ///
    /// # Errors
    /// No connection comes about.
    pub fn greet(&self) -> Result<()> {
        let url = self.address.of(GREETING);
        let request = self.agent.get(&url).config();
        let request = request.timeout_global(Some(LONGEST_GREETING)).build();
        let request = match &self.key {
            Some(key) => request.header("authorization", &key.header),
            None => request,
        };
        let Err(error) = request.call() else {
            return Ok(());
        };
        let failure = answer::unanswered(&error, self.context());
        // Whoever is too busy to answer is there.
        let is_busy = matches!(error, ureq::Error::Timeout(ureq::Timeout::Global));
        match failure.is_silence && !is_busy {
            true => Err(self.failed(GREETING, failure.reason, failure.hint, None)),
            false => Ok(()),
        }
    }

    /// An error that names a request to this server.
    pub fn error(&self, path: &str, reason: impl Into<String>, hint: impl Into<String>) -> Error {
        // What came was an answer, if not the one that is needed.
        self.failed(path, reason.into(), hint.into(), Some(200))
    }

    fn failed(&self, path: &str, reason: String, hint: String, status: Option<u16>) -> Error {
        Error::Endpoint {
            url: self.url(path),
            reason: self.without_key(reason),
            hint,
            status,
        }
    }

    fn exchange(&self, path: &str, body: Option<&[u8]>) -> Result<(Value, Duration)> {
        let (mut retries, mut waited) = (0, Duration::ZERO);
        loop {
            let begin = Instant::now();
            let failure = match self.once(path, body) {
                Ok(value) => return Ok((value, begin.elapsed())),
                Err(failure) => failure,
            };
            let Some(wait) = self.wait(&failure, (retries, waited), path, body) else {
                let times = if retries == 0 {
                    String::new()
                } else {
                    format!("; asked {} times", retries + 1)
                };
                return Err(self.failed(
                    path,
                    failure.reason + &times,
                    failure.hint,
                    failure.status,
                ));
            };
            if let Some(notice) = &self.notice {
                let count = match failure.again {
                    Again::After(_) => "as it asks".to_owned(),
                    Again::AtMost(times) => {
                        format!("{} of {}", retries + 1, times.min(self.settings.retries))
                    }
                    _ => format!("{} of {}", retries + 1, self.settings.retries),
                };
                let text = format!(
                    "{}: {}; asking again in {:.1} s ({count})",
                    self.url(path),
                    failure.reason,
                    wait.as_secs_f64(),
                );
                notice(&self.without_key(text));
            }
            std::thread::sleep(wait);
            retries += 1;
            waited += wait;
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            timeout: self.settings.timeout,
            key_variable: self
                .settings
                .key_variable
                .as_deref()
                .unwrap_or(DEFAULT_KEY_VARIABLE),
            key: self.key.as_ref().map(|key| &*key.secret),
        }
    }

    /// One request and its answer.
    fn once(&self, path: &str, body: Option<&[u8]>) -> Result<Value, Failure> {
        let context = self.context();
        let url = self.address.of(path);
        let key = self.key.as_ref().map(|key| ("authorization", &key.header));
        let sent = match body {
            Some(body) => {
                let mut request = self
                    .agent
                    .post(&url)
                    .header("content-type", "application/json");
                if let Some((name, value)) = key {
                    request = request.header(name, value);
                }
                request.send(body)
            }
            None => {
                let mut request = self.agent.get(&url);
                if let Some((name, value)) = key {
                    request = request.header(name, value);
                }
                request.call()
            }
        };
        match sent {
            Ok(response) => answer::read(response, context),
            Err(error) => Err(answer::unanswered(&error, context)),
        }
    }

    /// How long to wait before the request is sent again, after so many times and so long; `None` where it is not.
    fn wait(
        &self,
        failure: &Failure,
        (retries, waited): (u32, Duration),
        path: &str,
        body: Option<&[u8]>,
    ) -> Option<Duration> {
        let settings = &self.settings;
        let seed = [path.as_bytes(), body.unwrap_or_default()].concat();
        let back_off = |longest| retry::back_off(settings.first_delay, longest, retries, &seed);
        match failure.again {
            Again::Never => None,
            // Those who were told the same time do not come back together, and ever more rarely.
            Again::After(asked) => {
                let asked = asked.checked_add(back_off(settings.first_delay))?;
                let wait = asked.max(back_off(settings.longest_delay));
                let total = waited.checked_add(wait)?;
                (total <= settings.longest_retry_after).then_some(wait)
            }
            Again::AtMost(times) if retries >= times => None,
            Again::Later | Again::AtMost(_) => {
                (retries < settings.retries).then(|| back_off(settings.longest_delay))
            }
        }
    }

    /// Servers repeat a wrong key in their message.
    fn without_key(&self, text: String) -> String {
        match &self.key {
            Some(key) => text.replace(&key.secret, MASK),
            None => text,
        }
    }
}

impl Key {
    /// The key in the variable of this name, or in the usual one where none is named.
    fn from_environment(
        url: &str,
        named: Option<&str>,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Option<Self>> {
        let name = named.unwrap_or(DEFAULT_KEY_VARIABLE);
        let wrong = |reason: String| Error::Endpoint {
            url: masked(url),
            reason,
            hint: format!("set {name} to the server's key, and nothing else"),
            status: None,
        };
        let value = match variable(name) {
            Ok(value) => value,
            Err(VarError::NotPresent) if named.is_none() => return Ok(None),
            Err(VarError::NotPresent) => {
                return Err(wrong(format!("the environment variable {name} is not set")));
            }
            Err(_) => {
                return Err(wrong(format!(
                    "the environment variable {name} is not UTF-8"
                )));
            }
        };
        let secret = value.trim();
        if secret.is_empty() {
            return match named {
                None => Ok(None),
                Some(_) => Err(wrong(format!("the environment variable {name} is empty"))),
            };
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {secret}"))
            .ok()
            .filter(|_| secret.bytes().all(|byte| byte.is_ascii_graphic()))
            .ok_or_else(|| {
                wrong(format!(
                    "the environment variable {name} holds what no key can be"
                ))
            })?;
        header.set_sensitive(true);
        Ok(Some(Self {
            secret: secret.into(),
            header,
        }))
    }
}
