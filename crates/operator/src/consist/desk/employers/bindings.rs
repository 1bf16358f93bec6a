//! Bindings as they should be: their spec as claimed, their status as far as it is.

use std::{sync::Arc, time::Duration};

use linchpin_api::ConsistBindingSpec;
use linchpin_cluster::own::{self, MarkPatch, OwnTarget, OwnWriteError};
use linchpin_consist::{PodView, settle::SettleDecision};
use linchpin_words::Timestamp;
use serde_json::json;

use super::Case;
use crate::{
    consist::{
        acts::DEADLINE,
        binding::{self, RowTimes},
        cluster_view::{Binding, EmployerKey},
        desk::{Desk, DeskMessage},
    },
    controller::now,
};

/// How often a status is written while only its progress changes.
const PROGRESS: Duration = Duration::from_secs(1);
/// How long a look may take before the status says that nothing is known.
const LOOKING: Duration = Duration::from_secs(3);

impl Desk {
    pub(in crate::consist::desk) fn bound_written(
        &mut self,
        key: EmployerKey,
        number: u64,
        result: Result<(), OwnWriteError>,
    ) {
        let Some(case) = self.cases.get_mut(&key).filter(|case| case.number == number) else { return };
        case.writing = false;
        if let Err(error) = result {
            case.relied_on = None;
            // One that goes while its status is written is no trouble: its employer has been released.
            if !error.is_conflict() && error != OwnWriteError::Gone {
                case.write_from = Some(now().plus_duration(PROGRESS * 5));
                if case.said.as_ref() != Some(&error.to_string()) {
                    tracing::warn!(namespace = key.1, employer = key.2, "cannot write the binding: {error}");
                    case.said = Some(error.to_string());
                }
            }
        }
        self.dirty.insert(key);
    }

    /// Keeps spec and status of the binding as they should be; when to look at it again.
    #[allow(clippy::too_many_arguments, reason = "what one turn has at hand")]
    pub(super) fn keep_binding(
        &self,
        key: &EmployerKey,
        case: &mut Case,
        stored: &Binding,
        wanted: &ConsistBindingSpec,
        decision: &SettleDecision,
        pods: &[Arc<PodView>],
        time: Timestamp,
    ) -> Option<Timestamp> {
        if case.writing || stored.deleting || case.relied_on.as_ref() == Some(&stored.version) {
            return None;
        }
        let spec_differs = stored.spec != *wanted && !decision.leaving;
        // A moment in which the provider is looked at is no news: what was known a moment ago still holds.
        if decision.report.looking && stored.status.common.phase.is_some() && !spec_differs {
            let until = case.looking_since.get_or_insert(time).plus_duration(LOOKING);
            if time < until {
                return Some(until);
            }
        } else {
            case.looking_since = None;
        }
        let since = case.since.get_or_insert_with(|| RowTimes::of(&stored.status));
        let status = binding::status(&decision.report, pods, stored, since, time);
        let differs = binding::differs(&status, &stored.status);
        if !spec_differs && !differs {
            return None;
        }
        let urgent = spec_differs || status.common.phase != stored.status.common.phase;
        if let Some(from) = case.write_from.filter(|from| *from > time && !urgent) {
            return Some(from);
        }
        case.writing = true;
        case.write_from = Some(time.plus_duration(PROGRESS));
        case.relied_on = Some(stored.version.clone());
        let (write_context, back, requests) =
            (self.write_context.clone(), self.back.clone(), Arc::clone(&self.requests));
        let (key, number, kind) = (key.clone(), case.number, self.parts.kinds.bindings.clone());
        let (name, version) = (stored.name.clone(), stored.version.clone());
        let put_back = binding::put_back(&json!(stored.spec), &json!(wanted));
        tokio::spawn(async move {
            let _turn = requests.acquire().await.ok();
            let result = if write_context.fence.check().is_err() {
                Err(OwnWriteError::Passing("this process does not lead any more".to_owned()))
            } else if spec_differs {
                let place = OwnTarget { kind: &kind.own, namespace: Some(&key.1), name: &name };
                let body = json!({"metadata": {"resourceVersion": version}, "spec": put_back});
                write_context
                    .own_requests
                    .change(place, None, MarkPatch::Merge, &body, DEADLINE)
                    .await
                    .map(drop)
            } else {
                let place = (Some(key.1.clone()), name);
                let client = write_context.own_requests.client();
                own::write_status(client, &kind.own, &place, &version, json!(status)).await.map(drop)
            };
            let _ = back.send(DeskMessage::Bound { key, case: number, result });
        });
        None
    }
}
