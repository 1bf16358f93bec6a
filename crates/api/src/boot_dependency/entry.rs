//! One entry of `dependsOn`: a Service, a host, or any object.

use linchpin_words::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::OnTimeout;
use crate::{common::DurationText, dependency::RequiredObject, schema};

/// The document's default for `timeout`, which the API server stores.
pub(super) const DEFAULT_TIMEOUT: &str = "60s";

/// A DNS label.
const LABEL_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// A host name, an IPv4 address, or an IPv6 address with or without brackets; no scheme, port, zone or user.
const HOST_PATTERN: &str = r"^([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\]|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)$";

/// A name that a certificate can have.
const SERVER_NAME_PATTERN: &str =
    r"^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$";

/// A token of RFC 9110.
const TOKEN_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// What must be there first: a Service, a host or an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    // The document's own rules, word for word.
    ("!has(self.httpScheme) || has(self.httpPath)", "httpScheme requires httpPath to be set"),
    ("!has(self.insecure) || !self.insecure || has(self.httpPath)", "insecure requires httpPath to be set"),
    ("!has(self.httpMethod) || has(self.httpPath)", "httpMethod requires httpPath to be set"),
    ("!has(self.httpHeaders) || self.httpHeaders.size() == 0 || has(self.httpPath)",
     "httpHeaders requires httpPath to be set"),
    ("!has(self.httpExpectedStatuses) || self.httpExpectedStatuses.size() == 0 || has(self.httpPath)",
     "httpExpectedStatuses requires httpPath to be set"),
    ("has(self.resource) || has(self.ref) || has(self.service) != has(self.host)",
     "exactly one of service or host must be specified"),
    // Ours.
    ("!(has(self.resource) || has(self.ref)) || !(has(self.service) || has(self.host))",
     "exactly one of service, host or resource must be specified"),
    ("!(has(self.resource) && has(self.ref))", "give exactly one of resource and ref"),
    ("!(has(self.service) || has(self.host)) || has(self.port)", "port is required with service and host"),
    ("!(has(self.resource) || has(self.ref)) || !(has(self.port) || has(self.httpPath))",
     "port and httpPath go with service and host only"),
    ("!has(self.__namespace__) || !has(self.host)", "namespace goes with service or resource only"),
    ("!(has(self.selector) || has(self.expect) || has(self.group) || has(self.cluster) || has(self.state) \
      || has(self.minReplicas) || has(self.conditions) || has(self.cel)) || has(self.resource) || has(self.ref)",
     "selector, expect, group, cluster, state, minReplicas, conditions and cel go with resource only"),
    ("!has(self.resource) || self.resource.contains('/') != has(self.selector)",
     "resource is kind/name, for example deployment/web; with a selector it is the kind only"),
    ("!has(self.ref) || has(self.ref.name) != has(self.selector)", "ref needs a name, or a selector instead of it"),
    ("!has(self.ref) || !has(self.ref.__namespace__) || !has(self.__namespace__)",
     "give the namespace once, in ref or beside it"),
    ("!has(self.expect) || has(self.selector)", "expect counts what a selector finds; it needs a selector"),
    ("!(has(self.caBundleSecretRef) && has(self.caBundleConfigMapRef))",
     "give one of caBundleSecretRef and caBundleConfigMapRef"),
    ("!(has(self.caBundleSecretRef) || has(self.caBundleConfigMapRef) || has(self.serverName)) \
      || (has(self.httpScheme) && self.httpScheme == 'https')",
     "caBundleSecretRef, caBundleConfigMapRef and serverName require httpScheme: https"),
    // isIP knows no IPv4 address that is written as an IPv6 one.
    ("!has(self.host) || !self.host.contains(':') \
      || [self.host.startsWith('[') ? self.host.substring(1, self.host.size() - 1) : self.host].exists(bare, \
      isIP(bare) || (bare.lowerAscii().startsWith('::ffff:') && isIP('::' + bare.substring(7))))",
     "host is a name or an IP address, without scheme, port, zone or user"),
    ("!has(self.timeout) || (duration(self.timeout) > duration('0s') && duration(self.timeout) <= duration('24h'))",
     "timeout is more than 0s and at most 24h"),
])))]
pub struct BootEntry {
    /// What status and `linchpin.dev/proceed` call it; the target and its port, or the resource, if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL), pattern(schema::NAME_PATTERN))]
    pub name: Option<String>,
    /// A Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL), pattern(LABEL_PATTERN))]
    pub service: Option<String>,
    /// A host outside the cluster: a name or an IP address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME), pattern(HOST_PATTERN))]
    pub host: Option<String>,
    /// The port of the Service or host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// The namespace of the Service or object; this object's own if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::LABEL), pattern(LABEL_PATTERN))]
    pub namespace: Option<String>,
    /// The path of an HTTP request, with its query. Without one a connection is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::PROBE_PATH), pattern("^/[!-~]*$"))]
    pub http_path: Option<String>,
    /// http (the default) or https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HttpScheme")]
    pub http_scheme: Option<HttpScheme>,
    /// The method of the request; GET if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::PROBE_METHOD), pattern("^[A-Z]+$"))]
    pub http_method: Option<String>,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = limits::PROBE_LIST), extend("x-kubernetes-list-type" = "atomic"))]
    pub http_headers: Vec<HttpHeader>,
    /// The statuses that are a good answer; 200 to 299 if omitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = limits::PROBE_LIST),
        inner(range(min = 100, max = 599)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub http_expected_statuses: Vec<i32>,
    /// Whether the certificate of an https server is not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure: Option<bool>,
    /// The certificates that an https server's must come from, in a Secret of the object's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_secret_ref: Option<CaBundleRef>,
    /// The same in a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_config_map_ref: Option<CaBundleRef>,
    /// The name that an https server's certificate must have, if not the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME), pattern(SERVER_NAME_PATTERN))]
    pub server_name: Option<String>,
    /// Which object, and in which state.
    #[serde(flatten)]
    pub object: RequiredObject,
    /// How long a pod waits for this entry: more than 0s, at most 24h; 60s if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// What happens to a pod that has waited so long; as the whole object says if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OnTimeout")]
    pub on_timeout: Option<OnTimeout>,
}

