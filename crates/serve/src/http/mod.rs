//! The HTTP routes, and the path of a completion from the model to the editor.

mod answer;
mod body;
mod connections;
mod guard;
mod page;

pub use guard::{RequestGuard, TOKEN_VARIABLE};

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use repoformer_models::endpoint::Endpoint;
use repoformer_models::server::{StreamEnd, StreamPart};
use repoformer_store::error::Error;
use serde_json::{Value, json};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};

use crate::decisions::{DecisionRecord, shorten_dropped};
use crate::error::{Result, ServeError};
use crate::learn::LearnRequest;
use crate::request::EditorRequest;
use crate::runtime::runtime;
use crate::service::{PreparedPrompt, Service};
use crate::upstream::{UpstreamRequest, ms_since};
use answer::{Answer, of_json, refusal, with_type};
use body::{Bodies, fields};
use connections::Bounds;

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 32;
/// Time limit for a client to send or read more data.
const PROGRESS: Duration = Duration::from_secs(10);
/// Time limit for a whole body.
const WHOLE_BODY: Duration = Duration::from_secs(30);
/// Limits on connections to this server.
const BOUNDS: Bounds = Bounds { at_once: 256, head: Duration::from_secs(60), answer: PROGRESS };
/// Header that reports the decision.
const DECISION: HeaderName = HeaderName::from_static("x-repoformer-decision");

/// State shared by the routes.
#[derive(Clone)]
struct RouteState {
    service: Arc<Service>,
    room: Arc<Semaphore>,
    bodies: Bodies,
    /// Lock that lets one request at a time read the files shown in decisions.
    turn: Arc<Mutex<()>>,
}

/// Serves HTTP until the program ends.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(service: Arc<Service>, guard: RequestGuard) -> Result<()> {
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind(guard.listen).await;
        let failed = ServeError::system(format!(
            "cannot listen on {}; is another server using this address?",
            guard.listen
        ));
        let listener = listener.map_err(failed)?;
        let listen = listener.local_addr().unwrap_or(guard.listen);
        let mut guard = guard;
        guard.listen = listen;
        service.messages.announce(&format!("listening on http://{listen}"));
        connections::serve(listener, router(service, guard), BOUNDS).await;
        Ok(())
    })
}

fn router(service: Arc<Service>, guard: RequestGuard) -> Router {
    let (room, bodies) = (Arc::new(Semaphore::new(AT_ONCE)), Bodies::new(PROGRESS, WHOLE_BODY));
    let shared = RouteState { service, room, bodies, turn: Arc::default() };
    // Routes that send requests to the model's server, or whose bodies may be large.
    let asking = Router::new()
        .route("/v1/completions", post(completion))
        .route("/infill", post(infill))
        .route("/v1/models", get(models))
        .route_layer(axum::middleware::from_fn_with_state(shared.clone(), make_room));
    asking
        .route("/health", get(health))
        .route("/v1/health", get(health).post(health))
        .route("/v1beta/server_setting", get(server_setting))
        .route("/v1/events", post(async || StatusCode::OK))
        .route("/metrics", get(metrics))
        .route("/debug/last", get(last))
        .route("/debug/decisions", get(decisions))
        .route("/", get(page::page))
        .method_not_allowed_fallback(async || {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "this path does not support this method")
        })
        .fallback(async || refusal(StatusCode::NOT_FOUND, "unknown path; known: /v1/completions, /infill, /v1/models, /health, /metrics, /debug/last, /"))
        .layer(DefaultBodyLimit::disable())
        .layer(axum::middleware::from_fn_with_state(Arc::new(guard), guard::check))
        .with_state(shared)
}

