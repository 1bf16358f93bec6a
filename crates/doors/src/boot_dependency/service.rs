//! Whether a Service has a ready endpoint behind a port, as the API server reports it.
//!
//! Nothing is dialled: a slice says more about an endpoint than a connection from elsewhere could. A Service names its
//! ports, slices carry the ports of pods, and the names join them.

use linchpin_engine::plan::Obstacle;
use linchpin_words::Reason;
use serde_json::Value;

/// What is read of a Service.
pub(super) const SERVICE_READS: [&str; 4] = ["spec.ports", "spec.selector", "spec.type", "spec.externalName"];
/// What is read of an EndpointSlice.
pub(super) const SLICE_READS: [&str; 3] = ["ports", "endpoints", "addressType"];
/// The label of a slice that names its Service.
pub(super) const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// How many ready endpoints are asked, where they are asked.
pub(super) const ASKED: usize = 3;

/// What the API server reports of a Service's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServiceBackend {
    /// Pods that are ready: the addresses of the first of them.
    Ready(Vec<(String, i32)>),
    /// Somebody's claim, which nobody has checked: the Service selects no pods.
    Claimed(Vec<(String, i32)>),
    /// A name outside the cluster.
    Elsewhere(String),
    /// Nobody.
    Nobody(Obstacle),
}

/// Who is behind a port of a Service, by the Service's `spec` and its slices.
pub(super) fn behind(service: &Value, slices: &[&Value], port: i32) -> ServiceBackend {
    let spec = &service["spec"];
    if let (Some("ExternalName"), Some(name)) = (spec["type"].as_str(), spec["externalName"].as_str()) {
        return ServiceBackend::Elsewhere(name.to_owned());
    }
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let named = match ports.iter().find(|known| known["port"] == port) {
        Some(known) => Some(known["name"].as_str().unwrap_or_default()),
        // A headless Service may have none: its pods are reached at any port.
        None if ports.is_empty() => None,
        None => return ServiceBackend::Nobody(no_port(ports, port)),
    };
    let mut ready = Vec::new();
    let mut all = 0_usize;
    for slice in slices {
        let Some(number) = slice_port(slice, named, port) else { continue };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            all += 1;
            if is_ready(&endpoint["conditions"]) {
                let address = endpoint["addresses"][0].as_str().unwrap_or_default();
                ready.push((address.to_owned(), number));
            }
        }
    }
    if ready.is_empty() {
        let message = format!("0 of {all} endpoints are ready");
        return ServiceBackend::Nobody(Obstacle { reason: Reason::NoEndpoints, message });
    }
    ready.sort();
    let selects = spec["selector"].as_object().is_some_and(|labels| !labels.is_empty());
    if !selects {
        // Any of them may be the one that is there.
        return ServiceBackend::Claimed(ready);
    }
    ready.truncate(ASKED);
    ServiceBackend::Ready(ready)
}

/// The port of a slice's endpoints that the Service's port of this name leads to.
fn slice_port(slice: &Value, named: Option<&str>, port: i32) -> Option<i32> {
    let Some(name) = named else {
        return Some(port);
    };
    let ports = slice["ports"].as_array()?;
    let known = ports.iter().find(|known| known["name"].as_str().unwrap_or_default() == name)?;
    // A slice whose port has no number means all of them.
    Some(known["port"].as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(port))
}

/// What is not said counts as good, but for being on the way out.
fn is_ready(conditions: &Value) -> bool {
    conditions["ready"] != false && conditions["serving"] != false && conditions["terminating"] != true
}

fn no_port(ports: &[Value], port: i32) -> Obstacle {
    let there: Vec<String> =
        ports.iter().filter_map(|known| known["port"].as_i64()).map(|port| port.to_string()).collect();
    let message = format!("the Service has no port {port}; it has {}", there.join(", "));
    Obstacle { reason: Reason::PortNotFound, message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(ports: &Value) -> Value {
        json!({"spec": {"selector": {"app": "db"}, "ports": ports}})
    }

    fn slice(ports: &Value, endpoints: &[Value]) -> Value {
        json!({"ports": ports, "endpoints": endpoints})
    }

    fn endpoint(address: &str, conditions: &Value) -> Value {
        json!({"addresses": [address], "conditions": conditions})
    }

    fn described(service: &Value, slices: &[Value], port: i32) -> String {
        match behind(service, &slices.iter().collect::<Vec<_>>(), port) {
            ServiceBackend::Ready(addresses) => format!("ready {addresses:?}"),
            ServiceBackend::Claimed(addresses) => format!("claimed {addresses:?}"),
            ServiceBackend::Elsewhere(name) => format!("elsewhere {name}"),
            ServiceBackend::Nobody(obstacle) => format!("{}: {}", obstacle.reason, obstacle.message),
        }
    }

    #[test]
    fn names_join_the_ports_of_services_and_slices() {
        let web = service(&json!([{"name": "http", "port": 80}, {"name": "admin", "port": 81}]));
        let slices = [slice(
            &json!([{"name": "http", "port": 8080}]),
            &[endpoint("10.0.0.2", &json!({"ready": true})), endpoint("10.0.0.1", &json!({}))],
        )];
        assert_eq!(described(&web, &slices, 80), r#"ready [("10.0.0.1", 8080), ("10.0.0.2", 8080)]"#);
        assert_eq!(described(&web, &slices, 81), "NoEndpoints: 0 of 0 endpoints are ready");
        assert_eq!(described(&web, &slices, 82), "PortNotFound: the Service has no port 82; it has 80, 81");
    }

    #[test]
    fn an_endpoint_that_is_not_ready_or_on_its_way_out_does_not_count() {
        let db = service(&json!([{"port": 5432}]));
        let bad =
            [json!({"ready": false}), json!({"ready": true, "terminating": true}), json!({"serving": false})];
        let endpoints: Vec<Value> = bad.iter().map(|conditions| endpoint("10.0.0.1", conditions)).collect();
        let slices = [slice(&json!([{"name": "", "port": 5432}]), &endpoints)];
        assert_eq!(described(&db, &slices, 5432), "NoEndpoints: 0 of 3 endpoints are ready");
    }

    #[test]
    fn what_nobody_has_checked_is_told_apart() {
        let claimed = json!({"spec": {"ports": [{"port": 1}]}});
        let slices = [slice(&json!([{"port": 9}]), &[endpoint("192.0.2.1", &json!({}))])];
        assert_eq!(described(&claimed, &slices, 1), r#"claimed [("192.0.2.1", 9)]"#);
        let five: Vec<Value> = (1..=5).map(|last| endpoint(&format!("192.0.2.{last}"), &json!({}))).collect();
        let many = described(&claimed, &[slice(&json!([{"port": 9}]), &five)], 1);
        assert!(many.contains("192.0.2.5"), "any of them may be the one: {many}");
        let elsewhere = json!({"spec": {"type": "ExternalName", "externalName": "db.example.com"}});
        assert_eq!(described(&elsewhere, &[], 1), "elsewhere db.example.com");
        let headless = json!({"spec": {"selector": {"a": "b"}, "clusterIP": "None"}});
        assert_eq!(described(&headless, &slices, 7), r#"ready [("192.0.2.1", 7)]"#);
    }

    #[test]
    fn garbage_is_nobody() {
        for (service, slices) in [
            (json!(null), vec![]),
            (json!({"spec": {"ports": "x"}}), vec![json!([1]), json!({"endpoints": {}, "ports": 3})]),
        ] {
            assert!(described(&service, &slices, 1).starts_with("NoEndpoints"));
        }
    }
}
