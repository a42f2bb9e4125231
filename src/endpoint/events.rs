//! Reading a response that comes in events (`text/event-stream`), as servers write completions token by token.

use std::io::{BufRead, BufReader, Read};

use super::Event;
use super::answer::{self, Context, Response};
use super::retry::Failure;

/// Hands on the events of a response, until `take` needs no more.
pub(super) fn read(
    response: Response,
    context: Context<'_>,
    take: &mut dyn FnMut(Event) -> bool,
) -> Result<(), Failure> {
    let (parts, body) = response.into_parts();
    take(Event::Begin);
    let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok());
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    if !is_stream || !parts.status.is_success() {
        take(Event::Whole(answer::read_body(&parts, body, context)?));
        return Ok(());
    }
    follow(BufReader::new(body.into_reader()), context, take)
        .map_err(|failure| failure.or_status(parts.status))
}

/// Reads events up to the one that says `[DONE]`. Fields other than `data`, and comments, are not used.
fn follow(
    mut reader: impl BufRead,
    context: Context<'_>,
    take: &mut dyn FnMut(Event) -> bool,
) -> Result<(), Failure> {
    let masked = |bytes: &[u8]| context.masked(bytes);
    let (mut data, mut seen) = (Vec::new(), 0);
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take((context.longest - seen).saturating_add(1))
            .read_until(b'\n', &mut line);
        seen += line.len() as u64;
        if seen > context.longest {
            return Err(answer::too_long(context));
        }
        if let Err(error) = read {
            return Err(answer::unread(error, &masked(&data), context));
        }
        let is_end = line.is_empty();
        let text = line.trim_ascii_end();
        if let Some(more) = text.strip_prefix(b"data:") {
            if !data.is_empty() {
                data.push(b'\n');
            }
            data.extend_from_slice(more.strip_prefix(b" ").unwrap_or(more));
        }
        // A blank line ends an event.
        if (text.is_empty() || is_end) && !data.is_empty() {
            if data == b"[DONE]" {
                return Ok(());
            }
            let value = answer::parse(&data, context).map_err(|_| {
                match answer::parse(&masked(&data), context) {
                    Ok(_) => answer::broken_off(&[], ""),
                    Err(failure) => failure,
                }
            })?;
            if take(Event::Data(context.without_key(value))) {
                return Ok(());
            }
            data.clear();
        }
        if is_end {
            return Err(answer::broken_off(&[], " before the event [DONE]"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Key;
    use super::super::retry::Again;
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn events(text: &str, most: usize) -> (Vec<Event>, Result<(), Failure>) {
        let key = Key::new("secret").unwrap();
        let context = Context {
            timeout: Duration::from_secs(1),
            key_variable: "KEY",
            key: Some(&key),
            longest: 1 << 16,
        };
        let mut found = Vec::new();
        let outcome = follow(text.as_bytes(), context, &mut |event| {
            found.push(event);
            found.len() == most
        });
        (found, outcome)
    }

    #[test]
    fn events_come_one_by_one_until_no_more_are_needed() {
        let text = ": a comment\n\nevent: x\ndata: {\"a\": 1}\r\n\r\ndata: {\"a\":\ndata:2}\n\ndata: {\"a\": 3}\n\ndata: [DONE]\n\nmore";
        let data = |numbers: &[u32]| -> Vec<Event> {
            numbers.iter().map(|number| Event::Data(json!({"a": number}))).collect()
        };
        assert_eq!(events(text, 9), (data(&[1, 2, 3]), Ok(())));
        assert_eq!(events(text, 2), (data(&[1, 2]), Ok(())));
        assert_eq!(events("data: [DONE]", 9), (vec![], Ok(())));
    }

    #[test]
    fn what_is_no_event_is_a_failure() {
        let fails = |text: &str| events(text, 9).1.unwrap_err();
        let cut = fails("data: {\"a\": 1}\n\n");
        assert_eq!(cut.again, Again::Later);
        assert!(cut.reason.contains("before the event [DONE]"), "{cut:?}");
        assert_eq!(fails("data: {\"a\": \n\n").again, Again::Later);
        let error = fails("data: {\"error\": {\"message\": \"secret is full\"}}\n\n");
        assert_eq!(error.again, Again::Never);
        assert!(error.reason.contains("is full") && !error.reason.contains("secret"), "{error:?}");
        assert!(fails("data: nonsense\n\n").reason.contains("not JSON"));
    }
}
