//! Sources that are fetched: a web server's file, an OCI artifact, what Flux has fetched.
//!
//! What is fetched is a question like any other; who fetches is not known here. Credentials, and the Flux object, are read
//! as the Sync's own identity.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_api::sync::{
    SyncSource,
    source::{FluxKind as FluxWord, FluxRef, SecretName},
};
use linchpin_engine::{
    contract::{Artifact, Question, ReadSet, Seen, Want},
    plan::SpecError,
};
use linchpin_words::{
    Gvk, KindWord, Reason, Shared,
    probe::Origin,
    source::{FluxSourceKind, Locator, OciReference, SecretData, Source},
};
use serde_json::Value;

use super::{SourceReading, refused, version_like};
use crate::{
    assemble::Frame,
    errors::{at, duration, not_yet},
    kinds::KindMeaning,
};

/// How often a source is looked at, where nothing is said.
const INTERVAL: Duration = Duration::from_mins(5);
/// How long one fetch may take, where nothing is said.
const TIMEOUT: Duration = Duration::from_mins(1);
const SECOND: Duration = Duration::from_secs(1);

/// Reads a source that somebody has to fetch.
pub(super) fn read(frame: &Frame<'_>, source: &SyncSource) -> Result<SourceReading, SpecError> {
    let (locator, secret, strip, field) = if let Some(http) = &source.http {
        let locator = Locator::Http { url: http.url.clone(), digest: http.digest.clone() };
        let strip = http.strip_components.unwrap_or_default();
        (locator, http.secret_ref.as_ref(), strip, "spec.source.http")
    } else if let Some(oci) = &source.oci {
        let reference = match (&oci.tag, &oci.digest) {
            (Some(tag), None) => OciReference::Tag(tag.clone()),
            (None, Some(digest)) => OciReference::Digest(digest.clone()),
            _ => return Err(at("spec.source.oci", "give exactly one of tag and digest")),
        };
        let locator = Locator::Oci { url: oci.url.clone(), reference, media_type: oci.media_type.clone() };
        (locator, oci.secret_ref.as_ref(), 0, "spec.source.oci")
    } else if let Some(flux) = &source.flux_ref {
        (flux_artifact(frame, flux)?, None, 0, "spec.source.fluxRef")
    } else {
        return Err(at("spec.source", linchpin_api::sync::source::ONE_SOURCE));
    };
    let secret = secret.map(|secret| credentials(frame, secret, field)).transpose()?;
    let bounded = |text, name: &str, otherwise: Duration, least: Duration, most: Duration| {
        let field = format!("spec.source.{name}");
        let length = duration(text, &field)?.unwrap_or(otherwise);
        let fits = least <= length && length <= most;
        fits.then_some(length).ok_or_else(|| at(&field, format!("it is between {least:?} and {most:?}")))
    };
    let (minute, hour) = (60 * SECOND, 3600 * SECOND);
    let interval = bounded(source.interval.as_ref(), "interval", INTERVAL, 10 * SECOND, 24 * hour)?;
    let timeout = bounded(source.timeout.as_ref(), "timeout", TIMEOUT, SECOND, 5 * minute)?;
    let source = Source {
        locator,
        paths: source.paths.clone(),
        strip_components: u32::try_from(strip).unwrap_or_default(),
        secret,
    };
    let question =
        Question::Artifact { via: frame.via.clone(), source: Shared::new(source), interval, timeout };
    let waits = |reason: Reason, problem: String| at(field, problem).because(reason).waiting();
    match frame.kinds.ask(Want::new(question)) {
        Some(Seen::Artifact(artifact)) => artifact_read(artifact, field),
        Some(Seen::Unknown(why)) if !why.is_passing() => Err(waits(why.reason, why.message.clone())),
        _ => Err(not_yet(field)),
    }
}

/// What was fetched; what is wrong with it, where nothing of it may be used.
fn artifact_read(artifact: &Artifact, field: &str) -> Result<SourceReading, SpecError> {
    let fault = artifact.fault.as_ref();
    if let Some(fault) = fault.filter(|fault| fault.refused) {
        return Err(refused(fault.reason, field, fault.message.clone()));
    }
    let Some(content) = &artifact.content else {
        return Err(match fault {
            Some(fault) => at(field, fault.message.clone()).because(fault.reason).waiting(),
            None => not_yet(field),
        });
    };
    let mut reading = SourceReading {
        revision: content.revision.clone(),
        // A tag, or what Flux calls a revision before its `@`.
        version: content.revision.split('@').next().and_then(version_like),
        digest: Some(content.digest.clone()),
        size: i64::try_from(content.size).ok(),
        fetched: Some(content.fetched),
        stale: fault.map(|fault| (fault.reason, fault.message.clone())),
        ..SourceReading::default()
    };
    for (path, text) in &content.files {
        reading.read_text(if path.is_empty() { "the source" } else { path }, text)?;
    }
    Ok(reading)
}

