//! What stands in the client's place in a build without it.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::Value;

use super::{ConnectionSettings, Event};
use crate::error::{Error, Result};

/// A server's API. This build lacks the feature `http`, so there is none.
#[derive(Debug, Clone)]
pub struct Endpoint(Infallible);

impl Endpoint {
    /// # Errors
    /// Always: this build has no HTTP client.
    pub fn new(url: &str, _settings: ConnectionSettings) -> Result<Self> {
        Err(Error::Endpoint {
            url: url.to_owned(),
            reason: "this build asks no servers: it lacks the feature `http`".into(),
            hint: "add `http` to the features of the dependency `repoformer`".into(),
            status: None,
        })
    }

    /// Unreachable.
    #[must_use]
    pub fn on_retry(self, _notice: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self
    }

    /// Unreachable.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        match self.0 {}
    }

    /// Unreachable.
    pub fn close(&self) {
        match self.0 {}
    }

    /// # Errors
    /// Unreachable.
    pub fn check_open(&self) -> Result<()> {
        match self.0 {}
    }

    /// Unreachable.
    pub fn url(&self, _path: &str) -> String {
        match self.0 {}
    }

    /// # Errors
    /// Unreachable.
    pub fn post_json(&self, _path: &str, _body: &Value) -> Result<Value> {
        match self.0 {}
    }

    /// # Errors
    /// Unreachable.
    pub fn post_json_timed(&self, _path: &str, _body: &Value) -> Result<(Value, Duration)> {
        match self.0 {}
    }

    /// # Errors
    /// Unreachable.
    pub fn post_events(
        &self,
        _path: &str,
        _body: &Value,
        _take: &mut dyn FnMut(Event) -> bool,
    ) -> Result<Duration> {
        match self.0 {}
    }

    pub(crate) fn tell(&self, _path: &str, _text: &str) {
        match self.0 {}
    }

    /// # Errors
    /// Unreachable.
    pub fn get_json(&self, _path: &str) -> Result<Value> {
        match self.0 {}
    }

    pub(crate) fn key_mask(&self) -> KeyMask {
        match self.0 {}
    }

    pub(crate) fn without_key<'t>(&self, _text: &'t str) -> std::borrow::Cow<'t, str> {
        match self.0 {}
    }

    /// # Errors
    /// Unreachable.
    pub fn greet(&self) -> Result<Vec<String>> {
        match self.0 {}
    }

    pub(crate) fn unknown_token(&self, _path: &str, _reason: impl Into<String>) -> Error {
        match self.0 {}
    }

    pub(crate) fn failed_answer(&self, _path: &str, _reason: &str, _hint: &str) -> Error {
        match self.0 {}
    }

    /// Unreachable.
    pub fn error(
        &self,
        _path: &str,
        _reason: impl Into<String>,
        _hint: impl Into<String>,
    ) -> Error {
        match self.0 {}
    }
}

/// A mask of no key.
#[derive(Debug, Default)]
pub(crate) struct KeyMask(());

impl KeyMask {
    pub(crate) fn pass(&mut self, piece: &str) -> String {
        piece.to_owned()
    }

    pub(crate) fn finish(&mut self) -> String {
        String::new()
    }
}

/// Masks no key.
pub(crate) fn mask_keys(_answer: &mut serde_json::Value) {}

/// No text holds a key.
pub(crate) fn holds_key(_text: &str) -> bool {
    false
}
