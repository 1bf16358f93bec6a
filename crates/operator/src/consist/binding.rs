//! The binding of an employer: the claim that one adapter serves it, and what people read of that.

use std::collections::BTreeMap;

use linchpin_api::{
    CommonStatus, ConsistBindingSpec, ConsistBindingStatus,
    consist_binding::{
        EmployeeCounts, EmployeeItem, EmployeeKind, EmployerItem, EmployerName, OperationItem, ProviderStatus,
    },
    status::Blocker,
};
use linchpin_consist::{
    EmployeeSelection, PodView,
    lifecycle::operations,
    marks::key,
    settle::{EmployerPhase, EmployerReport, EmployerView, ReadyReason, ReportRow, RowState},
};
use linchpin_words::{
    Condition, ConditionType, Reason, Timestamp,
    condition::{self, ConditionStatus},
    text,
};
use serde_json::{Map, Value, json};

use super::{cluster_view::Binding, crew::Worker};

/// The most employees that are listed.
const LISTED: usize = 200;
/// The most operations of one employee that are listed.
const OPERATIONS: usize = 8;
/// The most bytes of a message.
const MESSAGE: usize = 1024;

/// What a binding is to say of whom it binds.
pub(super) fn spec(
    worker: &Worker,
    employer: &EmployerView,
    selection: &EmployeeSelection,
) -> ConsistBindingSpec {
    let selector = match selection {
        EmployeeSelection::Labels(labels) => labels.clone(),
        EmployeeSelection::Names(_) | EmployeeSelection::Nothing => BTreeMap::new(),
    };
    let finalizer = if worker.follows { worker.finalizers(employer).written } else { String::new() };
    ConsistBindingSpec {
        adapter: worker.name.clone(),
        employer: EmployerName {
            api_version: employer.kind.api_version(),
            kind: employer.kind.kind.clone(),
            name: employer.name.clone(),
            uid: employer.uid.clone(),
        },
        employee: EmployeeKind {
            api_version: worker.employee_kind.api_version(),
            kind: worker.employee_kind.kind.clone(),
        },
        selector,
        follow_pod_ops_lifecycle: worker.follows,
        key: key(&employer.kind.kind, &employer.namespace, &employer.name),
        finalizer,
    }
}

