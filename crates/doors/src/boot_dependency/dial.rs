//! The question behind a `service` or `host` entry.
//!
//! What the API server knows is asked of it, as the object's own identity: the Service and its EndpointSlices. What it
//! does not know is probed: hosts, requests, Services that select no pods, and Services that the identity may not read,
//! which are then dialled by name as the document does. A Secret or ConfigMap that an entry refers to is read as the
//! same identity; while it is not there, it is what the entry waits for.

use std::net::{IpAddr, SocketAddr};

use linchpin_api::{BootEntry, boot_dependency::HttpScheme};
use linchpin_engine::{
    contract::{ProbePace, Question, ReadSet, Right, Scope, Seen, Selector, Want},
    plan::{Obstacle, Test},
    readiness::Wanted,
    rights::{self, RightResource},
};
use linchpin_words::{
    Gvk, Reason, Shared,
    probe::{Origin, Probe, ProbeError, ProbeRequest, ProbeTarget, ProbeText as ProbeValue, Tls},
};
use serde_json::Value;

use super::{
    address::address,
    references::{self, KeyReference},
    service::{self, SERVICE_LABEL, SERVICE_READS, SLICE_READS, ServiceBackend},
};
use crate::assemble::Frame;

/// What is asked for an entry, and what must be true of the answer.
pub(super) struct Dialled {
    pub(super) want: Want,
    pub(super) test: Test,
    pub(super) held: Option<Obstacle>,
    pub(super) rights: Vec<Right>,
    /// What may not be read, where that is why it is dialled.
    pub(super) forbidden: Option<String>,
}

impl Dialled {
    /// Whatever the question is, its answer must be a good one.
    fn plain(want: Want) -> Self {
        Self { want, test: Test::default(), held: None, rights: Vec::new(), forbidden: None }
    }

    /// An object that must exist.
    fn object(want: Want, held: Option<Obstacle>) -> Self {
        let test = Test { state: Some(Wanted::Exists), ..Test::default() };
        Self { want, test, held, rights: Vec::new(), forbidden: None }
    }
}

/// The question of an entry; the error says what about it cannot be asked.
pub(super) fn question(
    frame: &Frame<'_>,
    entry: &BootEntry,
    cluster_domain: &str,
) -> Result<Dialled, ProbeError> {
    let own = &frame.owner.namespace;
    let port = entry.port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
    let Some((name, _)) = address(entry, own, cluster_domain) else {
        return Err(ProbeError::Host("an entry without service and host".to_owned()));
    };
    let Some(service) = &entry.service else {
        return probe(frame, entry, ProbeTarget::host(&name, port)?, &name);
    };
    let namespace = entry.namespace.as_deref().unwrap_or(own);
    let (service_want, service_rights) =
        wanted(frame, &SERVICE, namespace, Which::Named(service), &SERVICE_READS);
    let (slices_want, slice_rights) = wanted(frame, &SLICE, namespace, Which::Of(service), &SLICE_READS);
    let rights: Vec<Right> = service_rights.into_iter().chain(slice_rights).collect();
    let (seen_service, seen_slices) =
        (frame.kinds.ask(service_want.clone()), frame.kinds.ask(slices_want.clone()));
    let dialled = match (seen_service, seen_slices) {
        (Some(Seen::Objects(found)), _) if found.items.is_empty() => Dialled::object(service_want, None),
        (Some(Seen::Objects(found)), Some(Seen::Objects(slices))) => {
            let slices: Vec<&Value> = slices.items.iter().map(|slice| &slice.content).collect();
            let spec = found.items.first().map_or(&Value::Null, |service| &service.content);
            match service::behind(spec, &slices, i32::from(port)) {
                ServiceBackend::Nobody(obstacle) => Dialled::object(service_want, Some(obstacle)),
                ServiceBackend::Ready(_) if entry.http_path.is_none() => Dialled::object(service_want, None),
                ServiceBackend::Ready(addresses) | ServiceBackend::Claimed(addresses) => {
                    match places(&addresses) {
                        Some(place) => probe(frame, entry, place, &name)?,
                        None => Dialled::object(service_want, Some(unusable())),
                    }
                }
                ServiceBackend::Elsewhere(host) => {
                    probe(frame, entry, ProbeTarget::host(&host, port)?, &name)?
                }
            }
        }
        // The document's way, for who may not read what the API server knows.
        (Some(Seen::Unknown(why)), _) | (_, Some(Seen::Unknown(why))) if why.reason == Reason::Forbidden => {
            let forbidden = format!(
                "{}; a Role with services and endpointslices.discovery.k8s.io, verbs [get, list, watch], in namespace \
                 {namespace} lets the API server answer more",
                why.message
            );
            let dialled = probe(frame, entry, ProbeTarget::host(&name, port)?, &name)?;
            Dialled { forbidden: Some(forbidden), ..dialled }
        }
        (Some(Seen::Objects(_)), _) => Dialled::plain(slices_want),
        _ => Dialled::object(service_want, None),
    };
    Ok(Dialled { rights: dialled.rights.into_iter().chain(rights).collect(), ..dialled })
}

/// Kinds that are read for an entry.
struct Read<'k> {
    group: &'static str,
    kind: &'k str,
    plural: &'static str,
}

