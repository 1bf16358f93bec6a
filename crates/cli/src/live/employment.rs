//! Employments of `linchpin consist` in the wait-for graph: pod → employer → provider, as bindings say.
//!
//! A binding represents its employer: that is what people know. A pod is drawn while it waits for its employer: to come
//! into traffic, to leave it, to be deleted.

use linchpin_api::{
    Common, CommonStatus, ConsistBinding, ConsistBindingStatus, FailedPart,
    consist_binding::{EmployeeItem, OperationItem},
};
use linchpin_doors::{
    CompileInput, Compiled,
    registry::{KindNames, ObjectView},
};
use linchpin_engine::{
    graph::{Edge, Node, Wait, WaitState},
    plan::SpecError,
};
use linchpin_words::{ConditionStatus, ConditionType, GroupKind, Gvk, ObjectRef, condition, text};
use serde_json::Value;

/// What bindings are called.
pub(super) fn names() -> KindNames {
    KindNames {
        gvk: Gvk::new("linchpin.dev", "v1alpha1", "ConsistBinding"),
        plural: "consistbindings".to_owned(),
        short: vec!["cb".to_owned()],
        namespaced: true,
    }
}

/// A binding from its text.
pub(super) fn view(text: &str) -> Result<Box<dyn ObjectView>, serde_json::Error> {
    let binding: ConsistBinding = serde_json::from_str(text)?;
    Ok(Box::new(Employment { binding, common: Common::default() }))
}

struct Employment {
    binding: ConsistBinding,
    common: Common,
}

impl Employment {
    fn said_of_it(&self) -> Option<&ConsistBindingStatus> {
        self.binding.status.as_ref()
    }

    fn namespace(&self) -> &str {
        self.binding.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// `provider haproxy Service/shop/web`.
    fn provider(&self) -> Node {
        let spec = &self.binding.spec;
        Node::here(ObjectRef {
            kind: GroupKind::new("", "provider"),
            namespace: None,
            name: text::line(&format!("{} {}", spec.adapter, spec.key)),
        })
    }

    /// How the employer waits for its provider.
    fn wait(&self) -> Wait {
        let status = self.said_of_it();
        let ready =
            status.and_then(|status| condition::find(&status.common.conditions, ConditionType::Ready));
        let Some(ready) = ready else { return Wait::new(WaitState::Unknown, "Pending") };
        let reachable = status.and_then(|status| status.provider.as_ref()).is_none_or(|one| one.reachable);
        let state = match ready.status {
            ConditionStatus::True => WaitState::Met,
            _ if !reachable => WaitState::Unknown,
            _ => WaitState::InProgress,
        };
        let wait = Wait::new(state, ready.reason.clone()).since(ready.last_transition_time.into());
        if wait.met() { wait } else { wait.detail(text::line(&ready.message)) }
    }

    fn pod(&self, name: &str) -> Node {
        let employee = &self.binding.spec.employee;
        let kind = Gvk::from_api_version(&employee.api_version, &employee.kind).group_kind();
        Node::here(ObjectRef::namespaced(kind, self.namespace(), name))
    }

    /// Employees that wait for the employer, and how.
    fn waiting(&self) -> impl Iterator<Item = (Node, Wait)> {
        let rows = self.said_of_it().into_iter().flat_map(|status| &status.employees);
        let message = self.said().and_then(|status| status.message.as_deref()).unwrap_or_default();
        rows.filter_map(move |row| Some((self.pod(&row.name), of_employee(row, message)?)))
    }
}

/// How an employee waits for its employer; none where it does not. `message` is what the whole employment says.
fn of_employee(row: &EmployeeItem, message: &str) -> Option<Wait> {
    let operation = row.operations.iter().find(|one| one.stage == "Preparing");
    let waits = match row.state.as_str() {
        "Attached" | "Detached" => operation.is_some() && row.protected,
        // Of whom nothing is known nobody knows that it waits.
        "Unknown" => operation.is_some(),
        _ => true,
    };
    if !waits {
        return None;
    }
    let state = match row.state.as_str() {
        "Failed" => WaitState::Failed,
        "Unknown" => WaitState::Unknown,
        _ => WaitState::InProgress,
    };
    let what = purpose(row, operation);
    let why = if row.reason.is_empty() && row.state == "Unknown" { message } else { row.reason.as_str() };
    let detail = if why.is_empty() { what } else { format!("{what}: {why}") };
    let since = operation.and_then(|operation| operation.since).or(row.since);
    let wait = Wait::new(state, row.state.clone()).detail(text::line(&detail));
    Some(match since {
        Some(since) => wait.since(since.into()),
        None => wait,
    })
}

/// What an employee waits to be.
fn purpose(row: &EmployeeItem, operation: Option<&OperationItem>) -> String {
    match operation {
        Some(operation) if operation.kind == "delete" => "waits to be deleted".to_owned(),
        Some(operation) if operation.kind.is_empty() => format!("waits for operation {}", operation.id),
        Some(operation) => format!("waits for operation {} ({})", operation.id, operation.kind),
        None if row.state == "Draining" => "waits to leave traffic".to_owned(),
        None => "waits to come into traffic".to_owned(),
    }
}

impl ObjectView for Employment {
    fn common(&self) -> &Common {
        &self.common
    }

