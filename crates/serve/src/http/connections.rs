//! Connections: how many are open at a time, how long each may be idle, and which are closed to make room for others.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use hyper::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

/// Delay after a connection could not be accepted, for example because too many files are open.
const AGAIN: Duration = Duration::from_millis(100);

/// Limits on connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Maximum number of concurrent connections. To accept another one, the server closes the connection that has been without a complete
    /// request for longest. If all connections have a complete request, the new one waits until one of these is answered.
    pub(crate) at_once: usize,
    /// Time limit for the head of a request, from the start of the connection or the end of the last answer.
    pub(crate) head: Duration,
    /// Time limit for a client to read more of an answer.
    pub(crate) answer: Duration,
}

/// Answers every connection through the routes. Never returns.
pub(crate) async fn serve(listener: TcpListener, routes: Router, bounds: Bounds) {
    let (room, waiting) =
        (Arc::new(Semaphore::new(bounds.at_once)), Arc::<ConnectionQueue>::default());
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.head);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // The client has disconnected.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        // Send text as soon as it arrives; otherwise each write would wait for the acknowledgement of the last one.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(bounds.answer));
        let turn = Arc::new(Turn::new(&waiting));
        turn.wait(place(&room, &waiting).await);
        let (routes, is_over) =
            (TowerToHyperService::new(routes.clone()), Arc::clone(&turn.is_over));
        let service = service_fn(move |request: Request<Incoming>| {
            let turn = Arc::clone(&turn);
            let part = Of::Request;
            let of = Arc::clone(&turn);
            let request = request.map(|body| RequestBody { body: Body::new(body), part, turn: of });
            let answer = routes.call(request);
            async move {
                Ok::<_, Infallible>(answer.await?.map(|body| RequestBody {
                    body,
                    part: Of::Answer,
                    turn,
                }))
            }
        });
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        tokio::spawn(async move {
            // Errors are ignored: the client notices how the connection ends.
            tokio::select! {
                _ = connection => {}
                () = is_over.notified() => {}
            }
        });
    }
}

/// Returns a permit for a new connection: a free one, or the permit of a connection that is closed for it.
async fn place(room: &Arc<Semaphore>, waiting: &ConnectionQueue) -> OwnedSemaphorePermit {
    loop {
        let place = Arc::clone(room).try_acquire_owned().ok().or_else(|| waiting.end_oldest());
        if let Some(place) = place {
            return place;
        }
        tokio::select! {
            _ = room.acquire() => {}
            () = waiting.is_longer.notified() => {}
        }
    }
}

/// Connections without a complete request, in the order in which they began to wait. A client that opens many connections and sends slowly
/// loses them, without delaying other clients.
#[derive(Debug, Default)]
struct ConnectionQueue {
    line: Mutex<Line>,
    is_longer: Notify,
}

#[derive(Debug, Default)]
struct Line {
    number: u64,
    places: BTreeMap<u64, (OwnedSemaphorePermit, Arc<Notify>)>,
}

impl ConnectionQueue {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the connection that has waited for longest, and returns its permit.
    fn end_oldest(&self) -> Option<OwnedSemaphorePermit> {
        let (_, (place, is_over)) = self.line().places.pop_first()?;
        is_over.notify_one();
        Some(place)
    }
}

/// Turn of a connection: it waits in the queue, or its request is being answered.
#[derive(Debug)]
struct Turn {
    waiting: Arc<ConnectionQueue>,
    is_over: Arc<Notify>,
    stand: Mutex<Stand>,
}

#[derive(Debug, Default)]
enum Stand {
    /// The connection's number in the queue, from which it may have been removed.
    Waiting(u64),
    Answering(OwnedSemaphorePermit),
    #[default]
    Over,
}

impl Turn {
    fn new(waiting: &Arc<ConnectionQueue>) -> Self {
        let (is_over, stand) = (Arc::default(), Mutex::default());
        Self { waiting: Arc::clone(waiting), is_over, stand }
    }