/// Permits that a request holds until its answer has been sent and its work has ended: for the request, and for the bytes of its body.
#[derive(Clone)]
struct Room(#[expect(dead_code, reason = "held, not read")] Arc<[Option<OwnedSemaphorePermit>; 2]>);

/// Reads the body of a request before taking a permit for the request, so that slow clients delay nobody else.
async fn make_room(State(shared): State<RouteState>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let read = shared.bodies.read(body).await.and_then(|(body, bytes)| {
        let place = Arc::clone(&shared.room).try_acquire_owned();
        let reason = format!("{AT_ONCE} requests are in flight");
        let place = place.map_err(|_| (StatusCode::TOO_MANY_REQUESTS, reason))?;
        Ok((body, Room(Arc::new([Some(place), bytes]))))
    });
    match read {
        Ok((body, room)) => {
            let mut request = Request::from_parts(head, body.into());
            request.extensions_mut().insert(room);
            next.run(request).await
        }
        Err((status, reason)) => {
            shared.service.metrics.refused.fetch_add(1, Relaxed);
            refusal(status, &reason)
        }
    }
}

async fn completion(
    State(shared): State<RouteState>,
    Extension(room): Extension<Room>,
    body: Bytes,
) -> Response {
    answer(shared, room, body, EditorRequest::completion).await
}

async fn infill(
    State(shared): State<RouteState>,
    Extension(room): Extension<Room>,
    body: Bytes,
) -> Response {
    answer(shared, room, body, EditorRequest::infill).await
}

async fn answer(
    shared: RouteState,
    room: Room,
    body: Bytes,
    read: fn(&Value) -> Result<EditorRequest, String>,
) -> Response {
    let begin = Instant::now();
    let metrics = &shared.service.metrics;
    let refuse = |status, reason: &str| {
        metrics.refused.fetch_add(1, Relaxed);
        refusal(status, reason)
    };
    let wanted = match fields(&body).and_then(|body| read(&body)) {
        Ok(wanted) => wanted,
        Err(reason) => return refuse(StatusCode::BAD_REQUEST, &reason),
    };
    drop(body);
    shared.service.count(wanted.protocol);
    // An editor that only warms the model's cache reads no answer.
    if wanted.max_tokens == Some(0) {
        let answer = Answer::new("warm".into(), wanted.model.clone());
        let end = StreamEnd::default();
        if !wanted.stream {
            return of_json(&answer.whole(&wanted, "", &end));
        }
        let events: String = answer.last(&wanted, &end).iter().map(|last| event(last)).collect();
        return with_type(events, "text/event-stream");
    }
    let (service, asked) = (Arc::clone(&shared.service), Arc::new(wanted));
    let (preparing, of) = (Arc::clone(&service), Arc::clone(&asked));
    // Stop asking the model for a decision when the editor stops waiting.
    let asking = RequestConnections(service.endpoint.with_own_connections());
    let endpoint = asking.0.clone();
    let held = room.clone();
    let prepared = tokio::task::spawn_blocking(move || {
        let prepared = preparing.prepare(&of, &endpoint);
        drop(held);
        prepared
    });
    let mut waiting =
        PendingPrompt { shared: &shared, wanted: &asked, begin, outcome: Some("cancelled".into()) };
    let prepared = prepared.await;
    drop(asking);
    let prepared = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(error)) => {
            waiting.outcome = Some(error.to_string());
            return match error {
                Error::Endpoint { .. } | Error::FailedAnswer { .. } => error_response(&error),
                _ => refusal(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
            };
        }
        Err(_) => {
            waiting.outcome = Some("internal error: the request handler panicked".into());
            return refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal error: the request handler panicked",
            );
        }
    };
    waiting.outcome = None;
    drop(waiting);
    service.count_prepared(&prepared);
    let header = prepared.header(&service);
    let flow = Flow::new(service, asked, prepared, begin, room);
    let mut response = if flow.wanted.stream { flow.stream().await } else { flow.whole().await };
    if let Ok(header) = HeaderValue::from_str(&header) {
        response.headers_mut().insert(DECISION, header);
    }
    response
}

/// Request whose prompt is being prepared. If dropped before the prompt is ready, it is recorded as cancelled or failed.
struct PendingPrompt<'a> {
    shared: &'a RouteState,
    wanted: &'a EditorRequest,
    begin: Instant,
    /// `cancelled`, or the reason of the failure; `None` once the prompt is ready.
    outcome: Option<String>,
}

impl Drop for PendingPrompt<'_> {
    fn drop(&mut self) {
        let Some(outcome) = self.outcome.take() else { return };
        let service = &self.shared.service;
        let mut record = service.record_unmade(self.wanted);
        let (kept, count) = match &*outcome {
            "cancelled" => ("cancelled", &service.metrics.cancelled),
            error => {
                record.error = Some(error.to_owned());
                ("failed", &service.metrics.failed)
            }
        };
        count.fetch_add(1, Relaxed);
        service.keep(record, kept, (None, ms_since(self.begin)), &StreamEnd::default());
    }
}

