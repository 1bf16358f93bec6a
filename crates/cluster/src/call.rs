//! One request and its answer, with the status code and the error object that kube's client hides.
//!
//! Everything here that names an object builds its URL from parts, each of them percent-encoded, so that no user's
//! text can reach another path or add a parameter. Called by discovery, the watch loop, access reviews, events and
//! apply; nobody else spells out a URL.

use crate::transport::TransportError;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::{Client, client::Body, core::Status};
use linchpin_words::Gvk;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{fmt::Write as _, time::Duration};

/// A kind as URLs name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// The kind.
    pub kind: Gvk,
    /// Its plural.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Resource {
    /// A resource from its parts.
    pub fn new(kind: Gvk, plural: impl Into<String>, namespaced: bool) -> Self {
        Self { kind, plural: plural.into(), namespaced }
    }

    /// The path of all objects, in a namespace where the kind has namespaces and one is given.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> ApiUrl {
        let mut url = ApiUrl::new(if self.kind.group.is_empty() { "/api" } else { "/apis" });
        if !self.kind.group.is_empty() {
            url = url.segment(&self.kind.group);
        }
        url = url.segment(&self.kind.version);
        if let (true, Some(namespace)) = (self.namespaced, namespace) {
            url = url.segment("namespaces").segment(namespace);
        }
        url.segment(&self.plural)
    }

    /// The path of one object.
    pub(crate) fn object(&self, namespace: Option<&str>, name: &str) -> ApiUrl {
        self.collection(namespace).segment(name)
    }
}

/// A path and its parameters, encoded as it grows.
#[derive(Clone, Debug)]
pub(crate) struct ApiUrl {
    text: String,
    parameters: bool,
}

impl ApiUrl {
    /// A URL that begins with a fixed path.
    pub(crate) fn new(path: &str) -> Self {
        Self { text: path.to_owned(), parameters: false }
    }

    /// One more segment of the path.
    pub(crate) fn segment(mut self, text: &str) -> Self {
        self.text.push('/');
        encode(text, &mut self.text);
        self
    }

    /// One more parameter.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.text.push(if self.parameters { '&' } else { '?' });
        self.parameters = true;
        encode(name, &mut self.text);
        self.text.push('=');
        encode(value, &mut self.text);
        self
    }

    /// The text of it.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Percent-encodes all but what RFC 3986 leaves alone.
fn encode(text: &str, into: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

/// What a request asks to be answered in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects.
    Full,
    /// Metadata only: less for the server to send and for us to parse.
    Metadata,
    /// A list of metadata.
    MetadataList,
    /// All groups, versions and resources in one document.
    Discovery,
}

impl Form {
    /// What is said in the header Accept.
    pub(crate) const fn accept(self) -> &'static str {
        match self {
            Self::Full => "application/json",
            Self::Metadata => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            Self::MetadataList => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
            Self::Discovery => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;\
                 g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
            }
        }
    }
}

/// Why a request had no success.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The server said no.
    #[error("{}", .0.summary())]
    Refused(Box<Refused>),
    /// There was no (usable) answer.
    #[error("{message}")]
    Unanswered {
        /// What happened.
        message: String,
        /// Whether the server may have got the request.
        maybe_sent: bool,
    },
    /// The answer was larger than any answer may be.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// How large it may be.
        limit: usize,
    },
}

/// A refusal with all that the server said about it.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// HTTP status code.
    pub(crate) code: u16,
    /// The server's error object; made up from the code where the answer was none.
    pub(crate) status: Status,
    /// How long the server asks us to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Refused {
    /// Code and reason: what may be shown whatever was asked. A reason that is not one word is somebody's text.
    pub(crate) fn summary(&self) -> String {
        let reason = &self.status.reason;
        let word = (1..=64).contains(&reason.len()) && reason.bytes().all(|byte| byte.is_ascii_alphabetic());
        if word {
            format!("the API server answered {} {reason}", self.code)
        } else {
            format!("the API server answered {}", self.code)
        }
    }
}

impl CallError {
    /// The refusal, where it is one.
    pub(crate) fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Unanswered { .. } | Self::TooLarge { .. } => None,
        }
    }

    /// Whether the server answered with this code.
    pub(crate) fn is_code(&self, code: u16) -> bool {
        self.refused().is_some_and(|refused| refused.code == code)
    }

    pub(crate) fn from_kube(error: &kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            let refused = Refused { code: status.code, status: (**status).clone(), retry_after: None };
            return Self::Refused(Box::new(refused));
        }
        let cause = TransportError::behind(error);
        if let Some(TransportError::TooLarge(limit)) = cause {
            return Self::TooLarge { limit: *limit };
        }
        let message = cause.map_or_else(|| error.to_string(), ToString::to_string);
        Self::Unanswered { message, maybe_sent: !cause.is_some_and(TransportError::certainly_not_sent) }
    }
}

