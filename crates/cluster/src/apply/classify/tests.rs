//! The table of refusals, with the server's own words.

use super::*;
use kube::core::Status;
use linchpin_words::Gvk;
use serde_json::{Value, json};

fn failure(code: u16, status: Value) -> Failure {
    failure_of("patch", code, status)
}

fn failure_of(verb: &'static str, code: u16, status: Value) -> Failure {
    let resource = Resource::new(Gvk::new("apps", "v1", "Deployment"), "deployments", true);
    let attempt =
        Attempt { verb, resource: &resource, subresource: None, namespace: Some("shop"), name: "web" };
    let status: Status = serde_json::from_value(status).unwrap();
    attempt.failure(&CallError::Refused(Box::new(Refused { code, status, retry_after: None })))
}

#[test]
fn a_missing_right_is_the_one_of_the_request() {
    let said = |verb| {
        format!("deployments.apps \"web\" is forbidden: User \"x\" cannot {verb} resource \"deployments\"")
    };
    let Failure::Forbidden(right) = failure(403, json!({"message": said("patch")})) else { panic!() };
    assert_eq!(right.to_string(), "patch deployments.apps web in shop");
    let Failure::Forbidden(right) = failure(403, json!({"message": said("create")})) else { panic!() };
    assert_eq!(right.to_string(), "create deployments.apps in shop", "no name: it cannot be given for one");
}

#[test]
fn a_right_of_the_operators_own_is_no_failure_of_the_action() {
    let said = "serviceaccounts \"actor\" is forbidden: User \"linchpin\" cannot impersonate resource \"serviceaccounts\"";
    let Failure::Transient(message) = failure(403, json!({"message": said})) else { panic!() };
    assert!(message.contains("the operator may not impersonate"), "{message}");
}

#[test]
fn an_admission_check_is_not_a_missing_right() {
    let policy = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'b' \
                  denied request: image hunter2 is bad";
    let failure = failure(403, json!({"message": policy}));
    assert_eq!(
        failure,
        Failure::Invalid("Deployment shop/web was refused by admission policy \"no-latest\"".into())
    );
}

#[test]
fn a_namespace_that_goes_away_is_told_apart() {
    let causes = json!([{"reason": "NamespaceTerminating", "message": "namespace shop is being terminated"}]);
    let terminating = failure(403, json!({"message": "…", "details": {"causes": causes}}));
    assert_eq!(terminating, Failure::Terminating("namespace shop is being deleted".into()));
    let missing =
        failure(404, json!({"reason": "NotFound", "details": {"kind": "namespaces", "name": "shop"}}));
    assert_eq!(missing, Failure::Gone("namespace shop does not exist".into()));
}

#[test]
fn an_object_and_a_kind_that_are_not_there_are_told_apart() {
    let object =
        failure(404, json!({"reason": "NotFound", "details": {"kind": "deployments", "name": "web"}}));
    assert_eq!(object, Failure::Gone("Deployment shop/web does not exist".into()));
    let kind = failure(404, json!({"message": "the server could not find the requested resource"}));
    assert!(matches!(kind, Failure::NotServed(_)));
}

#[test]
fn conflicts_of_three_kinds_are_told_apart() {
    let exists = failure_of("create", 409, json!({"reason": "AlreadyExists"}));
    assert_eq!(exists, Failure::AlreadyExists("Deployment shop/web".into()));
    let going =
        json!({"reason": "AlreadyExists", "message": "object is being deleted: deployments.apps \"web\" …"});
    assert!(matches!(failure_of("create", 409, going), Failure::Terminating(_)));
    let stale =
        failure(409, json!({"reason": "Conflict", "message": "Precondition failed: UID in precondition"}));
    assert!(matches!(stale, Failure::StalePrecondition(_)));
    let causes = json!([{"reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": "conflict with \"kubectl-edit\" using apps/v1"}]);
    let held = failure(409, json!({"reason": "Conflict", "details": {"causes": causes}}));
    assert_eq!(
        held,
        Failure::FieldConflict("Deployment shop/web: .spec.replicas is held by \"kubectl-edit\"".into())
    );
}

#[test]
fn an_invalid_body_is_described_by_fields_and_never_by_values() {
    let causes = json!([
        {"reason": "FieldValueInvalid", "field": "spec.replicas", "message": "Invalid value: \"hunter2\": must be a number"},
        {"reason": "FieldValueRequired", "field": "spec.selector", "message": "Required value"},
    ]);
    let failure =
        failure(422, json!({"reason": "Invalid", "message": "… hunter2 …", "details": {"causes": causes}}));
    let Failure::Invalid(said) = failure else { panic!() };
    assert_eq!(
        said,
        "Deployment shop/web was refused: Invalid: spec.replicas (invalid value), spec.selector (required)"
    );
}

#[test]
fn errors_of_type_keep_the_field_and_lose_the_value() {
    let message = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): .spec.replicas: \
                   expected numeric (int or float), got &value.valueUnstructured{Value:\"hunter2\"}";
    let Failure::Invalid(said) = failure(400, json!({"reason": "BadRequest", "message": message})) else {
        panic!()
    };
    assert_eq!(
        said,
        "Deployment shop/web was refused: BadRequest: .spec.replicas (expected numeric (int or float))"
    );
    let unknown =
        json!({"reason": "BadRequest", "message": "strict decoding error: unknown field \"spec.foo\""});
    let Failure::Invalid(said) = failure(400, unknown) else { panic!() };
    assert!(said.ends_with("spec.foo (unknown field)"), "{said}");
}

#[test]
fn many_fields_are_counted() {
    let causes: Vec<Value> =
        (0..9).map(|n| json!({"reason": "FieldValueInvalid", "field": format!("a[{n}]")})).collect();
    let Failure::Invalid(said) = failure(422, json!({"reason": "Invalid", "details": {"causes": causes}}))
    else {
        panic!()
    };
    assert!(said.ends_with("a[4] (invalid value) and 4 more"), "{said}");
}

#[test]
fn patience_and_faults_that_pass() {
    assert_eq!(failure(429, json!({})), Failure::Throttled(Duration::from_secs(1)));
    assert!(matches!(failure(500, json!({"reason": "InternalError"})), Failure::Transient(_)));
    assert!(matches!(failure(504, json!({"reason": "Timeout"})), Failure::Transient(_)));
    let webhook =
        json!({"message": "Internal error occurred: failed calling webhook \"w.example.com\": hunter2"});
    let Failure::Transient(said) = failure(500, webhook) else { panic!() };
    assert_eq!(said, "Deployment shop/web: admission webhook \"w.example.com\" failed");
}