const SERVICE: Read<'static> = Read { group: "", kind: "Service", plural: "services" };
const SLICE: Read<'static> =
    Read { group: "discovery.k8s.io", kind: "EndpointSlice", plural: "endpointslices" };

/// Which objects of a kind.
#[derive(Clone, Copy)]
enum Which<'a> {
    /// One, by name.
    Named(&'a str),
    /// The slices of a Service.
    Of(&'a str),
}

/// The question for objects, and the rights that asking it needs.
fn wanted(
    frame: &Frame<'_>,
    read: &Read<'_>,
    namespace: &str,
    which: Which<'_>,
    paths: &[&str],
) -> (Want, Vec<Right>) {
    let place = Some(namespace.to_owned());
    let scope = match which {
        Which::Named(name) => Scope::Name { namespace: place, name: name.to_owned() },
        Which::Of(service) => {
            let selector = Selector::requirements(vec![format!("{SERVICE_LABEL}={service}")]);
            Scope::Labels { namespace: place, selector }
        }
    };
    let kind = Gvk::new(read.group, "v1", read.kind);
    let resource =
        RightResource { group: read.group.to_owned(), plural: read.plural.to_owned(), namespaced: true };
    let rights = rights::observing(&resource, &kind, &scope);
    let reads = ReadSet::dotted(paths.iter().copied());
    (Want::new(Question::Objects { via: frame.via.clone(), kind, scope, reads }), rights)
}

/// The addresses that are dialled; none where they are no addresses of the network.
fn places(addresses: &[(String, i32)]) -> Option<ProbeTarget> {
    let addresses: Vec<SocketAddr> = addresses
        .iter()
        .filter_map(|(address, port)| {
            Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, u16::try_from(*port).ok()?))
        })
        .collect();
    (!addresses.is_empty()).then_some(ProbeTarget::Addresses(addresses))
}

fn unusable() -> Obstacle {
    Obstacle { reason: Reason::NoEndpoints, message: "no endpoint has an IP address".to_owned() }
}

/// A connection, or a request at `name`.
fn probe(
    frame: &Frame<'_>,
    entry: &BootEntry,
    place: ProbeTarget,
    name: &str,
) -> Result<Dialled, ProbeError> {
    let request = match &entry.http_path {
        None => None,
        Some(path) => match request(frame, entry, path, name)? {
            Made::Request(request) => Some(request),
            Made::WaitsFor(dialled) => return Ok(*dialled),
        },
    };
    let probe = Shared::new(Probe { place, request });
    Ok(Dialled::plain(Want::new(Question::Probe { via: frame.via.clone(), probe, pace: ProbePace::Calm })))
}

/// A request, or what is missing for it.
enum Made {
    Request(ProbeRequest),
    WaitsFor(Box<Dialled>),
}

fn request(frame: &Frame<'_>, entry: &BootEntry, path: &str, name: &str) -> Result<Made, ProbeError> {
    let mut request = ProbeRequest::get(&format!("{name}:{}", entry.port.unwrap_or_default()), path)?;
    if let Some(method) = &entry.http_method {
        request = request.method(method)?;
    }
    let mut referred = references::headers(entry);
    for header in &entry.http_headers {
        let from = header.value_from.as_ref().and_then(|_| referred.next());
        let value = match (&header.value, from) {
            (Some(text), _) => ProbeValue::literal(text.clone()),
            (None, Some(key)) => match value(frame, &key) {
                Ok(value) => value,
                Err(missing) => return Ok(Made::WaitsFor(missing)),
            },
            (None, None) => ProbeValue::literal(""),
        };
        request = request.header(&header.name, value)?;
    }
    let statuses = entry.http_expected_statuses.iter().filter_map(|status| u16::try_from(*status).ok());
    request = request.expect(statuses)?;
    if entry.http_scheme != Some(HttpScheme::Https) {
        return Ok(Made::Request(request));
    }
    let roots = match references::bundle(entry).map(|bundle| value(frame, &bundle)).transpose() {
        Ok(roots) => roots,
        Err(missing) => return Ok(Made::WaitsFor(missing)),
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let name = entry.server_name.clone().unwrap_or_else(|| bare.to_owned());
    let tls = Tls { name, insecure: entry.insecure == Some(true), roots };
    Ok(Made::Request(request.over(tls)))
}

/// A value of a Secret or ConfigMap; or the question that must be answered first.
fn value(frame: &Frame<'_>, reference: &KeyReference<'_>) -> Result<ProbeValue, Box<Dialled>> {
    let KeyReference { holder, name, .. } = *reference;
    let gvk = holder.kind();
    let kind = Read { group: "", kind: &gvk.kind, plural: holder.plural() };
    let (want, rights) = wanted(frame, &kind, &frame.owner.namespace, Which::Named(name), &["data"]);
    let waits = |held: Option<Obstacle>| {
        Box::new(Dialled { rights: rights.clone(), ..Dialled::object(want.clone(), held) })
    };
    let Some(Seen::Objects(found)) = frame.kinds.ask(want.clone()) else {
        return Err(waits(None));
    };
    let Some(object) = found.items.first() else {
        return Err(waits(Some(reference.absent())));
    };
    let text = reference.read(&object.content).map_err(|obstacle| waits(Some(obstacle)))?;
    Ok(ProbeValue::read_from(Origin { uid: object.uid.clone(), version: object.version }, text))
}
