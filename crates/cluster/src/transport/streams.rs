//! The watch lane: a pool of HTTP/2 connections with a limited number of live requests on each.
//!
//! hyper's own pool keeps one HTTP/2 connection per server and lets a request beyond the server's stream limit wait
//! for ever, which for watches means: until another watch ends. Here a request takes a slot on some connection, and
//! the slot lives inside the body of its answer: a watch gives it back when it ends or is dropped. When all slots
//! are taken one more connection is opened, once, however many requests ask for it at that moment.
//!
//! Connections fill up in order and close when they are empty, except the last.

use super::{
    AnswerBody, Connector, Plain, Statistics, TransportError, TransportOptions, boxed, chain, sending_failed,
};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use http::{Request, Response};
use hyper::{
    body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint},
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::client::Body;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tower::{BoxError, Service};

/// What one unread watch may buffer. A connection may buffer this much for each of its streams, so that a slow
/// reader never holds up its neighbours.
const STREAM_WINDOW: u32 = 512 * 1024;

/// Requests that found their connection closing are offered to so many others before we give up.
const ATTEMPTS: usize = 4;

/// The pool. Clones share it.
#[derive(Clone)]
pub(super) struct Streams {
    shared: Arc<Pool>,
}

struct Pool {
    connector: Connector,
    plain: Plain,
    limit: usize,
    keep_alive: (Duration, Duration),
    state: Mutex<PoolState>,
}

/// A connection being made; fails with the reason.
type Opening = Shared<BoxFuture<'static, Result<(), String>>>;

#[derive(Default)]
struct PoolState {
    connections: Vec<Member>,
    next_id: u64,
    /// The connection being made, if any; all who need a slot wait for the same one.
    opening: Option<Opening>,
    /// The server declined HTTP/2.
    plain_only: bool,
}

struct Member {
    id: u64,
    sender: SendRequest<Body>,
    live: usize,
    /// What the server allows, which may be less than our own limit and may change.
    allowed: Arc<AtomicUsize>,
}

/// One place on a connection, given back when dropped.
struct Slot {
    pool: Arc<Pool>,
    id: u64,
}

enum StreamChoice {
    Stream(SendRequest<Body>, Slot),
    Plain,
}

impl Streams {
    pub(super) fn new(connector: Connector, plain: Plain, options: &TransportOptions) -> Self {
        let state = PoolState { plain_only: !connector.may_speak_http2(), ..PoolState::default() };
        Self {
            shared: Arc::new(Pool {
                connector,
                plain,
                limit: options.streams_per_connection.max(1),
                keep_alive: (options.keep_alive_interval, options.keep_alive_timeout),
                state: Mutex::new(state),
            }),
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        let state = self.shared.state();
        Statistics {
            connections: state.connections.len(),
            streams: state.connections.iter().map(|member| member.live).sum(),
        }
    }
}

impl Service<Request<Body>> for Streams {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let pool = Arc::clone(&self.shared);
        Box::pin(async move { pool.send(request).await.map_err(BoxError::from) })
    }
}

impl Pool {
    async fn send(
        self: Arc<Self>,
        mut request: Request<Body>,
    ) -> Result<Response<AnswerBody>, TransportError> {
        for _ in 0..ATTEMPTS {
            let (mut sender, slot) = match self.place().await? {
                StreamChoice::Stream(sender, slot) => (sender, slot),
                StreamChoice::Plain => {
                    let answer = self.plain.request(request).await.map_err(|error| sending_failed(&error))?;
                    return Ok(answer.map(boxed));
                }
            };
            match sender.try_send_request(request).await {
                Ok(answer) => {
                    return Ok(answer.map(|body| boxed(SlottedBody { body, slot: Some(slot) })));
                }
                Err(mut refusal) => match refusal.take_message() {
                    // Handed back untouched, so another connection may have it.
                    Some(unsent) => {
                        self.retire(slot.id);
                        request = unsent;
                    }
                    None => return Err(TransportError::Broken(chain(&refusal.into_error()))),
                },
            }
        }
        Err(TransportError::Refused)
    }

    /// Finds a free slot, opening connections until there is one.
    async fn place(self: &Arc<Self>) -> Result<StreamChoice, TransportError> {
        loop {
            let opening = {
                let mut state = self.state();
                if state.plain_only {
                    return Ok(StreamChoice::Plain);
                }
                if let Some(place) = self.take_slot(&mut state) {
                    return Ok(place);
                }
                state.opening.get_or_insert_with(|| Arc::clone(self).open().boxed().shared()).clone()
            };
            opening.await.map_err(|reason| self.connector.failure(reason))?;
        }
    }

    fn take_slot(self: &Arc<Self>, state: &mut PoolState) -> Option<StreamChoice> {
        state.connections.retain(|member| !member.sender.is_closed());
        let member = state.connections.iter_mut().find(|member| {
            let allowed = member.allowed.load(Ordering::Relaxed).clamp(1, self.limit);
            member.live < allowed
        })?;
        member.live += 1;
        let slot = Slot { pool: Arc::clone(self), id: member.id };
        Some(StreamChoice::Stream(member.sender.clone(), slot))
    }

    async fn open(self: Arc<Self>) -> Result<(), String> {
        let opened = self.handshake().await;
        let mut state = self.state();
        state.opening = None;
        match opened? {
            Some((sender, allowed)) => {
                let id = state.next_id;
                state.next_id += 1;
                state.connections.push(Member { id, sender, live: 0, allowed });
            }
            None => state.plain_only = true,
        }
        Ok(())
    }

    async fn handshake(&self) -> Result<Option<(SendRequest<Body>, Arc<AtomicUsize>)>, String> {
        let wire = self.connector.connect().await?;
        if !wire.speaks_http2() {
            return Ok(None);
        }
        let streams = u32::try_from(self.limit).unwrap_or(u32::MAX);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(self.keep_alive.0)
            .keep_alive_timeout(self.keep_alive.1)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW.saturating_mul(streams).min(i32::MAX as u32))
            .handshake(TokioIo::new(wire))
            .await
            .map_err(|error| chain(&error))?;
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let heard = Arc::clone(&allowed);
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let ended = poll_fn(|cx| {
                let progress = connection.as_mut().poll(cx);
                heard.store(connection.current_max_send_streams(), Ordering::Relaxed);
                progress
            });
            if let Err(error) = ended.await {
                tracing::debug!(error = chain(&error), "watch connection ended");
            }
        });
        Ok(Some((sender, allowed)))
    }

    fn retire(&self, id: u64) {
        self.state().connections.retain(|member| member.id != id);
    }

    fn release(&self, id: u64) {
        let mut state = self.state();
        let several = state.connections.len() > 1;
        if let Some(index) = state.connections.iter().position(|member| member.id == id) {
            let member = &mut state.connections[index];
            member.live = member.live.saturating_sub(1);
            if member.live == 0 && several {
                state.connections.remove(index);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.release(self.id);
    }
}

/// The body of an answer together with the slot it occupies.
struct SlottedBody {
    body: Incoming,
    slot: Option<Slot>,
}

impl HttpBody for SlottedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.slot = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