    fn stand(&self) -> MutexGuard<'_, Stand> {
        self.stand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the end of the queue.
    fn wait(&self, place: OwnedSemaphorePermit) {
        let (mut stand, mut line) = (self.stand(), self.waiting.line());
        line.number += 1;
        let number = line.number;
        line.places.insert(number, (place, Arc::clone(&self.is_over)));
        *stand = Stand::Waiting(number);
        self.waiting.is_longer.notify_one();
    }

    /// Leaves the queue with the permit, unless the permit was given to another connection.
    fn leave(&self) {
        let mut stand = self.stand();
        if let Stand::Waiting(number) = *stand {
            let place = self.waiting.line().places.remove(&number);
            *stand = place.map_or(Stand::Over, |(place, _)| Stand::Answering(place));
        }
    }

    fn wait_again(&self) {
        let stand = std::mem::take(&mut *self.stand());
        match stand {
            Stand::Answering(place) => self.wait(place),
            stand => *self.stand() = stand,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Body that updates the connection's turn when it is dropped: after a request's body the request is complete, and after an answer's body
/// the next request is awaited.
struct RequestBody {
    body: Body,
    part: Of,
    turn: Arc<Turn>,
}

#[derive(Clone, Copy)]
enum Of {
    Request,
    Answer,
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        match self.part {
            Of::Request => self.turn.leave(),
            Of::Answer => self.turn.wait_again(),
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::time::Instant;

    use axum::routing::get;
    use tokio::runtime::Runtime;

    use super::*;
    use crate::runtime::runtime;

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// Starts a server for some routes and a number of connections, each of which may be idle for a second.
    fn start(routes: Router, at_once: usize) -> (Runtime, SocketAddr) {
        let runtime = runtime().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let second = Duration::from_secs(1);
        runtime.spawn(serve(listener, routes, Bounds { at_once, head: second, answer: second }));
        (runtime, address)
    }

    fn connect(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    #[test]
    fn silent_connections_end_for_others_and_those_that_are_answered_do_not() {
        let (asked, may_answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (count, wait) = (Arc::clone(&asked), Arc::clone(&may_answer));
        let answer = async move || {
            count.fetch_add(1, Relaxed);
            wait.acquire().await.map(|_| "answered").unwrap_or_default()
        };
        let (_runtime, address) = start(Router::new().route("/", get(answer)), 2);
        let mut open = vec![connect(address, REQUEST), connect(address, REQUEST)];
        let begin = Instant::now();
        while asked.load(Relaxed) < 2 {
            assert!(begin.elapsed() < Duration::from_secs(30), "no request has been answered");
            std::thread::sleep(Duration::from_millis(1));
        }
        // One connection sends nothing and one sends half a head. They are closed, as are the answered ones.
        open.extend(["", "GET / HTTP", REQUEST].map(|text| connect(address, text)));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(asked.load(Relaxed), 2, "there is room for two");
        may_answer.add_permits(1);
        let answers = open.into_iter().map(|mut stream| {
            let mut answer = String::new();
            // A connection that is closed for another one is reset if it has unread data.
            let _ = stream.read_to_string(&mut answer);
            answer.ends_with("answered")
        });
        assert_eq!(answers.collect::<Vec<_>>(), [true, true, false, false, true]);
    }

    #[test]
    fn a_client_that_takes_nothing_makes_room_for_the_next() {
        const LARGE: usize = 64 << 20;
        let answer = async || "x".repeat(LARGE);
        let (_runtime, address) = start(Router::new().route("/", get(answer)), 1);
        let mut first = connect(address, REQUEST);
        let (mut part, mut second) = (vec![0], Vec::new());
        first.read_exact(&mut part).unwrap();
        connect(address, REQUEST).read_to_end(&mut second).unwrap();
        assert!(second.len() > LARGE);
        let _ = first.read_to_end(&mut part);
        assert!((1..LARGE).contains(&part.len()), "{}", part.len());
    }
}
