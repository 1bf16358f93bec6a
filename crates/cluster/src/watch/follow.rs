//! The loop itself: look, follow, and begin again in the cheapest way that misses nothing.

mod alone;
mod end;
mod list;

use super::{
    Counters, Features, Sink, SinkReply, WatchFailure, WatchItem, WatchReport, WatchSelect, WatchTarget,
    clock::{KindClock, VersionClock},
    first_looks::FirstLookTurn,
    lines::Lines,
    pace::{WatchPauses, WatchTrouble},
    parse::{Head, WatchLine},
};
use crate::call::{self, ApiUrl, CallError, Form};
use end::FollowEnd;
use kube::Client;
pub(crate) use list::count;
use serde_json::value::RawValue;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Shortest life of a watch before it is renewed; up to [`RENEWAL_SPREAD`] more, and below five minutes together.
const RENEWAL: u64 = 235;
const RENEWAL_SPREAD: u64 = 60;
/// What a watch may last longer than it was asked to before it is taken for dead.
const OVERTIME: Duration = Duration::from_secs(30);
/// How long a resumed watch must have been quiet to count as caught up.
const SETTLED: Duration = Duration::from_secs(1);
/// How long a watch must have been up for its end to be an ordinary one.
const LASTING: Duration = Duration::from_secs(1);
/// How long after an attempt began it is begun anew because somebody ordered that: orders are carried out together.
const BETWEEN_ORDERED: Duration = Duration::from_millis(250);
/// How long the first state of a stream may take.
const FIRST_STATE: Duration = Duration::from_mins(1);

/// One thing followed as one identity. Does nothing until [`Follower::run`].
pub(crate) struct Follower {
    pub(crate) client: Client,
    pub(crate) clock: Arc<VersionClock>,
    pub(crate) features: Arc<Features>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) watched: WatchTarget,
    /// The namespace for which it looks; empty where it is for nobody's in particular.
    pub(crate) asker: String,
    /// Spreads the pauses and renewals of different followers.
    pub(crate) seed: u64,
}

/// Why an attempt is over.
enum News {
    /// It ended by itself.
    Ended(FollowEnd),
    /// A fresh look was asked for.
    Ordered,
    /// The store went back in time.
    Rewound,
    /// Nobody is interested any more.
    Nobody,
}

/// What is known between attempts.
struct FollowState {
    kind: Arc<KindClock>,
    pace: WatchPauses,
    /// Where a plain watch can go on; none before the first list and after its expiry.
    at: Option<String>,
    /// Whether the connection was lost since it was last reported as up.
    lost: bool,
    /// Since when changes flow.
    up_since: Option<tokio::time::Instant>,
}

