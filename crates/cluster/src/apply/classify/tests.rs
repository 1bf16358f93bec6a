//! The table of refusals, with the server's own words.

use super::*;
use kube::core::Status;
use linchpin_words::Gvk;
use serde_json::{Value, json};

fn failure(code: u16, status: Value) -> Failure {
    failure_of("patch", code, status)
}

fn failure_of(verb: &'static str, code: u16, status: Value) -> Failure {
    failure_with(verb, code, status, false)
}

/// The same of a body that holds a Secret's value.
fn discreet(code: u16, status: Value) -> Failure {
    failure_with("patch", code, status, true)
}

fn failure_with(verb: &'static str, code: u16, status: Value, discreet: bool) -> Failure {
    let resource = Resource::new(Gvk::new("apps", "v1", "Deployment"), "deployments", true);
    let (namespace, name) = (Some("shop"), "web");
    let attempt =
        AttemptedRequest { verb, resource: &resource, subresource: None, namespace, name, discreet };
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
fn whoever_denied_is_named_for_every_code_and_what_it_says_is_kept_where_it_may_be() {
    let policy = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'b' \
                  denied request: you cannot create image hunter2";
    let webhook = "admission webhook \"w.example.com\" denied the request: no hunter2 here";
    for code in [400, 403, 422] {
        for (message, by, why) in [
            (policy, "admission policy \"no-latest\"", ": you cannot create image hunter2"),
            (webhook, "admission webhook \"w.example.com\"", ": no hunter2 here"),
        ] {
            let invalid =
                |why: &str| Failure::Invalid(format!("Deployment shop/web was refused by {by}{why}"));
            assert_eq!(failure(code, json!({"message": message})), invalid(why), "{code}");
            assert_eq!(discreet(code, json!({"message": message})), invalid(""), "{code}");
        }
    }
    let quota =
        "pods \"web\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2";
    let Failure::Invalid(said) = failure(403, json!({"message": quota})) else { panic!() };
    assert_eq!(
        said,
        "Deployment shop/web was refused: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"
    );
    let Failure::Invalid(said) = discreet(403, json!({"message": quota})) else { panic!() };
    assert_eq!(said, "Deployment shop/web was refused: it exceeds resource quota \"small\"");
}

#[test]
fn nothing_that_is_said_about_a_secret_is_shown() {
    let resource = Resource::new(Gvk::new("", "v1", "Secret"), "secrets", true);
    let (namespace, name) = (Some("shop"), "key");
    let attempt = AttemptedRequest {
        verb: "create",
        resource: &resource,
        subresource: None,
        namespace,
        name,
        discreet: false,
    };
    let message = "Secret \"key\" is invalid: data[a]: Invalid value: \"hunter2\"";
    let status = serde_json::from_value(json!({"reason": "Invalid", "message": message})).unwrap();
    let refused = CallError::Refused(Box::new(Refused { code: 422, status, retry_after: None }));
    assert_eq!(attempt.failure(&refused), Failure::Invalid("Secret shop/key was refused: Invalid".into()));
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
fn an_invalid_body_is_described_by_fields_and_by_values_only_where_no_secret_is_in_it() {
    let causes = json!([
        {"reason": "FieldValueInvalid", "field": "spec.replicas", "message": "Invalid value: \"hunter2\": must be a number"},
        {"reason": "FieldValueRequired", "field": "spec.selector", "message": "Required value"},
    ]);
    let status = json!({"reason": "Invalid", "message": "… hunter2 …", "details": {"causes": causes}});
    let Failure::Invalid(said) = failure(422, status.clone()) else { panic!() };
    assert_eq!(
        said,
        "Deployment shop/web was refused: .spec.replicas: Invalid value: \"hunter2\": must be a number, \
         .spec.selector: Required value"
    );
    let Failure::Invalid(said) = discreet(422, status) else { panic!() };
    assert_eq!(
        said,
        "Deployment shop/web was refused: .spec.replicas: invalid value, .spec.selector: required"
    );
    let bare = json!({"reason": "Invalid", "message": "Deployment.apps \"web\" is invalid: it is hunter2"});
    let Failure::Invalid(said) = failure(422, bare.clone()) else { panic!() };
    assert_eq!(said, "Deployment shop/web was refused: it is hunter2");
    let Failure::Invalid(said) = discreet(422, bare) else { panic!() };
    assert_eq!(said, "Deployment shop/web was refused: Invalid");
}

#[test]
fn unknown_fields_and_wrong_types_are_named_by_path_and_lose_the_value() {
    let typed = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): ";
    for (message, said) in [
        (
            format!("{typed}.spec.replicas: expected numeric (int or float), got &value.valueUnstructured{{Value:\"hunter2\"}}"),
            ".spec.replicas: expected numeric (int or float)",
        ),
        (format!("{typed}.spec.replica: field not declared in schema"), ".spec.replica: unknown field"),
        (
            format!("{typed}errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema"),
            ".spec.a: unknown field, .spec.b: unknown field",
        ),
        (
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.replica\""
                .to_owned(),
            ".spec.replica: unknown field",
        ),
        (
            "Deployment in version \"v1\" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct \
             field DeploymentSpec.spec.replicas of type int32"
                .to_owned(),
            ".spec.replicas: expected a number, got string",
        ),
    ] {
        for code in [400, 500] {
            let status = json!({"reason": "BadRequest", "message": message});
            if code == 500 && !message.contains("typed patch object") {
                continue;
            }
            let expected = Failure::Invalid(format!("Deployment shop/web was refused: {said}"));
            assert_eq!(failure(code, status.clone()), expected);
            assert_eq!(discreet(code, status), expected);
        }
    }
}

#[test]
fn many_fields_are_counted() {
    let causes: Vec<Value> =
        (0..9).map(|n| json!({"reason": "FieldValueInvalid", "field": format!("a[{n}]")})).collect();
    let Failure::Invalid(said) = failure(422, json!({"reason": "Invalid", "details": {"causes": causes}}))
    else {
        panic!()
    };
    assert!(said.ends_with(".a[4]: invalid value and 4 more"), "{said}");
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