/// The data of a Secret of the Sync's own namespace.
fn credentials(frame: &Frame<'_>, named: &SecretName, field: &str) -> Result<SecretData, SpecError> {
    let field = format!("{field}.secretRef");
    let namespace = &frame.owner.namespace;
    let gvk = Gvk::new("", "v1", "Secret");
    let want =
        Want::object(frame.via.clone(), gvk, Some(namespace.clone()), &named.name, ReadSet::dotted(["data"]));
    let missing = |reason: Reason, why: &str| {
        let problem = format!("the credentials of the source, Secret {namespace}/{}, {why}", named.name);
        at(field.clone(), problem).because(reason).waiting()
    };
    let found = match frame.kinds.ask(want) {
        None => return Err(not_yet(&field)),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet(&field)),
        Some(Seen::Unknown(why)) => {
            return Err(missing(why.reason, &format!("cannot be read: {}", why.message)));
        }
        Some(Seen::Objects(observed)) => observed.items.first(),
        Some(_) => None,
    };
    let found = found.ok_or_else(|| missing(Reason::SourceNotFound, "isn't present"))?;
    let data = found.content.get("data").and_then(Value::as_object).into_iter().flatten();
    let data: BTreeMap<String, Vec<u8>> =
        data.filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?))).collect();
    Ok(SecretData::new(Origin { uid: found.uid.clone(), version: found.version }, data))
}

/// Where Flux keeps what it has fetched.
fn flux_artifact(frame: &Frame<'_>, flux: &FluxRef) -> Result<Locator, SpecError> {
    let field = "spec.source.fluxRef";
    let kind = match flux.kind {
        FluxWord::GitRepository => FluxSourceKind::GitRepository,
        FluxWord::OCIRepository => FluxSourceKind::OciRepository,
        FluxWord::Bucket => FluxSourceKind::Bucket,
        FluxWord::ExternalArtifact => FluxSourceKind::ExternalArtifact,
    };
    let namespace = flux.namespace.as_ref().unwrap_or(&frame.owner.namespace).clone();
    let what = format!("{} {namespace}/{}", kind.as_str(), flux.name);
    let missing = |reason: Reason, why: String| {
        at(field, format!("the source, {what}, {why}")).because(reason).waiting()
    };
    let word =
        KindWord { group: Some("source.toolkit.fluxcd.io".to_owned()), ..KindWord::new(kind.as_str()) };
    let served = match frame.kinds.resolve(&frame.via, &word).map_err(|problem| at(field, problem))? {
        KindMeaning::Known(known) => known,
        KindMeaning::Open(want) => {
            return Err(match frame.kinds.ask(want) {
                Some(Seen::Kind(_)) => {
                    missing(Reason::KindNotServed, "is of a kind that the cluster does not serve".to_owned())
                }
                _ => not_yet(field),
            });
        }
    };
    let reads =
        ReadSet::dotted(["status.artifact.url", "status.artifact.revision", "status.artifact.digest"]);
    let want = Want::object(frame.via.clone(), served.gvk, Some(namespace.clone()), &flux.name, reads);
    let found = match frame.kinds.ask(want) {
        None => return Err(not_yet(field)),
        Some(Seen::Unknown(why)) if why.is_passing() => return Err(not_yet(field)),
        Some(Seen::Unknown(why)) => {
            return Err(missing(why.reason, format!("cannot be read: {}", why.message)));
        }
        Some(Seen::Objects(observed)) => observed.items.first(),
        Some(_) => None,
    };
    let found = found.ok_or_else(|| missing(Reason::SourceNotFound, "isn't present".to_owned()))?;
    let text = |key: &str| {
        let value = found.content.pointer(&format!("/status/artifact/{key}")).and_then(Value::as_str);
        value.map(str::to_owned).unwrap_or_default()
    };
    let (url, revision, digest) = (text("url"), text("revision"), text("digest"));
    if url.is_empty() || revision.is_empty() {
        return Err(missing(Reason::SourceNotFound, "has no artifact yet".to_owned()));
    }
    Ok(Locator::Flux { kind, namespace, name: flux.name.clone(), url, revision, digest })
}
