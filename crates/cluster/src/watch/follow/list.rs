//! Lists: everything there is, in pages and within limits, and the cheap requests that only compare or count.

use super::{FollowEnd, FollowState, Follower, Looking};
use crate::{
    call::{self, CallError, Form},
    watch::{
        Counters, WatchItem, WatchReport, WatchTarget,
        list_size::ListSize,
        parse::{Head, ListPage},
    },
};
use kube::Client;
use linchpin_words::limits;
use std::time::Duration;

/// Objects per page of a list.
const PAGE: u32 = 500;

impl Follower {
    /// Everything, in pages, within the limits of one list.
    pub(super) async fn list(
        &self,
        looking: &Looking<'_>,
    ) -> Result<(Vec<WatchItem>, Vec<Box<str>>, String), FollowEnd> {
        Counters::add(&self.counters.lists, 1);
        let _turn = self.turn().await;
        let limit = Duration::from_secs(limits::LIST_SECONDS);
        let all = tokio::time::timeout(limit, self.pages(looking)).await;
        all.map_err(|_| FollowEnd::broken(&format!("the list was not complete within {limit:?}")))?
    }

    async fn pages(
        &self,
        looking: &Looking<'_>,
    ) -> Result<(Vec<WatchItem>, Vec<Box<str>>, String), FollowEnd> {
        let (mut items, mut others): (Vec<WatchItem>, Vec<Box<str>>) = (Vec::new(), Vec::new());
        let mut kept = 0;
        let mut next = String::new();
        let mut size = PAGE;
        let mut read = ListSize::default();
        let check =
            |read: &ListSize, more| read.too_long(more).map_or(Ok(()), |why| Err(FollowEnd::broken(&why)));
        loop {
            let mut url = self.collection().with("limit", &size.to_string());
            if !next.is_empty() {
                url = url.with("continue", &next);
            }
            let form = if looking.metadata { Form::MetadataList } else { Form::Full };
            let answer = match call::call(&self.client, call::get(&url, form)?).await {
                // Many large objects: fewer at a time.
                Err(CallError::TooLarge { .. }) if size > 1 => {
                    size = (size / 8).max(1);
                    continue;
                }
                answer => answer?,
            };
            read.pages += 1;
            read.bytes = read.bytes.saturating_add(answer.body.len());
            check(&read, false)?;
            Counters::add(&self.counters.bytes, answer.body.len());
            self.features.breathe(answer.body.len()).await;
            let page = ListPage::read(&answer.body)?;
            for object in page.items.unwrap_or_default() {
                let head = Head::read(object)?;
                if looking.sink.take(&head, Some(object)) {
                    continue;
                }
                match self.project(&head, object, looking)? {
                    Some(item) => {
                        kept += item.bytes;
                        items.push(item);
                    }
                    None => others.push(head.metadata.name.into_boxed_str()),
                }
            }
            read.objects = items.len() + others.len();
            check(&read, false)?;
            // The keeper may find that it is too much, and end this.
            looking.sink.report(WatchReport::Read { objects: items.len(), bytes: kept });
            match page.metadata.next {
                Some(more) if !more.is_empty() => next = more,
                _ => return Ok((items, others, page.metadata.resource_version)),
            }
            check(&read, true)?;
        }
    }

    /// Makes sure that the store has not gone back behind what we have seen.
    pub(super) async fn compare(&self, state: &mut FollowState) -> Result<(), FollowEnd> {
        let mark = self.clock.mark(&state.kind);
        let url = self.collection().with("limit", "1");
        let answer = call::call(&self.client, call::get(&url, Form::MetadataList)?).await?;
        let version = ListPage::read(&answer.body)?.metadata.resource_version.parse().unwrap_or(u64::MAX);
        if self.clock.confirm(&state.kind, mark, version) { Ok(()) } else { Err(FollowEnd::Expired) }
    }
}

/// How many objects there are, as one cheap request shows: what a wide watch would have to carry.
pub(crate) async fn count(client: &Client, watched: &WatchTarget) -> Result<u64, CallError> {
    let url = watched.resource.collection(watched.namespace.as_deref()).with("limit", "1");
    let answer = call::call(client, call::get(&url, Form::MetadataList)?).await?;
    let page = ListPage::read(&answer.body)
        .map_err(|error| CallError::Unanswered { message: error.to_string(), maybe_sent: true })?;
    let here = page.items.map_or(0, |items| items.len());
    Ok(u64::try_from(here)
        .unwrap_or(u64::MAX)
        .saturating_add(page.metadata.remaining_item_count.unwrap_or(0)))
}
