//! Reads a response that is streamed in events (`text/event-stream`), which servers use to send completions token by token.
//!
//! Streams are parsed as the HTML standard defines (server-sent events, 9.2.6), with three differences: `[DONE]` needs no blank line after
//! it; an event of type `error`, or with a field named `error` as in older servers of llama.cpp, is a failure, whatever its data, and so is
//! a line that is an error in plain JSON; and an error at the end of a stream is recognized even if no blank line follows it.

use std::io::{BufRead, BufReader};

use repoformer_core::completion::{check_answer, error_in, excerpt};
use repoformer_store::json;
use ureq::http::HeaderMap;

use super::Event;
use super::answer::{self, Context, Response};
use super::bound::ANY;
use super::retry::Failure;

/// Passes the events of a response to `take` until it needs no more.
pub(super) fn read(
    response: Response,
    context: Context<'_>,
    take: &mut dyn FnMut(Event) -> bool,
) -> Result<(), Failure> {
    let (parts, body) = response.into_parts();
    take(Event::Begin);
    if !is_event_stream(&parts.headers) || !answer::is_whole(parts.status.as_u16()) {
        take(Event::Whole(answer::read_body(&parts, body, context)?));
        return Ok(());
    }
    follow(BufReader::new(body.into_reader()), context, take)
        .map_err(|failure| failure.or_status(parts.status))
}

/// Returns whether a response has the media type of event streams, in any case and with any parameters.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Line of a stream.
enum Line {
    /// A line without its end.
    Complete(Vec<u8>),
    /// The end of the stream, with the text after the last line end.
    End(Vec<u8>),
}

/// Reader of the lines of a stream, each of which ends with CR LF, LF or CR.
struct Lines<R> {
    reader: R,
    /// Number of bytes that may still come.
    left: u64,
    /// True if the last line ended with CR; an LF that follows belongs to the same line end.
    is_behind_cr: bool,
}

impl<R: BufRead> Lines<R> {
    /// Reads a line. After a CR, it does not wait for an LF.
    fn next(&mut self) -> std::io::Result<Line> {
        let mut line = Vec::new();
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok([]) => return Ok(Line::End(line)),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let skipped = usize::from(self.is_behind_cr && bytes[0] == b'\n');
            self.is_behind_cr = false;
            let rest = &bytes[skipped..];
            let end = memchr::memchr2(b'\r', b'\n', rest);
            line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.is_behind_cr = end.is_some_and(|end| rest[end] == b'\r');
            let read = skipped + end.map_or(rest.len(), |end| end + 1);
            self.reader.consume(read);
            self.left = self.left.saturating_sub(read as u64);
            if end.is_some() || self.left == 0 {
                return Ok(Line::Complete(line));
            }
        }
    }
}

/// Fields of an event, from the lines received so far.
#[derive(Default)]
struct Fields {
    /// Lines of `data`, joined by newlines.
    data: Vec<u8>,
    has_data: bool,
    /// Whether the event's type is `error`.
    has_error_type: bool,
    /// Whether the event has a field named `error`.
    has_error_field: bool,
}

