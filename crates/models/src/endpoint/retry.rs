//! Retries: which failures are temporary, how long to wait, and how long a server asks to wait (`Retry-After`).

use std::time::Duration;

use repoformer_text::message::Message;
use ureq::http::{HeaderMap, StatusCode};

/// Failure of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// Cause, in words.
    pub(super) reason: String,
    /// Advice on how to resolve it.
    pub(super) hint: Message,
    pub(super) again: RetryOutlook,
    /// Whether there was no response at all.
    pub(super) is_silence: bool,
    /// Status of the response, or of the error within it.
    pub(super) status: Option<u16>,
    /// Whether the server itself reports the failure, in a successful response and without a status.
    pub(super) is_reported: bool,
}

impl Failure {
    pub(super) fn new(
        again: RetryOutlook,
        reason: impl Into<String>,
        hint: impl Into<Message>,
    ) -> Self {
        let (reason, hint) = (reason.into(), hint.into());
        Self { reason, hint, again, is_silence: false, status: None, is_reported: false }
    }

    /// Sets the status of the response, unless an error in the body already gave one.
    pub(super) fn or_status(self, status: StatusCode) -> Self {
        Self { status: self.status.or(Some(status.as_u16())), ..self }
    }
}

/// Whether the request may succeed if it is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryOutlook {
    /// No: it would fail again.
    Never,
    /// Yes, after a delay that the client chooses.
    Later,
    /// Yes, after a delay, at most this number of times: the request itself may be the cause.
    AtMost(u32),
    /// Yes, after the time that the server asks to wait.
    After(Duration),
}

/// Returns whether a status is temporary: a timeout, overload, or a server that starts or restarts.
pub(super) fn passes(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// Returns the delay before retry `attempt + 1`: `first`, doubled each time, at most `longest`. `seed` selects between half and all of that
/// delay, so that clients that failed together do not retry together.
pub(super) fn back_off(first: Duration, longest: Duration, attempt: u32, seed: &[u8]) -> Duration {
    let factor = 2_u32.saturating_pow(attempt);
    let whole = first.saturating_mul(factor).min(longest);
    let mut hasher = blake3::Hasher::new();
    hasher.update(seed).update(&attempt.to_le_bytes());
    let byte = hasher.finalize().as_bytes()[0];
    whole / 2 + whole / 2 * u32::from(byte) / 255
}

/// Returns the delay that a server asks for: `retry-after-ms`, or `Retry-After` in seconds or as a date, relative to the server's own
/// `Date`. Without `Date`, a date is ignored, because this machine's clock may differ or jump.
pub(super) fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let value = text.parse::<f64>().ok()? * unit;
        Duration::try_from_secs_f64(value.max(0.0)).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|ms| number(ms, 1e-3)) {
        return Some(wait);
    }
    let asked = text("retry-after")?;
    number(asked, 1.0).or_else(|| {
        let wait = http_date(asked)?.saturating_sub(http_date(text("date")?)?);
        Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)))
    })
}

/// Parses a date in one of HTTP's three forms (RFC 9110, 5.6.7); returns seconds since 1970.
fn http_date(text: &str) -> Option<i64> {
    let mut parts = text.split([' ', ',', '-']).filter(|part| !part.is_empty());
    let _weekday = parts.next()?;
    let rest: Vec<&str> = parts.collect();
    let (day, month, year, time) = match rest[..] {
        [day, month, year, time, "GMT"] => (day, month, year, time),
        [month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let mut clock = time.split(':').map(|part| part.parse::<u8>().ok().map(i64::from));
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let day: i64 = day.parse::<u8>().ok()?.into();
    let full: i64 = year.parse::<u16>().ok()?.into();
    // Two-digit years are the obsolete form; no server means a year before 1970.
    let year = match year.len() {
        2 if full < 70 => full + 2000,
        2 => full + 1900,
        _ => full,
    };
    let valid = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    valid.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Returns the days since 1970 in the Gregorian calendar. Years are counted from March, so that leap days come last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // The five months from March to July have 153 days, and so do those from August to December.
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_the_same_each_time() {
        let ms = Duration::from_millis;
        let waits: Vec<Duration> =
            (0..40).map(|n| back_off(ms(100), ms(1000), n, b"request")).collect();
        for (attempt, wait) in waits.iter().enumerate() {
            let whole = ms(100 << attempt.min(6)).min(ms(1000));
            assert!((whole / 2..=whole).contains(wait), "{attempt}: {wait:?}");
        }
        assert_eq!(waits[3], back_off(ms(100), ms(1000), 3, b"request"));
        let others: std::collections::HashSet<Duration> =
            (0..20_u8).map(|seed| back_off(ms(100), ms(1000), 0, &[seed])).collect();
        assert!(others.len() > 10, "other requests wait otherwise: {others:?}");
    }

    #[test]
    fn a_server_may_ask_for_seconds_or_name_a_date() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"; // 784111777, the example of RFC 9110
        for (pairs, wanted) in [
            (&[][..], None),
            (&[("retry-after", " 7 ")], Some(7.0)),
            (&[("retry-after", "0.25")], Some(0.25)),
            (&[("retry-after-ms", "30"), ("retry-after", "7")], Some(0.03)),
            (&[("retry-after", "-3")], Some(0.0)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "NaN")], Some(0.0)),
            (&[("retry-after", "inf")], None),
            (&[("retry-after", date)], None),
            (&[("retry-after", date), ("date", "Sun, 06 Nov 1994 08:49:30 GMT")], Some(7.0)),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), ("date", date)], Some(0.0)),
        ] {
            let name = ureq::http::HeaderName::from_static;
            let headers = pairs.iter().map(|(key, value)| (name(key), value.parse().unwrap()));
            let wait = asked_wait(&headers.collect());
            assert_eq!(wait, wanted.map(Duration::from_secs_f64), "{pairs:?}");
        }
    }

    #[test]
    fn the_three_forms_of_a_date_are_one() {
        // RFC 9110's own examples; the number is the output of `date -u -d '1994-11-06 08:49:37' +%s` in GNU coreutils.
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(http_date(text), Some(784_111_777), "{text}");
        }
        // The same for '2024-02-29 23:59:59', '2000-03-01 00:00:00' and '1970-01-01 00:00:00'.
        assert_eq!(http_date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(http_date("Wed, 01 Mar 2000 00:00:00 GMT"), Some(951_868_800));
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        for text in [
            "",
            "Sun",
            "Sun, 06 Nov 1994 8 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 24:00:00 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }

    /// Counts day by day, over all leap years of more than four centuries.
    #[test]
    fn days_follow_one_another() {
        let (mut year, mut month, mut day) = (0, 1, 1);
        for days in -719_528..100_000 {
            assert_eq!(days_since_1970(year, month, day), days, "{year}-{month}-{day}");
            let length = match month {
                2 => 28 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (month, day) if day == length => (year, month + 1, 1),
                (month, day) => (year, month, day + 1),
            };
        }
    }
}
