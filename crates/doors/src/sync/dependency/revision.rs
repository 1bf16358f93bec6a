//! Two Syncs of one source: the dependency must have applied the very revision that is about to be applied.

use linchpin_api::sync::SyncSource;
use linchpin_engine::plan::Obstacle;
use linchpin_words::{ObjectRef, Reason};
use serde_json::{Value, json};

use super::DependencyContext;

/// Another revision of the same source.
pub(super) fn revision_obstacle(
    around: &DependencyContext<'_>,
    namespace: &str,
    object: &ObjectRef,
    content: &Value,
    applied: Option<&str>,
) -> Option<Obstacle> {
    let (ours, revision) = (around.source?, around.revision?);
    let theirs: SyncSource = serde_json::from_value(content.pointer("/spec/source")?.clone()).ok()?;
    let own = &around.frame.owner.namespace;
    (source_key(ours, own)? == source_key(&theirs, namespace)? && applied != Some(revision)).then(|| {
        let applied = applied.map_or_else(|| "nothing".to_owned(), short);
        let message =
            format!("{object} has applied {applied} of the same source, not {} yet", short(revision));
        Obstacle { reason: Reason::RevisionNotMet, message }
    })
}

/// A revision as people are shown it.
pub(in crate::sync) fn short(revision: &str) -> String {
    match revision.rsplit_once(':') {
        Some((head, hex)) if hex.len() > 12 && hex.is_ascii() => format!("{head}:{}", &hex[..12]),
        _ => revision.to_owned(),
    }
}

/// What two Syncs of one source have in common, whichever revision of it each is pinned to; none for objects, which are
/// never shared.
fn source_key(source: &SyncSource, namespace: &str) -> Option<Value> {
    if let Some(map) = &source.config_map_ref {
        return Some(json!(["ConfigMap", namespace, map.name]));
    }
    if let Some(secret) = &source.secret_ref {
        return Some(json!(["Secret", namespace, secret.name]));
    }
    if let Some(flux) = &source.flux_ref {
        let place = flux.namespace.as_deref().unwrap_or(namespace);
        return Some(json!([flux.kind.as_str(), place, flux.name]));
    }
    if let Some(http) = &source.http {
        let secret = http.secret_ref.as_ref().map(|secret| (namespace, &secret.name));
        return Some(json!(["http", http.url, secret]));
    }
    let oci = source.oci.as_ref()?;
    let secret = oci.secret_ref.as_ref().map(|secret| (namespace, &secret.name));
    Some(json!(["oci", oci.url, oci.tag, secret]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_syncs_have_one_source_whatever_revision_each_is_pinned_to_and_whatever_paths_it_takes() {
        let key = |source: Value| source_key(&serde_json::from_value(source).expect("a source"), "shop");
        let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
        let oci = |reference: Value| {
            let mut source = json!({"oci": {"url": "oci://r.example/app"}});
            source["oci"]
                .as_object_mut()
                .expect("a map")
                .extend(reference.as_object().expect("a map").clone());
            source
        };
        let http = |digit: &str| json!({"http": {"url": "https://h.example/a", "digest": digest(digit)}, "paths": [digit]});
        assert_eq!(key(oci(json!({"digest": digest("1")}))), key(oci(json!({"digest": digest("2")}))));
        assert_eq!(key(http("1")), key(http("2")));
        assert_ne!(key(oci(json!({"tag": "1"}))), key(oci(json!({"tag": "2"}))));
        let secret = json!({"tag": "1", "secretRef": {"name": "s"}});
        assert_ne!(key(oci(json!({"tag": "1"}))), key(oci(secret)));
        assert_eq!(key(json!({"objects": []})), None, "objects are never shared");
    }
}
