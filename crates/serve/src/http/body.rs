//! Request bodies: limits on their size and speed, and the fields that are read.

use std::cell::Cell;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use futures_core::Stream as _;
use repoformer_store::json;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::request::is_read;

/// Maximum number of bytes of a body.
const LARGEST: usize = 8 << 20;
/// Maximum number of bytes of all bodies of requests in flight.
const ALL: usize = 64 << 20;
/// Maximum number of JSON values read from a body: each takes many times the memory of its text.
const VALUES: usize = 1 << 16;

/// Status and reason of a rejection.
type Refusal = (StatusCode, String);

/// Reader of request bodies.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    /// Permits for the remaining bytes of bodies.
    room: Arc<Semaphore>,
    /// Time limits for the next part of a body, and for the whole body.
    part: Duration,
    whole: Duration,
}

impl Bodies {
    pub(crate) fn new(part: Duration, whole: Duration) -> Self {
        Self { room: Arc::new(Semaphore::new(ALL)), part, whole }
    }

    /// Reads a body and reserves memory for it, or returns why it is rejected.
    pub(crate) async fn read(
        &self,
        body: Body,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), Refusal> {
        let length = body.size_hint().lower();
        let large = (
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {} MiB", LARGEST >> 20),
        );
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= LARGEST) else {
            return Err(large);
        };
        let (mut all, mut room): (_, Option<OwnedSemaphorePermit>) =
            (Vec::with_capacity(length), None);
        let (mut parts, begin) = (body.into_data_stream(), Instant::now());
        loop {
            let part = std::future::poll_fn(|context| Pin::new(&mut parts).poll_next(context));
            let left = self.whole.saturating_sub(begin.elapsed());
            // With a timeout of zero, a part that has already arrived would still be accepted.
            if left.is_zero() {
                return Err((StatusCode::REQUEST_TIMEOUT, self.too_slow(left)));
            }
            let part = match tokio::time::timeout(self.part.min(left), part).await {
                Ok(None) => return Ok((all, room)),
                Ok(Some(Ok(part))) => part,
                Ok(Some(Err(error))) => {
                    let reason = format!("the body cannot be read: {error}");
                    return Err((StatusCode::BAD_REQUEST, reason));
                }
                Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, self.too_slow(left))),
            };
            if all.len() + part.len() > LARGEST {
                return Err(large);
            }
            let number = u32::try_from(part.len()).unwrap_or(u32::MAX);
            let Ok(more) = Arc::clone(&self.room).try_acquire_many_owned(number) else {
                let reason = format!("the requests in flight have {} MiB", ALL >> 20);
                return Err((StatusCode::TOO_MANY_REQUESTS, reason));
            };
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            all.extend_from_slice(&part);
        }
    }

    fn too_slow(&self, left: Duration) -> String {
        if left < self.part {
            format!("the body took longer than {} s", self.whole.as_secs())
        } else {
            format!("no part of the body arrived for {} s", self.part.as_secs())
        }
    }
}

/// Reads the known fields of a request from its body and skips all others; the error is the reason why it cannot be read.
pub(crate) fn fields(body: &[u8]) -> Result<Value, String> {
    let body = json::without_byte_order_mark(body);
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        format!("the body is not UTF-8: byte {} is 0x{:02x}", at + 1, body[at])
    })?;
    let read = json::parse_with(text, |json| {
        Reader { left: &Cell::new(VALUES), is_top: true }.deserialize(json)
    });
    read.map_err(|error| {
        if error.is_data() {
            format!("the body cannot be read: {error}")
        } else {
            format!("the body is not JSON: {error}")
        }
    })
}

/// Deserializer of a value with a bounded number of nested values.
#[derive(Clone, Copy)]
struct Reader<'c> {
    left: &'c Cell<usize>,
    /// Whether the value is the whole body, an object of which only known fields are read.
    is_top: bool,
}

impl Reader<'_> {
    fn take<E: serde::de::Error>(self, value: impl Into<Value>) -> Result<Value, E> {
        let left = self.left.get().checked_sub(1);
        let many = || E::custom(format!("its fields have more than {VALUES} values"));
        self.left.set(left.ok_or_else(many)?);
        Ok(value.into())
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.take(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.take(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.take(value)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.take(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.take(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.take(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        if self.is_top {
            return Err(A::Error::custom("it must be a JSON object"));
        }
        self.take::<A::Error>(Value::Null)?;
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        self.take::<A::Error>(Value::Null)?;
        let (mut fields, inner) = (Map::new(), Reader { is_top: false, ..self });
        while let Some(name) = object.next_key::<String>()? {
            if self.is_top && !is_read(&name) {
                object.next_value::<IgnoredAny>()?;
            } else {
                fields.insert(name, object.next_value_seed(inner)?);
            }
        }
        Ok(fields.into())
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};

    use super::*;
    use crate::runtime::runtime;

    /// A body that arrives one byte at a time and never ends.
    struct DripBody(tokio::time::Interval);

    impl futures_core::Stream for DripBody {
        type Item = Result<&'static str, &'static str>;

        fn poll_next(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            self.0.poll_tick(context).map(|_| Some(Ok(" ")))
        }
    }

    #[test]
    fn a_body_that_drips_is_given_up() {
        let bodies = Bodies::new(Duration::from_secs(60), Duration::from_millis(50));
        let refused = runtime().unwrap().block_on(async {
            let drips = tokio::time::interval(Duration::from_millis(1));
            bodies.read(Body::from_stream(DripBody(drips))).await.unwrap_err()
        });
        assert_eq!(refused.0, StatusCode::REQUEST_TIMEOUT, "{}", refused.1);
        assert_eq!(bodies.room.available_permits(), ALL);
    }

    #[test]
    fn all_bodies_together_are_bounded() {
        let bodies = Bodies::new(Duration::from_secs(60), Duration::from_secs(60));
        runtime().unwrap().block_on(async {
            let read = async |length: usize| bodies.read(Body::from(vec![b' '; length])).await;
            assert_eq!(read(LARGEST + 1).await.unwrap_err().0, StatusCode::PAYLOAD_TOO_LARGE);
            let mut kept = Vec::new();
            for _ in 0..ALL / LARGEST {
                kept.push(read(LARGEST).await.unwrap().1);
            }
            assert_eq!(read(1).await.unwrap_err().0, StatusCode::TOO_MANY_REQUESTS);
            kept.pop();
            assert!(read(1).await.is_ok());
        });
    }

    #[test]
    fn unknown_fields_are_skipped_and_known_ones_bounded() {
        let many = "0,".repeat(VALUES);
        let body =
            format!(r#"{{"x": [{many} 0], "prompt": "a\ud83d", "logit_bias": {{"1": -2}}}}"#);
        let read = fields(body.as_bytes()).unwrap();
        assert_eq!(read, serde_json::json!({"prompt": "a\u{fffd}", "logit_bias": {"1": -2}}));
        let says = |body: &str| fields(body.as_bytes()).unwrap_err();
        assert!(says(&format!(r#"{{"stop": [{many} 0]}}"#)).contains("more than 65536 values"));
        assert!(says("[]").contains("object"));
        assert!(says("{").contains("not JSON") && says("{} {}").contains("not JSON"));
    }
}
