//! Connections: how many there are at a time, and how long each may be silent.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

/// Time to wait after a connection could not be taken, as where too many files are open.
const AGAIN: Duration = Duration::from_millis(100);

/// Bounds of connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Connections at a time; others wait, without an answer, until one ends.
    pub(super) at_once: usize,
    /// Time for the head of a request, from the connection's start or the last answer on.
    pub(super) head: Duration,
    /// Time in which a client takes something more of an answer.
    pub(super) answer: Duration,
}

/// Answers every connection by the routes, without end.
pub(super) async fn serve(listener: TcpListener, routes: Router, bounds: Bounds) {
    let room = Arc::new(Semaphore::new(bounds.at_once));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.head);
    // It is never closed.
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Its client has gone.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(_) => {
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        // Text is sent as it comes; without this, the next waits until the client has acknowledged the last.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(bounds.answer));
        let service = TowerToHyperService::new(routes.clone());
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        tokio::spawn(async move {
            // Its client sees how it ends.
            let _ = connection.await;
            drop(place);
        });
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

    use super::super::start::runtime;
    use super::*;

    const REQUEST: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

    /// A server of some routes, with room for some connections, each of which may be silent for a second.
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
    fn silent_connections_end_and_others_wait_for_room() {
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
            assert!(begin.elapsed() < Duration::from_secs(30), "no request was answered");
            std::thread::sleep(Duration::from_millis(1));
        }
        // One sends nothing and one half a head. They end, as do those that were answered.
        open.extend(["", "GET / HTTP", REQUEST].map(|text| connect(address, text)));
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(asked.load(Relaxed), 2, "there is room for two");
        may_answer.add_permits(1);
        let answers = open.into_iter().map(|mut stream| {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
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
        let mut second = Vec::new();
        connect(address, REQUEST).read_to_end(&mut second).unwrap();
        assert!(second.len() > LARGE);
        let mut part = Vec::new();
        let _ = first.read_to_end(&mut part);
        assert!((1..LARGE).contains(&part.len()), "{}", part.len());
    }
}