/// A whole binding, to be made.
pub(super) fn object(name: &str, namespace: &str, spec: &ConsistBindingSpec) -> Value {
    json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "ConsistBinding",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// The merge patch that makes what is stored what is wanted: a field that is not wanted is taken away by its null.
pub(super) fn put_back(stored: &Value, wanted: &Value) -> Value {
    let (Value::Object(stored), Value::Object(wanted)) = (stored, wanted) else { return wanted.clone() };
    let unwanted = stored.keys().filter(|field| !wanted.contains_key(*field));
    let mut patch: Map<String, Value> = unwanted.map(|field| (field.clone(), Value::Null)).collect();
    for (field, value) in wanted {
        match stored.get(field) {
            Some(known) if known == value => {}
            known => drop(patch.insert(field.clone(), put_back(known.unwrap_or(&Value::Null), value))),
        }
    }
    Value::Object(patch)
}

/// Since when rows are as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct RowTimes(BTreeMap<(bool, String), (String, Timestamp)>);

impl RowTimes {
    /// What a stored status says, so that a restart does not reset it.
    pub(super) fn of(status: &ConsistBindingStatus) -> Self {
        let employer = status.employer.iter().map(|row| (false, &row.id, &row.state, row.since));
        let employees = status.employees.iter().map(|row| (true, &row.name, &row.state, row.since));
        let rows = employer.chain(employees).filter_map(|(of_employees, name, state, since)| {
            Some(((of_employees, name.clone()), (state.clone(), since?)))
        });
        Self(rows.collect())
    }

    fn note(&mut self, of_employees: bool, name: &str, state: &str, now: Timestamp) -> Timestamp {
        let known = self.0.entry((of_employees, name.to_owned())).or_insert_with(|| (state.to_owned(), now));
        if known.0 != state {
            *known = (state.to_owned(), now);
        }
        known.1
    }

    fn keep(&mut self, report: &EmployerReport) {
        if self.0.len() > 2 * (report.employees.len() + report.employer.len()) + 16 {
            let there = |(of_employees, name): &(bool, String)| {
                let rows = if *of_employees { &report.employees } else { &report.employer };
                rows.iter().any(|row| row.name == *name)
            };
            self.0.retain(|key, _| there(key));
        }
    }
}

/// The status that a report makes.
pub(super) fn status(
    report: &EmployerReport,
    pods: &[std::sync::Arc<PodView>],
    binding: &Binding,
    since: &mut RowTimes,
    now: Timestamp,
) -> ConsistBindingStatus {
    let reason = reason(report.reason);
    let message = text::line_of(&report.message, MESSAGE);
    let ready = report.phase == EmployerPhase::Synced;
    let stalled = matches!(report.reason, ReadyReason::AlreadyServed | ReadyReason::TooLarge);
    let mut conditions = binding.status.common.conditions.clone();
    for (kind, holds) in [
        (ConditionType::Ready, ready),
        (ConditionType::Reconciling, !ready && !stalled),
        (ConditionType::Stalled, stalled),
    ] {
        let holds: ConditionStatus = holds.into();
        condition::set(
            &mut conditions,
            Condition::new(kind, holds, reason, &message, binding.generation, now),
        );
    }
    let blocked_by = if ready {
        Vec::new()
    } else {
        let known = binding.status.common.blocked_by.first().filter(|known| known.reason == reason.as_str());
        vec![Blocker {
            reason: reason.as_str().to_owned(),
            message: message.clone(),
            object: None,
            step: None,
            since: known.map_or(now, |known| known.since),
            chain: Vec::new(),
        }]
    };
    let count = |state: RowState| i64::try_from(report.count(state)).unwrap_or(i64::MAX);
    let counts = EmployeeCounts {
        selected: i64::try_from(report.selected).unwrap_or(i64::MAX),
        attached: count(RowState::Attached),
        draining: count(RowState::Draining),
        detached: count(RowState::Detached),
        failed: count(RowState::Failed),
        unknown: count(RowState::Unknown),
    };
    since.keep(report);
    let employer = report.employer.iter().map(|row| EmployerItem {
        id: row.id.clone(),
        state: row.state.word().to_owned(),
        since: Some(since.note(false, &row.name, row.state.word(), now)),
        message: text::line_of(&row.reason, MESSAGE),
    });
    let employer = employer.collect();
    let employees = report.employees.iter().take(LISTED).map(|row| employee(row, pods, since, now)).collect();
    ConsistBindingStatus {
        common: CommonStatus {
            observed_generation: binding.generation,
            phase: Some(report.phase.word().to_owned()),
            message: Some(message.clone()),
            conditions,
            blocked_by,
            ..CommonStatus::default()
        },
        attached: Some(format!("{}/{}", counts.attached, counts.selected)),
        provider: report.reachable.map(|reachable| ProviderStatus {
            reachable,
            last_answer: report.last_answer,
            message: if reachable { String::new() } else { message },
        }),
        employer,
        counts: Some(counts),
        employees,
    }
}

fn employee(
    row: &ReportRow,
    pods: &[std::sync::Arc<PodView>],
    since: &mut RowTimes,
    now: Timestamp,
) -> EmployeeItem {
    let pod = pods.iter().find(|pod| pod.name == row.name);
    let operations = pod.map(|pod| operations(&pod.labels)).unwrap_or_default();
    EmployeeItem {
        name: row.name.clone(),
        id: row.id.clone(),
        state: row.state.word().to_owned(),
        reason: text::line_of(&row.reason, MESSAGE),
        since: Some(since.note(true, &row.name, row.state.word(), now)),
        protected: row.protected,
        operations: operations
            .into_iter()
            .take(OPERATIONS)
            .map(|operation| OperationItem {
                id: operation.id,
                kind: operation.kind,
                stage: operation.stage.to_owned(),
                since: operation.since,
            })
            .collect(),
    }
}

/// Whether a status has to be written: the moment of the last answer alone is no news.
pub(super) fn differs(new: &ConsistBindingStatus, old: &ConsistBindingStatus) -> bool {
    let without = |status: &ConsistBindingStatus| {
        let mut status = status.clone();
        if let Some(provider) = &mut status.provider {
            provider.last_answer = None;
        }
        status
    };
    without(new) != without(old)
}

fn reason(why: ReadyReason) -> Reason {
    match why {
        ReadyReason::Synced => Reason::Synced,
        ReadyReason::Syncing => Reason::Syncing,
        ReadyReason::ProviderUnreachable => Reason::ProviderUnreachable,
        ReadyReason::AlreadyServed => Reason::AlreadyServed,
        ReadyReason::TooLarge => Reason::TooLarge,
        ReadyReason::Deleting => Reason::Deleting,
    }
}

/// The employer that only its binding names.
pub(super) fn gone_employer(kind: &linchpin_words::Gvk, namespace: &str, binding: &Binding) -> EmployerView {
    let EmployerName { name, uid, .. } = &binding.spec.employer;
    let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": name, "namespace": namespace, "uid": uid}});
    EmployerView { gone: true, ..EmployerView::of(kind, &std::sync::Arc::new(object)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_back_loses_the_labels_that_its_employer_no_longer_selects_by() {
        let spec = |labels: &[(&str, &str)], finalizer: &str| ConsistBindingSpec {
            adapter: "demo".to_owned(),
            selector: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            finalizer: finalizer.to_owned(),
            ..ConsistBindingSpec::default()
        };
        for (stored, wanted, patch) in [
            (
                spec(&[("app", "web"), ("tier", "front")], "f"),
                spec(&[("app", "api")], "f"),
                json!({"selector": {"app": "api", "tier": null}}),
            ),
            (spec(&[("app", "web")], "f"), spec(&[], "f"), json!({"selector": null})),
            (
                spec(&[], "f"),
                spec(&[("app", "web")], ""),
                json!({"selector": {"app": "web"}, "finalizer": null}),
            ),
            (spec(&[], "f"), spec(&[], "f"), json!({})),
        ] {
            assert_eq!(put_back(&json!(stored), &json!(wanted)), patch);
        }
    }
}