/// Connections that are closed with the request.
struct RequestConnections(Endpoint);

impl Drop for RequestConnections {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Completion on its way to the editor. Dropping it before its end cancels it, on the model's server too.
struct Flow {
    service: Arc<Service>,
    wanted: Arc<EditorRequest>,
    completing: UpstreamRequest,
    record: DecisionRecord,
    answer: Answer,
    begin: Instant,
    /// Milliseconds to the first text.
    first: Option<f64>,
    end: Option<StreamEnd>,
    outcome: &'static str,
    /// Text received so far.
    text: String,
    /// Request to learn from, if a label is to be computed for it.
    asked: Option<Box<LearnRequest>>,
    _room: Room,
}

impl Flow {
    fn new(
        service: Arc<Service>,
        wanted: Arc<EditorRequest>,
        prepared: PreparedPrompt,
        begin: Instant,
        room: Room,
    ) -> Self {
        let name = service.name_of_model(&wanted).to_owned();
        Self {
            answer: Answer::new(format!("cmpl-{}", prepared.number), name),
            record: prepared.record,
            completing: service.complete(prepared.request, room.clone()),
            service,
            wanted,
            begin,
            first: None,
            end: None,
            outcome: "cancelled",
            asked: prepared.asked,
            text: String::new(),
            _room: room,
        }
    }

    /// Returns the next text; `None` at the end.
    async fn next(&mut self) -> Result<Option<String>, Error> {
        loop {
            match self.completing.parts.recv().await {
                Some(Ok(StreamPart::Model(name))) if self.answer.model.is_empty() => {
                    self.answer.model = name
                }
                Some(Ok(StreamPart::Model(_))) => {}
                Some(Ok(StreamPart::Text(text))) => {
                    self.text.push_str(&text);
                    self.first.get_or_insert_with(|| ms_since(self.begin));
                    return Ok(Some(text));
                }
                Some(Ok(StreamPart::End(end))) => {
                    self.outcome = "done";
                    self.end = Some(end);
                    return Ok(None);
                }
                Some(Err(error)) => {
                    self.outcome = "failed";
                    self.record.error = Some(error.to_string());
                    return Err(error);
                }
                None => return Ok(None),
            }
        }
    }

    async fn whole(mut self) -> Response {
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return error_response(&error),
            }
            if self.end.is_some() {
                break;
            }
        }
        match &self.end {
            Some(end) => of_json(&self.answer.whole(&self.wanted, &self.text, end)),
            None => refusal(StatusCode::BAD_GATEWAY, "the completion is incomplete"),
        }
    }

    /// Streams the answer. The first text determines the status; the rest is sent as it arrives.
    async fn stream(mut self) -> Response {
        let first = match self.next().await {
            Ok(first) => first,
            Err(error) => return error_response(&error),
        };
        let (sender, receiver) = mpsc::channel(64);
        tokio::spawn(async move {
            let mut text = first;
            loop {
                if let Some(text) = text {
                    let part = self.answer.part(self.wanted.protocol, &text);
                    if sender.send(Some(event(&part.to_string()))).await.is_err() {
                        return;
                    }
                }
                if let Some(end) = self.end.clone() {
                    let last = self.answer.last(&self.wanted, &end);
                    for part in last.iter().map(|last| Some(event(last))).chain([None]) {
                        if sender.send(part).await.is_err() {
                            return;
                        }
                    }
                    return;
                }
                text = tokio::select! {
                    next = self.next() => match next {
                        Ok(next) => next,
                        Err(error) => {
                            let (_, message) = status_of(&error);
                            let error = json!({"error": {"message": message, "type": "upstream_error", "param": null, "code": 502}});
                            for part in [Some(event(&error.to_string())), None] {
                                let _ = sender.send(part).await;
                            }
                            return;
                        }
                    },
                    () = sender.closed() => return,
                };
                if text.is_none() && self.end.is_none() {
                    return;
                }
            }
        });
        with_type(Body::from_stream(Events(receiver)), "text/event-stream")
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let metrics = &self.service.metrics;
        let whole = ms_since(self.begin);
        match self.outcome {
            "cancelled" => drop(metrics.cancelled.fetch_add(1, Relaxed)),
            "failed" => drop(metrics.failed.fetch_add(1, Relaxed)),
            _ => metrics.whole.add_ms(whole),
        }
        if let Some(first) = self.first {
            metrics.first_token.add_ms(first);
        }
        if self.outcome == "done" {
            let (text, model) = (&mut self.text, &mut self.answer.model);
            self.service.keep_shown(self.asked.take(), std::mem::take(text), std::mem::take(model));
        }
        let end = self.end.take().unwrap_or_default();
        let mut record = std::mem::take(&mut self.record);
        record.dropped = end.dropped.as_deref().map(shorten_dropped);
        self.service.keep(record, self.outcome, (self.first, whole), &end);
    }
}

