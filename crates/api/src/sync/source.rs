//! Where the objects of a Sync come from.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{app_bundle::component::SourceRef, common::DurationText, schema};

/// What is said of a source that names none, or several.
pub const ONE_SOURCE: &str = "give exactly one of objects, configMapRef, secretRef, http, oci and fluxRef";

/// Where objects come from: exactly one of objects, configMapRef, secretRef, http, oci and fluxRef.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("(has(self.objects) ? 1 : 0) + (has(self.configMapRef) ? 1 : 0) + (has(self.secretRef) ? 1 : 0) + \
      (has(self.http) ? 1 : 0) + (has(self.oci) ? 1 : 0) + (has(self.fluxRef) ? 1 : 0) == 1", ONE_SOURCE),
    ("!has(self.paths) || has(self.http) || has(self.oci) || has(self.fluxRef)",
     "paths goes with archives only: http, oci and fluxRef"),
    ("!has(self.interval) || has(self.http) || (has(self.oci) && has(self.oci.tag))",
     "interval goes with http, and oci by tag: everything else is followed by events or never changes"),
    ("!has(self.interval) || (duration(self.interval) >= duration('10s') && duration(self.interval) <= duration('24h'))",
     "interval is between 10s and 24h"),
    ("!has(self.timeout) || has(self.http) || has(self.oci) || has(self.fluxRef)",
     "timeout is that of one fetch: it goes with http, oci and fluxRef"),
    ("!has(self.timeout) || (duration(self.timeout) >= duration('1s') && duration(self.timeout) <= duration('5m'))",
     "timeout is between 1s and 5m"),
])))]
pub struct SyncSource {
    /// Objects that are written here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "objects")]
    pub objects: Option<Vec<Map<String, Value>>>,
    /// A ConfigMap of the Sync's own namespace whose values are YAML documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<SourceRef>,
    /// A Secret of the Sync's own namespace whose values are YAML documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SourceRef>,
    /// A file of a web server: a gzipped tar, a zip or plain YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSource>,
    /// An artifact of an OCI registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<OciSource>,
    /// A source of Flux, whose source-controller fetches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux_ref: Option<FluxRef>,
    /// Directories, with all that is in them, or files of an archive. All of it if omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::SOURCE_PATHS),
        inner(length(min = 1, max = limits::ENTRY_NAME)),
        extend("x-kubernetes-list-type" = "set"),
        extend("x-kubernetes-validations" = schema::rules(&[(
            "self.all(path, !path.startsWith('/') && !path.split('/').exists(part, part == '..'))",
            "a path is not absolute and has no ..",
        )]))
    )]
    pub paths: Vec<String>,
    /// How often http, and oci by tag, are looked at: 10s to 24h, 5m if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<DurationText>,
    /// How long one fetch may take: 1s to 5m, 60s if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
}

/// What a digest looks like.
const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// A file of a web server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpSource {
    /// Where it is: https, or http where the administrator allows that.
    #[schemars(
        length(min = 1, max = limits::SOURCE_URL),
        extend("x-kubernetes-validations" = schema::rules(&[
            ("self.startsWith('https://') || self.startsWith('http://')", "write an https:// or http:// URL"),
            ("!self.contains('#') && !self.split('/')[2].contains('@')",
             "a URL has no user and no fragment here: credentials belong into secretRef"),
        ]))
    )]
    pub url: String,
    /// What it must hash to: sha256: and 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), pattern(DIGEST))]
    pub digest: Option<String>,
    /// How many leading directories are taken off the names in an archive; 1 for what forges make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = limits::SOURCE_STRIP))]
    pub strip_components: Option<i32>,
    /// A Secret of the Sync's own namespace with username and password, bearerToken, ca.crt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
}

/// An artifact of a registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.tag) != has(self.digest)", "give exactly one of tag and digest"),
])))]
pub struct OciSource {
    /// The repository, as oci://host/name.
    #[schemars(
        length(min = 1, max = limits::SOURCE_URL),
        extend("x-kubernetes-validations" = schema::rules(&[
            ("self.startsWith('oci://')", "write an oci:// URL"),
            ("!self.contains('#') && !self.split('/')[2].contains('@')",
             "a URL has no user and no fragment here: credentials belong into secretRef"),
        ]))
    )]
    pub url: String,
    /// The tag, which is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::VERSION))]
    pub tag: Option<String>,
    /// The digest, which never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), pattern(DIGEST))]
    pub digest: Option<String>,
    /// The media type of the layer that is used; the first gzipped tar of the usual types if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub media_type: Option<String>,
    /// A Secret of the Sync's own namespace: kubernetes.io/dockerconfigjson, or username and password, bearerToken,
    /// ca.crt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretName>,
}

/// A Secret by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretName {
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
}

/// A source of Flux.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxRef {
    /// Its kind.
    pub kind: FluxKind,
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// Its namespace; the Sync's own if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL))]
    pub namespace: Option<String>,
}

/// The kinds of Flux that have an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FluxKind {
    /// A repository of Git.
    GitRepository,
    /// An OCI artifact.
    OCIRepository,
    /// A bucket of an object store.
    Bucket,
    /// What somebody else publishes.
    ExternalArtifact,
}

impl FluxKind {
    /// The kind's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GitRepository => "GitRepository",
            Self::OCIRepository => "OCIRepository",
            Self::Bucket => "Bucket",
            Self::ExternalArtifact => "ExternalArtifact",
        }
    }
}

/// Objects, each free.
fn objects(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": limits::SYNC_INLINE,
        "x-kubernetes-list-type": "atomic",
        "items": schema::whole_object(generator)
    })
}
