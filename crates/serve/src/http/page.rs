//! Web page with the latest decisions and their times.

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;

use super::answer::with_type;

const PAGE: &str = include_str!("page.html");

/// Content policy: the page runs only its own script and loads nothing from elsewhere.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn page() -> Response {
    let mut response = with_type(PAGE, "text/html; charset=utf-8");
    let name = HeaderName::from_static("content-security-policy");
    response.headers_mut().insert(name, HeaderValue::from_static(POLICY));
    response
}
