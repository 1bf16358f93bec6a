//! The sources of Syncs that are neither written in them nor given: fetched as this user, from this machine.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_api::sync::SyncSource;
use linchpin_lang::template::parse_documents;
use linchpin_source::{hosts::HostList, http::Reach, request::SourceReach};
use linchpin_words::{
    egress::{Cidr, Egress},
    probe::Origin,
    source::{Locator, OciReference, SecretData, Source},
};
use serde_json::Value;

/// How long one fetch may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Where a user's own requests may go: anywhere, and in the clear where the manifest itself says so, or to this machine.
fn reach(source: &SyncSource) -> Result<Reach> {
    let clear = |url: &str| url.split('/').nth(2).map(|host| format!("*,http://{host}"));
    let hosts = match (&source.http, &source.oci) {
        (Some(http), _) if http.url.starts_with("http://") => clear(&http.url),
        (_, Some(oci)) if ["oci://127.", "oci://localhost"].iter().any(|here| oci.url.starts_with(here)) => {
            clear(&oci.url)
        }
        _ => None,
    };
    let hosts =
        HostList::parse("the manifest", hosts.as_deref().unwrap_or("*")).map_err(anyhow::Error::msg)?;
    let everywhere: Vec<Cidr> = ["0.0.0.0/0", "::/0"].iter().filter_map(|range| range.parse().ok()).collect();
    Ok(Reach { hosts: Arc::new(hosts), egress: Arc::new(Egress::new(Vec::new(), everywhere)) })
}

/// The objects of a source, or why they are not known. `secret` is that of its credentials.
pub(super) async fn objects(source: &SyncSource, secret: Option<&Value>) -> Result<Vec<Value>, String> {
    let reach = reach(source).map_err(|error| error.to_string())?;
    let (locator, strip) = if let Some(http) = &source.http {
        let locator = Locator::Http { url: http.url.clone(), digest: http.digest.clone() };
        (locator, http.strip_components.unwrap_or_default())
    } else if let Some(oci) = &source.oci {
        let reference = match (&oci.tag, &oci.digest) {
            (_, Some(digest)) => OciReference::Digest(digest.clone()),
            (tag, None) => OciReference::Tag(tag.clone().unwrap_or_default()),
        };
        let media_type = oci.media_type.clone();
        (Locator::Oci { url: oci.url.clone(), reference, media_type }, 0)
    } else {
        return Err("what Flux has fetched is read inside of the cluster alone".to_owned());
    };
    let source = Source {
        locator,
        paths: source.paths.clone(),
        strip_components: u32::try_from(strip).unwrap_or_default(),
        secret: secret.map(credentials),
    };
    let reaches = SourceReach { named: reach.clone(), flux: reach };
    let fetched = reaches.fetch(&source, TIMEOUT, None).await.map_err(|problem| problem.message)?;
    let mut objects = Vec::new();
    for manifest in fetched.into_iter().flat_map(|fetched| fetched.manifests) {
        let found = parse_documents(&manifest.path, &manifest.text);
        objects.extend(found.map_err(|error| format!("{}: {}", manifest.path, error.message()))?);
    }
    Ok(objects)
}

/// The data of a Secret, as it is written or as the API server has it.
fn credentials(secret: &Value) -> SecretData {
    let fields = |name: &str| secret.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut data: BTreeMap<String, Vec<u8>> = fields("data")
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(text(value)).ok()?)))
        .collect();
    data.extend(fields("stringData").iter().map(|(key, value)| (key.clone(), text(value).into_bytes())));
    SecretData::new(Origin { uid: String::new(), version: 0 }, data)
}
