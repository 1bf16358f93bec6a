//! Where the objects of a Sync come from: from what is seen of the source to bodies, a revision and a version.
//!
//! What is not there is waited for; what cannot be read refuses the revision as a whole: nothing of it is applied, and
//! what runs stays.

mod fetched;

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_api::{Sync, app_bundle::component::SourceRef, sync::source::ONE_SOURCE};
use linchpin_engine::{
    contract::{Projection, ReadSet, Seen, Want},
    plan::{SpecError, canonical_text},
};
use linchpin_lang::template::parse_documents;
use linchpin_words::{Gvk, Reason, Timestamp, hash::sha256_hex, keys, limits};
use serde_json::{Value, json};

use crate::{
    assemble::Frame,
    errors::{at, not_yet},
};

/// A source as it was read.
#[derive(Debug, Default)]
pub(super) struct SourceReading {
    /// What it is called: a digest, or what its keeper calls it.
    pub revision: String,
    /// Its version, where it has one.
    pub version: Option<String>,
    /// The digest of what was downloaded.
    pub digest: Option<String>,
    /// Its size in bytes.
    pub size: Option<i64>,
    /// When it was first seen.
    pub fetched: Option<Timestamp>,
    /// The bodies, each with the place it is written in.
    pub bodies: Vec<(String, Value)>,
    /// Of a Secret, which version of it.
    pub secret: Option<Value>,
    /// Why there may be a newer revision that could not be read.
    pub stale: Option<(Reason, String)>,
}

/// Reads the source of a Sync.
pub(super) fn read(frame: &Frame<'_>, object: &Sync) -> Result<SourceReading, SpecError> {
    let source = &object.spec.source;
    let given = [
        source.objects.is_some(),
        source.config_map_ref.is_some(),
        source.secret_ref.is_some(),
        source.http.is_some(),
        source.oci.is_some(),
        source.flux_ref.is_some(),
    ];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(at("spec.source", ONE_SOURCE));
    }
    let mut reading = if let Some(objects) = &source.objects {
        let bodies: Vec<Value> = objects.iter().cloned().map(Value::Object).collect();
        let revision = digest(&Value::Array(bodies.clone()));
        let mut reading = SourceReading { revision, ..SourceReading::default() };
        for (index, body) in bodies.into_iter().enumerate() {
            reading.take(&format!("spec.source.objects[{index}]"), body)?;
        }
        reading
    } else if let Some(map) = &source.config_map_ref {
        kept(frame, map, "ConfigMap", "spec.source.configMapRef")?
    } else if let Some(secret) = &source.secret_ref {
        kept(frame, secret, "Secret", "spec.source.secretRef")?
    } else {
        fetched::read(frame, source)?
    };
    reading.version = object.spec.version.clone().or(reading.version);
    if reading.bodies.len() > limits::SYNC_OBJECTS {
        let (count, most) = (reading.bodies.len(), limits::SYNC_OBJECTS);
        let problem =
            format!("the source has {count} objects; {most} are allowed: split it into several Syncs");
        return Err(refused(Reason::TooLarge, "spec.source", problem));
    }
    if reading.bodies.is_empty() && !object.spec.allow_empty {
        let problem = "the source has no objects; if all of them are to be deleted, set allowEmpty";
        return Err(refused(Reason::SourceEmpty, "spec.source", problem));
    }
    Ok(reading)
}

/// A revision that cannot be applied, whatever is waited for.
pub(super) fn refused(reason: Reason, field: &str, problem: impl Into<String>) -> SpecError {
    at(field, problem.into()).because(reason)
}

/// A digest of a value, whatever the order of its keys.
fn digest(value: &Value) -> String {
    format!("sha256:{}", sha256_hex(canonical_text(value).as_bytes()))
}

/// The version that a name is, where it looks like one.
pub(super) fn version_like(text: &str) -> Option<String> {
    let digits = text.strip_prefix('v').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit()).then(|| text.to_owned())
}