/// Events of a streamed answer, with `None` after the last one. If `None` is missing, for example after a panic, the connection is broken
/// off, so that the client does not mistake a partial answer for a complete one.
struct Events(mpsc::Receiver<Option<String>>);

impl futures_core::Stream for Events {
    type Item = Result<Bytes, &'static str>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|part| match part {
            Some(event) => event.map(|event| Ok(Bytes::from(event))),
            None => Some(Err("the completion is incomplete")),
        })
    }
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn error_response(error: &Error) -> Response {
    let (status, message) = status_of(error);
    refusal(status, &message)
}

/// Returns the status and the message for an error of the model's server.
fn status_of(error: &Error) -> (StatusCode, String) {
    let status = match error {
        // The editor's request is at fault, for example because the prompt is too long.
        Error::Endpoint { status: Some(status @ (400 | 413 | 422 | 429)), .. } => {
            StatusCode::from_u16(*status).unwrap_or(StatusCode::BAD_GATEWAY)
        }
        _ => StatusCode::BAD_GATEWAY,
    };
    (status, error.to_string())
}

async fn models(State(shared): State<RouteState>, Extension(room): Extension<Room>) -> Response {
    let asking = RequestConnections(shared.service.endpoint.with_own_connections());
    let endpoint = asking.0.clone();
    let asked = tokio::task::spawn_blocking(move || {
        let models = endpoint.get_json("/v1/models");
        drop(room);
        models
    });
    match asked.await {
        Ok(Ok(models)) => of_json(&models),
        Ok(Err(error)) => error_response(&error),
        Err(_) => refusal(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error: the request handler panicked",
        ),
    }
}

/// Answers health checks in the format of both llama.cpp and Tabby.
async fn health(State(shared): State<RouteState>) -> Response {
    let version = env!("CARGO_PKG_VERSION");
    let name = &shared.service.model.name;
    let model = if name.is_empty() { "default" } else { name };
    of_json(&json!({
        "status": "ok", "repository": shared.service.live.name(), "model": model, "device": "remote", "cuda_devices": [], "arch": "", "cpu_info": "",
        "cpu_count": 0,
        "version": {"git_describe": format!("v{version}"), "git_sha": "", "build_date": "", "build_timestamp": ""},
    }))
}

async fn server_setting() -> Response {
    of_json(&json!({"disable_client_side_telemetry": true}))
}

async fn metrics(State(shared): State<RouteState>) -> Response {
    let text = shared.service.metrics.text(&shared.service.index_size());
    with_type(text, "text/plain; version=0.0.4")
}

async fn last(State(shared): State<RouteState>) -> Response {
    match wait_for_decisions(shared, 0, 1).await.into_iter().next() {
        Some(last) => of_json(&last),
        None => refusal(StatusCode::NOT_FOUND, "no request has been answered yet"),
    }
}

async fn decisions(State(shared): State<RouteState>, uri: Uri) -> Response {
    let after = match uri.query() {
        None => Some(0),
        Some(query) => query.strip_prefix("after=").and_then(|number| number.parse().ok()),
    };
    match after {
        Some(after) => of_json(&wait_for_decisions(shared, after, usize::MAX).await),
        None => refusal(StatusCode::BAD_REQUEST, "unknown query; known: after=NUMBER"),
    }
}

async fn wait_for_decisions(shared: RouteState, after: u64, most: usize) -> Vec<DecisionRecord> {
    // Finding the decisions reads files; later requests find the lines already stored.
    let turn = Arc::clone(&shared.turn).lock_owned().await;
    let found = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        shared.service.decisions(after, most)
    });
    found.await.unwrap_or_default()
}
