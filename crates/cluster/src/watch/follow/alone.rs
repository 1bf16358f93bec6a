//! Values that may be read and not followed: a user with the right to `get` one Secret may use it.
//!
//! It is read again as often as a refusal is asked about again, which notices a change within half a minute.

use super::{FollowState, Follower, Looking};
use crate::{
    call::{self, Form},
    watch::{Sink, WatchSelect, parse::Head},
};
use serde_json::value::RawValue;

/// The kinds whose objects hold values.
const VALUES: [&str; 2] = ["Secret", "ConfigMap"];

impl Follower {
    /// Reads one object whose watch is refused; whether that could be found out.
    pub(super) async fn read_alone(&self, sink: &dyn Sink, state: &mut FollowState) -> bool {
        let kind = &self.watched.resource.kind;
        let WatchSelect::Name(name) = &self.watched.select else { return false };
        if !kind.group.is_empty() || !VALUES.contains(&kind.kind.as_str()) {
            return false;
        }
        let looking = Looking { metadata: sink.is_metadata(), sink };
        let url = self.watched.resource.object(self.watched.namespace.as_deref(), name);
        let form = if looking.metadata { Form::Metadata } else { Form::Full };
        let Ok(request) = call::get(&url, form) else { return false };
        let (items, as_of) = match call::call(&self.client, request).await {
            Err(error) if error.is_code(404) => (Vec::new(), 0),
            Err(_) => return false,
            Ok(answer) => {
                let Ok(object) = serde_json::from_slice::<&RawValue>(&answer.body) else { return false };
                let Ok(head) = Head::read(object) else { return false };
                let Ok(item) = self.project(&head, object, &looking) else { return false };
                (item.into_iter().collect(), head.version())
            }
        };
        Self::snapshot(items, Vec::new(), as_of, &looking, state);
        true
    }
}
