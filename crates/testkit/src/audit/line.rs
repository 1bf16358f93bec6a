//! One line of an audit log: who asked what, and of our own kinds' objects what the witness needs of their content.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::Event;

/// A request with its answer.
pub(super) struct Line {
    pub(super) event: Event,
    /// Groups that the impersonated user was given.
    pub(super) groups: Vec<String>,
    /// What was sent, if it was an object.
    pub(super) sent: Option<AuditObject>,
    /// What was answered, if it was an object.
    pub(super) returned: Option<AuditObject>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    verb: String,
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    request_received_timestamp: String,
    stage_timestamp: String,
    user: User,
    impersonated_user: Option<User>,
    object_ref: Reference,
    response_status: Answer,
    #[serde(deserialize_with = "map")]
    request_object: Option<AuditObject>,
    #[serde(deserialize_with = "map")]
    response_object: Option<AuditObject>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    username: String,
    groups: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Reference {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    code: u64,
    message: String,
}

/// What is read of an object. A list, and a patch that is one, is none.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct AuditObject {
    pub(super) metadata: AuditMetadata,
    #[serde(deserialize_with = "map")]
    pub(super) spec: Option<Spec>,
    /// Of an answer that is no object it is a word.
    #[serde(deserialize_with = "map")]
    pub(super) status: Option<AuditStatus>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct AuditMetadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) generation: i64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) service_account_name: Option<String>,
    /// Of kinds without a namespace.
    pub(super) service_account: Option<AuditAccount>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct AuditAccount {
    pub(super) namespace: String,
    pub(super) name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AuditStatus {
    pub(super) observed_generation: i64,
}

/// A map, or nothing where there is something else. What is not needed of it is passed over, however deep it is.
fn map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    struct Map<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object, or something else")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E: de::Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E: de::Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E: de::Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Map(PhantomData))
}

impl Line {
    /// A line, if it is whole.
    pub(super) fn read(line: &str) -> Option<Self> {
        let written: Written = serde_json::from_str(line).ok()?;
        let (acting_as, groups) = written.impersonated_user.map(|user| (user.username, user.groups)).unzip();
        let event = Event {
            verb: written.verb,
            group: written.object_ref.api_group,
            resource: written.object_ref.resource,
            namespace: written.object_ref.namespace,
            name: written.object_ref.name,
            subresource: written.object_ref.subresource,
            user: written.user.username,
            acting_as,
            code: written.response_status.code,
            message: written.response_status.message,
            stage: written.stage,
            received: written.request_received_timestamp,
            written: written.stage_timestamp,
            uri: written.uri,
        };
        let groups = groups.unwrap_or_default();
        Some(Self { event, groups, sent: written.request_object, returned: written.response_object })
    }
}
