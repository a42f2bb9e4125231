//! The HTTP client: requests, retries and keys.

use std::env::VarError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use repoformer_store::error::{Error, Result};
use repoformer_text::message::Message;
use serde_json::Value;
use ureq::http::HeaderValue;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, DefaultConnector, NextTimeout, Transport,
};

use super::address::{Address, MASK, mask_url};
use super::answer::{self, Context, Response};
use super::bound::greatest;
use super::key::{Key, KeyMask, SharedKeys};
use super::outage::{OutageReport, OutageWatch};
use super::proxy;
use super::request::RequestWork;
use super::retry::{self, Failure, RetryOutlook};
use super::{ConnectionSettings, Event, events};

/// Path to which every such server responds, if only with an error.
const GREETING: &str = "/v1/models";

/// Size in bytes of each of a connection's buffers.
const BUFFER: usize = 16 << 10;

/// Time limit for the response to [`GREETING`].
const LONGEST_GREETING: Duration = Duration::from_secs(20);

/// Connector shared by a client and all clients derived from it, so that this machine's certificates are read only once.
#[derive(Debug, Clone)]
struct SharedConnector {
    connector: Arc<DefaultConnector>,
    /// Time limit for a proxy to make a connection.
    longest: Duration,
}

impl Connector for SharedConnector {
    type Out = Box<dyn Transport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<()>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        // Only connections through a proxy have one configured here; the connection to the proxy itself has none.
        if details.config.proxy().is_none() {
            return self.connector.connect(details, chained);
        }
        let until = Instant::now() + self.longest;
        let is_made = Arc::<AtomicBool>::default();
        let (run_connector, waits) = (Arc::clone(&details.run_connector), Arc::clone(&is_made));
        let details = &ConnectionDetails {
            uri: details.uri,
            addrs: details.addrs.clone(),
            config: details.config,
            request_level: details.request_level,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: Arc::clone(&details.current_time),
            run_connector: Arc::new(move |details| {
                let transport = run_connector(details)?;
                Ok(ProxyTransport { transport, until, is_made: Arc::clone(&waits) }.boxed())
            }),
            register_shutdown: Arc::clone(&details.register_shutdown),
        };
        let made = self.connector.connect(details, chained);
        is_made.store(true, Ordering::Relaxed);
        made
    }
}

/// Connection to a proxy. It enforces a deadline while the proxy connects to the server, because each byte from the proxy would restart the
/// ordinary time limit.
#[derive(Debug)]
struct ProxyTransport {
    transport: Box<dyn Transport>,
    until: Instant,
    /// Whether the proxy has connected to the server.
    is_made: Arc<AtomicBool>,
}

impl Transport for ProxyTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.transport.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.transport.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        if !self.is_made.load(Ordering::Relaxed) && Instant::now() > self.until {
            return Err(ureq::Error::Timeout(ureq::Timeout::Connect));
        }
        self.transport.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.transport.is_open()
    }

    fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }
}

/// Message about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerNotice {
    /// The server fails and requests are sent again, or it answers again.
    Outage(String),
    /// Something that the server does not support, in the same words each time.
    Unsupported(String),
}

/// Function that receives messages.
type NoticeReceiver = dyn Fn(ServerNotice) + Send + Sync;

/// Client of a server's API. Cheap to clone; clones share connections, which are kept open.
///
/// ```
/// use repoformer_models::endpoint::{ConnectionSettings, Endpoint};
/// let endpoint = Endpoint::new("http://localhost:8080", ConnectionSettings::default())?;
/// assert_eq!(endpoint.url("/v1/embeddings"), "http://localhost:8080/v1/embeddings");
/// assert_eq!(endpoint.url("/tokenize"), "http://localhost:8080/tokenize");
/// let error = Endpoint::new("localhost:8080", ConnectionSettings::default()).unwrap_err();
/// assert_eq!(error.to_string(), "localhost:8080: the URL has no scheme");
/// # Ok::<(), repoformer_store::error::Error>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    address: Address,
    settings: ConnectionSettings,
    /// Header that carries the server's key; `None` if the key is in the URL or there is no key.
    header: Option<HeaderValue>,
    /// Keys to mask.
    keys: SharedKeys,
    /// Configuration of `agent`.
    config: ureq::config::Config,
    connector: SharedConnector,
    agent: ureq::Agent,
    /// Whether the connections were closed.
    is_closed: Arc<AtomicBool>,
    outage: Arc<OutageWatch>,
    notice: Option<Arc<NoticeReceiver>>,
}

