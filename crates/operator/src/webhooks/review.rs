//! AdmissionReviews: read from whatever arrives, and answered.
//!
//! Objects stay raw JSON: nothing is lost by a version of Kubernetes that is newer than we are. Nothing of what was sent
//! is repeated in an error.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use linchpin_doors::json_patch::PatchOperation;
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Review {
    /// What the answer must name.
    pub(crate) uid: String,
    /// Whether the object is new.
    pub(crate) is_creation: bool,
    /// The object's namespace.
    pub(crate) namespace: String,
    /// The object as it would be stored.
    pub(crate) object: Value,
    /// The object as it is stored; null for one that is new.
    pub(crate) old_object: Value,
    /// The object's name; empty for one that is new and gets a name yet.
    pub(crate) name: String,
    /// Who asks.
    pub(crate) user: String,
    /// The groups of who asks.
    pub(crate) groups: Vec<String>,
    /// Whether nothing is to happen in earnest.
    pub(crate) dry_run: bool,
    /// With which options; null where there are none.
    pub(crate) options: Value,
}

/// Why a request is no AdmissionReview that is understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreadableReview {
    /// Not JSON, too deep, or without what every review has.
    #[error("the body is no AdmissionReview of {API_VERSION}")]
    NoReview,
    /// Without a uid there is no answer.
    #[error("the review has no uid")]
    NoUid,
    /// It is about another kind than is served at this path.
    #[error("the review is about another kind than this path is for")]
    OtherKind,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    api_version: String,
    kind: String,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    user_info: UserInfo,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    options: Value,
}

#[derive(Default, Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    groups: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
struct Kind {
    #[serde(default)]
    group: String,
    #[serde(default)]
    kind: String,
}

/// Reads a review about objects of a kind. JSON that is nested more than 128 levels deep is not read.
pub(crate) fn read(body: &[u8], group: &str, kind: &str) -> Result<Review, UnreadableReview> {
    let envelope: Envelope = serde_json::from_slice(body).map_err(|_| UnreadableReview::NoReview)?;
    if envelope.api_version != API_VERSION || envelope.kind != "AdmissionReview" {
        return Err(UnreadableReview::NoReview);
    }
    let request = envelope.request;
    if request.uid.is_empty() {
        return Err(UnreadableReview::NoUid);
    }
    if request.kind.group != group || request.kind.kind != kind {
        return Err(UnreadableReview::OtherKind);
    }
    Ok(Review {
        uid: request.uid,
        is_creation: request.operation == "CREATE",
        namespace: request.namespace,
        object: request.object,
        old_object: request.old_object,
        name: request.name.unwrap_or_default(),
        user: request.user_info.username.unwrap_or_default(),
        groups: request.user_info.groups.unwrap_or_default(),
        dry_run: request.dry_run.unwrap_or_default(),
        options: request.options,
    })
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReviewVerdict {
    /// Why it is refused; none where it is allowed.
    pub(crate) refusal: Option<String>,
    /// What is changed.
    pub(crate) patch: Vec<PatchOperation>,
    /// The message to the user.
    pub(crate) warnings: Vec<String>,
    /// The whole status of a refusal that says more than 403.
    pub(crate) status: Option<Value>,
}

impl ReviewVerdict {
    /// Allowed, with these changes.
    pub(crate) fn patched(patch: Vec<PatchOperation>) -> Self {
        Self { patch, ..Self::default() }
    }

    /// The word for it in metrics.
    pub(crate) fn outcome(&self) -> &'static str {
        match (self.refusal.is_some() || self.status.is_some(), self.patch.is_empty()) {
            (true, _) => "denied",
            (false, true) => "allowed",
            (false, false) => "patched",
        }
    }

    /// The answer to a review.
    pub(crate) fn answer(&self, uid: &str) -> Value {
        let allowed = self.refusal.is_none() && self.status.is_none();
        let mut response = json!({"uid": uid, "allowed": allowed});
        if let Some(status) = &self.status {
            response["status"] = status.clone();
        } else if let Some(message) = &self.refusal {
            response["status"] = json!({"code": 403, "reason": "Forbidden", "message": message});
        } else if let (false, Ok(patch)) = (self.patch.is_empty(), serde_json::to_vec(&self.patch)) {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch));
        }
        if !self.warnings.is_empty() {
            response["warnings"] = json!(self.warnings);
        }
        json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_read_and_its_answer_names_it() {
        let body = json!({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": {
            "uid": "u", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "operation": "CREATE",
            "namespace": "shop", "object": {"newer": [1]}, "userInfo": {"username": "x"}}});
        let review = read(body.to_string().as_bytes(), "apps", "Deployment").unwrap();
        assert!(review.is_creation && review.object == json!({"newer": [1]}) && review.old_object.is_null());
        let refused = ReviewVerdict { refusal: Some("no".into()), ..ReviewVerdict::default() }.answer("u");
        assert_eq!(refused["response"]["status"]["code"], 403);
        assert_eq!(refused["response"]["uid"], "u");
        assert_eq!(read(body.to_string().as_bytes(), "", "Pod"), Err(UnreadableReview::OtherKind));
    }

    #[test]
    fn hostile_reviews_are_refused_and_never_a_panic() {
        let deep = |levels: usize| {
            format!(
                r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"kind":"Pod"}},"object":{}{}}}}}"#,
                "[".repeat(levels),
                "]".repeat(levels)
            )
        };
        assert!(read(deep(100).as_bytes(), "", "Pod").is_ok());
        for body in [
            String::new(),
            "null".into(),
            "[]".into(),
            "\u{0}".into(),
            "{\"apiVersion\":1}".into(),
            deep(10_000),
            "[".repeat(1_000_000),
            format!(r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview"}}"#),
            format!(r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":null}}"#),
            format!(r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{"uid":7}}}}"#),
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}"#
                .into(),
        ] {
            assert_eq!(read(body.as_bytes(), "", "Pod"), Err(UnreadableReview::NoReview), "{body:.80}");
        }
        let nameless = format!(r#"{{"apiVersion":"{API_VERSION}","kind":"AdmissionReview","request":{{}}}}"#);
        assert_eq!(read(nameless.as_bytes(), "", "Pod"), Err(UnreadableReview::NoUid));
        assert_eq!(read(&[0xff, 0xfe], "", "Pod"), Err(UnreadableReview::NoReview));
    }
}