/// How an HTTP request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpScheme {
    /// In the clear.
    #[default]
    Http,
    /// Over TLS.
    Https,
}

impl HttpScheme {
    /// The word itself.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// A header of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = schema::rules(&[
    ("has(self.value) != has(self.valueFrom)", "give exactly one of value and valueFrom"),
    ("!(self.name.lowerAscii() in ['connection', 'content-length', 'transfer-encoding', 'te', 'trailer', 'upgrade', \
      'keep-alive']) && !self.name.lowerAscii().startsWith('proxy-')",
     "Connection, Content-Length, Transfer-Encoding, TE, Trailer, Upgrade, Keep-Alive and Proxy-* cannot be set"),
])))]
pub struct HttpHeader {
    /// Its name.
    #[schemars(length(min = 1, max = limits::PROBE_HEADER_NAME), pattern(TOKEN_PATTERN))]
    pub name: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = limits::PROBE_HEADER_VALUE), pattern(r"^\P{Cc}*$"))]
    pub value: Option<String>,
    /// Where its value is, if it is not for everybody's eyes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ValueFrom>,
}

/// Where a value is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValueFrom {
    /// A key of a Secret of the object's own namespace, which its ServiceAccount may get.
    pub secret_key_ref: KeyRef,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// The Secret's name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// The key.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub key: String,
}

/// A key of a Secret or ConfigMap that holds certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaBundleRef {
    /// Its name.
    #[schemars(length(min = 1, max = limits::NAME))]
    pub name: String,
    /// The key; `ca.crt` if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = limits::NAME))]
    pub key: Option<String>,
}

/// What is said of the object of an entry, which may have a Service or a host instead.
pub(super) const OBJECT: [(&str, &str); 3] = [
    (
        "resource",
        "Any object, as `kind/name`, `kind.group/name` or `plural.group/name`; with a selector, the kind only.",
    ),
    ("cluster", "Where to look for the object. Here if omitted."),
    (
        "state",
        "The state that the object must be in: Exists, Absent, Ready, Completed, Failed, or the name of a condition or \
         phase. If omitted: Exists with cel or conditions, otherwise Ready for kinds whose readiness is known, otherwise \
         Exists.",
    ),
];

/// Fields that have a meaning in a later version: refused rather than dropped, since without them an entry would mean
/// something else.
pub(super) fn not_served() -> [(&'static str, Value); 2] {
    let refused = |rule: &str, message: &str| schema::rules(&[(rule, message)]);
    [
        (
            "followRedirects",
            json!({
                "type": "boolean",
                "description": "Not served yet: redirects are answers and are not followed.",
                "x-kubernetes-validations": refused("!self", "followRedirects is not served yet"),
            }),
        ),
        (
            "grpc",
            json!({
                "type": "object",
                "description": "Not served yet.",
                "properties": {
                    "service": {"type": "string", "maxLength": limits::NAME, "description": "Not served yet."},
                    "tls": {"type": "boolean", "description": "Not served yet."},
                },
                "x-kubernetes-validations": refused("false", "grpc is not served yet"),
            }),
        ),
    ]
}