/// The documents in a ConfigMap or Secret of the Sync's own namespace.
fn kept(frame: &Frame<'_>, named: &SourceRef, kind: &str, field: &str) -> Result<SourceReading, SpecError> {
    let namespace = &frame.owner.namespace;
    let gvk = Gvk::new("", "v1", kind);
    let reads = ReadSet::dotted(["data", "metadata.labels"]);
    let want = Want::object(frame.via.clone(), gvk, Some(namespace.clone()), &named.name, reads);
    let missing = |reason: Reason, problem: String| at(field, problem).because(reason).waiting();
    let found = match frame.kinds.ask(want) {
        None => return Err(not_yet(field)),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet(field)),
        Some(Seen::Unknown(why)) => {
            let problem =
                format!("the source, {kind} {namespace}/{}, cannot be read: {}", named.name, why.message);
            return Err(missing(why.reason, problem));
        }
        Some(Seen::Objects(observed)) => observed.items.first(),
        Some(_) => None,
    };
    let Some(found) = found else {
        let problem = format!("the source, {kind} {namespace}/{}, isn't present", named.name);
        return Err(missing(Reason::SourceNotFound, problem));
    };
    let data = texts(found, named.key.as_deref())?;
    if let Some(key) = named.key.as_ref().filter(|key| !data.contains_key(*key)) {
        let problem = format!("the source, {kind} {namespace}/{}, has no key {key}", named.name);
        return Err(missing(Reason::SourceNotFound, problem));
    }
    let label = found.content.pointer("/metadata/labels").and_then(|labels| labels.get(keys::APP_VERSION));
    let mut reading = SourceReading {
        revision: if found.is_secret() {
            format!("{}@{}", found.uid, found.version)
        } else {
            digest(found.content.get("data").unwrap_or(&json!({})))
        },
        version: label.and_then(Value::as_str).and_then(version_like),
        secret: found.is_secret().then(|| json!([found.uid, found.version])),
        ..SourceReading::default()
    };
    for (key, text) in data {
        reading.read_text(&key, &text)?;
    }
    Ok(reading)
}

/// The texts of a ConfigMap or Secret by key: all, or that of one key, whatever the others are.
fn texts(found: &Projection, only: Option<&str>) -> Result<BTreeMap<String, String>, SpecError> {
    let data = found.content.get("data").and_then(Value::as_object).into_iter().flatten();
    let wanted = data.filter(|(key, _)| only.is_none_or(|only| only == key.as_str()));
    wanted
        .map(|(key, text)| {
            let text = text.as_str().unwrap_or_default();
            if !found.is_secret() {
                return Ok((key.clone(), text.to_owned()));
            }
            let decoded = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let problem = || {
                refused(Reason::ManifestInvalid, "spec.source.secretRef", format!("key {key} is not text"))
            };
            decoded.map(|text| (key.clone(), text)).ok_or_else(problem)
        })
        .collect()
}

impl SourceReading {
    /// Takes the documents of one text.
    pub(super) fn read_text(&mut self, place: &str, text: &str) -> Result<(), SpecError> {
        let documents = parse_documents(place, text).map_err(|error| {
            let (line, column) = error.position();
            // What is in a Secret is repeated nowhere.
            let what = if self.secret.is_some() { "not YAML" } else { error.message() };
            let problem = format!("{place}: at line {line} column {column}: {what}");
            if error.is_too_large() {
                let most = limits::SYNC_OBJECTS;
                let problem = format!("{problem}; {most} objects are allowed: split it into several Syncs");
                return refused(Reason::TooLarge, "spec.source", problem);
            }
            refused(Reason::ManifestInvalid, "spec.source", problem)
        })?;
        for (index, body) in documents.into_iter().enumerate() {
            self.take(&format!("{place}[{index}]"), body)?;
        }
        Ok(())
    }

    /// Takes one document; a List is opened.
    fn take(&mut self, place: &str, body: Value) -> Result<(), SpecError> {
        if body.get("sops").is_some() {
            let problem = format!(
                "{place} is encrypted with SOPS, which is not undone here: decrypt it in CI, or let Flux apply it and \
                 depend on its Kustomization as an object"
            );
            return Err(refused(Reason::SourceUnsupported, "spec.source", problem));
        }
        let api = body.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if api.starts_with("kustomize.config.k8s.io/") {
            let problem = format!(
                "{place} is for kustomize, which is not run here: render it in CI (kustomize build DIR), or depend on a \
                 Flux Kustomization as an object"
            );
            return Err(refused(Reason::SourceUnsupported, "spec.source", problem));
        }
        let is_list = body.get("kind").and_then(Value::as_str) == Some("List")
            && body.get("apiVersion").and_then(Value::as_str) == Some("v1");
        if let Some(items) = body.get("items").and_then(Value::as_array).filter(|_| is_list) {
            for (index, item) in items.iter().enumerate() {
                self.take(&format!("{place}.items[{index}]"), item.clone())?;
            }
            return Ok(());
        }
        if self.bodies.len() <= limits::SYNC_OBJECTS {
            self.bodies.push((place.to_owned(), body));
        }
        Ok(())
    }
}