    fn compile(&self, _: &CompileInput<'_>) -> Result<Compiled, SpecError> {
        Err(SpecError::new("spec", "a ConsistBinding is written by linchpin consist, and plans nothing"))
    }

    fn node(&self) -> Node {
        let employer = &self.binding.spec.employer;
        let kind = Gvk::from_api_version(&employer.api_version, &employer.kind).group_kind();
        Node::here(ObjectRef::namespaced(kind, self.namespace(), &employer.name))
    }

    fn parts(&self) -> Vec<Node> {
        Vec::new()
    }

    fn edges(&self) -> Vec<Edge> {
        let employer = self.node();
        let provider = Edge::waits(employer.clone(), self.provider(), self.wait());
        let pods = self.waiting().map(|(pod, wait)| Edge::waits(pod, employer.clone(), wait));
        std::iter::once(provider).chain(pods).collect()
    }

    fn status(&self) -> Option<Value> {
        serde_json::to_value(self.said_of_it()?).ok()
    }

    fn said(&self) -> Option<&CommonStatus> {
        self.said_of_it().map(|status| &status.common)
    }

    fn troubles(&self) -> Vec<FailedPart<'_>> {
        let rows = self.said_of_it().into_iter().flat_map(|status| &status.employees);
        let failed = rows.filter(|row| row.state == "Failed");
        failed
            .map(|EmployeeItem { name, state, reason, since, .. }| FailedPart {
                what: format!("employee {name}"),
                state,
                reason: state,
                message: reason,
                since: *since,
            })
            .collect()
    }

    fn reasons(&self) -> Vec<&str> {
        let conditions = self.said().into_iter().flat_map(|status| &status.conditions);
        conditions.map(|condition| condition.reason.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(ready: &str, rows: &Value) -> Box<dyn ObjectView> {
        let text = json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "ConsistBinding",
            "metadata": {"name": "service-web", "namespace": "shop"},
            "spec": {"adapter": "haproxy", "key": "Service/shop/web",
                "employer": {"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "u"},
                "employee": {"apiVersion": "v1", "kind": "Pod"}},
            "status": {"phase": "Syncing", "message": "web-1 is Draining",
                "conditions": [{"type": "Ready", "status": ready, "reason": "Syncing", "message": "web-1 is Draining",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}],
                "provider": {"reachable": true}, "employees": rows}});
        view(&text.to_string()).unwrap()
    }

    #[test]
    fn a_pod_waits_for_its_employer_and_that_for_its_provider() {
        let rows = json!([
            {"name": "web-1", "state": "Draining", "protected": true,
             "reason": "haproxy shop_web/web-1 still has 3 sessions",
             "operations": [{"id": "pod-delete", "type": "delete", "stage": "Preparing"}]},
            {"name": "web-2", "state": "Attached", "protected": true},
            {"name": "web-3", "state": "Failed", "reason": "refused"},
        ]);
        let employment = read("False", &rows);
        assert_eq!(employment.node().to_string(), "Service shop/web");
        let edges: Vec<String> = employment
            .edges()
            .iter()
            .map(|edge| {
                let linchpin_engine::graph::Relation::WaitsFor(wait) = &edge.relation else { panic!() };
                format!("{} → {}: {:?} {}", edge.from, edge.to, wait.state, wait.detail)
            })
            .collect();
        assert_eq!(
            edges,
            [
                "Service shop/web → provider haproxy Service/shop/web: InProgress web-1 is Draining",
                "Pod shop/web-1 → Service shop/web: InProgress waits to be deleted: haproxy shop_web/web-1 still has 3 sessions",
                "Pod shop/web-3 → Service shop/web: Failed waits to come into traffic: refused",
            ]
        );
        assert_eq!(employment.troubles()[0].what, "employee web-3");
        let settled = read("True", &json!([{"name": "web-2", "state": "Attached", "protected": true}]));
        assert_eq!(settled.edges().len(), 1);
    }
}