impl Follower {
    /// Follows until the kind turns out not to be served. A change of `restart` asks for a fresh look.
    pub(crate) async fn run(&self, sink: &dyn Sink, restart: &mut watch::Receiver<u64>) {
        let mut epoch = self.clock.subscribe();
        let mut state = FollowState {
            kind: self.clock.kind(&self.watched.resource),
            pace: WatchPauses::new(self.seed),
            at: None,
            lost: false,
            up_since: None,
        };
        loop {
            let end = match self.until_news(sink, &mut state, restart, &mut epoch).await {
                News::Ended(end) => end,
                News::Ordered => continue,
                News::Rewound => {
                    Counters::add(&self.counters.rewinds, 1);
                    sink.failed(WatchFailure::Lost {
                        failures: 1,
                        message: "the store went back in time".to_owned(),
                    });
                    state.at = None;
                    state.lost = true;
                    continue;
                }
                News::Nobody => return,
            };
            // Only what lasted counts as success: a stream that ends at once, again and again, is no better than none.
            let lasted = state.up_since.take().is_some_and(|since| since.elapsed() > LASTING);
            if lasted {
                state.pace.fine();
            }
            let pause = match end {
                FollowEnd::Renew if lasted => continue,
                FollowEnd::Renew => state.pace.after(WatchTrouble::Connection),
                FollowEnd::Expired => {
                    state.at = None;
                    state.pace.after(WatchTrouble::Expired)
                }
                FollowEnd::Outgrown => {
                    state.at = None;
                    continue;
                }
                FollowEnd::CannotStream => {
                    self.features.cannot_stream(&self.watched.resource.kind.group);
                    continue;
                }
                FollowEnd::Failed(error) if error.is_code(404) => return,
                FollowEnd::Failed(error) if error.is_code(403) && self.read_alone(sink, &mut state).await => {
                    state.at = None;
                    state.pace.after(WatchTrouble::Forbidden)
                }
                FollowEnd::Failed(error) => self.failed(error, sink, &mut state),
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                changed = restart.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    state.at = None;
                }
            }
        }
    }

    /// One attempt, until it ends or has to begin anew. Orders that come soon after it began are carried out together: each
    /// costs the server a list, and anybody may give them.
    async fn until_news(
        &self,
        sink: &dyn Sink,
        state: &mut FollowState,
        restart: &mut watch::Receiver<u64>,
        epoch: &mut watch::Receiver<u64>,
    ) -> News {
        let at_the_earliest = tokio::time::Instant::now() + BETWEEN_ORDERED;
        let is_owed = AtomicBool::new(false);
        let ordered = async {
            if restart.changed().await.is_err() {
                return News::Nobody;
            }
            is_owed.store(true, Ordering::Relaxed);
            tokio::time::sleep_until(at_the_earliest).await;
            restart.borrow_and_update();
            News::Ordered
        };
        let news = tokio::select! {
            biased;
            news = ordered => news,
            _ = epoch.changed() => News::Rewound,
            end = self.attempt(sink, state) => News::Ended(end),
        };
        if is_owed.load(Ordering::Relaxed) {
            state.at = None;
        }
        news
    }

    fn failed(&self, error: CallError, sink: &dyn Sink, state: &mut FollowState) -> Duration {
        let code = error.refused().map(|refused| refused.code);
        tracing::debug!(plural = self.watched.resource.plural, select = ?self.watched.select, %error, "watch failed");
        if code == Some(403) {
            state.at = None;
            let pause = state.pace.after(WatchTrouble::Forbidden);
            sink.failed(WatchFailure::Forbidden(Box::new(error)));
            return pause;
        }
        let pause = match (&error, code) {
            (CallError::Refused(refused), Some(429)) => {
                state.pace.after(WatchTrouble::Throttled(refused.retry_after))
            }
            _ => state.pace.after(WatchTrouble::Connection),
        };
        state.lost = true;
        sink.failed(WatchFailure::Lost { failures: state.pace.failures(), message: error.to_string() });
        pause
    }

    async fn attempt(&self, sink: &dyn Sink, state: &mut FollowState) -> FollowEnd {
        let looking = Looking { metadata: sink.is_metadata(), sink };
        let by_name = matches!(self.watched.select, WatchSelect::Name(_));
        let ended = if by_name && self.features.streams(&self.watched.resource.kind.group) {
            self.stream(&looking, state).await
        } else {
            self.list_and_watch(&looking, state).await
        };
        ended.unwrap_or_else(|end| end)
    }

    /// First state, mark and changes in one request: a renewal is a fresh, consistent look at no extra cost.
    async fn stream(&self, looking: &Looking<'_>, state: &mut FollowState) -> Result<FollowEnd, FollowEnd> {
        let seconds = renewal(&mut state.pace);
        let url = self
            .collection()
            .with("watch", "true")
            .with("allowWatchBookmarks", "true")
            .with("sendInitialEvents", "true")
            .with("resourceVersionMatch", "NotOlderThan")
            .with("timeoutSeconds", &seconds.to_string());
        let turn = self.turn().await;
        Counters::add(&self.counters.lists, 1);
        let mark = self.clock.mark(&state.kind);
        let mut lines = self.open(&url, looking).await.map_err(|end| match end {
            FollowEnd::Failed(error) if error.is_code(422) || error.is_code(400) => FollowEnd::CannotStream,
            other => other,
        })?;
        let mut first: BTreeMap<String, Option<WatchItem>> = BTreeMap::new();
        let complete = async {
            loop {
                let Some(line) = lines.next().await.map_err(|error| FollowEnd::broken(&error))? else {
                    return Err(FollowEnd::broken("the stream ended before the first state was complete"));
                };
                Counters::add(&self.counters.bytes, line.len());
                self.features.breathe(line.len()).await;
                match Self::arrived(&line, state)? {
                    WatchLine::There(head, object) => {
                        let item = self.project(&head, object, looking)?;
                        first.insert(head.metadata.name, item);
                    }
                    WatchLine::Gone(head) => drop(first.remove(&head.metadata.name)),
                    WatchLine::Mark(mark) if mark.completes_first_state => return Ok(mark.version()),
                    WatchLine::Mark(_) => {}
                }
            }
        };
        // A server that passes over what it does not know watches well enough, and never says when the first state is
        // complete: aggregated ones do.
        let as_of =
            tokio::time::timeout(FIRST_STATE, complete).await.map_err(|_| FollowEnd::CannotStream)??;
        if !self.clock.confirm(&state.kind, mark, as_of) {
            return Err(FollowEnd::Expired);
        }
        drop(turn);
        let (mut items, mut others) = (Vec::new(), Vec::new());
        for (name, item) in first {
            match item {
                Some(item) => items.push(item),
                None => others.push(name.into_boxed_str()),
            }
        }
        Self::snapshot(items, others, as_of, looking, state);
        self.follow(lines, seconds, looking, state).await
    }

    /// Waits for one's turn to look.
    async fn turn(&self) -> Option<FirstLookTurn> {
        self.features.turn(&self.asker, &self.watched.resource.kind.group).await
    }

    async fn list_and_watch(
        &self,
        looking: &Looking<'_>,
        state: &mut FollowState,
    ) -> Result<FollowEnd, FollowEnd> {
        if state.at.is_none() {
            looking.sink.report(WatchReport::Looking);
            let mark = self.clock.mark(&state.kind);
            let (items, others, version) = self.list(looking).await?;
            let as_of = version.parse().unwrap_or(0);
            if !self.clock.confirm(&state.kind, mark, as_of) {
                return Err(FollowEnd::Expired);
            }
            state.at = Some(version);
            Self::snapshot(items, others, as_of, looking, state);
        } else if state.lost || state.kind.claim_check(Instant::now()) {
            self.compare(state).await?;
        }
        let seconds = renewal(&mut state.pace);
        let url = self
            .collection()
            .with("watch", "true")
            .with("allowWatchBookmarks", "true")
            .with("resourceVersion", state.at.as_deref().unwrap_or_default())
            .with("timeoutSeconds", &seconds.to_string());
        let lines = self.open(&url, looking).await?;
        self.follow(lines, seconds, looking, state).await
    }

    fn snapshot(
        items: Vec<WatchItem>,
        others: Vec<Box<str>>,
        as_of: u64,
        looking: &Looking<'_>,
        state: &mut FollowState,
    ) {
        state.lost = false;
        looking.sink.report(WatchReport::Snapshot { items, others, as_of });
    }

    /// Reads on until the stream ends.
    async fn follow(
        &self,
        mut lines: Lines,
        seconds: u64,
        looking: &Looking<'_>,
        state: &mut FollowState,
    ) -> Result<FollowEnd, FollowEnd> {
        let now = tokio::time::Instant::now();
        state.up_since = Some(now);
        let overdue = now + Duration::from_secs(seconds) + OVERTIME;
        loop {
            let until = if state.lost { now + SETTLED } else { overdue };
            let line = match tokio::time::timeout_at(until, lines.next()).await {
                Err(_) if state.lost => {
                    state.lost = false;
                    looking.sink.report(WatchReport::Live);
                    continue;
                }
                Err(_) => return Err(FollowEnd::broken("the stream outlived its time")),
                Ok(Err(error)) => return Err(FollowEnd::broken(&error)),
                Ok(Ok(None)) => return Ok(FollowEnd::Renew),
                Ok(Ok(Some(line))) => line,
            };
            Counters::add(&self.counters.bytes, line.len());
            Counters::add(&self.counters.events, 1);
            self.features.breathe(line.len()).await;
            match Self::arrived(&line, state)? {
                WatchLine::There(head, object) if looking.sink.take(&head, Some(object)) => {}
                WatchLine::Gone(head) if looking.sink.take(&head, None) => {}
                WatchLine::There(head, object) => self.report_line(&head, object, looking)?,
                WatchLine::Gone(head) => {
                    let version = head.version();
                    looking.sink.report(WatchReport::Gone { name: head.metadata.name, version });
                }
                WatchLine::Mark(mark) => {
                    looking.sink.report(WatchReport::Reached(mark.version()));
                }
            }
        }
    }

    /// Reads one line, and remembers how far that is.
    fn arrived<'a>(line: &'a [u8], state: &mut FollowState) -> Result<WatchLine<'a>, FollowEnd> {
        let arrived = WatchLine::read(line)?;
        let version = match &arrived {
            WatchLine::There(head, _) | WatchLine::Gone(head) => &head.metadata.resource_version,
            WatchLine::Mark(mark) => &mark.version,
        };
        state.kind.saw(version.parse().unwrap_or(0));
        // Streams of one object begin anew instead of going on, and need no version to do that from.
        if let (Some(at), false) = (&mut state.at, version.is_empty()) {
            at.clone_from(version);
        }
        Ok(arrived)
    }

    /// Reports one object that is there. It is projected without the listener's lock, so the interest in it may have
    /// changed when the listener gets it: then it is read again, and nothing is missed or half read.
    fn report_line(&self, head: &Head, object: &RawValue, looking: &Looking<'_>) -> Result<(), FollowEnd> {
        loop {
            let report = match self.project(head, object, looking)? {
                Some(item) => WatchReport::Changed(item),
                None => WatchReport::Passed { name: head.metadata.name.clone(), version: head.version() },
            };
            if looking.sink.report(report) == SinkReply::Noted {
                return Ok(());
            }
        }
    }

    /// What is read of one object; none if it is of no interest.
    fn project(
        &self,
        head: &Head,
        object: &RawValue,
        looking: &Looking<'_>,
    ) -> Result<Option<WatchItem>, FollowEnd> {
        let Some(interest) = looking.sink.interest(&head.metadata.name) else { return Ok(None) };
        if looking.metadata && !interest.is_metadata() {
            return Err(FollowEnd::Outgrown);
        }
        Ok(Some(head.item(object, &self.watched, &interest)))
    }

    async fn open(&self, url: &ApiUrl, looking: &Looking<'_>) -> Result<Lines, FollowEnd> {
        Counters::add(&self.counters.watches, 1);
        let form = if looking.metadata { Form::Metadata } else { Form::Full };
        let (_, body) = call::open(&self.client, call::get(url, form)?).await?;
        Ok(Lines::new(body))
    }

    fn collection(&self) -> ApiUrl {
        let url = self.watched.resource.collection(self.watched.namespace.as_deref());
        match &self.watched.select {
            WatchSelect::Name(name) => url.with("fieldSelector", &format!("metadata.name={}", escape(name))),
            WatchSelect::Labels(selector) => url.with("labelSelector", selector.as_str()),
            WatchSelect::All => url,
        }
    }
}

/// What one attempt looks for.
struct Looking<'a> {
    /// Whether only metadata is asked for.
    metadata: bool,
    sink: &'a dyn Sink,
}

fn renewal(pace: &mut WatchPauses) -> u64 {
    RENEWAL + pace.jitter(RENEWAL_SPREAD)
}

/// Escapes what a field selector's grammar would read as its own.
fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests;