/// Returns an agent with connections of its own.
fn agent(config: &ureq::config::Config, connector: &SharedConnector) -> ureq::Agent {
    ureq::Agent::with_parts(config.clone(), connector.clone(), DefaultResolver::default())
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url("/v1"))
            .field("key", &self.header.as_ref().map(|_| MASK))
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates a client for the server at a URL, with or without a trailing `/v1`. The proxy in `ALL_PROXY`, `HTTPS_PROXY` or `HTTP_PROXY`
    /// is used, except for hosts in `NO_PROXY` and for this machine.
    ///
    /// # Errors
    /// The URL is invalid, a variable does not name an HTTP proxy, or the variable of the key contains something else.
    pub fn new(url: &str, settings: ConnectionSettings) -> Result<Self> {
        Self::with_environment(url, settings, |name| std::env::var(name))
    }

    fn with_environment(
        url: &str,
        settings: ConnectionSettings,
        variable: impl Fn(&str) -> Result<String, VarError>,
    ) -> Result<Self> {
        let address = Address::parse(url)?;
        let key = Key::from_environment(url, settings.key_variable, &variable)?;
        let header = key.as_ref().and_then(Key::header).cloned();
        let keys = SharedKeys::of_program();
        keys.add(Key::with_query(key, address.query()));
        let proxy = proxy::find(&address, &variable).map_err(|wrong| Error::Endpoint {
            url: mask_url(url),
            reason: wrong.reason,
            hint: wrong.hint.into(),
            status: None,
        })?;
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(settings.timeout))
            .timeout_connect(Some(settings.connect_timeout))
            // The body of an error response describes the error; following a redirect would turn a POST into a GET.
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // Requests are a few kilobytes, and each connection has its own buffers.
            .input_buffer_size(BUFFER)
            .output_buffer_size(BUFFER)
            // Trust the certificates of this machine: servers within a company often use its own certificates.
            .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
            .user_agent(concat!("repoformer/", env!("CARGO_PKG_VERSION")))
            .proxy(proxy);
        let connector = SharedConnector {
            connector: Arc::default(),
            longest: settings.connect_timeout.min(settings.timeout),
        };
        let config = config.build();
        let agent = agent(&config, &connector);
        let (is_closed, outage, notice) = (Arc::default(), Arc::default(), None);
        Ok(Self {
            address,
            settings,
            header,
            keys,
            config,
            connector,
            agent,
            is_closed,
            outage,
            notice,
        })
    }

    /// Returns a client for the same server with connections of its own.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let agent = agent(&self.config, &self.connector);
        Self { agent, is_closed: Arc::default(), ..self.clone() }
    }

    /// Closes all connections, including the connections of clones of this client: requests in flight end, and further ones are refused.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.agent.clone().shutdown();
    }

    /// Checks that the connections are open, so that no more work is done for a cancelled request.
    ///
    /// # Errors
    /// The connections are closed.
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            Err(self.error("/v1", "the request was cancelled", ""))
        } else {
            Ok(())
        }
    }

    /// Sets a function that receives messages about the server: when requests begin to fail and are sent again, once a minute while this
    /// goes on, and when the server answers again.
    #[must_use]
    pub fn on_notice(mut self, notice: impl Fn(ServerNotice) + Send + Sync + 'static) -> Self {
        self.notice = Some(Arc::new(notice));
        self
    }

    /// Returns the URL of a request for messages, with keys masked.
    pub fn url(&self, path: &str) -> String {
        self.keys.get().mask_text(&mask_url(&self.address.of(path))).into_owned()
    }

    /// Sends JSON and returns the JSON of the answer. A path that begins with `/v1/` is placed under the API's version (`/v1/embeddings`),
    /// any other directly under the root (llama.cpp's `/tokenize`).
    ///
    /// # Errors
    /// [`Error::Endpoint`], after all retries, or immediately if retrying cannot help.
    pub fn post_json(&self, path: &str, body: &Value) -> Result<Value> {
        Ok(self.post_json_timed(path, body)?.0)
    }

    /// Sends JSON and returns the JSON of the answer and the time between the last attempt and the answer, which excludes delays before
    /// retries.
    ///
    /// # Errors
    /// As for [`post_json`](Self::post_json).
    pub fn post_json_timed(&self, path: &str, body: &Value) -> Result<(Value, Duration)> {
        self.exchange(path, Some(body.to_string().as_bytes()), &mut |response| {
            answer::read(response, self.context(&self.keys.get(), Some(body)))
        })
    }

    /// Sends JSON and passes the events of the answer to `take` one by one until `take` returns true; then closes the connection, which
    /// tells the server to stop. Returns the time since the last attempt. A server that does not stream gives one event, its whole answer.
    /// A stream that ends without `[DONE]` counts as broken off, unless `take` returns true at its end.
    ///
    /// # Errors
    /// As for [`post_json`](Self::post_json).
    pub fn post_events(
        &self,
        path: &str,
        body: &Value,
        take: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Duration> {
        let sent = body.to_string();
        let read = &mut |response| {
            events::read(response, self.context(&self.keys.get(), Some(body)), take)
        };
        Ok(self.exchange(path, Some(sent.as_bytes()), read)?.1)
    }

    /// Tells the receiver of messages what the server does not support.
    pub(crate) fn tell_unsupported(&self, text: &str) {
        if let Some(notice) = &self.notice {
            notice(ServerNotice::Unsupported(format!("{}: {text}", self.url("/v1"))));
        }
    }

    fn end_outage(&self) {
        if let Some(outage) = self.outage.record_answer() {
            let (url, seconds) = (self.url("/v1"), outage.as_secs_f64());
            self.tell_outage(&format!("{url}: answers again after {seconds:.1} s"));
        }
    }

    fn tell_outage(&self, text: &str) {
        if let Some(notice) = &self.notice {
            notice(ServerNotice::Outage(self.message(text.to_owned())));
        }
    }

    /// Returns the JSON at a path, such as `/v1/models`.
    ///
    /// # Errors
    /// As for [`post_json`](Self::post_json).
    pub fn get_json(&self, path: &str) -> Result<Value> {
        let read = &mut |response| answer::read(response, self.context(&self.keys.get(), None));
        Ok(self.exchange(path, None, read)?.0)
    }

    /// Checks that a server responds, with whatever answer. Call it before sending many requests, so that a wrong address is not retried
    /// for each of them. Returns the names of the server's models, or none if it does not list them.
    ///
    /// # Errors
    /// No connection is possible.
    pub fn greet(&self) -> Result<Vec<String>> {
        let url = self.address.of(GREETING);
        let request = self.agent.get(&url).config();
        let request = request.timeout_global(Some(LONGEST_GREETING)).build();
        let error = match self.with_key(request).call() {
            Ok(response) => {
                let answer = answer::read(response, self.context(&self.keys.get(), None))
                    .unwrap_or_default();
                let models = answer["data"].as_array().into_iter().flatten();
                let names = models.filter_map(|model| Some(model["id"].as_str()?.to_owned()));
                return Ok(names.collect());
            }
            Err(error) => error,
        };
        let failure = answer::unanswered_failure(&error, self.context(&self.keys.get(), None));
        // A server that is too busy to answer does exist.
        let is_busy = matches!(error, ureq::Error::Timeout(ureq::Timeout::Global));
        if failure.is_silence && !is_busy {
            return Err(self.failure_error(GREETING, failure));
        }
        Ok(Vec::new())
    }

    /// Returns the error for an answer of this server that is not in the expected form.
    pub fn error(&self, path: &str, reason: impl Into<String>, hint: impl Into<Message>) -> Error {
        let status = Some(200);
        self.failure_error(
            path,
            Failure { status, ..Failure::new(RetryOutlook::Never, reason, hint) },
        )
    }

    /// Returns the error for a token whose number the server does not return.
    pub(crate) fn unknown_token(&self, path: &str, reason: impl Into<String>) -> Error {
        Error::UnknownToken { url: self.url(path), reason: self.message(reason.into()) }
    }

    /// Returns the error for an answer that reports a failure.
    pub(crate) fn failed_answer(&self, path: &str, reason: String, hint: Message) -> Error {
        Error::FailedAnswer { url: self.url(path), reason: self.message(reason), hint }
    }

    fn failure_error(&self, path: &str, failure: Failure) -> Error {
        if failure.is_reported {
            return self.failed_answer(path, failure.reason, failure.hint);
        }
        Error::Endpoint {
            url: self.url(path),
            reason: self.message(failure.reason),
            hint: failure.hint,
            status: failure.status,
        }
    }

    fn exchange<T>(
        &self,
        path: &str,
        body: Option<&[u8]>,
        read: &mut dyn FnMut(Response) -> Result<T, Failure>,
    ) -> Result<(T, Duration)> {
        let (mut retries, mut waited) = (0, Duration::ZERO);
        loop {
            let begin = Instant::now();
            let work = RequestWork::begin(&self.is_closed);
            let answer = self.once(path, body).and_then(&mut *read);
            drop(work);
            self.check_open()?;
            let mut failure = match answer {
                Ok(value) => {
                    let time = begin.elapsed();
                    self.end_outage();
                    return Ok((value, time));
                }
                Err(failure) => failure,
            };
            let seed = [path.as_bytes(), body.unwrap_or_default()].concat();
            let Some(wait) = self.wait(&failure, retries, waited, &seed) else {
                if failure.again == RetryOutlook::Never && failure.status.is_some() {
                    self.end_outage(); // the server answers, though not with a completion
                }
                if retries > 0 {
                    failure.reason += &format!("; sent {} times", retries + 1);
                }
                return Err(self.failure_error(path, failure));
            };
            if let Some(report) = self.outage.record_failure(&self.url("/v1")) {
                let seconds = match (failure.again, report) {
                    (_, OutageReport::Lasts(time)) => format!(" for {:.0} s", time.as_secs_f64()),
                    (RetryOutlook::After(_), _) => {
                        format!(" in {:.1} s, as the server asks", wait.as_secs_f64())
                    }
                    _ => String::new(),
                };
                let (url, reason) = (self.url(path), &failure.reason);
                self.tell_outage(&format!("{url}: {reason}; retrying{seconds}"));
            }
            self.pause(wait);
            self.check_open()?;
            retries += 1;
            waited += wait;
        }
    }

    /// Returns the settings for reading the answer to a request.
    fn context<'c>(&'c self, key: &'c Key, body: Option<&Value>) -> Context<'c> {
        Context {
            timeout: self.settings.timeout,
            key_variable: self.settings.key_variable,
            has_key: self.header.is_some(),
            key,
            greatest: greatest(body),
        }
    }

    /// Sends a request once, without retries.
    fn once(&self, path: &str, body: Option<&[u8]>) -> Result<Response, Failure> {
        let url = self.address.of(path);
        let sent = match body {
            Some(body) => {
                let request = self.agent.post(&url).header("content-type", "application/json");
                self.with_key(request).send(body)
            }
            None => self.with_key(self.agent.get(&url)).call(),
        };
        sent.map_err(|error| {
            answer::unanswered_failure(&error, self.context(&self.keys.get(), None))
        })
    }

    /// Adds the server's key to a request.
    fn with_key<Body>(&self, request: ureq::RequestBuilder<Body>) -> ureq::RequestBuilder<Body> {
        match &self.header {
            Some(header) => request.header("authorization", header),
            None => request,
        }
    }

    /// Waits before a retry, until the request is cancelled at the latest.
    fn pause(&self, wait: Duration) {
        const STEP: Duration = Duration::from_millis(50);
        let begin = Instant::now();
        while !self.is_closed.load(Ordering::Relaxed) {
            let left = wait.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(STEP));
        }
    }

    /// Returns the delay before the request is sent again, after a number of retries and a total wait; `None` to give up. `seed` varies the
    /// delay between requests.
    fn wait(
        &self,
        failure: &Failure,
        retries: u32,
        waited: Duration,
        seed: &[u8],
    ) -> Option<Duration> {
        let settings = &self.settings;
        let back_off = |longest| retry::back_off(settings.first_delay, longest, retries, seed);
        match failure.again {
            RetryOutlook::Never => None,
            RetryOutlook::After(_) if settings.retries == 0 => None,
            // Clients that were told the same time must not return together, and should return less and less often.
            RetryOutlook::After(asked) => {
                let asked = asked.checked_add(back_off(settings.first_delay))?;
                let wait = asked.max(back_off(settings.longest_delay));
                let total = waited.checked_add(wait)?;
                (total <= settings.longest_retry_after).then_some(wait)
            }
            RetryOutlook::AtMost(times) if retries >= times => None,
            RetryOutlook::Later | RetryOutlook::AtMost(_) => {
                (retries < settings.retries).then(|| back_off(settings.longest_delay))
            }
        }
    }

    /// Returns a mask for the program's keys in a text that the server writes in pieces.
    pub(crate) fn key_mask(&self) -> KeyMask {
        KeyMask::new(self.keys.get())
    }

    /// Returns whether a text contains a long part of a key.
    pub(crate) fn has_key_in_text(&self, text: &str) -> bool {
        self.keys.get().is_in_text(text)
    }

    /// Masks long parts of keys in JSON assembled from a server's answers. Returns whether there were any.
    pub(crate) fn mask_keys(&self, value: &mut Value) -> bool {
        self.keys.get().mask(value)
    }

    /// Returns whether bytes that are not text contain a long part of a key.
    pub(crate) fn has_key_in(&self, bytes: &[u8]) -> bool {
        self.keys.get().is_in(bytes)
    }

    /// Masks keys, which servers repeat in their messages, and truncates overlong messages.
    fn message(&self, mut text: String) -> String {
        // A cut within the key must not reveal its beginning.
        let is_long = text.len() > LONGEST_MESSAGE;
        text.truncate(text.floor_char_boundary(2 * LONGEST_MESSAGE));
        text = String::from_utf8_lossy(&self.keys.get().mask_message(text.as_bytes())).into_owned();
        if is_long {
            let most = LONGEST_MESSAGE.min(text.len().saturating_sub(64));
            text.truncate(text.floor_char_boundary(most));
            text.push('…');
        }
        text
    }
}

/// Maximum length in bytes of a message that quotes a server.
const LONGEST_MESSAGE: usize = 4096;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
