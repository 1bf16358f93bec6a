//! Certificates of somebody else's, in a directory: shown as they come, and published as far as nobody else does.

use std::{fs, path::Path, thread, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_local::{Cluster, ClusterOptions};
use linchpin_testkit::{Api, Scenario, audit::Audit, grant_operator, grant_webhooks};
use serde_json::{Value, json};

use super::{free_address, until_called, with_flags};
use crate::{eventually, seconds};

const KINDS: [&str; 2] = ["mutating", "validating"];

/// A certificate that is its own authority, and its key.
fn pair() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn write(directory: &Path, name: &str, content: &str) {
    fs::write(directory.join(name), content).unwrap();
}

fn path(kind: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/linchpin-{kind}")
}

/// What the API server believes, if all webhooks say the same.
fn believed(api: &Api) -> Option<String> {
    let stored: Vec<Value> = KINDS.iter().map(|kind| api.read(&path(kind)).unwrap_or_default()).collect();
    let webhooks =
        stored.iter().flat_map(|stored| stored["webhooks"].as_array().cloned().unwrap_or_default());
    let mut bundles: Vec<String> = webhooks
        .filter_map(|webhook| webhook["clientConfig"]["caBundle"].as_str().map(str::to_owned))
        .collect();
    bundles.dedup();
    let [bundle] = bundles.as_slice() else { return None };
    String::from_utf8(STANDARD.decode(bundle).unwrap()).ok()
}

#[test]
fn a_directory_without_an_authority_is_published_and_its_renewal_is_picked_up() {
    let cluster = Cluster::start(&ClusterOptions::default()).unwrap();
    let api = Api::connect(&cluster.kubeconfig());
    grant_operator(&api);
    grant_webhooks(&api);
    let directory = tempfile::tempdir().unwrap();
    let (first, key) = pair();
    write(directory.path(), "tls.crt", &first);
    write(directory.path(), "tls.key", &key);
    let flag = format!("--webhook-cert-dir={}", directory.path().display());
    let operator = with_flags(&cluster, &free_address(), &[&flag]);
    let is = |wanted: &str| {
        eventually("it is published", seconds(30), || believed(&api).as_deref() == Some(wanted));
    };
    is(&first);
    let scenario = Scenario::begin(&api, Audit::from_now(&cluster.audit_log()), "boot-directory");
    let label = json!({"metadata": {"labels": {"linchpin.dev/boot": "enabled"}}});
    scenario.merge("Namespace", &scenario.namespace, &label);
    until_called(&scenario);
    // Renewed, one file after the other: nothing changes until both fit together.
    let (second, key) = pair();
    write(directory.path(), "tls.crt", &second);
    thread::sleep(Duration::from_secs(5));
    assert_eq!(believed(&api).as_ref(), Some(&first), "a certificate without its key is not shown");
    write(directory.path(), "tls.key", &key);
    is(&second);
    until_called(&scenario);
    // With an authority beside it, that one is published.
    let both = format!("{second}{first}");
    write(directory.path(), "ca.crt", &both);
    is(&both);
    until_called(&scenario);
    // Where somebody else keeps what is believed, it stays as it is; everything else does not.
    let theirs = format!("{first}{second}");
    for kind in KINDS {
        let note =
            json!({"metadata": {"annotations": {"cert-manager.io/inject-ca-from": "system/webhooks"}}});
        api.request(&http::Method::PATCH, &path(kind), "application/merge-patch+json", Some(&note)).unwrap();
        let webhooks = api.read(&path(kind)).unwrap()["webhooks"].as_array().unwrap().len();
        let spoil: Vec<Value> = (0..webhooks)
            .flat_map(|index| {
                let at = |field: &str| format!("/webhooks/{index}/{field}");
                [
                    json!({"op": "replace", "path": at("clientConfig/caBundle"), "value": STANDARD.encode(&theirs)}),
                    json!({"op": "replace", "path": at("timeoutSeconds"), "value": 30}),
                ]
            })
            .collect();
        api.request(&http::Method::PATCH, &path(kind), "application/json-patch+json", Some(&json!(spoil)))
            .unwrap();
    }
    for kind in KINDS {
        eventually("the rest is put back", seconds(20), || {
            api.read(&path(kind)).unwrap()["webhooks"][0]["timeoutSeconds"] != 30
        });
    }
    thread::sleep(Duration::from_secs(5));
    assert_eq!(believed(&api), Some(theirs), "the bundle is somebody else's");
    until_called(&scenario);
    let secret = api.read("/api/v1/namespaces/default/secrets/linchpin-webhook-tls");
    assert!(secret.is_none(), "where somebody else makes the certificate, there is no Secret of ours");
    drop(operator);
}
