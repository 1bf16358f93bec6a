//! The data of Secrets that are written into a bundle: revisions hold a digest of it, not the data.
//!
//! Who may read revisions is not who may read Secrets. Going back works where the bundle has the same data now.

use linchpin_api::AppBundleSpec;
use linchpin_engine::plan::definition;
use serde_json::{Map, Value, json};

use crate::names;

/// The fields of a Secret that hold its data.
const DATA: [&str; 2] = ["data", "stringData"];
/// What is there instead of them.
const DIGEST: &str = "linchpin.dev/digest-of-data";

/// Puts a digest in the place of the data of all Secrets.
pub(super) fn take_out(spec: &mut AppBundleSpec) {
    for (_, body) in bodies(spec) {
        if let Some(digest) = digest(body) {
            body.retain(|key, _| !DATA.contains(&key.as_str()));
            body.insert(DIGEST.to_owned(), json!(digest));
        }
    }
}

/// Puts the data of Secrets back where the present spec has the same; or says which component's is another one.
pub(super) fn put_back(then: &mut AppBundleSpec, now: &AppBundleSpec) -> Result<(), String> {
    let mut present = now.clone();
    let present = bodies(&mut present);
    for (component, body) in bodies(then) {
        let Some(digest) = body.remove(DIGEST) else { continue };
        let same = present.iter().find(|(of, now)| {
            *of == component && self::digest(now).is_some_and(|now| digest == now.as_str())
        });
        let Some((_, same)) = same else { return Err(component) };
        let data = same.iter().filter(|(key, _)| DATA.contains(&key.as_str()));
        body.extend(data.map(|(key, value)| (key.clone(), value.clone())));
    }
    Ok(())
}

/// The digest of a Secret's data; none of what is no Secret, or has none.
fn digest(body: &Map<String, Value>) -> Option<String> {
    // The kind of a template is only known when it is rendered: what may become a Secret counts as one.
    let kind = body.get("kind").and_then(Value::as_str).unwrap_or_default();
    let may_be_secret =
        kind.eq_ignore_ascii_case("Secret") || kind.contains("{{") && body.contains_key("stringData");
    let data: Map<String, Value> =
        DATA.iter().filter_map(|key| Some(((*key).to_owned(), body.get(*key)?.clone()))).collect();
    (may_be_secret && !data.is_empty()).then(|| definition(&Value::Object(data), &Value::Null))
}

/// The bodies in a spec, each with the component it belongs to.
fn bodies(spec: &mut AppBundleSpec) -> Vec<(String, &mut Map<String, Value>)> {
    let mut found = Vec::new();
    for group in &mut spec.groups {
        for component in &mut group.components {
            let name = names::component(&group.name, &component.name);
            let all = component.template.iter_mut().chain(component.templates.iter_mut().flatten());
            found.extend(all.map(|body| (name.clone(), body)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: &str) -> AppBundleSpec {
        let text = format!(
            "{{groups: [{{name: g, components: [{{name: x, templates: [{{kind: Secret, metadata: {{name: s}}, \
             stringData: {{password: {value}}}}}, {{kind: ConfigMap, data: {{plain: text}}}}]}}]}}]}}"
        );
        serde_saphyr::from_str(&text).expect("a spec")
    }

    #[test]
    fn the_data_of_a_secret_is_put_back_only_where_it_is_the_same() {
        let whole = spec("hunter2");
        let mut kept = whole.clone();
        take_out(&mut kept);
        let text = json!(kept).to_string();
        assert!(!text.contains("hunter2") && text.contains("plain"), "{text}");
        let mut back = kept.clone();
        assert_eq!(put_back(&mut back, &whole), Ok(()));
        assert_eq!(back, whole);
        assert_eq!(put_back(&mut kept, &spec("other")), Err("g/x".to_owned()));
    }
}