/// A successful answer.
pub(crate) struct ApiAnswer {
    /// 200, 201 …
    pub(crate) code: StatusCode,
    /// What it holds.
    pub(crate) body: Bytes,
}

impl ApiAnswer {
    /// The body as a value of a type.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, CallError> {
        serde_json::from_slice(&self.body).map_err(|error| CallError::Unanswered {
            message: format!("the answer cannot be read: {}", describe(&error)),
            maybe_sent: true,
        })
    }
}

/// Where a JSON error is, without the text around it, which may be anybody's secret.
fn describe(error: &serde_json::Error) -> String {
    format!("line {}, column {}", error.line(), error.column())
}

/// A request without a body.
pub(crate) fn get(url: &ApiUrl, form: Form) -> Result<Request<Body>, CallError> {
    build(Method::GET, url, form, None)
}

/// A request with a JSON body of the given content type.
pub(crate) fn send_json(
    method: Method,
    url: &ApiUrl,
    content_type: &str,
    body: &Value,
) -> Result<Request<Body>, CallError> {
    send_for(method, url, content_type, body, Form::Full)
}

/// A request with a JSON body, to be answered in a form of its own.
pub(crate) fn send_for(
    method: Method,
    url: &ApiUrl,
    content_type: &str,
    body: &Value,
    form: Form,
) -> Result<Request<Body>, CallError> {
    build(method, url, form, Some((content_type, body)))
}

fn build(
    method: Method,
    url: &ApiUrl,
    form: Form,
    body: Option<(&str, &Value)>,
) -> Result<Request<Body>, CallError> {
    let mut request =
        Request::builder().method(method).uri(url.as_str()).header(header::ACCEPT, form.accept());
    let bytes = match body {
        None => Vec::new(),
        Some((content_type, body)) => {
            request = request.header(header::CONTENT_TYPE, content_type);
            // A line for each field: what is applied is read as YAML, where everything may turn out to be a key until
            // its line ends. A single line is kept in mind as a whole, which takes the API server twice as long.
            let text = if content_type.ends_with("yaml") { format!("{body:#}") } else { body.to_string() };
            text.into_bytes()
        }
    };
    request.body(Body::from(bytes)).map_err(|error| CallError::Unanswered {
        message: format!("no request can be made of this: {error}"),
        maybe_sent: false,
    })
}

/// Sends a request and reads the whole answer.
pub(crate) async fn call(client: &Client, request: Request<Body>) -> Result<ApiAnswer, CallError> {
    let (code, body) = open(client, request).await?;
    let body = body.collect_bytes().await.map_err(|error| CallError::from_kube(&error))?;
    Ok(ApiAnswer { code, body })
}

/// Sends a request and hands over the body of a successful answer while it still arrives.
pub(crate) async fn open(client: &Client, request: Request<Body>) -> Result<(StatusCode, Body), CallError> {
    let answer = client.send(request).await.map_err(|error| CallError::from_kube(&error))?;
    let (parts, body) = answer.into_parts();
    if parts.status.is_success() {
        return Ok((parts.status, body));
    }
    let retry_after = parts
        .headers
        .get(header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|seconds| seconds.parse().ok())
        .map(Duration::from_secs);
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let code = parts.status.as_u16();
    let status = serde_json::from_slice::<Status>(&bytes).unwrap_or_default();
    Err(CallError::Refused(Box::new(Refused { code, status, retry_after })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_the_url() {
        let pods = Resource::new(Gvk::new("", "v1", "Pod"), "pods", true);
        let url = pods.object(Some("shop"), "../../secrets?x=1#");
        assert_eq!(url.as_str(), "/api/v1/namespaces/shop/pods/..%2F..%2Fsecrets%3Fx%3D1%23");
        let roles =
            Resource::new(Gvk::new("rbac.authorization.k8s.io", "v1", "ClusterRole"), "clusterroles", false);
        assert_eq!(
            roles.object(Some("ignored"), "system:node").with("fieldManager", "a b&c").as_str(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode?fieldManager=a%20b%26c"
        );
    }

    #[tokio::test]
    async fn what_is_sent_has_a_line_for_each_field() {
        let maps = Resource::new(Gvk::new("", "v1", "ConfigMap"), "configmaps", true);
        let url = maps.object(Some("shop"), "a");
        let body = serde_json::json!({"metadata": {"name": "a"}, "data": {"text": "one\ntwo"}});
        let request = send_json(Method::PATCH, &url, "application/apply-patch+yaml", &body).unwrap();
        let sent = request.into_body().collect_bytes().await.unwrap();
        let longest = sent.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
        assert!(longest < Some(30), "{sent:?}");
        assert_eq!(serde_json::from_slice::<Value>(&sent).unwrap(), body);
    }
}