impl Fields {
    /// Adds a line that is not blank. Comments and other fields are ignored.
    fn take(&mut self, line: &[u8]) {
        let colon = memchr::memchr(b':', line);
        let (name, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" | b"error" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.has_error_field |= name == b"error";
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.has_error_type = value.trim_ascii().eq_ignore_ascii_case(b"error");
            }
            // A server behind a proxy may write an error between the events, as plain JSON.
            _ if line.starts_with(b"{")
                && json::count_values(line) <= ANY.values
                && json::parse(line).is_ok_and(|value| error_in(&value).is_some()) =>
            {
                self.has_error_field = true;
                self.data = line.to_vec();
            }
            _ => {}
        }
    }

    /// Returns whether the event ends the stream.
    fn is_done(&self) -> bool {
        !self.is_error() && self.data.trim_ascii() == b"[DONE]"
    }

    fn is_error(&self) -> bool {
        self.has_error_type || self.has_error_field
    }

    /// Returns the failure that the fields report, if any, even if the event is incomplete.
    fn failure(&self, context: Context<'_>) -> Option<Failure> {
        let data = context.mask(self.data.trim_ascii());
        let is_small = json::count_values(&data) <= context.greatest.values;
        let value = if is_small { json::parse(&data).ok() } else { None };
        let has_failed = self.is_error() || check_answer(value.as_ref()?).is_err();
        let message = match answer::message_of(&data) {
            none if none.is_empty() => "an error without a reason".to_owned(),
            message => message,
        };
        has_failed.then(|| answer::reported_failure(&value.unwrap_or_default(), &message, context))
    }

    /// Returns the event; `None` if it has no data.
    fn into_event(self, context: Context<'_>) -> Result<Option<Event>, Failure> {
        if self.is_error()
            && let Some(failure) = self.failure(context)
        {
            return Err(failure);
        }
        let data = self.data.trim_ascii();
        if data.is_empty() {
            return Ok(None);
        }
        let read = |data: &[u8]| answer::parse(data, context);
        // Servers repeat a wrong key, and an excerpt may cut it off in the middle.
        match read(data) {
            Ok(value) => {
                let (mut value, is_halved) = (value, !json::is_unicode(data));
                let is_masked = context.key.mask(&mut value);
                let exact = (is_halved || is_masked).then(|| data.to_vec());
                Ok(Some(Event::Data { value, exact }))
            }
            Err(_) => Err(match read(&context.mask(data)) {
                Ok(_) => answer::incomplete_failure(&[], ""),
                Err(failure) => failure,
            }),
        }
    }
}

/// Returns the failure for a stream that ended after a number of events, within another event if `pending` has data.
fn cut_off(events: usize, pending: &[u8], why: &str) -> Failure {
    let behind = match events {
        0 => "before its first event".to_owned(),
        1 => "after 1 event, before [DONE]".to_owned(),
        _ => format!("after {events} events, before [DONE]"),
    };
    let rest = match pending.trim_ascii() {
        [] => String::new(),
        data => format!("; the next one begins: {}", excerpt(data)),
    };
    answer::stopped_failure(format!("the stream was cut off {behind}{why}{rest}"))
}

/// Reads events up to `[DONE]`.
fn follow(
    reader: impl BufRead,
    context: Context<'_>,
    take: &mut dyn FnMut(Event) -> bool,
) -> Result<(), Failure> {
    let left = context.greatest.bytes.saturating_add(1);
    let mut lines = Lines { reader, left, is_behind_cr: false };
    let (mut fields, mut is_first, mut events) = (Fields::default(), true, 0);
    loop {
        let line = lines.next();
        if lines.left == 0 {
            return Err(answer::too_long(context));
        }
        match line {
            Err(error) => {
                let pending = context.mask(&fields.data);
                return Err(answer::unread(error, context, |why| cut_off(events, &pending, why)));
            }
            Ok(Line::End(rest)) => {
                fields.take(&rest);
                // Lines without a blank line after them are not an event, but may report a failure.
                if let Some(failure) = fields.failure(context) {
                    return Err(failure);
                }
                if fields.is_done() || take(Event::End) {
                    return Ok(());
                }
                let pending = context.mask(&fields.data);
                return Err(cut_off(events, &pending, ""));
            }
            Ok(Line::Complete(line)) => {
                let line = if is_first { json::without_byte_order_mark(&line) } else { &line };
                is_first = false;
                if !line.is_empty() {
                    fields.take(line);
                    continue;
                }
                let event = std::mem::take(&mut fields);
                if event.is_done() {
                    return Ok(());
                }
                let Some(event) = event.into_event(context)? else { continue };
                events += 1;
                if take(event) {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use serde_json::json;

    use super::super::bound::Size;
    use super::super::key::Key;
    use super::super::retry::RetryOutlook;
    use super::*;

    /// Returns up to `most` events of a stream that arrives in chunks of `size` bytes. `is_whole` is the result of `take` at a stream's
    /// early end.
    fn events_in(
        bytes: &[u8],
        size: usize,
        most: usize,
        is_whole: bool,
    ) -> (Vec<Event>, Result<(), Failure>) {
        let key = Key::new("secret").unwrap();
        let context = Context {
            timeout: Duration::from_secs(1),
            key_variable: "KEY",
            has_key: true,
            key: &key,
            greatest: Size { bytes: 1 << 16, values: 1 << 16 },
        };
        let mut found = Vec::new();
        let reader = BufReader::with_capacity(size, bytes);
        let outcome = follow(reader, context, &mut |event| match event {
            Event::End => is_whole,
            event => {
                found.push(event);
                found.len() == most
            }
        });
        (found, outcome)
    }

    fn events(text: &str, most: usize) -> (Vec<Event>, Result<(), Failure>) {
        events_in(text.as_bytes(), 1 << 10, most, false)
    }

    fn data(numbers: &[u32]) -> Vec<Event> {
        let of = |number: &u32| Event::Data { value: json!({"a": number}), exact: None };
        numbers.iter().map(of).collect()
    }

    #[test]
    fn events_come_one_by_one_until_no_more_are_needed() {
        let text = ": a comment\n\nevent: x\ndata: {\"a\": 1}\r\n\r\ndata: {\"a\":\ndata:2}\n\ndata: {\"a\": 3}\n\ndata: [DONE]\n\nmore";
        assert_eq!(events(text, 9), (data(&[1, 2, 3]), Ok(())));
        assert_eq!(events(text, 2), (data(&[1, 2]), Ok(())));
        assert_eq!(events("data: [DONE]", 9), (vec![], Ok(())));
    }

    /// The HTML standard, 9.2.6: a byte-order mark is dropped, and lines end with CR LF, LF or CR.
    #[test]
    fn streams_are_parsed_as_the_standard_says() {
        for end in ["\n", "\r\n", "\r"] {
            let lines = [
                "\u{feff}data: {\"a\": 1}",
                "",
                ": OPENROUTER PROCESSING",
                "",
                "data",
                "",
                "id: 7",
                "retry: 10",
                "data:{\"a\":",
                "data: 2}",
                "",
                "",
                "data:  {\"a\": 3}",
                "",
                " data: {\"a\": 9}",
                "datum: {\"a\": 9}",
                "",
                "data: [DONE]",
                "",
                "",
            ];
            let text = lines.join(end);
            for size in [1, 2, 3, 7, 1000] {
                let found = events_in(text.as_bytes(), size, 9, false);
                assert_eq!(found, (data(&[1, 2, 3]), Ok(())), "{end:?} {size}");
            }
        }
        let mixed =
            "data: {\"a\": 1}\r\n\rdata: {\"a\": 2}\n\r\ndata: {\"a\": 3}\r\rdata: [DONE]\n\r";
        assert_eq!(events(mixed, 9), (data(&[1, 2, 3]), Ok(())));
        // Bytes that are not UTF-8 become U+FFFD, as do halves of surrogate pairs.
        let bytes = b"data: {\"a\": \"\xff\\ud83d\"}\n\ndata: [DONE]\n\n";
        let (found, outcome) = events_in(bytes, 9, 9, false);
        let exact = Some(b"{\"a\": \"\xff\\ud83d\"}".to_vec());
        let event = Event::Data { value: json!({"a": "\u{fffd}\u{fffd}"}), exact };
        assert_eq!((found, outcome), (vec![event], Ok(())));
        // A byte-order mark anywhere else is part of a field name.
        assert_eq!(events("\n\u{feff}data: {\"a\": 1}\n\ndata: [DONE]\n\n", 9), (vec![], Ok(())));
    }

    #[test]
    fn an_event_is_handed_on_before_its_line_end_is_complete() {
        struct InterruptedReader<'a>(&'a [u8]);
        impl Read for InterruptedReader<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                assert!(!self.0.is_empty(), "it waits for more");
                self.0.read(buffer)
            }
        }
        let context = Context {
            timeout: Duration::ZERO,
            key_variable: "KEY",
            has_key: false,
            key: &Key::default(),
            greatest: Size { bytes: 1 << 16, values: 1 << 16 },
        };
        let reader = BufReader::new(InterruptedReader(b"data: {\"a\": 1}\r\r"));
        assert_eq!(follow(reader, context, &mut |_| true), Ok(()));
    }

    #[test]
    fn media_types_are_compared_without_case_and_parameters() {
        let is = |kind: &str| {
            let name = ureq::http::header::CONTENT_TYPE;
            is_event_stream(&[(name, kind.parse().unwrap())].into_iter().collect())
        };
        for kind in [
            "text/event-stream",
            "Text/Event-Stream",
            "text/event-stream;charset=utf-8",
            " TEXT/EVENT-STREAM ; x=y",
        ] {
            assert!(is(kind), "{kind}");
        }
        for kind in ["text/event-stream-2", "application/json", "text/plain; a=text/event-stream"] {
            assert!(!is(kind), "{kind}");
        }
        assert!(!is_event_stream(&HeaderMap::new()));
    }

    #[test]
    fn what_is_no_event_is_a_failure() {
        let fails = |text: &str| events(text, 9).1.unwrap_err();
        let cut = fails("data: {\"a\": 1}\n\n");
        assert_eq!(cut.again, RetryOutlook::Later);
        assert_eq!(cut.reason, "the stream was cut off after 1 event, before [DONE]");
        let halves = fails("data: {\"a\": 1}\n\ndata: {\"a\": 2}\n\ndata: {\"a\":");
        assert_eq!(
            halves.reason,
            "the stream was cut off after 2 events, before [DONE]; the next one begins: {\"a\":"
        );
        assert_eq!(
            fails(": a comment\n\n").reason,
            "the stream was cut off before its first event"
        );
        // A stream may end early if no more is needed.
        let whole = events_in(b"data: {\"a\": 1}\n\ndata: {\"a\": 2}", 9, 9, true);
        assert_eq!(whole, (data(&[1]), Ok(())));
        assert_eq!(fails("data: {\"a\": \n\n").again, RetryOutlook::Later);
        for error in [
            "data: {\"error\": {\"message\": \"secret is full\"}}\n\n",
            "event: error\ndata: {\"message\": \"secret is full\"}\n\n",
            "event: error\ndata: secret is full\n\n",
            "error: {\"message\": \"secret is full\"}\n\n",
            "event: Error\ndata: {\"message\": \"secret is full\", \"choices\": []}\n\n",
            "error: {\"message\": \"secret is full\"}\nevent: message\n\n",
            "data: {\"object\": \"error\", \"message\": \"secret is full\"}\n\n",
            "data: {\"a\": 1}\n{\"error\": {\"message\": \"secret is full\"}}\n\ndata: [DONE]\n\n",
            "{\"errors\": [\"secret is full\"]}\ndata: {\"a\": 1}\n\n",
            "data: {\"success\": false, \"message\": \"secret is full\"}\n\n",
            // No blank line follows.
            "data: {\"a\": 1}\n\ndata: {\"error\": {\"message\": \"secret is full\"}}\n",
            "data: {\"a\": 1}\n\ndata: {\"error\": {\"message\": \"secret is full\"}}",
            "data: {\"a\": 1}\n\ndata: {\"choices\": [{\"error\": \"secret is full\"}]}",
            "data: {\"a\": 1}\n\nerror: {\"message\": \"secret is full\"}\n",
            "data: {\"a\": 1}\n\nevent: error\ndata: secret is full\n",
        ] {
            // Fails even if no more is needed.
            assert!(events_in(error.as_bytes(), 9, 9, true).1.is_err(), "{error}");
            let error = fails(error);
            assert_eq!(error.again, RetryOutlook::Never);
            assert!(
                error.reason.contains("is full") && !error.reason.contains("secret"),
                "{error:?}"
            );
        }
        for error in
            ["event: error\n\n", "event: error\ndata:\n\n", "event: error\ndata: [DONE]\n\n"]
        {
            let (_, outcome) =
                events_in((error.to_owned() + "data: [DONE]\n\n").as_bytes(), 9, 9, true);
            assert!(outcome.unwrap_err().reason.starts_with("the server says: "), "{error}");
        }
        let busy = fails("event: error\ndata: {\"code\": 503, \"message\": \"busy\"}\n\n");
        assert_eq!((busy.again, busy.status), (RetryOutlook::Later, Some(503)));
        assert!(fails("data: nonsense\n\n").reason.contains("not JSON"));
    }
}
